"""Cases run one by one in processes of their own, with limits on time and memory: what kills one is itself a finding.

A worker takes case after case, so that only a case which ends or fills its process costs a new one. The workers are
forked from one that has imported torch and anyorder and has not computed anything yet.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Generic, TypeVar

Case = TypeVar("Case")

# How a case can end beside what its work calls it.
FAILED, CRASHED, HUNG, MEMORY = "failed", "crashed", "hung", "memory"
FAULTS = (FAILED, CRASHED, HUNG, MEMORY)
SPARE = 3 << 30  # bytes of addresses that a worker may take beyond what it has: less than the machine has left
KEPT = 300.0  # megabytes that a worker may keep from its cases: more would hide what the next ones take
START = 60.0  # seconds that a worker may take to start


@dataclass(frozen=True)
class Limits:
    """What one case may take: seconds, and megabytes beyond what its process had before."""

    seconds: float = 10.0
    megabytes: float = 1000.0


LIMITS = Limits()


@dataclass(frozen=True)
class Verdict(Generic[Case]):
    """How one case ended: as its work said, or in one of :data:`FAULTS`; ``detail`` says why."""

    case: Case
    outcome: str
    detail: str
    seconds: float
    megabytes: float

    @property
    def fault(self) -> bool:
        return self.outcome in FAULTS


Work = Callable[[Case], tuple[str, str]]
"""What to do with a case; returns the outcome and a detail. Whatever it raises is a fault. It must be picklable."""


def verdicts(
    work: Work[Case],
    cases: Iterable[Case],
    limits: Limits = LIMITS,
    *,
    workers: int = 2,
    minutes: float | None = None,
    preload: Sequence[str] = ("torch", "anyorder"),
) -> Iterator[Verdict[Case]]:
    """The verdict of every case as it ends; no further case is begun once the minutes are over."""
    # Threads that a module starts while it is imported do not come along into a fork, which then waits for them.
    os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*preload])
    until = None if minutes is None else time.monotonic() + 60 * minutes
    pending = iter(cases)
    with ThreadPoolExecutor(workers) as pool:
        crew = [_Worker(work, limits, context) for _ in range(workers)]
        first = list(islice(pending, workers))
        running = {pool.submit(worker.judge, case): worker for worker, case in zip(crew, first, strict=False)}
        try:
            while running:
                done = next(as_completed(running))
                worker = running.pop(done)
                late = until is not None and time.monotonic() > until
                for case in [] if late else islice(pending, 1):
                    running[pool.submit(worker.judge, case)] = worker
                yield done.result()
        finally:
            for worker in crew:
                worker.end()


def print_faults(found: Iterable[Verdict[Case]], most: int = 20) -> None:
    """The first faults of each kind, with what is needed to run them again."""
    kinds: dict[tuple[str, str], list[Verdict[Case]]] = defaultdict(list)
    for one in found:
        if one.fault:
            lines = one.detail.strip().splitlines()
            kinds[one.outcome, lines[-1] if lines else ""].append(one)
    for (outcome, why), several in sorted(kinds.items(), key=lambda pair: -len(pair[1]))[:most]:
        print(f"{len(several)} x {outcome}: {why[:300]}")
        print(f"    first: {several[0].case}")


class _Worker(Generic[Case]):
    """A process that works, and the parent's end of its pipe; started again after every crash."""

    def __init__(self, work: Work[Case], limits: Limits, context: Any) -> None:
        self.work, self.limits, self.context = work, limits, context
        self.process: Any = None
        self.pipe: Connection | None = None

    def judge(self, case: Case) -> Verdict[Case]:
        """Hand over one case and wait for its end, whichever that is."""
        pipe = self._started()
        began = time.monotonic()
        try:
            pipe.send(case)
            if not pipe.poll(self.limits.seconds):
                self.end()
                return Verdict(case, HUNG, f"no end after {self.limits.seconds:g} s", self.limits.seconds, 0.0)
            outcome, detail, seconds, megabytes, kept = pipe.recv()
        except (EOFError, OSError):
            self.process.join(5)
            code = self.process.exitcode
            name = signal.Signals(-code).name if code is not None and code < 0 else f"exit status {code}"
            self.end()
            return Verdict(case, CRASHED, f"the process ended by {name}", time.monotonic() - began, 0.0)
        if megabytes > self.limits.megabytes:
            self.end()  # the next case gets a process that holds nothing
            outcome, detail = MEMORY, f"{outcome} with more than {self.limits.megabytes:g} MB; {detail}"
        elif kept > KEPT:
            self.end()
        return Verdict(case, outcome, detail, seconds, megabytes)

    def _started(self) -> Connection:
        if self.pipe is None:
            self.pipe, theirs = self.context.Pipe()
            self.process = self.context.Process(target=_serve, args=(theirs, self.work), daemon=True)
            self.process.start()
            theirs.close()
            if not self.pipe.poll(START):
                raise RuntimeError(f"a worker did not start within {START:g} seconds")
            self.pipe.recv()
        return self.pipe

    def end(self) -> None:
        """Kill the process; the next case starts another."""
        if self.pipe is not None:
            self.process.kill()
            self.process.join()
            self.pipe.close()
            self.pipe = None


def _serve(pipe: Connection, work: Work[Any]) -> None:
    import torch

    torch.set_num_threads(1)
    taken = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + SPARE, taken + SPARE))
    pipe.send("ready")
    at_first = resident()
    while True:
        try:
            case = pipe.recv()
        except EOFError:
            return
        before = _reset_peak()
        began = time.monotonic()
        try:
            outcome, detail = work(case)
        except BaseException:  # noqa: BLE001 (an exit is a finding like any other)
            outcome, detail = FAILED, traceback.format_exc()
        seconds = time.monotonic() - began
        pipe.send((outcome, detail, seconds, max(0.0, _peak() - before), resident() - at_first))


def _reset_peak() -> float:
    with suppress(OSError):  # without it, peaks are those since the process began
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _peak()


def resident() -> float:
    """The megabytes that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


def _peak() -> float:
    """The most megabytes that this process has held since the last reset."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) / 1000 for line in status.splitlines() if line.startswith("VmHWM:"))
