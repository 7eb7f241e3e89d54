"""Errors that cross the boundary of a file, and that of a process."""

from __future__ import annotations

import pickle

import pytest

import anyorder.cli.app  # noqa: F401 (with every class of error)
from anyorder.errors import LONGEST_MESSAGE, UserError
from anyorder.support.boundary import FieldError, field, first_line


def classes(base: type[UserError]) -> list[type[UserError]]:
    return [base, *(found for child in base.__subclasses__() for found in classes(child))]


@pytest.mark.parametrize("kind", classes(UserError))
def test_errors_come_back_out_of_another_process(kind: type[UserError]) -> None:
    for words in ("no such file", "long " * LONGEST_MESSAGE):
        error = FieldError(("network", "width"), words) if kind is FieldError else kind(words)
        back = pickle.loads(pickle.dumps(error))
        assert type(back) is kind
        assert str(back) == str(error)
        assert vars(back) == vars(error)


def test_a_field_that_came_back_is_still_named() -> None:
    with pytest.raises(FieldError) as caught, field("network"):
        raise KeyError("width")
    with pytest.raises(UserError, match=r"description\.network: the entry 'width' is missing"), field("description"):
        raise pickle.loads(pickle.dumps(caught.value))


def test_the_first_line_of_an_error() -> None:
    assert first_line(ValueError("\nno\nyes")) == "no"
    assert first_line(ValueError()) == "ValueError"
