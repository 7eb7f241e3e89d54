"""pylace 0.10.1: log-likelihoods of whole rows, 8 chains of 500 sweeps.

Called as ``run_lace_likelihood.py QUESTION.npz ANSWER.npz``.
"""

from __future__ import annotations

import sys

import numpy as np
import polars
from lace import Engine

CHAINS = 8
SWEEPS = 500


def main() -> None:
    question, answer = sys.argv[1:]
    with np.load(question) as file:
        train, test = file["train"], file["test"]
    names = [f"c{column}" for column in range(train.shape[1])]
    frame = polars.DataFrame(dict(zip(names, train.T, strict=True)))
    frame = frame.with_columns(polars.Series("ID", [f"r{row}" for row in range(len(train))]))
    engine = Engine.from_df(frame, n_states=CHAINS, rng_seed=0)
    engine.update(SWEEPS, quiet=True)
    found = engine.logp(polars.DataFrame(dict(zip(names, test.T, strict=True))))
    np.savez(answer, nats=found.to_numpy())


if __name__ == "__main__":
    main()
