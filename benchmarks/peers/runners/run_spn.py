"""spflow 1.1.0: a sum-product network with normal leaves, by LearnSPN; log-likelihoods of whole rows.

The least number of rows that are clustered further is the one of three that serves a fifth of the training rows best;
the network is then learned from all of them. Called as ``run_spn.py QUESTION.npz ANSWER.npz``.
"""

from __future__ import annotations

import sys

import numpy as np
import torch
from spflow.learn.learn_spn import learn_spn
from spflow.modules.leaves import Normal

SLICES = (30, 100, 300)


def learned(rows: torch.Tensor, slices: int) -> torch.nn.Module:
    torch.manual_seed(0)
    return learn_spn(rows, Normal(scope=list(range(rows.shape[1])), out_channels=1), min_instances_slice=slices)


def nats(network: torch.nn.Module, rows: torch.Tensor) -> np.ndarray:
    with torch.no_grad():
        return network.log_likelihood(rows).reshape(len(rows)).double().numpy()


def main() -> None:
    question, answer = sys.argv[1:]
    torch.set_num_threads(1)
    with np.load(question) as file:
        train, test = (torch.tensor(file[part], dtype=torch.float32) for part in ("train", "test"))
    cut = len(train) - len(train) // 5
    scores = {slices: nats(learned(train[:cut], slices), train[cut:]).mean() for slices in SLICES}
    best = max(scores, key=lambda slices: scores[slices])
    np.savez(answer, nats=nats(learned(train, best), test), slices=best)


if __name__ == "__main__":
    main()
