"""A number of torch threads for a block: nothing of it is left, however blocks of several threads overlap."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import torch

from anyorder.support.threads import answering, most_threads, torch_threads, usual_threads


def of_a_new_thread() -> int:
    """The number of the process: a thread that uses torch for the first time begins with it."""
    found: list[int] = []
    reader = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
    reader.start()
    reader.join()
    return found[0]


@pytest.fixture(autouse=True)
def three() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def test_blocks_nest_and_nothing_is_left() -> None:
    with torch_threads(2):
        assert torch.get_num_threads() == 2
        with torch_threads(1):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == of_a_new_thread() == 3


def test_an_error_inside_leaves_nothing() -> None:
    with pytest.raises(ZeroDivisionError), torch_threads(1):
        raise ZeroDivisionError
    assert torch.get_num_threads() == of_a_new_thread() == 3
    with pytest.raises(RuntimeError), torch_threads(0):
        pass
    assert torch.get_num_threads() == of_a_new_thread() == 3


@pytest.mark.parametrize("first_leaves_first", [True, False])
def test_overlapping_blocks_of_two_threads_leave_nothing(first_leaves_first: bool) -> None:
    other_is_in, other_may_leave = threading.Event(), threading.Event()
    seen: list[int] = []

    def other() -> None:
        with torch_threads(2):
            other_is_in.set()
            other_may_leave.wait(30)
            seen.append(torch.get_num_threads())
        seen.append(torch.get_num_threads())

    worker = threading.Thread(target=other)
    with torch_threads(1):
        worker.start()
        other_is_in.wait(30)
        assert torch.get_num_threads() == 1
        if not first_leaves_first:
            other_may_leave.set()
            worker.join()
            assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 3
    other_may_leave.set()
    worker.join()
    assert seen == [2, 3]
    assert torch.get_num_threads() == of_a_new_thread() == 3


def test_a_thread_that_met_torch_inside_anothers_block_leaves_nothing_either() -> None:
    met, may_enter = threading.Event(), threading.Event()

    def other() -> None:
        torch.get_num_threads()  # from now on, this thread's own number is that of the block that is open
        met.set()
        may_enter.wait(30)
        with torch_threads(2):
            pass

    worker = threading.Thread(target=other)
    with torch_threads(1):
        worker.start()
        met.wait(30)
    may_enter.set()
    worker.join()
    assert of_a_new_thread() == 3


@pytest.fixture
def no_word(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment that says nothing of threads."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    return monkeypatch


def test_one_thread_is_usual_whatever_the_machine_has(no_word: pytest.MonkeyPatch) -> None:
    assert usual_threads() == 1


@pytest.mark.parametrize(
    ("openmp", "mkl", "expected"),
    [
        ("2", "", 2),
        ("", "3", 3),
        ("2", "3", 2),
        ("4,2", "", 4),
        ("0", "3", 3),
        ("many", "", 1),
        ("-2", "", 1),
        ("²", "", 1),
    ],
)
def test_the_environment_says_how_many(no_word: pytest.MonkeyPatch, openmp: str, mkl: str, expected: int) -> None:
    no_word.setenv("OMP_NUM_THREADS", openmp)
    no_word.setenv("MKL_NUM_THREADS", mkl)
    assert usual_threads() == expected


def test_an_absurd_number_in_the_environment_is_cut(no_word: pytest.MonkeyPatch) -> None:
    no_word.setenv("OMP_NUM_THREADS", "99999999999")
    assert usual_threads() == most_threads()


@answering
def threads_of_an_answer() -> int:
    return torch.get_num_threads()


def test_answers_take_one_thread_and_leave_the_others_alone(no_word: pytest.MonkeyPatch) -> None:
    assert threads_of_an_answer() == 1
    assert torch.get_num_threads() == of_a_new_thread() == 3


def test_answers_take_what_the_environment_says_and_no_more_than_torch_has(no_word: pytest.MonkeyPatch) -> None:
    no_word.setenv("OMP_NUM_THREADS", "2")
    assert threads_of_an_answer() == 2
    no_word.setenv("OMP_NUM_THREADS", "8")
    assert threads_of_an_answer() == 3


def test_inside_a_block_its_number_holds_for_answers_too(no_word: pytest.MonkeyPatch) -> None:
    with torch_threads(2):
        assert threads_of_an_answer() == 2


def test_a_number_that_was_set_between_two_blocks_is_restored() -> None:
    with torch_threads(1):
        pass
    torch.set_num_threads(4)
    with torch_threads(1):
        pass
    assert torch.get_num_threads() == of_a_new_thread() == 4
