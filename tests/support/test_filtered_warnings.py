"""Filters of warnings that several threads set at once."""

from __future__ import annotations

import threading
import warnings

from anyorder.support.filtered_warnings import warnings_set


def test_filters_of_two_threads_do_not_outlive_them() -> None:
    before = list(warnings.filters)
    inside, first_leaves, second_leaves = (threading.Event() for _ in range(3))

    def first() -> None:
        with warnings_set("ignore"):
            inside.set()
            first_leaves.wait(10)

    def second() -> None:
        with warnings_set("ignore"):  # would begin while the first is inside, and end after it
            second_leaves.wait(10)

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    inside.wait(10)
    threads[1].start()
    threads[1].join(0.2)
    first_leaves.set()
    threads[0].join()
    second_leaves.set()
    threads[1].join()
    assert warnings.filters == before
