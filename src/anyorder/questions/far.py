"""Notes on evidence far outside of what the model has seen: how far it is, since answers there rest on no data."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from anyorder.distributions.region import Interval, Points, Region, Union
from anyorder.questions.evidence import Missing, Statement, Value
from anyorder.support.notes import note
from anyorder.variables.codecs import Codec
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind

_SIGN = re.compile(r"^=([<>!]=?)\s*")
SAME = 1e-9  # of the range seen
LONGEST = 12  # characters of a number that is shown as it was given
NEAR = 0.5  # of it: rows that were set aside to judge the model may lie so far out


def note_if_far(encoding: Encoding, name: str, said: Statement, known: float | Region, stacklevel: int) -> None:
    """Warn if evidence on a column holds nothing that is near to what was seen of it."""
    codec = encoding.codec(name)
    first, least, most, last = codec.usual
    # Most evidence is among the data, which is quickly seen in model values.
    if isinstance(known, Interval) and known.least <= most and known.most >= least:
        return
    if isinstance(said, Missing) or (not isinstance(known, Region) and first <= known <= last):
        return
    ends = codec.seen
    gaps = [] if ends is None else [_gaps(span, ends) for span in _spans(codec, known)]
    if ends is None or not gaps:
        return
    below, above = min(gap[0] for gap in gaps), min(gap[1] for gap in gaps)
    gap, width = min(below, above), ends[1] - ends[0]
    if not math.isfinite(gap) or gap <= (SAME if isinstance(known, Region) else NEAR) * width:
        return
    where, which, end = ("above", "largest", ends[1]) if above <= below else ("below", "smallest", ends[0])
    far = f"{_times(gap / width)} their whole range {where}" if width > 0 else where
    value = said.given if isinstance(said, Value) else said
    long = isinstance(value, float) and len(str(value)) > LONGEST
    text = _SIGN.sub(r" \1 ", f"={value:.6g}" if long else f"={value}")
    note(
        f"{name}{text} lies outside the data: {far} the {which} value seen ({_shown(codec, end)}). Answers "
        "there are extrapolations",
        stacklevel=stacklevel,
    )


def note_far_rows(
    encoding: Encoding, values: np.ndarray[Any, Any], known: np.ndarray[Any, Any], stacklevel: int
) -> None:
    """Warn once of all cells of many rows that lie far outside of what was seen, with their number by column."""
    counts: dict[str, int] = {}
    for index, codec in enumerate(encoding.codecs):
        low, _, _, high = codec.usual
        count = int((known[:, index] & ((values[:, index] < low) | (values[:, index] > high))).sum())
        if count:
            counts[codec.variable.name] = count
    if counts:
        listed = ", ".join(f"{count} in {name!r}" for name, count in counts.items())
        note(
            f"values far outside the data that the model has seen: {listed}. Answers there are extrapolations",
            stacklevel=stacklevel,
        )


def _spans(codec: Codec, known: float | Region) -> Iterator[tuple[float, float]]:
    """The stretches of a column, in the units of the data, that a piece of evidence allows."""
    if isinstance(known, Union):
        for part in known.parts:
            yield from _spans(codec, part)
    elif isinstance(known, Points):
        for value in known.values:
            yield from _spans(codec, value)
    elif isinstance(known, Interval):
        yield _units(codec, known.least), _units(codec, known.most)
    elif not isinstance(known, Region):
        yield _units(codec, known), _units(codec, known)


def _units(codec: Codec, value: float) -> float:
    return float(codec.measure(np.array([value]))[0]) if math.isfinite(value) else value


def _gaps(span: tuple[float, float], seen: tuple[float, float]) -> tuple[float, float]:
    """How far a stretch lies below and above what was seen; 0 for both where it holds some of it, inf on one side."""
    if span[0] > seen[1]:
        return math.inf, span[0] - seen[1]
    return (seen[0] - span[1], math.inf) if span[1] < seen[0] else (0.0, 0.0)


def _times(ratio: float) -> str:
    return (
        f"{ratio:,.0f} times" if ratio >= 10 else f"{ratio:.1f} times" if ratio >= 1 else f"{max(ratio, 0.01):.2g} of"
    )


def _shown(codec: Codec, end: float) -> str:
    if codec.variable.kind is not Kind.DATETIME:
        return f"{end:.6g}"
    return str(codec.decode(codec.from_measure(np.array([end]))).iloc[0]).removesuffix(" 00:00:00")
