"""Notes go to the listener of their own thread, and nowhere else become anything but warnings."""

from __future__ import annotations

import threading
import warnings

import pytest

from anyorder.support.notes import note, notes_heard


def test_a_note_is_a_warning_at_the_line_that_asked() -> None:
    def answer() -> None:
        note("far outside", stacklevel=2)

    with pytest.warns(UserWarning, match="far outside") as heard:
        answer()
    assert heard[0].filename == __file__


def test_a_listener_hears_its_own_thread_alone_and_leaves_the_process_as_it_is() -> None:
    listening, said, done = threading.Event(), threading.Event(), []

    def listen() -> None:
        with notes_heard() as notes:
            note("mine", stacklevel=1)
            note("mine", stacklevel=1)
            listening.set()
            said.wait(10)
        done.append(notes)

    filters, place = list(warnings.filters), warnings.showwarning
    thread = threading.Thread(target=listen)
    thread.start()
    assert listening.wait(10)
    assert warnings.filters == filters and warnings.showwarning is place
    with pytest.warns(UserWarning, match="yours"):
        note("yours", stacklevel=1)
    said.set()
    thread.join()
    assert done == [["mine"]]


def test_listeners_within_listeners() -> None:
    with notes_heard() as outer:
        with notes_heard() as inner:
            note("inner", stacklevel=1)
        note("outer", stacklevel=1)
    assert (outer, inner) == (["outer"], ["inner"])
