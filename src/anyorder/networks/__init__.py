"""Networks: values and what is known of them in, features for every variable out."""

from anyorder.networks.base import ChainNetwork, MaskNetwork, Network, Walk
from anyorder.networks.bidirectional_transformer import BidirectionalTransformer
from anyorder.networks.causal_transformer import CausalTransformer
from anyorder.networks.gaussian import GaussianNetwork
from anyorder.networks.residual_mlp import ResidualMLP
from anyorder.networks.unet import UNet
from anyorder.support.registry import Registry

networks: Registry[Network] = Registry("anyorder.networks", Network, "network")

__all__ = [
    "BidirectionalTransformer",
    "CausalTransformer",
    "ChainNetwork",
    "GaussianNetwork",
    "MaskNetwork",
    "Network",
    "ResidualMLP",
    "UNet",
    "Walk",
    "networks",
]
