"""Tables in files as people have them: titles, units, totals, remarks, encodings, quotes; what was done is said."""

from __future__ import annotations

import gzip
import io
import lzma
import sys
import warnings
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pandas as pd
import pytest

from anyorder.data.dialect import KEY, Dialect
from anyorder.data.files import frame_or_file, read_table, write_table
from anyorder.errors import UserError

PLAIN = {"name": ["Ann", "Bob", "Cid"], "age": [34, 27, 45], "height": [1.62, 1.8, 1.75]}
ROWS = "Ann,34,1.62\nBob,27,1.80\nCid,45,1.75\n"
HEADER = "name,age,height\n"


def read(folder: Path, content: str | bytes, name: str = "t.csv", **said: Any) -> tuple[dict[str, list[Any]], str]:
    """The columns of a file, and all notices, with the folder left out."""
    (folder / name.partition("#")[0]).write_bytes(content.encode() if isinstance(content, str) else content)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        frame = read_table(folder / name, **said)
    assert all(issubclass(one.category, UserWarning) for one in caught)
    assert all(one.filename == __file__ for one in caught)
    cells = frame.astype(object).where(frame.notna(), None)
    notices = " ".join(str(one.message) for one in caught).replace(f"{folder}/", "")
    return {str(column): cells[column].tolist() for column in cells}, notices


# Each: the text, and what its notice must say ("" where there is nothing to say). All are the same three rows.
SAME = {
    "plain": (HEADER + ROWS, ""),
    "blank lines before": ("\n\n" + HEADER + ROWS, ""),
    "sep": ("sep=,\n" + HEADER + ROWS, ""),
    "sep semicolon": ('"sep=;"\r\n' + (HEADER + ROWS).replace(",", ";").replace("\n", "\r\n"), ""),
    "sep of another sign": ("SEP=^\n" + (HEADER + ROWS).replace(",", "^"), ""),
    "single quotes": ("'name','age','height'\n'Ann',34,1.62\n'Bob',27,1.80\n'Cid',45,1.75\n", ""),
    "all quoted": ('"name","age","height"\n"Ann","34","1.62"\n"Bob","27","1.80"\n"Cid","45","1.75"\n', ""),
    "trailing delimiters": ((HEADER + ROWS).replace("\n", ",\n"), ""),
    "trailing delimiters below": (HEADER + ROWS.replace("\n", ",\n"), ""),
    "many trailing delimiters": ((HEADER + ROWS).replace("\n", ",,,,\n"), ""),
    "title": ("Report of the club\n" + HEADER + ROWS, "line 1 ('Report of the club') was skipped"),
    "titles": (
        "Report of the club\nGenerated: 2024-05-01, by Ann\n\n" + HEADER + ROWS,
        "lines 1-3 ('Report of the club', ...) were skipped, and the column names were taken from line 4",
    ),
    "padded title": ("Report of the club,,\n,,\n" + HEADER + ROWS, "give it, as in 't.csv#header=1'"),
    "comments": ("# made by a machine\n# on a day, or two, perhaps\n" + HEADER + ROWS, "lines 1-2 ('# made by"),
    "comment of as many fields": ("# a, b, c\n" + HEADER + ROWS, "line 1 ('# a b c') was skipped"),
    "units": (HEADER + ",years,m\n" + ROWS, "line 2 ('years m') was taken for units"),
    "units in brackets": (HEADER + "[-],[a],[m]\n" + ROWS, "if it is a row, use 't.csv#header=1'"),
    "title and units": ("Our club:\n" + HEADER + ",years,m\n" + ROWS, "line 3 ('years m') was taken for units"),
    "questions": (HEADER + "What is your name?,How old are you?,How tall are you?\n" + ROWS, "'What is your name?"),
    "two rows below": (HEADER + "text,whole,fraction\nq1,q two,q three\n" + ROWS, "lines 2-3 ('text whole fraction'"),
    "total": (HEADER + ROWS + "Total,106,5.17\n", "line 5 at the end ('Total 106 5.17') was taken for totals"),
    "total after a line": (HEADER + ROWS + ",,\nSumme,106,\n", "line 6 at the end"),
    "sum of money": ("name,age,height\n" + ROWS + 'TOTAL:,"106",\n', "use 't.csv#rows=all'"),
    "subtotal and total": (HEADER + ROWS + "Subtotal,106,5.17\nGrand total,106,5.17\n", "lines 5-6 at the end"),
    "source": (HEADER + ROWS + "Source: the club\n", "line 5 at the end ('Source: the club') was taken for a remark"),
    "source with commas": (HEADER + ROWS + "Source: the club, 2024, page 3, below\n", "line 5 at the end"),
    "source padded": (HEADER + ROWS + "Quelle: Verein,,\n", "line 5 at the end"),
    "rows affected": (HEADER + ROWS + "\n(3 rows affected)\n", "line 6 at the end ('(3 rows affected)')"),
    "rows selected": (HEADER + ROWS + "3 rows selected.", "line 5 at the end"),
    "sentence below": (HEADER + ROWS + "\nAll figures are preliminary.\n", "line 6 at the end"),
    "total and notes": (
        HEADER + ROWS + "Total,106,5.17\n\nNote: as told.\n* estimated\n",
        "lines 7-8 at the end ('Note: as told.') were taken for a remark",
    ),
    "names again": (HEADER + ROWS[:12] + HEADER + ROWS[12:], "1 line that repeats the column names (before row 1)"),
    "names again and again": (HEADER + ROWS[:12] + HEADER + ROWS[12:24] + HEADER + ROWS[24:], "before rows 1, 2"),
    "all of it": (
        "Our club\n\n" + HEADER + ",years,m\n" + ROWS + "Total,106,\nSource: Ann, Bob\n",
        "line 9 at the end ('Source: Ann Bob')",
    ),
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_the_same_rows(tmp_path: Path, name: str, newline: str) -> None:
    text, words = SAME[name]
    found, notices = read(tmp_path, text.replace("\r\n", "\n").replace("\n", newline))
    assert found == PLAIN
    assert words in notices
    assert bool(words) == bool(notices)


@pytest.mark.parametrize("name", ["titles", "units", "total and notes", "names again", "all of it"])
def test_semicolons_tabs_and_bars(tmp_path: Path, name: str) -> None:
    for sign in ";\t|":
        assert read(tmp_path, SAME[name][0].replace(", ", " ").replace(",", sign))[0] == PLAIN


ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252", "latin-1"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_encodings(tmp_path: Path, encoding: str) -> None:
    text = "größe,straße\n1,Müllerstraße\n2,Äpfel\n"
    found, notices = read(tmp_path, text.encode(encoding))
    assert found == {"größe": [1, 2], "straße": ["Müllerstraße", "Äpfel"]}
    assert ("not UTF-8 and was read as Windows-1252: check its accented letters" in notices) == (
        encoding in ("cp1252", "latin-1")
    )
    late = "a,n\n" + "x,1\n" * 300_000 + "ü,2\n"  # behind what the layout is found out from
    assert read(tmp_path, late.encode(encoding))[0]["a"][-1] == "ü"


def test_an_encoding_that_is_said(tmp_path: Path) -> None:
    czech = "město,n\nPlzeň,1\nBřeclav,2\n"
    assert read(tmp_path, czech.encode("cp1250"), "t.csv#encoding=cp1250") == (
        {"město": ["Plzeň", "Břeclav"], "n": [1, 2]},
        "",
    )
    assert read(tmp_path, "a,b\n1,é\n".encode("utf-8-sig"), encoding="utf-8")[0] == {"a": [1], "b": ["é"]}
    assert "Latin-1" in read(tmp_path, b"a,b\n1,\x81\xe9" + b"t" * 99 + b"\n")[1]
    for encoding, words in [("klingon", "unknown encoding 'klingon'"), ("hex", "unknown"), ("ascii", "not ascii text")]:
        with pytest.raises(UserError, match=words):
            read(tmp_path, "a,b\n1,é\n", encoding=encoding)


# Each: the text, the columns, and words of the notice.
OTHER: dict[str, tuple[str, dict[str, list[Any]], str]] = {
    "names twice": ("a,b,a,a\n1,2,3,4\n", {"a": [1], "b": [2], "a (2)": [3], "a (3)": [4]}, "called 'a (2)', 'a (3)'"),
    "a new name taken": ("a,a,a (2)\n1,2,3\n", {"a": [1], "a (3)": [2], "a (2)": [3]}, "called 'a (3)'"),
    "no name": ("a,,c\n1,2,3\n4,5,6\n", {"a": [1, 4], "column 2": [2, 5], "c": [3, 6]}, ""),
    "index": (",x\n0,5\n1,6\n", {"column 1": [0, 1], "x": [5, 6]}, ""),
    "row names of R": ('"x","y"\n"a",1,2\n"b",3,4\n', {"column 1": ["a", "b"], "x": [1, 3], "y": [2, 4]}, "2 column"),
    "groups": (
        "region,2023,,2024,\n,sales,cost,sales,cost\nN,1,2,3,4\nS,5,6,7,8\nW,9,9,9,9\n",
        {
            "region": ["N", "S", "W"],
            "2023 sales": [1, 5, 9],
            "2023 cost": [2, 6, 9],
            "2024 sales": [3, 7, 9],
            "2024 cost": [4, 8, 9],
        },
        "put together from lines 1-2, such as 'region'",
    ),
    "groups below a title": (
        "Sales by region\n,2023,,2024,\nregion,sales,cost,sales,cost\nN,1,2,3,4\nS,5,6,7,8\nW,9,9,9,9\n",
        {
            "region": ["N", "S", "W"],
            "2023 sales": [1, 5, 9],
            "2023 cost": [2, 6, 9],
            "2024 sales": [3, 7, 9],
            "2024 cost": [4, 8, 9],
        },
        "put together from lines 2-3",
    ),
    "embedded lines": (
        'a,b\n1,"two\nlines, or ""three"""\n2,x\n',
        {"a": [1, 2], "b": ['two\nlines, or "three"', "x"]},
        "",
    ),
    "embedded lines in single quotes": (
        "a,b\n1,'two\nlines, it''s'\n2,'x, y'\n",
        {"a": [1, 2], "b": ["two\nlines, it's", "x, y"]},
        "",
    ),
    "single quotes in some cells": ("a,b\n1,'x'\n2,'y'\n3,z\n", {"a": [1, 2, 3], "b": ["'x'", "'y'", "z"]}, ""),
    "other digits": ("a,b\n٣,x\n4,y\n", {"a": [3, 4], "b": ["x", "y"]}, ""),
    "infinite first": (
        "a,b\ninf,inf\n1,2\n3,4\n5,6\n",
        {"a": [float("inf"), 1, 3, 5], "b": [float("inf"), 2, 4, 6]},
        "",
    ),
    "an apostrophe": ("a,b\n1,'tis\n2,o'clock\n", {"a": [1, 2], "b": ["'tis", "o'clock"]}, ""),
    "hash names": ("#chrom\tpos\nchr1\t5\nchr2\t6\n", {"#chrom": ["chr1", "chr2"], "pos": [5, 6]}, ""),
    "hash remarks and names": (
        "##made=x\n#chrom\tpos\nchr1\t5\nchr2\t6\n",
        {"#chrom": ["chr1", "chr2"], "pos": [5, 6]},
        "line 1",
    ),
    "whole numbers for names": ("1,2,3\n4,5,6\n", {"1": [4], "2": [5], "3": [6]}, ""),
    "values for names": ("7,red\n4,blue\n5,red\n", {"7": [4, 5], "red": ["blue", "red"]}, "looks like values"),
    "wavelengths": (
        "400.5,401.0,401.5,402\n1,2,3,4\n",
        {"400.5": [1], "401.0": [2], "401.5": [3], "402": [4]},
        "t.csv#header=0",
    ),
    "wavelengths and a word": ("id,400.5,401.5\n1,2,3\n", {"id": [1], "400.5": [2], "401.5": [3]}, ""),
    "one column of titles": ("two words\nsome text\nmore text\n", {"two words": ["some text", "more text"]}, ""),
    # What looks like no row and is kept, since there is no evidence.
    "a total that is none": (
        "name,n\nA,1\nB,2\nTotal,9\n",
        {"name": ["A", "B", "Total"], "n": [1, 2, 9]},
        "was kept as a row",
    ),
    "a total with a text": (
        "name,city,n\nA,Rome,1\nB,Bonn,2\nTotal,All,3\n",
        {"name": ["A", "B", "Total"], "city": ["Rome", "Bonn", "All"], "n": [1, 2, 3]},
        "was kept as a row",
    ),
    "a total of other numbers": (
        "name,n,m,k\nA,2,0,0\nTotal,1,,-3\n",
        {"name": ["A", "Total"], "n": [2, 1], "m": [0, None], "k": [0, -3]},
        "was kept as a row",
    ),
    "a total alone": ("name,city,n\nTotal,,9\n", {"name": ["Total"], "city": [None], "n": [9]}, "was kept as a row"),
    "a number with a hash": ("id,a,b\n#0,1,2\n#1,,\n", {"id": ["#0", "#1"], "a": [1, None], "b": [2, None]}, ""),
    "a total in the middle": ("name,n\nA,1\nTotal,1\nB,2\n", {"name": ["A", "Total", "B"], "n": [1, 1, 2]}, ""),
    "a row that begins like a remark": ("name,n\nA,1\nSource: x,2\n", {"name": ["A", "Source: x"], "n": [1, 2]}, ""),
    "words in the first row": (
        "name,n\nA,?\nB,2\nC,3\nD,4\n",
        {"name": ["A", "B", "C", "D"], "n": ["?", "2", "3", "4"]},
        "",
    ),
    "a word in the first row": ("n,m\nmany,1\n1,2\n2,3\n3,4\n", {"n": ["many", "1", "2", "3"], "m": [1, 2, 3, 4]}, ""),
    "names that are levels too": ("a,b\na,b\na,c\nd,b\n", {"a": ["a", "a", "d"], "b": ["b", "c", "b"]}, ""),
    "numbers for names again": ("1,2\n3,4\n1,2\n", {"1": [3, 1], "2": [4, 2]}, ""),
    "a cell of several lines at the end": ('a,b\n1,x\n2,"y\nTotal: 2"\n', {"a": [1, 2], "b": ["x", "y\nTotal: 2"]}, ""),
}


@pytest.mark.parametrize("name", OTHER)
def test_other_rows(tmp_path: Path, name: str) -> None:
    text, columns, words = OTHER[name]
    found, notices = read(tmp_path, text)
    assert found == columns
    assert words in notices
    assert bool(words) == bool(notices)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "5.1,3.5,setosa\n4.9,3.0,setosa\n",
            "'5.1' looks like a value; if there are no column names, use .*t.csv#header=0",
        ),
        ("0.5,2\n4,3\n", "'0.5' looks like a value"),
        (HEADER + ROWS + "Dan,3", "line 5 has 2 fields, but there are 3 column names: correct it .is it cut off"),
        (HEADER + "Ann, jr.,34,1.62\n" + ROWS, "line 2 has 4 fields, .*belongs in quotes"),
        (
            "word\n" + "a,b\n" * 3,
            "line 2 has 2 fields, but there is 1 column name: if ',' is not the delimiter.*as in .*t.csv#header=2",
        ),
        (HEADER + "Source: x\n", "no rows"),
    ],
)
def test_what_is_not_understood_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        read(tmp_path, text)


def test_what_is_said_is_done(tmp_path: Path) -> None:
    every = HEADER + ",years,m\n" + ROWS + HEADER + "Total,106,5.17\n"
    found, notices = read(tmp_path, every, "t.csv#rows=all,header=1")
    assert len(found["name"]) == 6 and not notices
    assert read(tmp_path, "a;b;c\n1;2;3\n", "t.csv#header=0") == (
        {"column 1": ["a", "1"], "column 2": ["b", "2"], "column 3": ["c", "3"]},
        "",
    )
    assert read(tmp_path, "5.1,3.5\n4.9,3.0\n", header=0)[0] == {"column 1": [5.1, 4.9], "column 2": [3.5, 3.0]}
    assert read(tmp_path, "x,y\na,b\n1,2\n", "t.csv#header=1-2")[0] == {"x a": [1], "y b": [2]}
    assert read(tmp_path, "x,y\na,b\n1,2\n", header="2")[0] == {"a": [1], "b": [2]}
    assert read(tmp_path, "x,y;a\n1,2;b\n", "t.csv#delimiter=semicolon")[0] == {"x,y": [1.2], "a": ["b"]}
    (tmp_path / "t.csv#1.csv").write_text("a,b\n1,2\n")
    assert read_table(tmp_path / "t.csv#1.csv").to_dict("list") == {"a": [1], "b": [2]}  # a file that is called so
    assert read(tmp_path, "a b\n1 2\n", "t.csv#delimiter=spaces")[0] == {"a": [1], "b": [2]}


@pytest.mark.parametrize(
    ("behind", "words"),
    [
        ("header=x", "header must be the line of the column names"),
        ("header=3-1", "header must be the line"),
        ("header=9", "ends before its column names, which were expected on line 9"),
        ("rows=some", "rows must be 'all'"),
        ("delimiter=abc", "a delimiter must be one character"),
        ("heading=1", "after # expected one of delimiter=, encoding=, header="),
        ("", "after # expected one of"),
        ("header=1,header=2", "given twice"),
        ("Sheet1", "has no sheets"),
    ],
)
def test_what_is_said_is_checked(tmp_path: Path, behind: str, words: str) -> None:
    (tmp_path / "t.csv").write_text(HEADER + ROWS)
    with pytest.raises(UserError, match=words):
        read_table(f"{tmp_path}/t.csv#{behind}")


@pytest.mark.parametrize("name", ["t.csv.gz", "t.csv.xz", "t.csv.zip"])
def test_packed(tmp_path: Path, name: str) -> None:
    content = (HEADER + ROWS + "Total,106,\n").encode("utf-16")
    if name.endswith("zip"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("inside.csv", content)
        content = (tmp_path / name).read_bytes()
    else:
        content = (gzip if name.endswith("gz") else lzma).compress(content)
    assert read(tmp_path, content, name)[0] == PLAIN
    if not name.endswith("gz"):
        with pytest.raises(UserError, match=r"cannot write .* should end in"):
            write_table(pd.DataFrame(PLAIN), tmp_path / name)


# Texts that come back as they were, to the last byte.
DIALECTS: dict[str, bytes] = {
    "semicolons and decimal commas": "größe;preis;n\na;1,5;1\nb;2,25;2\n".encode(),
    "decimal commas in one column and points in another": b"weight;x;n\n64,3;0.125;1\n59,8;-2.5;2\n61,0;0.75;3\n",
    "bars": b"a|b\n1|x\n2|y\n",
    "tabs": b"a\tb\n1\tx\n2\ty\n",
    "spaces": b"a b\n1 2.5\n3 4.5\n",
    "Windows": 'a;b\r\n1;"x;y"\r\n2;z\r\n'.encode("cp1252"),
    "Latin letters": "straße;n\r\nMüller;1\r\nÄpfel;2\r\n".encode("cp1252"),
    "UTF-8 with a mark": b"\xef\xbb\xbf" + "straße;n\r\nMüller;1\r\n".encode(),
    "UTF-16": b"\xff\xfe" + "straße\tn\r\nMüller\t1\r\n".encode("utf-16-le"),
    "UTF-16 of the other order": b"\xfe\xff" + "straße\tn\r\nMüller\t1\r\n".encode("utf-16-be"),
    "UTF-16 without a mark": "straße\tn\r\nMüller\t1\r\n".encode("utf-16-le"),
    "all in quotes": b'"a","b"\n"1","x"\n"2","y"\n',
    "texts in quotes": b'"a","b"\n1,"x"\n2,"y"\n',
    "single quotes": b"'a','b'\n1,'x, y'\n2,'it''s'\n",
    "old Macintosh": b"a,b\r1,x\r2,y\r",
    "plain": b"a,b\n1,x\n2,y\n",
}


@pytest.mark.parametrize("name", DIALECTS)
def test_a_text_is_written_as_it_was_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "t.csv").write_bytes(DIALECTS[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = read_table(tmp_path / "t.csv")
    write_table(frame, tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == DIALECTS[name]
    assert (name == "plain") == (KEY not in frame.attrs)
    changed = frame.rename(columns=str.upper).head(1).assign(new=1)  # what a program does between
    assert Dialect.of(changed) == Dialect.of(frame)
    write_table(pd.DataFrame({"x": ["é"]}), tmp_path / "other.csv", like=frame)
    assert "é".encode(Dialect.of(frame).encoding) in (tmp_path / "other.csv").read_bytes()
    write_table(frame, tmp_path / "t.parquet")
    assert KEY not in read_table(tmp_path / "t.parquet").attrs


def test_the_ending_decides_where_it_says_something(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = pd.DataFrame({"a": [1], "b": ["x"]})
    for name, content in [("t.csv", "a;b\n1;x\n"), ("t.tsv", "a\tb\n1\tx\n")]:
        (tmp_path / name).write_text(content)
    semicolons, tabs = read_table(tmp_path / "t.csv"), read_table(tmp_path / "t.tsv")
    pd.testing.assert_frame_equal(tabs, frame)
    for given, name, content in [
        (semicolons, "o.tsv", "a\tb\n1\tx\n"),
        (semicolons, "o.psv", "a|b\n1|x\n"),
        (semicolons, "o.txt", "a;b\n1;x\n"),
        (tabs, "o.tsv", "a\tb\n1\tx\n"),
        (tabs, "o.csv", "a,b\n1,x\n"),
        (tabs, "o.txt", "a\tb\n1\tx\n"),
        (frame, "o.csv", "a,b\n1,x\n"),
    ]:
        write_table(given, tmp_path / name)
        assert (tmp_path / name).read_text() == content
    write_table(tabs, "-")
    assert capsys.readouterr().out == "a\tb\n1\tx\n"


def test_letters_that_the_encoding_does_not_have(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("a,b\n1,é\n".encode("latin-1"))
    with pytest.warns(UserWarning, match="Windows-1252"):
        frame = read_table(tmp_path / "t.csv")
    frame.loc[0, "b"] = "Ω"
    with pytest.warns(UserWarning, match="written as UTF-8: 'Ω' cannot be written in cp1252"):
        write_table(frame, tmp_path / "o.csv")
    assert (tmp_path / "o.csv").read_text(encoding="utf-8") == "a,b\n1,Ω\n"


@pytest.mark.parametrize(
    "facts",
    [3, {"delimiter": 3}, {"delimiter": ";;"}, {"nonsense": 1}, {"encoding": "hex"}, {"newline": "x"}, {"quote": ""},
     {"decimal": ";"}, {"quoted": "never"}, {"mark": 1}],
)  # fmt: skip
def test_a_dialect_that_is_none(facts: Any) -> None:
    with pytest.raises(UserError, match="dialect"):
        Dialect.read(facts)
    frame = pd.DataFrame({"a": [1]})
    frame.attrs[KEY] = facts
    assert Dialect.of(frame) == Dialect()


def test_spaces_only_where_they_can_be_read_again(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("a b\n1 2\n3 4\n")
    frame = read_table(tmp_path / "t.txt").astype(object)
    frame.loc[0, "b"] = None
    write_table(frame, tmp_path / "o.txt")
    assert (tmp_path / "o.txt").read_text() == "a,b\n1,\n3,4\n"


def test_a_frame_or_a_file(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 2]})
    write_table(frame, tmp_path / "t.csv")
    assert frame_or_file(frame) is frame
    for path in (tmp_path / "t.csv", str(tmp_path / "t.csv")):
        pd.testing.assert_frame_equal(frame_or_file(path), frame)
    with pytest.raises(UserError, match="no such file"):
        frame_or_file("nowhere.csv")


def test_json_lines(tmp_path: Path) -> None:
    content = '{"a": 1, "date": "2024-01-05", "zip": "01234"}\n{"a": 2.5, "date": null, "zip": "2"}\n'
    found, _ = read(tmp_path, content, "t.jsonl")
    assert found == {"a": [1.0, 2.5], "date": ["2024-01-05", None], "zip": ["01234", "2"]}
    for content, words in [
        ("nonsense\n", "line 1 is not a JSON object"),
        ('{"a": 1}\n[2]\n', "line 2 is"),
        ("", "is empty"),
    ]:
        with pytest.raises(UserError, match=words):
            read(tmp_path, content, "t.ndjson")


class FakeBook:
    """What pandas gives for a workbook, without the package that reads one."""

    sheets: ClassVar[dict[str, list[list[Any]]]] = {}
    missing = False

    def __init__(self, file: Path) -> None:
        if self.missing:
            raise ImportError("Missing optional dependency 'openpyxl'")
        self.sheet_names = list(self.sheets)

    def __enter__(self) -> FakeBook:
        return self

    def __exit__(self, *_: object) -> None: ...

    def parse(self, sheet: str, **_: object) -> pd.DataFrame:
        return pd.DataFrame(self.sheets[sheet], dtype=object)


SHEETS: dict[str, list[list[Any]]] = {
    "March": [
        ["Our club", None, None, None],
        [None, None, None, None],
        ["name", "age", "height", "since"],
        ["Ann", 34, 1.62, pd.Timestamp("2020-02-01")],
        ["Bob, jr.", 27, 1.8, pd.Timestamp("2021-03-01")],
        ["Cid", 45, float("nan"), pd.NaT],
        ["Total", 106, None, None],
    ],
    "My notes": [["a"], ["x"]],
    "Empty": [],
}


def check_book(path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        frame = read_table(path)
    notices = " ".join(str(one.message) for one in caught)
    assert "has the sheets 'March', 'My notes', 'Empty'; 'March' is read. For another one, use" in notices
    assert "lines 1-2 ('Our club') were skipped" in notices
    assert f"as in '{path}#sheet=March,header=1'" in notices
    assert "('Total 106') was taken for totals" in notices
    assert frame["name"].tolist() == ["Ann", "Bob, jr.", "Cid"]
    assert frame["age"].tolist() == [34, 27, 45]
    assert frame["height"].tolist()[:2] == [1.62, 1.8] and frame["height"].isna().tolist()[2]
    assert frame["since"].tolist()[:2] == ["2020-02-01", "2021-03-01"]
    assert read_table(f"{path}#My notes").to_dict("list") == {"a": ["x"]}
    assert read_table(path, sheet="My notes").to_dict("list") == {"a": ["x"]}
    with pytest.raises(UserError, match=r"has no sheet 'May'; it has 'March', 'My notes', 'Empty'"):
        read_table(f"{path}#May")
    with pytest.raises(UserError, match="sheet 'Empty' is empty"):
        read_table(f"{path}#Empty")


def test_spreadsheets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pd, "ExcelFile", FakeBook)
    monkeypatch.setattr(FakeBook, "sheets", SHEETS)
    (tmp_path / "t.xlsx").write_bytes(b"")
    check_book(tmp_path / "t.xlsx")
    monkeypatch.setattr(FakeBook, "missing", True)
    with pytest.raises(UserError, match=r"needs the package openpyxl: pip install 'anyorder\[excel\]'"):
        read_table(tmp_path / "t.xlsx")
    with pytest.raises(UserError, match="no such file"):
        read_table(tmp_path / "other.xlsx")
    with pytest.raises(UserError, match=r"cannot write .* should end in one of \.csv"):
        write_table(pd.DataFrame(PLAIN), tmp_path / "t.xlsx")


def test_a_real_workbook(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in SHEETS.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append([None if cell is pd.NaT or cell != cell else cell for cell in row])
    book.save(tmp_path / "t.xlsx")
    check_book(tmp_path / "t.xlsx")
    (tmp_path / "bad.xlsx").write_bytes(b"nonsense")
    with pytest.raises(UserError, match="as a spreadsheet"):
        read_table(tmp_path / "bad.xlsx")


def test_a_spreadsheet_that_unpacks_to_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anyorder.data.spreadsheets.UNPACKED", 1_000_000)
    with zipfile.ZipFile(tmp_path / "bomb.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"0" * 5_000_000)
    with pytest.raises(UserError, match="unpacks to more than 1 MB; save the sheet as CSV"):
        read_table(tmp_path / "bomb.xlsx")


def test_standard_input_is_told_how_to_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"1,2\n3,4\n")))
    assert read_table("-#header=0").to_dict("list") == {"column 1": [1, 3], "column 2": [2, 4]}


def test_a_first_row_that_comes_all_the_time_is_no_header_that_is_repeated(tmp_path: Path) -> None:
    """A file without column names: rows like the first one are rows, and none of them is lost."""
    path = tmp_path / "plain.csv"
    path.write_text("red,yes\n" + "red,yes\nblue,no\n" * 20, encoding="utf-8")
    assert len(read_table(path)) == 40
