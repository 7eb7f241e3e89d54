"""mostlyai-engine 2.7.3: TabularARGN with its flexible generation order, default settings.

``value_protection`` is off: it hides rare values for the sake of privacy, which is not what is scored here. A column
of whole numbers becomes an integer, and the engine then fails on evidence such as 4.5 (the column sod of the kidney
table): such evidence is rounded.
"""

from __future__ import annotations

import pandas as pd
import torch
from mostlyai.engine import TabularARGN

from exchange import DRAWS, SEED, THREADS, Task, task_from_arguments


def plain(task: Task, frame: pd.DataFrame) -> pd.DataFrame:
    """A frame that codes as ours: texts as texts, numbers as float64."""
    return frame.astype(dict.fromkeys(task.numeric, "float64"))[list(task.kinds)]


def rounded(task: Task) -> pd.DataFrame:
    """The test rows, without fractions where training has none."""
    test = task.test.copy()
    for name in task.numeric:
        if (task.train[name].dropna() % 1 == 0).all():
            test[name] = test[name].round()
    return test


def main() -> None:
    task, _ = task_from_arguments()
    torch.set_num_threads(THREADS)
    kinds = {name: "TABULAR_CATEGORICAL" if name in task.levels else "TABULAR_NUMERIC_AUTO" for name in task.kinds}
    model = TabularARGN(value_protection=False, tgt_encoding_types=kinds, device="cpu", random_state=SEED, verbose=0)
    task.timed("fit", lambda: model.fit(task.train))
    # One call for all draws, each row 20 times over: a call has a large cost of its own.
    copies = pd.concat([rounded(task)] * DRAWS, ignore_index=True)
    filled = task.coded(plain(task, task.timed("fill", lambda: model.impute(copies))))
    task.finish(list(filled.reshape(DRAWS, len(task.test), -1)))


if __name__ == "__main__":
    main()
