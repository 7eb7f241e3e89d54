"""Kills at random moments: is the old file whole, or the new one, and does a resumed run end where it should?

    python benchmarks/reliability/kills.py --count 300 --json benchmarks/results/reliability_kills.json    (10 minutes)

Every case prepares a folder in which the file to be written exists already, starts a command in a process of its own,
and sends SIGKILL, SIGTERM or SIGINT: at a random moment of the command's usual duration, or at a chosen step of writing
a file (before its part is made, half written, synced, renamed). Then the target must be the old file to the byte, or a
whole new one, which loads and answers where it is a model. The command is run once more: it must end with the result of
a run that was never disturbed, bit by bit, and leave nothing but that. Half of the cases write to a disk that is nearly
full: a small one in memory where mounting is allowed, else a limit on the size of files. ``--only N`` runs one case
again. All that is drawn for a case follows from ``--seed`` and its number, but what a process has reached at a moment
depends on the machine.
"""

from __future__ import annotations

import hashlib
import itertools
import json as json_format
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
import typer

import anyorder as ao
from anyorder import cli
from anyorder.errors import UserError
from anyorder.support import atomic

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import Json, Record, Smoke, listed, print_rows

# What a command would import: here once, so that kills do not all fall into the imports of a new process.
for module in (
    "torch._dynamo",
    "anyorder.data.files",
    "anyorder.modalities.tables.fit",
    "anyorder.networks.residual_mlp",
):
    import_module(module)

TIMES = ("support", "training", "cli")
SIGNALS = {"SIGKILL": signal.SIGKILL, "SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT}
DISKS = ("normal", "nearly full")
PATIENCE = 60.0  # seconds after which a process that should have ended has not
AIMED = 0.5  # the share of kills at a step of writing a file
SECOND_SIGNAL = 0.25  # the share of SIGTERM and SIGINT that are followed by a second one
DISK_SIZE = 4 << 20
BLOCK = 4096
CONFIG = """components = 3
network = {name = "residual_mlp", width = 32, blocks = 1}
[training]
minutes = 5
steps = STEPS
batch = 64
validate_every = 10
validation_queries = 100
checkpoint_every = 0.02
"""
EQUAL, OTHER = 0, 3  # how the process that looks at a model ends: the weights of the reference, or others


@dataclass(frozen=True)
class Command:
    """What is killed: its arguments (or a function), and the file it writes; ``resumes`` if it takes up a run."""

    name: str
    out: str
    run: Callable[[], int]
    model: bool = False
    resumes: bool = False


def saves() -> int:
    """Two models saved in turn under one name; the last one is the reference."""
    models = [ao.load(name) for name in ("old.anyorder", "new.anyorder")]
    try:
        for _ in range(10):
            for model in models:
                model.save("disk/saved.anyorder")
    except UserError:
        return 2  # as the command line does
    return 0


def words(line: str) -> Callable[[], int]:
    """The command line as a function."""
    return lambda: cli.main(line.split())


FIT = "fit d.csv --engine neural --config run.toml --seed 0 --log disk/log.jsonl"
COMMANDS = {
    one.name: one
    for one in (
        Command("fit", "disk/fit.anyorder", words(f"{FIT} -o disk/fit.anyorder"), model=True),
        Command("save", "disk/saved.anyorder", saves),
        Command("fill", "disk/filled.csv", words("fill old.anyorder holes.csv -o disk/filled.csv")),
        Command("sample", "disk/rows.csv.gz", words("sample old.anyorder --count 400 --seed 1 -o disk/rows.csv.gz")),
        Command("compress", "disk/rows.aot", words("compress old.anyorder d.csv -o disk/rows.aot")),
        Command(
            "resume",
            "disk/resumed.anyorder",
            words(f"{FIT} -o disk/resumed.anyorder --checkpoint disk/run --resume"),
            model=True,
            resumes=True,
        ),
    )
}


@dataclass(frozen=True)
class Case:
    """One kill. ``share``: when, as a share of the usual duration; ``step``: instead, when in the steps of writing."""

    number: int
    command: Command
    signal: str
    disk: str
    share: float
    step: float | None
    again: bool
    room: float

    @classmethod
    def of(cls, number: int, seed: int, commands: list[Command]) -> Case:
        families = list(itertools.product(DISKS, SIGNALS, commands))
        random.Random(seed).shuffle(families)  # a few cases should be of many kinds
        disk, name, command = families[number % len(families)]
        draw = random.Random(f"{seed}/{number}")
        share, aimed, step, again, room = (draw.random() for _ in range(5))
        return cls(number, command, name, disk, share, step if aimed < AIMED else None, again < SECOND_SIGNAL, room)


@dataclass
class Reference:
    """What a command does when nobody disturbs it."""

    seconds: float
    steps: int
    size: int
    digest: str
    files: set[str]  # what is in the folder afterwards


@dataclass
class Finding:
    """What became of one case; ``faults`` must stay empty."""

    landed: bool = False
    old_whole: bool = False
    new_whole: bool = False
    resumed: bool = False
    left: int = 0
    litter: int = 0
    faults: list[str] = field(default_factory=list)


class Arena:
    """The folder in which cases are run one after another, with the inputs, the old files and the disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.disk = folder / "disk"
        self.temporary = folder / "temporary"
        self.mounts = True
        self.references: dict[str, Reference] = {}
        self.old: dict[str, bytes] = {}

    def prepare(self, commands: list[Command], steps: int) -> None:
        """Inputs and models of so many steps, and how every command ends when it is left alone."""
        rng = np.random.default_rng(0)
        a = rng.normal(size=300)
        frame = pd.DataFrame({"a": a, "b": a**2 + rng.normal(size=300), "c": np.where(a > 0, "yes", "no")}).round(3)
        frame.to_csv(self.folder / "d.csv", index=False)
        frame.mask(rng.random(frame.shape) < 0.3).to_csv(self.folder / "holes.csv", index=False)
        (self.folder / "run.toml").write_text(CONFIG.replace("STEPS", str(steps)), encoding="utf-8")
        for name, seed in (("old", 1), ("new", 2)):
            line = f"fit d.csv --engine neural --config run.toml --seed {seed} -o {name}.anyorder"
            self.expect(self.child(words(line)), 0, name)
        for command in commands:
            with self.on_disk("normal", 0):
                began, counts = time.monotonic(), self.folder / "steps"
                self.expect(self.child(partial(counted, command.run, counts)), 0, command.name)
                seconds = time.monotonic() - began
                out = self.folder / command.out
                digest = self.digest(out) if command.model else hashlib.sha256(out.read_bytes()).hexdigest()
                self.references[command.name] = Reference(
                    seconds, int(counts.read_text(encoding="ascii")), out.stat().st_size, digest, self.listing()
                )
                old = self.folder / "old.anyorder"
                self.old[command.name] = old.read_bytes() if command.model or command.name == "save" else b"old,old\n"

    def judge(self, case: Case) -> Finding:
        """One kill, and what it left."""
        command, reference, found = case.command, self.references[case.command.name], Finding()
        out = self.folder / command.out
        room = BLOCK * 3 + int(case.room * 1.5 * reference.size)
        with self.on_disk(case.disk, room, {command.out: self.old[command.name]}) as limit:
            status, found.landed = self.killed(case, limit)
            if status not in (0, 2, 130, -SIGNALS[case.signal]):
                found.faults.append(f"ended with status {status}: {self.said()}")
            found.left = len(self.parts())
            begun = command.resumes and any((self.disk / "run").glob("*.checkpoint"))
            self.look_at(out, case, status, found)
            for path in self.temporary.glob("anyorder-*/*"):
                if self.looked_at(path, reference) not in (EQUAL, OTHER) and status == 2:
                    found.faults.append(f"the model that was saved elsewhere is broken: {path.name}")
            # A model that could not be written to its place is kept elsewhere until its user moves it. A kill while it
            # is written there leaves a part among the temporary files, which the system clears and no run looks for.
            elsewhere = {name for name in self.listing() if name.startswith("temporary/anyorder-")}
            if status != -signal.SIGKILL:
                elsewhere = {name for name in elsewhere if status == 2 and not name.endswith(".part")}
            self.make_room()
            status = self.child(command.run).wait()
            if status:
                found.faults.append(f"the next run ended with status {status}: {self.said()}")
                return found
            litter = sorted(self.listing() - self.references[command.name].files - elsewhere)
            found.litter = len(litter)
            if litter:
                found.faults.append(f"litter after the next run: {litter}")
            if command.model:
                equal = self.looked_at(out, reference) == EQUAL
            else:
                equal = hashlib.sha256(out.read_bytes()).hexdigest() == reference.digest
            if not equal:
                found.faults.append("the next run gave another result than one that was never disturbed")
            found.resumed = begun and equal
            if command.model and (wrong := self.wrong_log()):
                found.faults.append(wrong)
        return found

    def look_at(self, out: Path, case: Case, status: int, found: Finding) -> None:
        """Whether the target is the old file or a whole new one."""
        command, reference = case.command, self.references[case.command.name]
        content = out.read_bytes() if out.is_file() else b""
        if status == 0 and content == self.old[command.name]:
            found.faults.append("the command said that it was done, but the file is the old one")
            return
        if content == self.old[command.name]:
            found.old_whole = True
        elif command.model:
            looked = self.looked_at(out, reference)
            # Asked to end, a fit keeps the best model so far; killed, it has no time to make another one.
            found.new_whole = looked == EQUAL or (looked == OTHER and case.signal != "SIGKILL")
        elif command.name == "save":
            found.new_whole = content == (self.folder / "new.anyorder").read_bytes()
        else:
            found.new_whole = hashlib.sha256(content).hexdigest() == reference.digest
        if not (found.old_whole or found.new_whole):
            what = f"neither the old nor the new one: {len(content)} bytes, after status {status}"
            found.faults.append(f"the file is {what}, and {self.said() or 'not a word'}")

    def killed(self, case: Case, limit: int | None) -> tuple[int, bool]:
        """The status of the command of the case, and whether it was struck before it ended."""
        number, reference = SIGNALS[case.signal], self.references[case.command.name]
        again = case.again and case.signal != "SIGKILL"
        if case.step is not None:
            struck, step = self.folder / "struck", 1 + int(case.step * reference.steps)
            struck.unlink(missing_ok=True)
            steps = (step, step + 1) if again else (step,)
            status = self.child(lambda: strike_at(case.command.run, steps, number, struck), limit).wait()
            return status, struck.exists()
        child, until = self.child(case.command.run, limit), time.monotonic() + case.share * reference.seconds
        while time.monotonic() < until and not ended(child):
            time.sleep(0.0005)
        landed = not ended(child)
        for _ in range(1 + again):
            if not ended(child):
                os.kill(child.number, number)
                time.sleep(0.02 * case.share)
        return child.wait(), landed

    @contextmanager
    def on_disk(self, kind: str, room: int, files: dict[str, bytes] | None = None) -> Iterator[int | None]:
        """An empty disk with these files, and room for so many bytes more; yields a limit where none is mounted."""
        for folder in (self.disk, self.temporary):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        small = kind != "normal" and self.mounts
        if small:
            self.mounts = small = mount(self.disk)
        try:
            for name, content in (files or {}).items():
                (self.folder / name).write_bytes(content)
            if small:
                free = os.statvfs(self.disk).f_bavail * BLOCK
                (self.disk / "filler").write_bytes(bytes(max(0, free - room)))
            yield None if kind == "normal" or small else room
        finally:
            if small:
                subprocess.run(["umount", str(self.disk)], check=True)

    def make_room(self) -> None:
        (self.disk / "filler").unlink(missing_ok=True)

    def parts(self) -> set[str]:
        """Parts of files, wherever a command may write."""
        return {name for name in self.listing() if name.endswith(".part")}

    def listing(self) -> set[str]:
        """All that is in the folder of the commands, on the disk and where temporary files go."""
        found = {str(path.relative_to(self.folder)) for path in self.folder.rglob("*")}
        return found - {"said", "steps", "struck", "disk/filler"}  # our own

    def child(self, work: Callable[[], int], limit: int | None = None) -> Child:
        """The work in a process of its own, which has all modules already."""
        sys.stdout.flush()
        sys.stderr.flush()
        number = os.fork()
        if number:
            return Child(number)
        status = 1
        try:
            os.chdir(self.folder)
            tempfile.tempdir = str(self.temporary)
            said = os.open("said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(said, 1)
            os.dup2(said, 2)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            status = work()
            sys.stdout.flush()
        except BaseException as error:  # noqa: BLE001 (whatever it is, the parent's work must not go on here)
            status = 130 if isinstance(error, KeyboardInterrupt) else 1
            traceback.print_exc()
        finally:
            os._exit(status)

    def said(self) -> str:
        """The last line of the last process."""
        lines = (self.folder / "said").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def expect(self, child: Child, status: int, what: str) -> None:
        if (got := child.wait()) != status:
            raise SystemExit(f"{what}: status {got} without any disturbance: {self.said()}")

    def digest(self, path: Path) -> str:
        self.expect(self.child(lambda: print(weights(path)) or 0), 0, f"digest of {path.name}")
        return self.said()

    def looked_at(self, path: Path, reference: Reference) -> int:
        """EQUAL, OTHER, or another status if the model does not load and answer."""

        def look() -> int:
            same = weights(path) == reference.digest
            return EQUAL if same else OTHER

        return self.child(look).wait()

    def wrong_log(self) -> str | None:
        """What is wrong with the training curve after the last run: every line is whole, every step there once."""
        try:
            lines = (self.disk / "log.jsonl").read_text(encoding="utf-8").splitlines()
            steps = [(line["run"], line["step"]) for line in map(json_format.loads, lines)]
        except (OSError, ValueError, KeyError) as error:
            return f"the log cannot be read: {error}"
        return None if len(steps) == len(set(steps)) and steps else f"the log has steps twice, or none: {steps}"


@dataclass
class Child:
    """A process, and how it ended."""

    number: int
    status: int | None = None

    def wait(self) -> int:
        """The exit status, or minus the signal; a process that hangs is killed."""
        until = time.monotonic() + PATIENCE
        while not ended(self):
            if time.monotonic() > until:
                os.kill(self.number, signal.SIGKILL)
            time.sleep(0.001)
        assert self.status is not None
        return self.status


def hook_steps(step: Callable[[], None]) -> None:
    """Call this at every step of writing a file in this process, which is one that will not write anything else."""

    def hooked(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            step()
            return function(*given, **named)

        return call

    def write_bytes(path: Path, data: bytes) -> int:
        with path.open("wb") as file:
            file.write(data[: len(data) // 2])
            file.flush()
            step()
            file.write(data[len(data) // 2 :])
        return len(data)

    for name in ("_remove_stale", "_new_part", "_lock", "_sync", "_closed"):
        setattr(atomic, name, hooked(getattr(atomic, name)))
    for name in ("replace", "write", "fsync", "fchmod"):
        setattr(os, name, hooked(getattr(os, name)))
    # Replaced on purpose, in a process that ends with this one command.
    Path.write_bytes = write_bytes  # type: ignore[assignment, method-assign]


def counted(run: Callable[[], int], path: Path) -> int:
    """Run, and write down how many steps of writing there were."""
    steps: list[None] = []
    hook_steps(lambda: steps.append(None))
    status = run()
    path.write_text(str(len(steps)), encoding="ascii")
    return status


def strike_at(run: Callable[[], int], steps: tuple[int, ...], number: int, struck: Path) -> int:
    """Run, and send the signal to this very process at these steps of writing."""
    counter = itertools.count(1)

    def step() -> None:
        if next(counter) in steps:
            struck.touch()
            os.kill(os.getpid(), number)

    hook_steps(step)
    return run()


def ended(child: Child) -> bool:
    if child.status is None:
        number, status = os.waitpid(child.number, os.WNOHANG)
        if number:
            child.status = os.waitstatus_to_exitcode(status)
    return child.status is not None


def weights(path: Path) -> str:
    """A hash of the weights of a model that has loaded and answered a question."""
    model = ao.load(path)
    assert np.isfinite(model.given(b=1.0)["a"].mean())
    digest = hashlib.sha256()
    for name, tensor in sorted(model.core.state_dict().items()):
        digest.update(name.encode() + tensor.numpy().tobytes())
    return digest.hexdigest()


def mount(folder: Path) -> bool:
    """A small disk in memory at that folder, if that is allowed here."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_SIZE}", "tmpfs", str(folder)]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def table(results: list[tuple[Case, Finding]]) -> list[dict[str, Any]]:
    """One row for each command, signal and disk."""
    rows: dict[tuple[str, str, str], Counter[str]] = {}
    for case, found in results:
        row = rows.setdefault((case.command.name, case.signal, case.disk), Counter())
        row["kills"] += found.landed
        row["ended before"] += not found.landed
        row["old whole"] += found.old_whole
        row["new whole"] += found.new_whole
        row["resumed equal"] += found.resumed
        row["parts left"] += found.left
        row["litter"] += found.litter
        row["failed"] += bool(found.faults)
    names = ("kills", "ended before", "old whole", "new whole", "resumed equal", "parts left", "litter", "failed")
    return [
        {"work": command, "signal": name, "disk": disk} | {column: row[column] for column in names}
        for (command, name, disk), row in sorted(rows.items())
    ]


def main(
    count: Annotated[int, typer.Option(help="kills that must land")] = 300,
    seed: int = 0,
    minutes: Annotated[float, typer.Option(help="no further case is begun after these")] = 20.0,
    commands: Annotated[str, typer.Option(help=f"of {', '.join(COMMANDS)}; all if not given")] = "",
    only: Annotated[int | None, typer.Option(help="run this case alone")] = None,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Kill commands at random moments, look at what they left, and run them again."""
    torch.set_num_threads(1)  # a process with several threads must not be forked
    record = Record(json, smoke=smoke)
    every = ["fill", "resume"] if smoke else list(COMMANDS)
    chosen = [COMMANDS[name] for name in listed(commands, every)]
    own = f" --commands {commands}" if commands else ""  # a number means another case where others are chosen from
    count, steps = (3, 30) if smoke else (count, 150)
    print(f"seed {seed}")
    results: list[tuple[Case, Finding]] = []
    with tempfile.TemporaryDirectory(prefix="anyorder-kills-") as folder:
        arena = Arena(Path(folder))
        arena.prepare(chosen, steps)
        until = time.monotonic() + 60 * minutes
        numbers = itertools.count() if only is None else iter([only])
        for number in numbers:
            case = Case.of(number, seed, chosen)
            found = arena.judge(case)
            results.append((case, found))
            for fault in found.faults:
                print(f"case {number} ({case.command.name}, {case.signal}, {case.disk} disk): {fault}")
                print(
                    f"    again: python benchmarks/reliability/kills.py --seed {seed} --only {number}{own}", flush=True
                )
            if sum(one.landed for _, one in results) >= count or time.monotonic() > until:
                break
    rows = table(results)
    print_rows(rows)
    if not arena.mounts:
        print("no disk could be mounted here: files were limited in size instead")
    failed = sum(bool(found.faults) for _, found in results)
    kills = sum(found.landed for _, found in results)
    print(f"{kills} kills, {failed} failed")
    payload = {
        "title": "Kills at random moments",
        "about": f"{kills} kills of commands that write; afterwards the old file or a whole new one must be there, and "
        "the next run must give the result of an undisturbed one and leave no parts.",
        "seed": seed,
        "kills": kills,
        "failed": failed,
        "small_disk": "mounted" if arena.mounts else "a limit on the size of files",
        "rows": rows,
    }
    record.write(payload)
    if failed:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
