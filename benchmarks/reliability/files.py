"""Damaged and crafted files of every kind: each is refused by name or answers; none crashes, hangs or fills memory.

    python benchmarks/reliability/files.py --json benchmarks/results/reliability_files.json    (a quarter of an hour)
    python benchmarks/reliability/files.py --case "table_trees/other trees/3"     one case again, with its traceback

Small files of every kind that anyorder reads (``whole_files.py``) are damaged blindly, or taken apart, changed and put
together again under a right checksum (``damage.py``). Each is opened and asked in a process with limits. It must be
refused with a ``UserError`` or give the answers of the whole file. A file that was made on purpose may hold another
model, table or picture: then its answers are its own, but they must be numbers. Seed, kind, damage and number give the
same file again.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json as json_format
import os
import sys
import tempfile
import traceback
import warnings
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from anyorder.errors import UserError
from anyorder.heads import heads
from anyorder.networks import networks
from anyorder.protocols import protocols

from common import Json, Record, Smoke, print_rows
from damage import BLIND, CRAFTED
from damage_sealed import TensorFile
from damage_values import places
from isolation import FAILED, MEMORY, Limits, Verdict, print_faults, verdicts
from whole_files import Kind, kinds, write_all

TIMES = ("model", "modalities", "data", "tasks", "training", "variables")
REFUSED, SAME, OTHER = "refused", "same answers", "other answers"
CHECKED = ("tensors", "coded", "png", "zip", "gzip", "xz")  # forms with a checksum, which crafting makes right again
UNCHECKED = ("other lengths", "other envelope", "other header")
FEWEST_CRAFTED = 6  # crafted files for each kind at least, where a form has few ways of being crafted
SMALL = ("table_gaussian", "table_neural", "text_chain", "pictures_mlp", "v1_table_trees", "v1_text", "checkpoint_mlp")
NOTICED = ("cells flipped",)  # damage under checksums that others defined, where our writer makes them
# What a command imports only when it needs it: else the first case of every worker would be slow.
PRELOAD = (
    "torch",
    "torch._dynamo",
    "lightgbm",
    "pyarrow.parquet",
    "constriction",
    "PIL.Image",
    "anyorder",
    "whole_files",
)
MODELS_NEEDED = ("table_neural", "text_chain")
NEED_MODELS = ("transcript", "compressed_table", "compressed_text")
QUICK = [name for name, kind in kinds().items() if name in SMALL or kind.form != "tensors"]
"""Kinds that are written in a moment; another file whose end is taken is one of them."""


@dataclass(frozen=True)
class Case:
    """One damaged file, by what makes it."""

    kind: str
    damage: str
    seed: int
    number: int

    def __str__(self) -> str:
        return f"--seed {self.seed} --case {f'{self.kind}/{self.damage}/{self.number}'!r}"

    @property
    def blind(self) -> bool:
        return self.damage in BLIND

    def content(self, folder: Path) -> bytes:
        """The bytes of the damaged file."""
        rng = np.random.default_rng([self.seed, *map(_number, (self.kind, self.damage)), self.number])
        kind = _kinds()[self.kind]
        whole = _whole(folder / kind.file)
        if not self.blind:
            return CRAFTED[kind.form][self.damage](whole, rng)
        others = [_kinds()[name] for name in sorted(QUICK) if name != kind.name]
        data = [one for one in others if one.form != "tensors" and one.name not in NEED_MODELS]
        near = [one for one in others if one.form == kind.form] or data
        other = near[int(rng.integers(len(near)))]  # by its name: another folder may not have it yet
        write_whole(folder, [other.name])
        return BLIND[self.damage](whole, _whole(folder / other.file), rng)


@dataclass(frozen=True)
class Attack:
    """Opens and asks the damaged file of a case; ``folder`` has the whole files and their answers."""

    folder: Path

    def __call__(self, case: Case) -> tuple[str, str]:
        kind = _kinds()[case.kind]
        with tempfile.TemporaryDirectory(dir=self.folder / "damaged") as own, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = Path(own) / kind.file
            path.write_bytes(case.content(self.folder))
            with contextlib.redirect_stderr(io.StringIO()):
                return self.judged(case, kind, path)

    def judged(self, case: Case, kind: Kind, path: Path) -> tuple[str, str]:
        """What became of a file: whatever is raised besides a ``UserError`` is a fault."""
        try:
            answers = kind.ask(path, self.folder)
        except UserError as error:
            if _out_of_memory(error):
                return MEMORY, "".join(traceback.format_exception(error))
            return REFUSED, str(error)
        except Exception as error:  # noqa: BLE001 (whatever it is, it is a finding)
            return FAILED, _described(error)
        if json_format.dumps(answers, sort_keys=True) == _answers(self.folder / f"{kind.name}.answers"):
            return SAME, ""
        if case.damage in NOTICED or (case.blind and kind.sealed):
            return FAILED, "a damaged file gave other answers"
        if isinstance(answers, dict) and all(isinstance(one, dict) and "refused" in one for one in answers.values()):
            return REFUSED, "every question"
        return OTHER, ""


def _described(error: Exception) -> str:
    """The traceback, and in its last line where in anyorder it happened: by that, faults are counted."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "anyorder" in Path(frame.filename).parts]
    where = f" in {frames[-1].filename.rpartition('anyorder/')[2]}, {frames[-1].name}" if frames else ""
    return "".join(traceback.format_exception(error)) + f"\n{type(error).__name__}{where}"


def _out_of_memory(error: BaseException | None) -> bool:
    """Whether the refusal comes of memory that the process was not given: elsewhere it would have been taken."""
    while error is not None:
        if isinstance(error, MemoryError) or "allocate memory" in str(error) or "not enough memory" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


@cache
def _kinds() -> dict[str, Kind]:
    return kinds()


@cache
def _whole(path: Path) -> bytes:
    return path.read_bytes()


@cache
def _answers(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _number(name: str) -> int:
    return zlib.crc32(name.encode())


def cases(seed: int, names: Sequence[str], damage: str = "") -> Iterator[Case]:
    """Cases without end: every damage of every kind in turn, each turn in an order of its own.

    ``damage``: only those ways of damaging a file that begin like this.
    """
    rng = np.random.default_rng(seed)
    pairs = []
    for kind in (_kinds()[name] for name in names):
        crafted = [name for name in CRAFTED[kind.form] if name.startswith(damage)]
        repeated = max(1, FEWEST_CRAFTED // len(CRAFTED[kind.form]))
        pairs += [(kind.name, name, number, repeated) for name in crafted for number in range(repeated)]
        pairs += [(kind.name, name, 0, 1) for name in BLIND if name.startswith(damage)]
    for turn in itertools.count():
        for index in rng.permutation(len(pairs)):
            name, how, number, repeated = pairs[index]
            yield Case(name, how, seed, turn * repeated + number)


def figures(found: Sequence[Verdict[Case]], *, by_damage: bool) -> list[dict[str, Any]]:
    """How many ended in which way, and the worst seconds and megabytes, for each kind of file and damage."""
    groups: dict[tuple[str, str], list[Verdict[Case]]] = {}
    for one in found:
        damage = one.case.damage if by_damage else "blind damage" if one.case.blind else "made on purpose"
        groups.setdefault((_kinds()[one.case.kind].family, damage), []).append(one)
    if not by_damage:
        groups["all", ""] = list(found)
    return [
        {"file": family, "damage": damage, **_counted(several)} for (family, damage), several in sorted(groups.items())
    ]


def _counted(found: Sequence[Verdict[Case]]) -> dict[str, Any]:
    outcomes = [one.outcome for one in found]
    right = [
        not one.case.blind and _kinds()[one.case.kind].form in CHECKED and one.case.damage not in UNCHECKED
        for one in found
    ]
    return {
        "files": len(found),
        "right checksum": sum(right),
        REFUSED: outcomes.count(REFUSED),
        SAME: outcomes.count(SAME),
        "accepted, other answers": outcomes.count(OTHER),
        "failed": sum(one.fault for one in found),
        "worst s": round(max(one.seconds for one in found), 2),
        "worst MB": round(max(one.megabytes for one in found)),
    }


def _fault(one: Verdict[Case]) -> dict[str, str]:
    """What is needed to mend it: how to run it again, and the end of its traceback."""
    return {"case": str(one.case), "outcome": one.outcome, "detail": one.detail[-600:]}


def write_whole(folder: Path, names: Sequence[str]) -> None:
    """The whole files of these kinds with their answers."""
    (folder / "damaged").mkdir(parents=True, exist_ok=True)
    names = [*names, *(MODELS_NEEDED if set(names) & set(NEED_MODELS) else ())]
    absent = [name for name in dict.fromkeys(names) if not (folder / f"{name}.answers").exists()]
    write_all(folder, sorted(absent, key=lambda name: name in NEED_MODELS))


def uncovered(folder: Path) -> list[str]:
    """Networks, heads and protocols that are in none of the models: a new one needs a file here."""
    found = set()
    for path in folder.glob("*.anyorder"):
        header = TensorFile.read(path.read_bytes()).header
        found |= {where[name] for where, name in places(header["description"]) if name == "name"}
    return [name for registry in (networks, heads, protocols) for name in registry.names() if name not in found]


def one_case(case: Case, folder: Path) -> None:
    """Run a case in this process, where its traceback can be seen and a debugger set."""
    outcome, detail = Attack(folder)(case)
    print(f"{case.kind}, {case.damage}, {case.number}: {outcome}\n{detail}")


def main(
    count: Annotated[int, typer.Option(min=1, help="damaged files")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="which damage")] = 0,
    minutes: Annotated[float | None, typer.Option(help="begin no file after so long")] = None,
    workers: Annotated[int, typer.Option(min=1)] = 2,
    only: Annotated[str, typer.Option(help="kinds or families of files that begin like this")] = "",
    damage: Annotated[str, typer.Option(help="ways of damaging them that begin like this")] = "",
    case: Annotated[str, typer.Option(help="KIND/DAMAGE/NUMBER: one case again, in this process")] = "",
    keep: Annotated[
        Path | None, typer.Option(help="keep the whole files here, and those that failed; use them again")
    ] = None,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Attack so many files and print the figures of each family; exit status 1 if any of them failed."""
    record = Record(json, smoke=smoke)
    os.environ.setdefault("MPLBACKEND", "Agg")
    names = [name for name, kind in _kinds().items() if name.startswith(only) or kind.family.startswith(only)]
    if smoke:
        names = [name for name in names if name in QUICK]
        count = min(count, 24)
    with tempfile.TemporaryDirectory() as temporary:
        folder = keep or Path(temporary)
        if case:
            kind, how, number = case.split("/")
            write_whole(folder, [kind])
            one_case(Case(kind, how, seed, int(number)), folder)
            return
        write_whole(folder, [*names, *QUICK])  # workers write none of these at the same time
        if len(names) == len(_kinds()) and (absent := uncovered(folder)):
            raise typer.BadParameter(f"no whole file has {', '.join(absent)}; add one to whole_models.py")
        print(f"seed {seed}: {count} files of {len(names)} kinds")
        wanted = itertools.islice(cases(seed, names, damage), count)
        found = list(verdicts(Attack(folder), wanted, Limits(), workers=workers, minutes=minutes, preload=PRELOAD))
        if keep is not None:
            for one in found:
                if one.fault:
                    name = f"{one.case.kind}-{one.case.damage.replace(' ', '_')}-{one.case.number}"
                    (folder / f"failed-{name}").write_bytes(one.case.content(folder))
    rows = figures(found, by_damage=True)
    print_rows(figures(found, by_damage=False))
    record.write(
        {
            "title": "Damaged and crafted files",
            "about": f"{len(found)} files, damaged blindly or made on purpose under a right checksum, opened and asked "
            "in processes of their own: at most 10 seconds and 1000 MB beyond what the process had.",
            "seed": seed,
            "rows": figures(found, by_damage=False),
            "details": {"damages": rows, "faults": [_fault(one) for one in found if one.fault]},
        }
    )
    print_faults(found, most=60)
    if any(one.fault for one in found):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
