"""Tables with odd names, and tables with very few or very many rows and columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from hostile_tables.record import holes, hostile, plain, with_column

# Names


@hostile()
def unicode_names(rng: np.random.Generator) -> Any:
    frame = holes(rng, pd.DataFrame(rng.normal(size=(40, 4))))
    return frame.set_axis(["größe", "価格", "🏠", "e\u0301 combining"], axis=1)


@hostile()
def names_full_of_grammar(rng: np.random.Generator) -> Any:
    names = ["a=b", "a|b", "a,b", 'say "hi"', "it's", "two\nlines", "tab\there", "30..40", "P(x > 1)", "<= 3"]
    return holes(rng, pd.DataFrame(rng.normal(size=(40, len(names))))).set_axis(names, axis=1)


@hostile()
def names_that_are_empty_or_blank(rng: np.random.Generator) -> Any:
    return holes(rng, pd.DataFrame(rng.normal(size=(40, 4)))).set_axis(["", " ", "  x", "x  "], axis=1)


@hostile()
def names_of_the_librarys_own_words(rng: np.random.Generator) -> Any:
    names = ["evidence", "values", "seed", "n", "log_prob", "self", "missing(x)", "nan", "None"]
    return holes(rng, pd.DataFrame(rng.normal(size=(40, len(names))))).set_axis(names, axis=1)


@hostile()
def names_that_are_numbers(rng: np.random.Generator) -> Any:
    return holes(rng, pd.DataFrame(rng.normal(size=(40, 3)))).set_axis([0, 2.5, np.int64(7)], axis=1)


@hostile(refused="repeated: 'a'")
def duplicate_names(rng: np.random.Generator) -> Any:
    return pd.DataFrame(rng.normal(size=(40, 3))).set_axis(["a", "b", "a"], axis=1)


@hostile(refused="repeated: '1'")
def names_alike_as_text(rng: np.random.Generator) -> Any:
    return pd.DataFrame(rng.normal(size=(40, 2))).set_axis([1, "1"], axis=1)


@hostile()
def multiindex_columns(rng: np.random.Generator) -> Any:
    names = pd.MultiIndex.from_product([["size", "price"], ["low", "high"]])
    return holes(rng, pd.DataFrame(rng.normal(size=(40, 4)))).set_axis(names, axis=1)


@hostile()
def index_that_repeats(rng: np.random.Generator) -> Any:
    return holes(rng, with_column(rng, rng.choice(["a", "b"], 40))).set_axis(np.zeros(40), axis=0)


@hostile()
def multiindex_of_rows(rng: np.random.Generator) -> Any:
    return holes(rng, plain(rng)).set_axis(pd.MultiIndex.from_product([range(4), range(10)]), axis=0)


# Shapes


@hostile(refused="at least 4 rows")
def one_row(rng: np.random.Generator) -> Any:
    return plain(rng, 1)


@hostile(refused="empty")
def no_rows(rng: np.random.Generator) -> Any:
    return plain(rng).iloc[:0]


@hostile()
def four_rows(rng: np.random.Generator) -> Any:
    return with_column(rng, ["a", "b", None, "a"])


@hostile()
def ten_rows(rng: np.random.Generator) -> Any:
    frame = with_column(rng, rng.choice(["a", "b", "c"], 10))
    frame["whole"] = rng.integers(0, 100, 10)
    return holes(rng, frame)


@hostile()
def two_hundred_columns(rng: np.random.Generator) -> Any:
    return holes(rng, pd.DataFrame(rng.normal(size=(12, 200)))).add_prefix("c")


@hostile()
def one_column(rng: np.random.Generator) -> Any:
    return holes(rng, plain(rng)[["x"]])


@hostile()
def only_categories(rng: np.random.Generator) -> Any:
    return holes(rng, pd.DataFrame(rng.choice(["a", "b", "c"], (40, 3)), columns=["p", "q", "r"]))
