"""Ctrl-C and SIGTERM are noted once, shared by the parts of one piece of work, and forgotten after it."""

from __future__ import annotations

import os
import signal

import pytest

from anyorder.support.interrupt import deferred_interrupt, deferred_once_begun


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_is_noted_and_the_second_interrupts(number: signal.Signals) -> None:
    with deferred_interrupt() as interrupt:
        assert not interrupt.requested
        os.kill(os.getpid(), number)
        assert interrupt.requested
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)


def test_an_interruption_between_two_parts_reaches_the_next() -> None:
    with deferred_interrupt() as whole:
        with deferred_interrupt() as first:
            assert not first.requested
        os.kill(os.getpid(), signal.SIGTERM)
        with deferred_interrupt() as second:
            assert second.requested
        assert whole.requested
    with deferred_interrupt() as later:
        assert not later.requested


def test_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(ValueError), deferred_interrupt():
        with deferred_interrupt():
            assert signal.getsignal(signal.SIGINT) != before[0]
        assert signal.getsignal(signal.SIGINT) != before[0]  # the inner one takes nothing away
        raise ValueError
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_once_begun_it_is_deferred_to_the_end_of_the_whole() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with deferred_once_begun():
        assert signal.getsignal(signal.SIGTERM) == before  # nothing has begun yet
        with deferred_interrupt():
            os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGTERM)  # between two parts none of them interrupts
        with deferred_interrupt() as second:
            assert second.requested
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == before
    with deferred_interrupt():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before
