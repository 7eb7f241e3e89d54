"""The pieces of a plainly written table, read by Arrow, which is several times as fast as pandas.

It reads only what both read alike. Whatever they could read differently (spaces behind a delimiter, line ends of old
Macs, lines with more or fewer fields) raises :class:`NotPlainError`, and the caller reads the text with pandas.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import pandas as pd

try:
    import pyarrow
    import pyarrow.csv
except ImportError:  # it is optional
    pyarrow = None

BLOCK = 1 << 20  # bytes; Arrow reads many blocks ahead and keeps them in memory


class NotPlainError(Exception):
    """The text is not written so plainly that Arrow surely reads it as pandas does."""


class Readable(Protocol):
    """A text that is read on and on."""

    def read(self, size: int = -1, /) -> str:
        """So many characters more, or fewer at the end."""
        ...


def can_be_plain(names: Sequence[str], delimiter: str, quote: str) -> bool:
    """Whether a table with these columns and signs can be read here at all."""
    usual = len(delimiter) == len(quote) == 1 and (delimiter + quote).isascii()
    # In a table of one column a blank line is a cell; before pandas 3 texts were no Arrow arrays.
    return usual and pyarrow is not None and len(names) > 1 and pd.Series([""], dtype="str").dtype != object


def plain_pieces(
    text: Readable,
    names: Sequence[str],
    delimiter: str,
    quote: str,
    rows: int,
    numbers: Mapping[str, tuple[str, list[str]]],
    *,
    checked: bool = False,
) -> Iterator[pd.DataFrame]:
    """The cells as texts, ``rows`` at a time.

    ``numbers``: dtypes and texts for missing cells, by column. ``checked``: this text has been read here before.
    """
    unique = [str(index) for index in range(len(names))]
    types = {
        key: pyarrow.type_for_alias(numbers[name][0]) if name in numbers else pyarrow.large_string()
        for key, name in zip(unique, names, strict=True)
    }
    try:
        batches = pyarrow.csv.open_csv(
            _PlainText(text, delimiter, checked=checked),
            read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=BLOCK, column_names=unique),
            parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter, quote_char=quote, newlines_in_values=True),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=types,
                # Read as missing in columns of numbers alone, where a word that is not for missing cells cannot be.
                null_values=sorted({text for _, texts in numbers.values() for text in texts}),
                strings_can_be_null=False,
            ),
        )
        done = 0
        for table in _in_rows(rows, batches):
            piece = table.combine_chunks().to_pandas(split_blocks=True)
            piece.index = pd.RangeIndex(done, done + len(piece))
            done += len(piece)
            if str(piece.iloc[-1, -1]).endswith("\n"):  # the text ended within quotes
                raise NotPlainError
            yield piece.set_axis(list(names), axis=1)
    except (pyarrow.ArrowException, UnicodeDecodeError) as error:
        raise NotPlainError from error


def release_memory() -> None:
    """Give back what Arrow keeps for more pieces, once there are no more."""
    if pyarrow is not None:
        pyarrow.default_memory_pool().release_unused()


def _in_rows(rows: int, batches: Iterable[Any]) -> Iterator[Any]:
    """Tables of so many rows, the last one with fewer."""
    some: list[Any] = []
    for batch in batches:
        some.append(batch)
        while sum(each.num_rows for each in some) >= rows:
            table = pyarrow.Table.from_batches(some)
            yield table.slice(0, rows)
            some = table.slice(rows).to_batches()
    if some:
        yield pyarrow.Table.from_batches(some)


class _PlainText(io.RawIOBase):
    """The text as UTF-8, up to the first sign that pandas may read in another way."""

    def __init__(self, text: Readable, delimiter: str, *, checked: bool) -> None:
        self.text, self.last, self.checked = text, "\n", checked
        odd = [f"{delimiter} ", "\n ", "\n\t", "\0", "\ufeff"]
        self.odd = [signs for signs in odd if signs[-1] != delimiter]

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        block = self.text.read(size)
        if not block and self.last != "\n":
            block = "\n"  # so that quotes that nobody closed can be seen in the last cell
        if not self.checked:
            seen = self.last + block
            old_ends = seen.count("\r") - seen.endswith("\r") - seen.count("\r\n")
            if old_ends or any(signs in seen for signs in self.odd):
                raise NotPlainError
        self.last = block[-1:] or self.last
        return block.encode()
