"""How far a long answer is: told to whoever watches in this thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

from anyorder.modalities.tables.model import TableModel
from anyorder.support.advance import tracked, watched

from models import categorical_model, categorical_table


def parts(total: int, size: int) -> Iterator[slice]:
    return (slice(start, start + size) for start in range(0, total, size))


def test_a_loop_tells_after_every_part() -> None:
    told: list[tuple[int, int]] = []
    with watched(lambda done, total: told.append((done, total))):
        assert list(tracked(parts(10, 4), 10)) == list(parts(10, 4))
    assert told == [(4, 10), (8, 10), (10, 10)]
    assert list(tracked(parts(10, 4), 10)) == list(parts(10, 4))
    assert len(told) == 3  # nobody watches any more


def test_loops_inside_never_go_back() -> None:
    told: list[tuple[int, int]] = []
    with watched(lambda done, total: told.append((done, total))):
        for _ in tracked(parts(20, 10), 20):
            for _ in range(2):  # the second one repeats what the first has told
                for _ in tracked(parts(4, 2), 4):
                    assert list(tracked(parts(2, 1), 2)) == list(parts(2, 1))
    done = [one for one, _ in told]
    assert done == sorted(set(done)) and done[-1] == 20 and {total for _, total in told} == {20}
    assert 5 in done and 15 in done


def test_a_loop_that_fails_leaves_the_next_one_watched() -> None:
    told: list[int] = []
    with watched(lambda done, total: told.append(done)):
        with pytest.raises(ZeroDivisionError):
            for part in tracked(parts(10, 4), 10):
                _ = 1 / (4 - part.start)
        for _ in tracked(parts(4, 2), 4):
            pass
    assert told == [4, 2, 4]


def test_other_threads_are_not_watched() -> None:
    told: list[int] = []
    with watched(lambda done, total: told.append(done)):
        other = threading.Thread(target=lambda: list(tracked(parts(10, 4), 10)))
        other.start()
        other.join()
    assert told == []


def test_answers_about_many_rows_tell_how_far_they_are() -> None:
    model = TableModel(categorical_model({"name": "residual_mlp", "width": 8, "blocks": 1}, steps=1), {})
    frame = categorical_table(5000)
    holes = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.2)
    for ask in (model.log_prob, model.fill, model.surprise, lambda rows: model.predict(rows, "b")):
        told: list[tuple[int, int]] = []
        with watched(lambda done, total, told=told: told.append((done, total))):
            ask(holes)
        done = [one for one, _ in told]
        assert len(told) > 1 and done == sorted(done) and told[-1] == (5000, 5000), ask
