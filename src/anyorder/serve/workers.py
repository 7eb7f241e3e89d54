"""The threads that answer: few, each with one thread of torch; a bounded number of requests waits for them.

What two clients ask in the same words is computed once, while it is under way or for as long as its answer is kept:
answers depend on the model and on the request alone. Different questions about all columns are answered together
(:class:`Together`): whatever has come in while one lot was being answered makes up the next lot, so nobody waits for
others to come.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import warnings
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from anyorder.serve.errors import ServiceError
from anyorder.serve.metrics import Metrics
from anyorder.serve.settings import Settings
from anyorder.support.advance import watched

log = logging.getLogger("anyorder.serve")

T = TypeVar("T")
Question = TypeVar("Question")
GRACE = 5.0  # seconds by which an answer may be late before its thread is told to stop


class Stopped(Exception):  # noqa: N818 (nothing went wrong)
    """The work was told to stop."""


@dataclass
class Handle:
    """A piece of work under way: how far it is, and whether it is to stop."""

    done: int = 0
    total: int = 0
    stop: bool = False

    def watch(self, done: int, total: int) -> None:
        """Called by the loops of the library after every part."""
        self.done, self.total = done, total
        if self.stop:
            raise Stopped


class _Heard(threading.local):
    notes: list[str] | None = None


_heard = _Heard()


@contextmanager
def notes_heard() -> Iterator[list[str]]:
    """Within, what the library warns of in this thread; each note once."""
    before, _heard.notes = _heard.notes, []
    try:
        yield _heard.notes
    finally:
        _heard.notes = before


@contextmanager
def hearing() -> Iterator[None]:
    """Within, a warning goes to the thread that listens. Python has one place for warnings, which all threads share."""

    def hear(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        text = " ".join(str(message).split())
        if _heard.notes is None:
            log.warning("%s", text)
        elif issubclass(category, UserWarning) and text not in _heard.notes:
            _heard.notes.append(text)

    with warnings.catch_warnings():
        warnings.showwarning = hear
        warnings.simplefilter("always", UserWarning)
        yield


@dataclass
class Workers:
    """The threads, and who waits for them."""

    settings: Settings
    metrics: Metrics
    _waiting: int = 0
    _under_way: dict[Any, asyncio.Future[Any]] = field(default_factory=dict)
    _kept: OrderedDict[Any, bytes] = field(default_factory=OrderedDict)
    _kept_bytes: int = 0

    def __post_init__(self) -> None:
        self.pool = ThreadPoolExecutor(self.settings.workers, "answers", initializer=_one_thread)

    @contextmanager
    def place(self) -> Iterator[None]:
        """A place among those that wait, if there is one."""
        if self._waiting >= self.settings.limits.waiting:
            raise ServiceError(
                503,
                f"{self._waiting} requests are waiting already; try again in a moment",
                kind="busy",
                limit=self.settings.limits.waiting,
                headers={"Retry-After": "1"},
            )
        self._waiting += 1
        self.metrics.waiting.set(self._waiting)
        try:
            yield
        finally:
            self._waiting -= 1
            self.metrics.waiting.set(self._waiting)

    async def run(self, work: Callable[[], T], *, handle: Handle | None = None, seconds: float | None = None) -> T:
        """The result of some work, in a thread; refused where too many wait, and given up where it takes too long."""
        handle = handle or Handle()
        with self.place():
            future = asyncio.get_running_loop().run_in_executor(self.pool, _watched, work, handle)
            return await self.in_time(future, seconds or self.settings.limits.seconds, handle)

    async def in_time(self, future: Awaitable[T], seconds: float, handle: Handle | None = None) -> T:
        """What is awaited, if it comes in time; else the work is told to stop."""
        try:
            return await asyncio.wait_for(asyncio.shield(future), seconds)
        except TimeoutError:
            if handle is not None:
                handle.stop = True
            raise ServiceError(
                504,
                f"no answer within {seconds:g} seconds; ask for fewer rows or draws, or let it be a job",
                limit=seconds,
            ) from None
        except asyncio.CancelledError:
            if handle is not None:
                handle.stop = True
            raise

    async def once(self, key: Any, work: Callable[[], Awaitable[bytes]]) -> bytes:
        """The bytes that ``work`` makes; those who ask the same meanwhile get the same."""
        if self.settings.together == 1:
            return await work()
        if key in self._kept:
            self._kept.move_to_end(key)
            self.metrics.shared.inc()
            return self._kept[key]
        if key in self._under_way:
            self.metrics.shared.inc()
            return await self.in_time(self._under_way[key], self.settings.limits.seconds)
        future: asyncio.Future[bytes] = asyncio.ensure_future(work())
        # Not of this request: should its client go away, the others still want it.
        self._under_way[key] = future
        future.add_done_callback(lambda done: self._ended(key, done))
        return await self.in_time(future, self.settings.limits.seconds + GRACE)

    def _ended(self, key: Any, done: asyncio.Future[bytes]) -> None:
        self._under_way.pop(key, None)
        if done.cancelled() or done.exception() is not None:
            return
        answer = done.result()
        if len(answer) * 8 > self.settings.remembered:  # one answer must not drive out all others
            return
        self._kept[key] = answer
        self._kept_bytes += len(answer)
        while self._kept_bytes > self.settings.remembered:
            self._kept_bytes -= len(self._kept.popitem(last=False)[1])

    def close(self) -> None:
        """Let what is under way end, and begin nothing more."""
        self.pool.shutdown(wait=True, cancel_futures=True)


class Together(Generic[Question, T]):
    """Questions of one kind to one model, answered in lots.

    ``answer`` is called in a thread with some questions and gives a result, or an exception, for each of them.
    """

    def __init__(
        self, workers: Workers, answer: Callable[[Sequence[Question]], Sequence[T | Exception]], most: int
    ) -> None:
        self.workers, self.answer, self.most = workers, answer, most
        self._pending: deque[tuple[Question, asyncio.Future[T]]] = deque()
        self._running = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def ask(self, question: Question) -> T:
        """The answer to one question."""
        with self.workers.place():
            future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
            self._pending.append((question, future))
            if self._running < self.workers.settings.workers:
                self._running += 1
                task = asyncio.ensure_future(self._work())
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            return await self.workers.in_time(future, self.workers.settings.limits.seconds)

    async def _work(self) -> None:
        try:
            while self._pending:
                # As many as there are, shared out among the threads.
                share = -(-len(self._pending) // self.workers.settings.workers)
                lot = [self._pending.popleft() for _ in range(min(share, self.most))]
                lot = [(question, future) for question, future in lot if not future.done()]
                if lot:
                    await self._answer(lot)
        finally:
            self._running -= 1

    async def _answer(self, lot: Sequence[tuple[Question, asyncio.Future[T]]]) -> None:
        self.workers.metrics.lots.observe(len(lot))
        questions = [question for question, _ in lot]
        found: Sequence[Any]
        try:
            found = await asyncio.get_running_loop().run_in_executor(self.workers.pool, self.answer, questions)
        except Exception as error:  # noqa: BLE001 (whatever it was, those who wait must hear of it)
            found = [error] * len(lot)
        for (_, future), result in zip(lot, found, strict=True):
            if future.done():  # its client has gone
                continue
            if isinstance(result, BaseException):
                future.set_exception(result)
            else:
                future.set_result(result)


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def _watched(work: Callable[[], T], handle: Handle) -> T:
    if handle.stop:
        raise Stopped
    with watched(handle.watch):
        return work()
