"""How a delimited text is written: delimiter, quotes, decimal sign, encoding, line ends.

A table that was read from a text carries this in ``frame.attrs["anyorder.dialect"]``, so that what is written from it
looks like it. It is a plain dictionary there, since pandas writes ``attrs`` into Parquet as JSON; it holds only what
differs from the usual: commas, double quotes where needed, UTF-8, a line feed.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import pandas as pd

from anyorder.errors import UserError
from anyorder.variables.cells import NUMBER

KEY = "anyorder.dialect"
SPACES = r"\s+"

Quoted = Literal["needed", "texts", "all"]


@dataclass(frozen=True)
class Dialect:
    """How a table is written as text."""

    delimiter: str = ","
    named: bool = False  # the delimiter is that of the file's ending, as in .tsv
    quote: str = '"'
    quoted: Quoted = "needed"
    decimal: str = "."
    encoding: str = "utf-8"
    mark: bool = False  # a byte order mark before the text
    newline: str = "\n"

    @classmethod
    def of(cls, frame: Any) -> Dialect:
        """The one that a frame carries; the usual one where it carries none or nonsense."""
        said = getattr(frame, "attrs", {}).get(KEY)
        try:
            return cls.read(said) if said is not None else cls()
        except UserError:  # attrs are everybody's
            return cls()

    @classmethod
    def read(cls, facts: Any) -> Dialect:
        """The dialect in a dictionary, as :meth:`facts` writes it; anything else is refused."""
        kinds = {field.name: type(field.default) for field in fields(cls)}
        if not isinstance(facts, Mapping) or any(type(facts[name]) is not kinds.get(name) for name in facts):
            raise UserError(f"a dialect has the entries {', '.join(kinds)}, got {facts!r:.80}")
        found = cls(**facts)
        good = (
            (found.delimiter == SPACES or _is_sign(found.delimiter))
            and _is_sign(found.quote)
            and found.quoted in ("needed", "texts", "all")
            and found.decimal in (".", ",")
            and found.newline in ("\n", "\r\n", "\r")
        )
        try:
            "".encode(found.encoding)
        except (LookupError, ValueError):
            good = False
        if not good:
            raise UserError(f"no dialect of a text that a table can be written in: {dict(facts)!r:.200}")
        return found

    def facts(self) -> dict[str, Any]:
        """What differs from the usual, for JSON."""
        usual = asdict(Dialect())
        return {name: value for name, value in asdict(self).items() if value != usual[name]}

    def put_on(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The frame, which carries this dialect from now on."""
        frame.attrs.pop(KEY, None)
        if facts := self.facts():
            frame.attrs[KEY] = facts
        return frame

    def csv_options(self, table: pd.DataFrame, delimiter: str | None = None) -> dict[str, Any]:
        """The arguments of ``to_csv`` for this table; ``delimiter``: another one, that of the file's ending."""
        sign = delimiter or self.delimiter
        if sign == SPACES:
            sign = " " if _holds_no_spaces(table) else ","
        decimal = self.decimal if sign != self.decimal else "."
        quoting = {"needed": csv.QUOTE_MINIMAL, "texts": csv.QUOTE_NONNUMERIC, "all": csv.QUOTE_ALL}[self.quoted]
        if quoting == csv.QUOTE_MINIMAL and _holds_returns(table):
            quoting = csv.QUOTE_NONNUMERIC
        return {"index": False, "sep": sign, "quotechar": self.quote, "quoting": quoting, "decimal": decimal}


def newline_of(text: str) -> str:
    """How the lines of a text end."""
    found = re.search(r"\r\n|\n|\r", text)
    return found.group() if found else "\n"


def quoted_of(lines: Sequence[str], delimiter: str, quote: str) -> Quoted:
    """Which cells of these lines are in quotes: all, all that are no numbers, or those that need it."""
    if delimiter == SPACES or not any(quote in line for line in lines):
        return "needed"
    sign, mark = re.escape(delimiter), re.escape(quote)
    cell = re.compile(rf"(?:^|{sign})[^\S\n{sign}]*({mark}(?:[^{mark}]|{mark}{mark})*{mark}|[^{sign}\n]+)", re.M)
    text = "".join(lines).replace("\r\n", "\n").replace("\r", "\n")
    cells = [found.strip() for found in cell.findall(text)]
    bare = [text for text in cells if not text.startswith(quote)]
    if not bare:
        return "all"
    numbers = re.compile(rf"{NUMBER}|[+-]?\d+,\d+")
    if all(numbers.fullmatch(text) for text in bare):
        inside = (text.strip(quote) for text in cells if text.startswith(quote))
        return "needed" if all(numbers.fullmatch(text) for text in inside) else "texts"
    return "needed"


def _is_sign(text: str) -> bool:
    return len(text) == 1 and text not in "\r\n\0"


def _texts(table: pd.DataFrame) -> list[pd.Series[Any]]:
    texts = [column for _, column in table.items() if column.dtype.kind not in "biufM"]
    return [pd.Series(table.columns, dtype=object), *texts]


def _holds_returns(table: pd.DataFrame) -> bool:
    """Whether a text holds a carriage return: some versions of Python leave such a cell without quotes."""
    return any("\r" in cell for column in _texts(table) for cell in column if isinstance(cell, str))


def _holds_no_spaces(table: pd.DataFrame) -> bool:
    """Whether spaces can stand between the cells: each is there, and none has a space."""
    texts = (cell for column in _texts(table) for cell in column)
    return not table.isna().any(axis=None) and all(len(str(cell).split()) == 1 for cell in texts)
