"""UnmaskingTrees (utrees 0.3.0): boosted trees per column over randomly masked copies, default settings but for K,
the number of masked copies (50 is the default; 10 takes a fifth of the time).

The same seed does not give the same draws again.
"""

from __future__ import annotations

from utrees import UnmaskingTrees

from exchange import DRAWS, SEED, THREADS, task_from_arguments


def main() -> None:
    task, (copies,) = task_from_arguments()
    kinds = ["categorical" if name in task.levels else "continuous" for name in task.kinds]
    trees = UnmaskingTrees(random_state=SEED, duplicate_K=int(copies), xgboost_kwargs={"n_jobs": THREADS})
    task.timed("fit", lambda: trees.fit(task.coded(task.train), quantize_cols=kinds))
    task.finish(task.timed("fill", lambda: trees.impute(n_impute=DRAWS, X=task.coded(task.test))))


if __name__ == "__main__":
    main()
