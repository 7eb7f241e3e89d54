"""How good fills and samples of pictures are.

psnr, ssim       of the mean of several fills against the truth (Wang et al. 2004; windows of 7 x 7)
energy score     E|X - x| - E|X - X'| / 2 of the missing pixels, in units of the full range: proper, so it rewards draws
                 that are right and as varied as they should be
agreement        how often a classifier says the same of a fill as of the truth
Frechet          between features of two sets of pictures in the last hidden layer of that classifier. It is trained
                 here and small: this is *not* the FID, whose features are those of Inception on ImageNet
"""

from __future__ import annotations

import math
import time

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

Array = NDArray[np.float64]


def psnr(guess: Array, truth: Array, most: float) -> float:
    """Mean over pictures, in decibels; ``most`` is the greatest level."""
    error = ((guess - truth) ** 2).reshape(len(truth), -1).mean(axis=1)
    return float((10 * np.log10(most**2 / np.maximum(error, 1e-12))).mean())


def ssim(guess: Array, truth: Array, most: float, window: int = 7) -> float:
    """Mean structural similarity over pictures and windows."""
    one, other = (torch.as_tensor(part, dtype=torch.float64)[:, None] for part in (guess, truth))

    def mean(values: Tensor) -> Tensor:
        return F.avg_pool2d(values, window, stride=1)

    count = window**2
    first, second = mean(one), mean(other)
    # Sample variances and covariance of every window.
    spread = count / (count - 1)
    var_one = (mean(one * one) - first**2) * spread
    var_other = (mean(other * other) - second**2) * spread
    together = (mean(one * other) - first * second) * spread
    small, smaller = (0.01 * most) ** 2, (0.03 * most) ** 2
    top = (2 * first * second + small) * (2 * together + smaller)
    bottom = (first**2 + second**2 + small) * (var_one + var_other + smaller)
    return float((top / bottom).mean())


def energy_score(draws: Array, truth: Array, known: NDArray[np.bool_], most: float) -> Array:
    """Of each picture; ``draws`` are [draws, pictures, height, width]."""
    missing = ~known.reshape(len(truth), -1)
    drawn = draws.reshape(len(draws), len(truth), -1) / most
    real = truth.reshape(len(truth), -1) / most

    def distance(one: Array, other: Array) -> Array:
        return np.sqrt((((one - other) ** 2) * missing).sum(axis=-1))

    count = len(drawn)
    right = distance(drawn, real).mean(axis=0)
    apart = sum(distance(drawn[one], drawn[other]) for one in range(count) for other in range(one))
    return np.asarray(right - apart / (count * (count - 1)))


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


def train_classifier(pictures: NDArray[np.uint8], labels: NDArray[np.int64], levels: int, minutes: float) -> Classifier:
    """Adam for so many minutes, the seed fixed."""
    torch.manual_seed(0)
    model = Classifier(int(labels.max()) + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    values = torch.as_tensor(pictures).float()[:, None] / (levels - 1)
    target = torch.as_tensor(labels).long()
    began = time.monotonic()
    while time.monotonic() - began < 60 * minutes:
        rows = torch.randint(len(values), (128,))
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


def frechet(one: Array, other: Array) -> float:
    """Between the Gaussians with the moments of two sets of features."""
    from scipy.linalg import sqrtm

    first, second = np.cov(one.T), np.cov(other.T)
    root = sqrtm(first @ second)
    root = root[0] if isinstance(root, tuple) else root
    gap = one.mean(axis=0) - other.mean(axis=0)
    return float(gap @ gap + np.trace(first) + np.trace(second) - 2 * np.trace(root.real))


def standard_error(values: Array) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values)))
