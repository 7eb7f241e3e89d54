"""How good pictures are: the scores of fills in one go, and by a small classifier. PSNR and SSIM are scikit-image's.

fill_scores      energy score, PSNR and SSIM of some draws of each picture, and the agreement
agreement        how often a classifier says the same of a fill as of the truth
Frechet          between features of two sets of pictures in the last hidden layer of that classifier. It is trained
                 here and small: this is *not* the FID, whose features are those of Inception on ImageNet
FID              by the package torch-fidelity, where it is installed and Inception's weights are in torch's own cache
"""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from skimage.metrics import peak_signal_noise_ratio, structural_similarity
from torch import Tensor, nn
from torch.utils.data import Dataset

from anyorder.data.images import PictureSet
from anyorder.modalities.images.scores import energy_score

Array = NDArray[np.float64]
CLASSIFIER_STEPS = 3000  # of 128 pictures, about a minute
LEAST_ERROR = 1e-12  # a mean square below this counts as this: the PSNR of a picture that is right has no end


class Classifier(nn.Module):
    """Three convolutions and a hidden layer of 64, whose values are the features."""

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(3),
            nn.Flatten(),
            nn.Linear(576, 64),
            nn.ReLU(),
        )
        self.head = nn.Linear(64, classes)

    def forward(self, pictures: Tensor) -> Tensor:
        out: Tensor = self.head(self.body(pictures))
        return out


def train_classifier(pictures: NDArray[np.uint8], labels: NDArray[np.int64], levels: int, steps: int) -> Classifier:
    """Adam for so many steps, the seed fixed, so that every call has the same classifier."""
    generator = torch.Generator().manual_seed(0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # layers draw their first weights from the global generator
        model = Classifier(int(labels.max()) + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    values = torch.tensor(pictures).float()[:, None] / (levels - 1)
    target = torch.as_tensor(labels).long()
    for _ in range(steps):
        rows = torch.randint(len(values), (128,), generator=generator)
        optimizer.zero_grad()
        F.cross_entropy(model(values[rows]), target[rows]).backward()
        optimizer.step()
    return model.eval()


@torch.no_grad()
def features(model: Classifier, pictures: Array, levels: int) -> tuple[Array, NDArray[np.int64]]:
    """Of every picture: the hidden layer, and the class."""
    hidden, classes = [], []
    for part in torch.as_tensor(pictures).float().split(512):
        inner = model.body(part[:, None] / (levels - 1))
        hidden.append(inner)
        classes.append(model.head(inner).argmax(dim=1))
    return torch.cat(hidden).double().numpy(), torch.cat(classes).numpy()


def classifier_of(data: PictureSet, steps: int = CLASSIFIER_STEPS) -> Classifier | None:
    """A small classifier of a set, if it has labels."""
    if data.training_labels is None:
        return None
    return train_classifier(data.training, data.training_labels, data.levels, steps)


def psnr(guess: Array, truth: Array, most: float) -> float:
    """Mean over pictures, in decibels; ``most`` is the greatest level."""
    highest = 10 * math.log10(most**2 / LEAST_ERROR)
    with np.errstate(divide="ignore"):  # no error at all: infinite, and cut below
        each = [peak_signal_noise_ratio(real, one, data_range=most) for one, real in zip(guess, truth, strict=True)]
    return float(np.minimum(each, highest).mean())


def ssim(guess: Array, truth: Array, most: float) -> float:
    """Mean structural similarity over pictures, in windows of 7 x 7 (Wang et al. 2004)."""
    pairs = zip(guess, truth, strict=True)
    return float(np.mean([structural_similarity(real, one, win_size=7, data_range=most) for one, real in pairs]))


def fill_scores(
    drawn: NDArray[np.float64],
    test: NDArray[np.uint8],
    known: NDArray[np.bool_],
    levels: int,
    classifier: Classifier | None,
) -> dict[str, Any]:
    """All measures of some draws of each picture."""
    truth = test.astype(np.float64)
    mean = np.where(known, truth, drawn.mean(axis=0))
    energies = energy_score(drawn, truth, known, levels - 1)
    out: dict[str, Any] = {
        "energy score": round(float(energies.mean()), 4),
        "its error": round(standard_error(energies), 4),
        "PSNR": round(psnr(mean, truth, levels - 1), 2),
        "SSIM": round(ssim(mean, truth, levels - 1), 4),
        "energies": energies.round(4).tolist(),  # of each picture, so that rows can be compared in pairs
    }
    if classifier is not None:
        of_truth = features(classifier, truth, levels)[1]
        same = [features(classifier, draw, levels)[1] == of_truth for draw in drawn]
        out["agreement"] = round(float(np.mean(same)), 4)
    return out


def frechet(one: Array, other: Array) -> float:
    """Between the Gaussians with the moments of two sets of features: |m - n|^2 + tr(A + B - 2 (A B)^(1/2))."""
    first, second = np.cov(one.T), np.cov(other.T)
    # (A B)^(1/2) has the trace of (R B R)^(1/2), R R = A: symmetric, so a feature that never varies does no harm.
    values, vectors = np.linalg.eigh(first)
    root = vectors * np.sqrt(values.clip(min=0)) @ vectors.T
    shared = np.sqrt(np.linalg.eigvalsh(root @ second @ root).clip(min=0)).sum()
    gap = one.mean(axis=0) - other.mean(axis=0)
    return float(gap @ gap + np.trace(first) + np.trace(second) - 2 * shared)


def inception_distance(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float | None:
    """The real FID of two sets of grey or colour pictures; None where the package or its weights are not at hand.

    Nothing is downloaded: torch-fidelity would fetch 90 MB without asking.
    """
    weights = Path(torch.hub.get_dir()) / "checkpoints" / "weights-inception-2015-12-05-6726825d.pth"
    if importlib.util.find_spec("torch_fidelity") is None or not weights.exists():
        return None
    from torch_fidelity import calculate_metrics

    sets = []
    for pictures in (one, other):
        colour = pictures if pictures.ndim == 4 else np.repeat(pictures[..., None], 3, axis=3)
        sets.append(_Stack(torch.as_tensor(colour).permute(0, 3, 1, 2)))
    found = calculate_metrics(input1=sets[0], input2=sets[1], fid=True, cuda=torch.cuda.is_available())
    return float(found["frechet_inception_distance"])


class _Stack(Dataset[Tensor]):
    """Pictures one by one, as the package wants them."""

    def __init__(self, pictures: Tensor) -> None:
        self.pictures = pictures

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int) -> Tensor:
        return self.pictures[index]


def some_test(data: PictureSet, count: int) -> NDArray[np.uint8]:
    """The same so many test pictures in every benchmark."""
    return data.test[np.random.default_rng(0).permutation(len(data.test))[:count]]


def standard_error(values: Array) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values)))
