"""Filters of warnings that several threads set at once."""

from __future__ import annotations

import warnings

from anyorder.support.filtered_warnings import warnings_set

from overlapping import enter_twice


def test_filters_of_two_threads_do_not_outlive_them() -> None:
    before = list(warnings.filters)
    enter_twice(lambda: warnings_set("ignore"))
    assert warnings.filters == before
