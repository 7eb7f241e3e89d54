"""What the papers compare with: latent-variable models that answer conditional questions by importance sampling, and a
diffusion model that fills pictures.

Nothing else in the package imports this one.
"""

from anyorder.baselines.ddpm import DDPM, RePaint
from anyorder.baselines.latent import LatentModel
from anyorder.baselines.miwae import MIWAE
from anyorder.baselines.schedule import Schedule
from anyorder.baselines.vae import VAE

__all__ = ["DDPM", "MIWAE", "VAE", "LatentModel", "RePaint", "Schedule"]
