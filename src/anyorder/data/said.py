"""What is said of how a file is to be read, beside or behind its name.

Whatever is not said is found out. Behind the name, after ``#``, it can be said wherever a file is named, in Python and
on the command line::

    sales.csv#header=3                   the column names are in line 3
    sales.csv#header=3-4                 ... in lines 3 and 4, one above the other
    sales.csv#header=0,delimiter=tab     there are none
    sales.csv#rows=all                   totals, footnotes and repeated column names are rows as well
    sales.csv#encoding=cp1250
    sales.xlsx#March                     another sheet than the first
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from anyorder.data.dialect import SPACES
from anyorder.errors import UserError
from anyorder.support.paths import checked_path

SIGNS = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|", "space": SPACES, "spaces": SPACES}
NAMES = ("delimiter", "encoding", "header", "rows", "sheet")


Way = Callable[[str], str]
"""Writes the name of a file with something said of it, such as ``header=3``, ready to be pasted."""


@dataclass(frozen=True)
class Said:
    """What somebody said of a file; None where it is to be found out."""

    delimiter: str | None = None
    encoding: str | None = None
    header: tuple[int, int] | None = None  # first and last line of the column names, from 1; (0, 0) for none
    every_row: bool = False
    sheet: str | None = None

    @classmethod
    def of(
        cls,
        delimiter: str | None = None,
        encoding: str | None = None,
        header: int | str | None = None,
        rows: str | None = None,
        sheet: str | None = None,
    ) -> Said:
        """What the arguments say, checked."""
        if delimiter is not None:
            delimiter = SIGNS.get(delimiter, delimiter)
            if delimiter != SPACES and (len(delimiter) != 1 or delimiter in "\r\n\"'\0"):
                raise UserError(
                    f"a delimiter must be one character, such as ';', or {SPACES!r} for spaces, got {delimiter!r}"
                )
        if rows not in (None, "all"):
            raise UserError(
                f"rows must be 'all' (totals, footnotes and repeated names are kept) or left out, got {rows!r}"
            )
        return cls(delimiter, encoding, None if header is None else _lines(header), rows == "all", sheet)

    def or_else(self, other: Said) -> Said:
        """What is not said here, as it is said there."""
        return replace(
            self,
            delimiter=self.delimiter or other.delimiter,
            encoding=self.encoding or other.encoding,
            header=other.header if self.header is None else self.header,
            every_row=self.every_row or other.every_row,
            sheet=other.sheet if self.sheet is None else self.sheet,
        )


def _lines(header: int | str) -> tuple[int, int]:
    found = re.fullmatch(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?", str(header))
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (-1, -1)
    if first < 0 or last < first or last - first > 9 or (first == 0 and last > 0):
        raise UserError(
            "header must be the line of the column names, counted from 1 ('3', or '3-4' for two), or 0 for none; "
            f"got {header!r}"
        )
    return first, last


def way_to(name: str, said: Said) -> Way:
    """How a file is named with something said of it, beside the sheet that was said already."""
    kept = "" if said.sheet is None else f"sheet={said.sheet},"
    return lambda saying: repr(f"{name}#{kept}{saying}")


def said_in_name(path: str | os.PathLike[str], known: Callable[[str], bool]) -> tuple[str, Said]:
    """The name of the file and what stands behind it; ``known``: whether a text can be the name of a file with a table.

    A file that has the whole text for a name is that file.
    """
    text = str(checked_path(path))
    if "#" not in text or os.path.exists(text):
        return text, Said()
    for place in (found.start() for found in re.finditer("#", text)):
        if known(text[:place]):
            return text[:place], _parsed(text[:place], text[place + 1 :])
    return text, Said()


def bare_name(path: str | os.PathLike[str]) -> str:
    """A name without what stands behind ``#``, whatever it is a name of."""
    text = os.fspath(path)
    return text if os.path.lexists(text) else text.partition("#")[0] or text


def _parsed(name: str, text: str) -> Said:
    if not re.match(rf"(?:{'|'.join(NAMES)})=", text):
        if not text or re.match(r"\w+=", text):
            raise UserError(f"{name!r}: after # expected one of {', '.join(f'{one}=' for one in NAMES)}, got {text!r}")
        return Said(sheet=text)
    parts = re.split(rf",(?=(?:{'|'.join(NAMES)})=)", text)
    pairs = dict(part.split("=", 1) for part in parts)
    if len(pairs) < len(parts):
        raise UserError(f"{name!r}: an option is given twice after #: {text!r}")
    return Said.of(**pairs)
