"""TabPFN v2's regressor (tabpfn 2.2.1), default settings: quantiles of one number given all other columns.

Its weights are measured, never passed on. They are inside the source archive of ``tabpfn-time-series`` 0.1.3, which the
driver fetches from the package index; called as ``run_tabpfn.py QUESTION.npz ANSWER.npz WEIGHTS``.
"""

from __future__ import annotations

import sys

import numpy as np
import torch
from tabpfn import TabPFNRegressor


def main() -> None:
    question, answer, weights = sys.argv[1:]
    torch.set_num_threads(1)
    with np.load(question) as file:
        train, truth, test, levels = file["train"], file["truth"], file["test"], file["levels"]
        categorical = file["categorical"].tolist()
    model = TabPFNRegressor(
        model_path=weights,
        device="cpu",
        random_state=0,
        categorical_features_indices=categorical,
        inference_precision=torch.float32,
        ignore_pretraining_limits=True,
    )
    model.fit(train, truth)
    found = model.predict(test, output_type="quantiles", quantiles=levels.tolist())
    np.savez(answer, quantiles=np.column_stack(found))


if __name__ == "__main__":
    main()
