"""The threads that answer: few, each with one thread of torch; a bounded number of requests waits for them.

What two clients ask in the same words is computed once, while it is under way or for as long as its answer is kept:
answers depend on the model and on the request alone. Different questions about all columns are answered together
(:class:`Together`): whatever has come in while one batch was being answered makes up the next batch, so nobody waits
for others to come.

An answer that nobody waits for any more, since it took too long or its clients have gone, is given up: it is not begun,
or its thread ends at the next place where work can end (:func:`anyorder.support.advance.checked`). Long work has
threads of its own, so that questions are answered beside it.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from anyorder.serve.errors import ServiceError
from anyorder.serve.metrics import Metrics
from anyorder.serve.settings import Settings
from anyorder.support.advance import watched

T = TypeVar("T")
Question = TypeVar("Question")
GRACE = 5.0  # seconds that are left to work which is told to stop
SOON = 0.05  # seconds after which it is watched whether a client is still there: most answers have come by then

client: contextvars.ContextVar[Receive | None] = contextvars.ContextVar("client", default=None)
"""What the client of a request sends, once its body is read: that it has gone."""


class Stopped(Exception):  # noqa: N818 (nothing went wrong)
    """The work was told to stop."""


@dataclass(eq=False)
class Handle:
    """A piece of work under way: how far it is, and whether it is to stop."""

    done: int = 0
    total: int = 0
    stop: bool = False

    def watch(self, done: int, total: int) -> None:
        """Called by the loops of the library after every part."""
        self.done, self.total = done, total
        self.check()

    def check(self) -> None:
        """Called by the library wherever work can end early."""
        if self.stop:
            raise Stopped


@dataclass
class Workers:
    """The threads, and who waits for them."""

    settings: Settings
    metrics: Metrics
    _waiting: int = 0
    _under_way: dict[Any, _Shared] = field(default_factory=dict)
    _kept: OrderedDict[Any, bytes] = field(default_factory=OrderedDict)
    _kept_bytes: int = 0
    _working: set[Handle] = field(default_factory=set)

    def __post_init__(self) -> None:
        count = self.settings.workers
        self.pool = ThreadPoolExecutor(count, "answers", initializer=_one_thread)
        self.long = ThreadPoolExecutor(max(1, count // 2), "jobs", initializer=_one_thread)

    @property
    def working(self) -> bool:
        """Whether a thread is at work."""
        return bool(self._working)

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

    async def run(self, work: Callable[[], T], advice: str = "ask for fewer rows or draws") -> T:
        """The result of some work, in a thread; refused where too many wait, and given up where it takes too long."""
        with self.place():
            handle = Handle()
            future = self.begun(self.pool, work, handle)
            return await self.in_time(future, self.settings.limits.seconds, lambda: _drop(future, handle), advice)

    async def run_long(self, work: Callable[[], T], handle: Handle) -> T:
        """The result of work for which nobody waits."""
        future, seconds = self.begun(self.long, work, handle), self.settings.limits.job_seconds
        return await self.in_time(future, seconds, lambda: _drop(future, handle), "send the table in parts")

    def begun(self, pool: ThreadPoolExecutor, work: Callable[[], T], handle: Handle) -> asyncio.Future[T]:
        """Some work in a thread, which the handle can stop."""

        def watched_work() -> T:
            self._working.add(handle)
            try:
                handle.check()
                with watched(handle.watch, handle.check):
                    return work()
            finally:
                self._working.discard(handle)

        return asyncio.get_running_loop().run_in_executor(pool, watched_work)

    async def in_time(
        self, future: asyncio.Future[T], seconds: float, give_up: Callable[[], None], advice: str = ""
    ) -> T:
        """What is awaited, if it comes in time and its client does not go; else it is given up."""
        try:
            if not await _ended(future, seconds):
                raise ServiceError(504, f"no answer within {seconds:g} seconds; {advice}", limit=seconds)
        except BaseException:
            give_up()
            raise
        return future.result()

    async def once(self, key: Any, work: Callable[[], Coroutine[Any, Any, bytes]]) -> bytes:
        """The bytes that ``work`` makes; those who ask the same meanwhile get the same."""
        if self.settings.together == 1:
            return await work()
        if key in self._kept:
            self._kept.move_to_end(key)
            self.metrics.shared.inc()
            return self._kept[key]
        shared = self._under_way.get(key)
        if shared is None:
            # Not of this request: should its client go away, the others still want it.
            shared = _Shared(of_nobody(work()))
            self._under_way[key] = shared
            shared.task.add_done_callback(lambda done: self._ended(key, done))
        else:
            self.metrics.shared.inc()
        shared.clients += 1

        def give_up() -> None:
            if shared.clients == 1 and not shared.task.done():  # the last of them
                shared.task.cancel()
                self._under_way.pop(key, None)

        try:
            # The work has a limit of its own, and says why it ended.
            return await self.in_time(shared.task, self.settings.limits.seconds + GRACE, give_up)
        finally:
            shared.clients -= 1

    def _ended(self, key: Any, done: asyncio.Task[bytes]) -> None:
        shared = self._under_way.get(key)
        if shared is not None and shared.task is done:
            del self._under_way[key]
        if done.cancelled() or done.exception() is not None:
            return
        answer = done.result()
        if len(answer) * 8 > self.settings.remembered:  # one answer must not drive out all others
            return
        self._kept_bytes += len(answer) - len(self._kept.pop(key, b""))
        self._kept[key] = answer
        while self._kept_bytes > self.settings.remembered:
            self._kept_bytes -= len(self._kept.popitem(last=False)[1])

    async def close(self) -> None:
        """Begin nothing more, and end what is still under way: whoever waited for an answer has it by now."""
        for pool in (self.pool, self.long):
            pool.shutdown(wait=False, cancel_futures=True)
        for handle in list(self._working):
            handle.stop = True
        ends = asyncio.get_running_loop().time() + GRACE
        while self.working and asyncio.get_running_loop().time() < ends:
            await asyncio.sleep(0.02)
        if not self.working:  # the threads have nothing left to do but to end
            for pool in (self.pool, self.long):
                pool.shutdown(wait=True)


@dataclass(eq=False)
class _Shared:
    """An answer under way, and how many wait for it."""

    task: asyncio.Task[bytes]
    clients: int = 0


@dataclass(eq=False)
class _Batch(Generic[Question, T]):
    """Questions that are answered together, and the work that does it."""

    asked: list[tuple[Question, asyncio.Future[T]]]
    handle: Handle = field(default_factory=Handle)


class Together(Generic[Question, T]):
    """Questions of one kind to one model, answered in batches.

    ``answer`` is called in a thread with some questions and gives a result, or an exception, for each of them.
    """

    def __init__(
        self, workers: Workers, answer: Callable[[Sequence[Question]], Sequence[T | Exception]], most: int
    ) -> None:
        self.workers, self.answer, self.most = workers, answer, most
        self._pending: deque[tuple[Question, asyncio.Future[T]]] = deque()
        self._under_way: set[_Batch[Question, T]] = set()
        self._running = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def ask(self, question: Question) -> T:
        """The answer to one question."""
        with self.workers.place():
            future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
            self._pending.append((question, future))
            if self._running < self.workers.settings.workers:
                self._running += 1
                task = of_nobody(self._work())
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            seconds = self.workers.settings.limits.seconds
            return await self.workers.in_time(future, seconds, lambda: self._give_up(future), "ask for fewer draws")

    def _give_up(self, future: asyncio.Future[T]) -> None:
        future.cancel()
        for batch in self._under_way:
            if all(one.done() for _, one in batch.asked):  # nobody is left who wants any of it
                batch.handle.stop = True

    async def _work(self) -> None:
        try:
            while self._pending:
                # As many as there are, shared out among the threads.
                share = -(-len(self._pending) // self.workers.settings.workers)
                some = [self._pending.popleft() for _ in range(min(share, self.most))]
                some = [(question, future) for question, future in some if not future.done()]
                if some:
                    await self._answer(_Batch(some))
        finally:
            self._running -= 1

    async def _answer(self, batch: _Batch[Question, T]) -> None:
        self.workers.metrics.batches.observe(len(batch.asked))
        questions = [question for question, _ in batch.asked]
        found: Sequence[Any]
        self._under_way.add(batch)
        try:
            found = await self.workers.begun(self.workers.pool, lambda: self.answer(questions), batch.handle)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 (whoever waits must hear of it)
            found = [error] * len(questions)
        finally:
            self._under_way.discard(batch)
        for (_, future), result in zip(batch.asked, found, strict=True):
            if future.done():  # its client has gone
                continue
            if isinstance(result, asyncio.CancelledError):
                future.cancel()
            elif isinstance(result, BaseException):
                future.set_exception(result)
            else:
                future.set_result(result)


def of_nobody(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Work under way that belongs to no request: it does not end when a client goes."""
    context = contextvars.copy_context()
    context.run(client.set, None)
    return asyncio.get_running_loop().create_task(work, context=context)


async def _ended(future: asyncio.Future[Any], seconds: float) -> bool:
    """Whether something ends in time; an exception if its client goes before."""
    done, _ = await asyncio.wait({future}, timeout=min(seconds, SOON))
    receive = client.get()
    if done or seconds <= SOON:
        return bool(done)
    gone = None if receive is None else asyncio.ensure_future(_gone(receive))
    try:
        waited = {future} if gone is None else {future, gone}
        await asyncio.wait(waited, timeout=seconds - SOON, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if gone is not None:
            gone.cancel()
    if not future.done() and gone is not None and gone.done():
        raise ClientDisconnect
    return future.done()


async def _gone(receive: Receive) -> None:
    """Ends when the client has gone."""
    message = await receive()
    while message["type"] != "http.disconnect":
        await asyncio.sleep(SOON)  # something that asks without a network, and does not wait
        message = await receive()


def _drop(future: asyncio.Future[Any], handle: Handle) -> None:
    """Do not begin the work, or let it end early; nobody will look at what becomes of it."""
    handle.stop = True
    future.cancel()


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)
