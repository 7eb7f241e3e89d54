"""States, and what is given of an action, as model values: of one state in one go, of many column by column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from anyorder.data.frames import as_pandas, is_frame
from anyorder.errors import UserError, nearest
from anyorder.questions.far import note_far_rows
from anyorder.variables.cells import LARGEST, missing_cells, numbers
from anyorder.variables.codecs import Space
from anyorder.variables.codecs.base import unknown_cells
from anyorder.variables.encoding import Encoding
from anyorder.variables.number_rows import StackedWarps

MOST_NAMED = 5  # columns that an error names


@dataclass(frozen=True)
class Rows:
    """Encoded rows: model values (0 where unknown), and which are known."""

    values: Float[np.ndarray, "rows variables"]
    known: Bool[np.ndarray, "rows variables"]


class Reader:
    """Reads states and given actions of a fixed list of columns."""

    def __init__(self, encoding: Encoding, state: Sequence[str], action: Sequence[str]) -> None:
        self.encoding = encoding
        self.state, self.action = tuple(state), tuple(action)
        self.names = (*self.state, *self.action)
        schema = encoding.schema
        self.indices = np.array([schema.index(name) for name in self.names])
        self.optional = np.array([schema[name].optional for name in self.names])
        self.number = {name: number for number, name in enumerate(self.names)}
        codecs = [encoding.codec(name) for name in self.names]
        warps = [None if schema.missing else codec.plain_warp for codec in codecs]
        self._others = [number for number, warp in enumerate(warps) if warp is None]
        self._plain = np.array([number for number, warp in enumerate(warps) if warp is not None], dtype=np.intp)
        self._warps = StackedWarps([warp for warp in warps if warp is not None])

    @cached_property
    def _usual(self) -> tuple[Float[np.ndarray, " columns"], Float[np.ndarray, " columns"]]:
        """Between which model values lies what was seen, and a little beside it."""
        usual = np.array([self.encoding.codec(name).usual for name in self.names])
        return usual[:, 0], usual[:, 3]

    def one(self, state: Any, given: Mapping[str, Any]) -> Rows:
        """One state, in one go where all cells are plain numbers."""
        cells = [*self._cells(state), *([np.nan] * len(self.action))]
        for name, value in given.items():
            cells[self.number[name]] = value
        encoded, known = self._quickly(cells) if not self._others else (None, None)
        if encoded is None or known is None:
            encoded, known = self._one_by_one(cells)
        lacking = ~(known | self.optional)
        lacking[len(self.state) :] = False
        if lacking.any():
            self._refuse_unknown(self.names[int(np.argmax(lacking))])
        rows = self._rows(encoded[None], known[None])
        low, high = self._usual
        if (known & ((encoded < low) | (encoded > high))).any():
            note_far_rows(self.encoding, rows.values, rows.known, stacklevel=5)
        return rows

    def _rows(self, encoded: Float[np.ndarray, "rows columns"], known: Bool[np.ndarray, "rows columns"]) -> Rows:
        values = np.zeros((len(encoded), len(self.encoding.schema)))
        everything = np.zeros(values.shape, dtype=bool)
        values[:, self.indices], everything[:, self.indices] = np.where(known, encoded, 0.0), known
        return Rows(values, everything)

    def _cells(self, state: Any) -> Sequence[Any]:
        """The cells of one state in the order of its columns; NaN for what is not there."""
        if isinstance(state, pd.Series):
            self._refuse_repeated("the state", state)
            by_name = {str(name): cell for name, cell in state.items()}
            self._check_columns(list(by_name))
            return [by_name.get(name, np.nan) for name in self.state]
        if isinstance(state, Mapping):
            if len(state) != len(self.state) or any(name not in state for name in self.state):
                for name in state:
                    self._check_state(name)
                self._check_columns(list(state))
            return [state.get(name, np.nan) for name in self.state]
        cells = list(state)
        if len(cells) != len(self.state):
            self._refuse_length(len(cells))
        return cells

    def _quickly(
        self, cells: list[Any]
    ) -> tuple[Float[np.ndarray, " columns"], Bool[np.ndarray, " columns"]] | tuple[None, None]:
        """All cells at once; None where one of them is no plain number."""
        if not all(isinstance(cell, float | int | np.floating | np.integer) for cell in cells):
            return None, None
        try:
            units = np.array(cells, dtype=np.float64)
        except OverflowError:  # a whole number that no float is as great as
            return None, None
        known = ~np.isnan(units)
        if not (np.abs(units[known]) < LARGEST).all():
            return None, None
        return self._warps.forward(np.where(known, units, 0.0)), known

    def _one_by_one(self, cells: list[Any]) -> tuple[Float[np.ndarray, " columns"], Bool[np.ndarray, " columns"]]:
        """Every cell by its own codec, which says what is wrong with it."""
        encoded, known = np.zeros(len(cells)), np.zeros(len(cells), dtype=bool)
        for number, (name, cell) in enumerate(zip(self.names, cells, strict=True)):
            if not pd.api.types.is_scalar(cell):
                raise UserError(f"{name!r} must be one value, got {cell!r:.80}; for many states give a frame")
            if not missing_cells(pd.Series([cell]), self.encoding.schema.missing)[0]:
                value = cell.item() if isinstance(cell, np.number) else cell
                encoded[number], known[number] = self.encoding.encode_value(name, value, evidence=True), True
        return encoded, known

    def many(self, state: Any, given: pd.DataFrame) -> Rows:
        """Many states, column by column; ``given`` has a row for each."""
        table = self.table(state)
        encoded, known = np.zeros((len(table), len(self.names))), np.zeros((len(table), len(self.names)), dtype=bool)
        for number, name in enumerate(self.names):
            source = table if number < len(self.state) else given
            if name in source:
                codec = self.encoding.codec(name)
                encoded[:, number], known[:, number] = codec.encode(
                    source[name], self.encoding.schema.missing, evidence=True
                )
        lacking = ~(known | self.optional)
        lacking[:, len(self.state) :] = False
        if lacking.any():
            row, column = np.argwhere(lacking)[0]
            self._refuse_unknown(self.names[column], f" in row {row} (counted from 0)")
        rows = self._rows(encoded, known)
        note_far_rows(self.encoding, rows.values, rows.known, stacklevel=5)
        return rows

    def table(self, state: Any) -> pd.DataFrame:
        """States as a frame of pandas with the columns of the state."""
        if is_frame(state):
            table = as_pandas(state)
            self._check_columns(list(table.columns))
            return table[[name for name in self.state if name in table]]
        cells = np.asarray(state)
        if cells.shape[1] != len(self.state):
            self._refuse_length(cells.shape[1])
        return pd.DataFrame(cells, columns=list(self.state))

    def commands(self, given: Any, index: pd.Index[Any], *, labelled: bool) -> pd.DataFrame:
        """What is given of the actions of many states, a row for each; NaN is not given.

        ``labelled``: whether the labels of the states are a user's own, so that what is given is found by them.
        """
        if given is None:
            return pd.DataFrame(index=index)
        if is_frame(given):
            table = as_pandas(given)
            if len(table) != len(index):
                raise UserError(f"given has {len(table)} rows, but there are {len(index)} states; give a row for each")
            if labelled and isinstance(given, pd.DataFrame):
                table = table.iloc[_places("given", table.index, index)]
            table = table.set_axis(index)
        elif isinstance(given, Mapping):
            columns = {str(name): self._column(str(name), said, index, labelled) for name, said in given.items()}
            table = pd.DataFrame(columns, index=index)
        else:
            self._refuse_given(given)
        for name in table.columns:
            self.check_action(name)
        return table

    def command(self, given: Any) -> dict[str, Any]:
        """What is given of one action, by name, without what is unknown."""
        if given is None:
            return {}
        cells: Any = given
        if not isinstance(given, Mapping | pd.Series):
            self._refuse_given(given)
        if isinstance(given, pd.Series):
            self._refuse_repeated("given", given)
        found: dict[str, Any] = {}
        for name, value in cells.items():
            self.check_action(name)
            if not pd.api.types.is_scalar(value):
                raise UserError(f"given: {name!r} must be one value for one state, got {value!r:.80}")
            if not pd.isna(value):
                found[name] = value
        return found

    def as_read(self, name: str, said: Any, value: float) -> Any:
        """What is given of one action, as a value of its column; ``value`` is its model value.

        A number stays that number: a column of two decimals may be sent to a third, and a whole one between two.
        """
        plain = isinstance(said, float | int | np.number) and not isinstance(said, bool)
        if plain and self.encoding.schema[name].numeric:
            return said.item() if isinstance(said, np.number) else said
        return self.column_as_read(name, pd.Series([said], dtype=object), np.array([value])).tolist()[0]

    def column_as_read(self, name: str, said: pd.Series[Any], values: Float[np.ndarray, " rows"]) -> pd.Series[Any]:
        """What is given of an action of many states; anything where it is not given."""
        codec, schema = self.encoding.codec(name), self.encoding.schema
        if not schema[name].numeric or codec.space is Space.LEVELS:
            return codec.decode(values).set_axis(said.index)
        if is_numeric_dtype(said.dtype) and not is_bool_dtype(said.dtype):
            return said
        missing = unknown_cells(said, schema[name], schema.missing)
        return pd.Series(numbers(said, missing, name, schema[name].notation), index=said.index)

    def check_action(self, name: object) -> None:
        """Refuse what is given but is no action."""
        if name in self.state:
            raise UserError(f"{name!r} is part of the state, not of the action; give it in the state")
        if name not in self.action:
            raise UserError(f"given: no action {name!r}; {nearest(name, self.action)}")

    def _column(self, name: str, said: Any, index: pd.Index[Any], labelled: bool) -> Any:
        if pd.api.types.is_scalar(said):
            return [said] * len(index)
        try:
            cells = np.asarray(said)
        except ValueError:  # lists of several lengths
            cells = np.empty(())
        if cells.ndim != 1:
            raise UserError(f"given: {name!r} must be one value, or a list with one for each state; got {said!r:.80}")
        if len(cells) != len(index):
            raise UserError(
                f"given: {name!r} has {len(cells)} values, but there are {len(index)} states; give one for each"
            )
        if labelled and isinstance(said, pd.Series):
            return said.iloc[_places(f"given: {name!r}", said.index, index)].set_axis(index)
        return cells

    def _refuse_repeated(self, what: str, row: pd.Series[Any]) -> None:
        if not row.index.is_unique:
            raise UserError(f"{what} has {row.index[row.index.duplicated()][0]!r} more than once; give it once")

    def _check_state(self, name: object) -> None:
        if name in self.action:
            raise UserError(f"{name!r} is an action, not part of the state; give it in given={{{name!r}: ...}}")
        if name not in self.state:
            raise UserError(f"the state has no {name!r}; {nearest(name, self.state)}")

    def _check_columns(self, found: Sequence[str]) -> None:
        """Refuse a state that lacks a column that it must have."""
        there = set(found)
        lacking = [name for name, can in zip(self.state, self.optional, strict=False) if name not in there and not can]
        if not lacking:
            return
        shown = ", ".join(map(repr, lacking[:MOST_NAMED]))
        more = f" and {len(lacking) - MOST_NAMED} more" if len(lacking) > MOST_NAMED else ""
        others = [name for name in found if name not in self.number]
        hint = f" (it has {others[0]!r}: {nearest(others[0], lacking)})" if others else ""
        raise UserError(f"the state lacks {shown}{more}{hint}; a policy must know the whole state")

    def _refuse_unknown(self, name: str, where: str = "") -> NoReturn:
        otherwise = (
            f"fit with context=[{name!r}, ...] on rows in which it is sometimes missing"
            if self.encoding.schema[name].context
            else "make a policy in which it is neither state nor action"
        )
        raise UserError(
            f"the state's {name!r} is unknown (NaN){where}, but a policy must know it: give a value, or {otherwise}"
        )

    def _refuse_length(self, came: int) -> NoReturn:
        raise UserError(
            f"the state must have {len(self.state)} values ({self.state[0]!r} to {self.state[-1]!r}), got {came}"
        )

    def _refuse_given(self, given: Any) -> NoReturn:
        raise UserError(
            f"given must be a mapping from names of actions to values, or for many states a frame; got {given!r:.80}"
        )


def _places(what: str, given: pd.Index[Any], states: pd.Index[Any]) -> NDArray[np.intp]:
    """Which row of what is given belongs to each state: that of the same label, or of the same place without labels."""
    in_order = np.arange(len(states), dtype=np.intp)
    if given.equals(states):
        return in_order
    if given.is_unique and states.is_unique:
        places = given.get_indexer(states)
        if (places >= 0).all():
            return np.asarray(places, dtype=np.intp)
    if given.equals(pd.RangeIndex(len(given))):
        return in_order
    raise UserError(
        f"{what} has other labels ({given[0]!r}, ...) than the states ({states[0]!r}, ...), so it is not clear which "
        "row belongs to which; give it the index of the states, or reset_index(drop=True) if rows are in their order"
    )
