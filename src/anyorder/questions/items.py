"""One item of a question, from words and marks: a name, or what is said of one column.

``price``, ``price=22``, ``price > 30``, ``20 < price <= 30``, ``30 < price``, ``price between 20 and 30``, ``colour !=
red``, ``colour = red or blue``, ``price < 10 or price > 90``.
"""

from __future__ import annotations

from anyorder.support.words import Token, mistake, split_at, words_of_set, write_set, write_word

COMPARE = (">", ">=", "<", "<=")
MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}


def read_item(text: str, part: list[Token], end: int) -> tuple[str, str | None]:
    """The name of the column that is spoken of, and what is said of it as one text; None where nothing is.

    ``end`` is where the item ends in the text.
    """
    kinds = [piece.kind for piece in part]
    if kinds == ["word", "=", "word"]:
        return part[0].text, part[2].text
    if len(kinds) != 3 or kinds[1] not in (*COMPARE, "!="):
        if between := _read_between(part):
            return between
        if kinds == ["word"]:
            return part[0].text, None
        alternatives = _cut(part, "or")
        if len(alternatives) > 1:
            return _read_alternatives(text, alternatives, end)
    return _read_said(text, part, end)


def _read_said(text: str, part: list[Token], end: int) -> tuple[str, str | None]:
    """One statement, without "or"."""
    kinds = [piece.kind for piece in part]
    words = [piece.text for piece in part]
    if kinds == ["word"]:
        return words[0], None
    if kinds == ["word", "=", "word"]:
        return words[0], words[2]
    if kinds == ["word", "!=", "word"]:
        return words[0], "!=" + words[2]
    if len(kinds) == 3 and kinds[0] == kinds[2] == "word" and kinds[1] in COMPARE:
        if part[2].plain and words[2].endswith(" or"):
            raise mistake(text, end, "something is missing beside 'or'")
        if part[0].plain and _is_number(words[0]) and part[2].plain and not _is_number(words[2]):
            return words[2], MIRRORED[kinds[1]] + words[0]  # 30 < price
        return words[0], words[1] + words[2]
    if len(kinds) == 5 and kinds[::2] == ["word"] * 3 and kinds[1] in COMPARE and kinds[3] in COMPARE:
        if kinds[1][0] != kinds[3][0]:
            _refuse_and(text, part)
            raise mistake(text, part[3].at, "the two comparisons must point the same way: 20 < price <= 30")
        if kinds[1][0] == ">":  # 30 > price >= 20
            return words[2], f"{kinds[3]}{words[4]} {MIRRORED[kinds[1]]}{words[0]}"
        return words[2], f"{MIRRORED[kinds[1]]}{words[0]} {kinds[3]}{words[4]}"
    if between := _read_between(part):
        return between
    if not part:
        raise mistake(text, end, "a name is missing before this point")
    if len(kinds) == 2 and kinds[0] == "word" and kinds[1] != "word":
        raise mistake(text, part[1].at, f"{words[0]!r} has no value after {words[1]!r}")
    _refuse_and(text, part)
    # Words and marks take turns: the first that does not is wrong.
    out_of_turn = (piece for number, piece in enumerate(part) if (piece.kind == "word") == bool(number % 2))
    wrong = next(out_of_turn, part[min(3, len(part) - 1)])
    raise mistake(text, wrong.at, "expected 'name', 'name=value' or a comparison, with commas between")


def _refuse_and(text: str, part: list[Token]) -> None:
    """Say what to write in place of "and", if it stands there."""
    for piece in part[1:]:
        if piece.plain and len(split_at(piece.text, "and")) > 1:
            raise mistake(text, piece.at, "put a comma, not 'and', between two statements")


def _read_between(part: list[Token]) -> tuple[str, str] | None:
    """``price between 20 and 30`` as a name and a range; None where it is something else."""
    sides = _cut(part, "between")
    if len(sides) != 2 or len(sides[0]) != 1:
        return None
    ends = _cut(sides[1], "and")
    if len(ends) != 2 or any(len(end) != 1 or end[0].kind != "word" for end in ends):
        return None
    return sides[0][0].text, f"{ends[0][0].text}..{ends[1][0].text}"


def _read_alternatives(text: str, alternatives: list[list[Token]], end: int) -> tuple[str, str]:
    """Several statements about one column; all but the first may leave out its name."""
    first = alternatives[0]
    name, value = _read_said(text, first, end)
    if value is None:
        raise mistake(text, first[0].at, f"{name!r} has no value before 'or'")
    plain, said = [first[1].kind == "="] if len(first) > 1 else [False], [value]
    for one in alternatives[1:]:
        if not one:
            raise mistake(text, end, "something is missing beside 'or'")
        kinds, subject = [piece.kind for piece in one], Token("word", name, one[0].at)
        found: tuple[str, str | None] | None = _read_between(one) or _read_between([subject, *one])
        if found is not None:
            plain.append(False)
        elif kinds == ["word"]:
            found = name, one[0].text
            plain.append(True)
        else:
            found = _read_said(text, one if kinds[0] == "word" else [subject, *one], end)
            plain.append("=" in kinds[:2])
        other, value = found
        if other != name:
            what = f"'or' joins statements about one column, got {name!r} and {other!r}; use quotes if it is in a name"
            raise mistake(text, one[0].at, what)
        said.append(value or "")
    if all(plain):
        return name, write_set([member for value in said for member in words_of_set(value) or [value]])
    return name, " or ".join(f"={write_word(v)}" if is_plain else v for v, is_plain in zip(said, plain, strict=True))


def _cut(part: list[Token], word: str) -> list[list[Token]]:
    """The tokens in groups, cut wherever ``word`` stands alone among plain words."""
    groups: list[list[Token]] = [[]]
    for token in part:
        pieces, place = split_at(token.text, word) if token.plain else [token.text], 0
        if len(pieces) == 1:
            groups[-1].append(token)
            continue
        for number, piece in enumerate(pieces):
            if number:
                groups.append([])
            if piece:
                place = token.text.index(piece, place)
                groups[-1].append(Token("word", piece, token.at + place, plain=True))
                place += len(piece)
    return groups


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
