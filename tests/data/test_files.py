"""Tables in files: every format in and out, delimiters found out, nothing lost, mistakes named, writes atomic."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from anyorder.data.files import read_table, write_table
from anyorder.data.said import Said
from anyorder.data.table_text import Source, TableText
from anyorder.errors import UserError
from anyorder.support.atomic import atomic_path

FRAME = pd.DataFrame(
    {
        "x": [0.1, -2.5e-300, 1 / 3, np.nan],
        "n": pd.array([1, -2, None, 2**60 + 1], dtype="Int64"),
        "k": [1, 2, 3, 4],
        "zip": ["01234", "99999", "00001", "12345"],
        "text": ['a,b;c\t"d"|', "line\nbreak\rx", "NA", None],
        "flag": [True, False, True, True],
    }
).astype({"zip": "str", "text": "str"})


@pytest.mark.parametrize(
    "name", ["t.csv", "t.csv.gz", "t.tsv", "t.tsv.gz", "t.psv", "T.CSV", "t.txt", "t.parquet", "t.pq"]
)
def test_round_trip(tmp_path: Path, name: str) -> None:
    write_table(FRAME, tmp_path / name)
    pd.testing.assert_frame_equal(read_table(tmp_path / name), FRAME)
    assert os.listdir(tmp_path) == [name]


def test_gzip_is_reproducible_and_polars_is_accepted(tmp_path: Path) -> None:
    for name in ("a.csv.gz", "b.csv.gz"):
        write_table(pl.DataFrame({"x": [1, 2]}), tmp_path / name)
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()).split() == [b"x", b"1", b"2"]
    assert (tmp_path / "a.csv.gz").read_bytes()[4:8] == b"\0" * 4  # no time stamp
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()  # and no name


def read(tmp_path: Path, content: str | bytes, name: str = "t.csv", **options: object) -> pd.DataFrame:
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return read_table(tmp_path / name, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", ", ", " ; "])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_delimiters(tmp_path: Path, delimiter: str, newline: str) -> None:
    rows = [["price", "some, words; or | more", "n"], ["1.5", "a, b; c | d", "1"], ["2.5", "e, f; g | h", "2"]]
    text = newline.join(delimiter.join(f'"{cell}"' if " " in cell else cell for cell in row) for row in rows)
    if delimiter == " ; ":  # a space before a delimiter ends a quoted cell too early in CSV: only plain cells
        text = newline.join(delimiter.join(row[::2]) for row in rows)
    frame = read(tmp_path, text + newline)
    assert frame["price"].tolist() == [1.5, 2.5]
    assert frame["n"].tolist() == [1, 2]
    if delimiter != " ; ":
        assert frame["some, words; or | more"].tolist() == ["a, b; c | d", "e, f; g | h"]


def test_spaces_given_delimiter_and_single_column(tmp_path: Path) -> None:
    assert read(tmp_path, "a   b\n1.5  2\n 3  4\n").to_dict("list") == {"a": [1.5, 3.0], "b": [2, 4]}
    assert read(tmp_path, "a:b\n1:2\n", delimiter=":").to_dict("list") == {"a": [1], "b": [2]}
    assert read(tmp_path, "a\n1\n2\n").to_dict("list") == {"a": [1, 2]}
    assert read(tmp_path, "two words\nsome text\nmore text\n").columns.tolist() == ["two words"]


def test_encodings_and_decimal_comma(tmp_path: Path) -> None:
    assert read(tmp_path, b"\xef\xbb\xbfa,b\n1,2\n").columns.tolist() == ["a", "b"]
    assert read(tmp_path, "größe,b\n1,ü\n".encode("utf-16")).columns.tolist() == ["größe", "b"]
    long = "größe,b\n" + "1,😀ü\n" * 30_000  # a head that ends in the middle of a character is no damage
    for encoding in ("utf-16", "utf-8"):
        for shift in range(4):
            assert (read(tmp_path, ("x" * shift + long).encode(encoding))["b"] == "😀ü").all()
    damaged = "größe,b\n1,ü\n".encode("utf-16")
    for content in (
        damaged[:-1],
        damaged.replace("ü\n".encode("utf-16-le"), b"\x00\xd8\n\0"),
        long.encode("utf-16")[:-4] + b"\x00\xdc\n\0",
    ):
        with pytest.raises(UserError, match=r"not UTF-16 text \(.* at byte \d+\); save it as UTF-8"):
            read(tmp_path, content)
    frame = read(tmp_path, "preis;name\n1,5;a,b\n-2;c\n")
    assert frame["preis"].tolist() == [1.5, -2.0]
    assert frame["name"].tolist() == ["a,b", "c"]


def test_a_mark_that_is_a_number_is_a_text(tmp_path: Path) -> None:
    text = "x,y,z\n1.5,-999,1\n-999,2,-999\n-999.0,3,2\n"
    frame = read(tmp_path, text, missing=["-999"])
    assert frame["x"].isna().tolist() == [False, True, False]
    assert frame["x"].tolist()[2] == -999.0
    assert frame["y"].isna().tolist() == [True, False, False]
    assert str(frame["z"].dtype) == "Int64" and frame["z"].isna().tolist() == [False, True, False]


def test_numbers_are_read_to_the_last_bit(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    bits = generator.integers(0, 2**63, 3000, dtype=np.uint64).view(np.float64)
    texts = [repr(float(number)) for number in bits[np.isfinite(bits)]]
    texts += [f"{number:.22e}" for number in generator.normal(size=1000)]
    found = read(tmp_path, "k,x\n" + "".join(f"r,{text}\n" for text in texts))["x"]
    assert found.tolist() == [float(text) for text in texts]
    spaced = read(tmp_path, "k,x,n\nr, 1.5 , 2 \nr, , 3\n")
    assert spaced["x"].tolist()[0] == 1.5 and spaced["x"].isna().tolist() == [False, True]
    assert spaced["n"].tolist() == [2, 3] and spaced["n"].dtype == "int64"


def test_missing_cells(tmp_path: Path) -> None:
    frame = read(
        tmp_path, "x,n,t,b,d\n1.5,1,NA,True,2024-01-01\n,?,?,,\nN/A,NULL,null,False,2024-05-01\n", missing=["?"]
    )
    assert frame["x"].isna().tolist() == [False, True, True]
    assert str(frame["n"].dtype) == "Int64"
    assert frame["n"].isna().tolist() == [False, True, True]
    assert frame["t"].isna().tolist() == [False, True, True]  # NA among texts may be Namibia
    assert str(frame["b"].dtype) == "boolean"
    assert frame["d"].tolist()[::2] == ["2024-01-01", "2024-05-01"]  # as written; the schema reads it as a time


def test_nothing_is_lost(tmp_path: Path) -> None:
    frame = read(tmp_path, "zip,id,plus,exact\n01234,12345678901234567890,+491,0.1\n2,1,+492,0.30000000000000004\n")
    assert frame["zip"].tolist() == ["01234", "2"]
    assert frame["id"].tolist() == ["12345678901234567890", "1"]
    assert frame["exact"].tolist() == [0.1, 0.1 + 0.2]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty"),
        (" \n\n", "is empty"),
        (",", "has nothing in any cell"),
        (",\n,\n", "has nothing in any cell"),
        ("a,b\n", "no rows"),
        ("a,b\n1,2\n1,2,3\n", "line 3 has 3 fields, but there are 2 column names: correct it .*quotes"),
        ("a,b\n1,2,3\n1,2,3\n", "line 2 has 3 fields, but there are 2 column names"),
        ("a,b,c\n1,2,3\n1,2\n", "line 3 has 2 fields, but there are 3 column names: correct it .*cut off"),
        ('a,b\n1,"2\n3,4\n', "cannot read"),
        ("5.1,3.5,setosa\n4.9,3.0,setosa\n", "'5.1' looks like a value"),
        (b"PK\x03\x04\0\0\0\0\x08", "not a text file"),
        ("größe,b\n1,ü\n".encode() + b"2,\xff\n", r"not UTF-8 text \(.* at byte 17\)"),
        (b"a,b\n" + "1,ü\n".encode() * 400_000 + b"1,\xff\n", r"not UTF-8 text \(.* at byte 2000006\)"),
        (bytes(range(1, 256)) * 9, "not a text file"),
    ],
)
def test_not_a_table(tmp_path: Path, content: str | bytes, words: str) -> None:
    with pytest.raises(UserError, match=words) as caught:
        read(tmp_path, content)
    assert "t.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "d.csv").mkdir()
    (tmp_path / "bad.parquet").write_bytes(b"nonsense")
    whole = gzip.compress(b"a,b\n" + os.urandom(1000).hex().encode())
    (tmp_path / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "plain.csv.gz").write_bytes(b"a,b\n1,2\n")
    for name, words in [
        ("none.csv", "no such file"),
        ("none.parquet", "no such file"),
        ("d.csv", "folder"),
        ("t.docx", r"should end in one of \.csv"),
        ("t", "should end in"),
        ("bad.parquet", "as Parquet"),
        ("cut.csv.gz", "gzip"),
        ("plain.csv.gz", "gzip"),
    ]:
        with pytest.raises(UserError, match=words):
            read_table(tmp_path / name)
    with pytest.raises(UserError, match="should end in"):
        write_table(FRAME, tmp_path / "t.xlsx")
    with pytest.raises(UserError, match="no folder"):
        write_table(FRAME, tmp_path / "nowhere" / "t.csv")
    with pytest.raises(UserError, match="is a folder"):
        write_table(FRAME, tmp_path / "d.csv")


def test_standard_streams(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"a;b\n1;x\n")))
    frame = read_table("-")
    assert frame.to_dict("list") == {"a": [1], "b": ["x"]}
    write_table(frame, "-")
    assert capsys.readouterr().out.splitlines() == ["a;b", "1;x"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "t.csv"
    target.write_text("old")

    def interrupted() -> None:
        with atomic_path(target) as beside:
            beside.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["t.csv"]
    with atomic_path(target) as beside:
        beside.write_text("new")
        assert target.read_text() == "old"  # until the very end
        assert beside.parent == target.parent  # a rename must not cross file systems
    assert target.read_text() == "new"


def test_links_and_devices_survive_a_write(tmp_path: Path) -> None:
    target, link = tmp_path / "t.csv", tmp_path / "link.csv"
    target.write_text("old")
    link.symlink_to(target)
    write_table(FRAME[["k"]], link)
    assert link.is_symlink()
    assert target.read_text().split()[0] == "k"
    with atomic_path(os.devnull) as beside:
        assert str(beside) == os.devnull
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("name, first;age\nSmith, Jo;34\nHara, Al;27\n", ["name, first", "age"]),
        ("x;y, in cm\n1,5;2,5\n2,5;3,5\n", ["x", "y, in cm"]),
        ("id;code,price\na;b,3\nc;d,4\n", ["id;code", "price"]),
    ],
)
def test_a_tie_between_delimiters_goes_to_the_one_with_more_numbers(
    tmp_path: Path, text: str, names: list[str]
) -> None:
    assert read(tmp_path, text).columns.tolist() == names


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", ["", "\n"])
def test_a_blank_line_of_one_column_is_a_missing_cell(tmp_path: Path, newline: str, last: str) -> None:
    text = ("\na\n1\n\n3\n\n\n5" + last).replace("\n", newline)
    frame = read(tmp_path, text)
    assert frame["a"].isna().tolist() == [False, True, False, True, True, False]
    assert frame["a"].dropna().tolist() == [1, 3, 5]
    assert len(read(tmp_path, f"a{newline}x{newline}{newline}")) == 2  # the last cell is missing


@pytest.mark.parametrize("cells", [[1.5, None, None], [None, "x"], ["x", None, "y", None, None], [None, None]])
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz"])
def test_one_column_keeps_its_rows(tmp_path: Path, cells: list[object], name: str) -> None:
    frame = pd.DataFrame({"a": cells})
    write_table(frame, tmp_path / name)
    found = read_table(tmp_path / name)
    assert found["a"].isna().tolist() == frame["a"].isna().tolist()
    assert found["a"].dropna().tolist() == frame["a"].dropna().tolist()


def test_what_a_column_is_does_not_depend_on_the_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = {
        "whole": ["1"] * 40,
        "holes": ["1"] * 39 + [""],
        "fraction": ["1"] * 39 + ["-0"],
        "late": ["1"] * 39 + ["2.5"],
        "zip": ["1"] * 39 + ["07"],
        "long": ["1.5"] + ["1"] * 38 + ["12345678901234567"],
        "word": ["NA"] * 39 + ["1"],
        "truth": ["True"] * 39 + ["x"],
        "truth_holes": [""] * 20 + ["True"] * 19 + ["False"],
        "none": [""] * 40,
        "last": ["x"] * 40,
    }
    text = "\n".join([",".join(cells), *(",".join(row) for row in zip(*cells.values(), strict=True))])
    whole = read(tmp_path, text)
    assert whole["late"].dtype == "float64" and whole["zip"].tolist()[-2:] == ["1", "07"]
    assert whole["long"].tolist()[-1] == "12345678901234567" and whole["truth"].tolist()[-1] == "x"
    monkeypatch.setattr("anyorder.data.delimited.PIECE", 100)  # a few rows at a time
    pd.testing.assert_frame_equal(read(tmp_path, text), whole)


PLAIN_OR_NOT = {
    "numbers": "a,b\n1,2.5\n-3,1e5\n7,nan\n",
    "holes": "a,b\n1,\n,x\n\n3,NA\n",
    "signs": "a,b\n+1,.5\n2,5.\n",
    "spaces": "a,b\n1, x\n 2,y\n",
    "quotes": 'a,b\n1,"x, y"\n2,"say ""so"""\n3,5" pipe\n4,"p"q\n',
    "lines": 'a,b\n1,"x\ny"\n2,z\n',
    "windows": "a;b\r\n1;2,5\r\n2;3,5\r\n",
    "mac": "a,b\r1,2\r3,4\r",
    "short": "a,b,c\n1,2,3\n4,5\n",
    "long": "a,b\n1,2\n3,4,5\n",
    "unclosed": 'a,b\n1,5"\n2,"open',
    "names again": "a,b\n1,x\na,b\n2,y\n",
    "total": "a,b\nx,1\ny,2\nTotal,3\n",
}


@pytest.mark.parametrize("text", PLAIN_OR_NOT.values(), ids=PLAIN_OR_NOT)
@pytest.mark.parametrize("bytes_at_once", [20, 1 << 23])
def test_arrow_reads_as_pandas_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, bytes_at_once: int
) -> None:
    def outcome() -> pd.DataFrame | str:
        try:
            return read(tmp_path, text)
        except UserError as error:
            return str(error)

    monkeypatch.setattr("anyorder.data.delimited.PIECE", bytes_at_once)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # notices of skipped lines
        quick = outcome()
        monkeypatch.setattr("anyorder.data.table_text.can_be_plain", lambda *_: False)
        careful = outcome()
    if isinstance(careful, str) or isinstance(quick, str):
        assert quick == careful
    else:
        pd.testing.assert_frame_equal(quick, careful, check_exact=True)


def test_long_fields_and_wide_headers_are_read(tmp_path: Path) -> None:
    long = "x" * 200_000
    frame = read(tmp_path, f"a,b\n{long},\n1,\n")  # an empty last cell: every line's length is looked at
    assert frame["a"].tolist() == [long, "1"]
    names = [f"column {number} {'of a long name' * 20}" for number in range(300)]
    wide = read(tmp_path, ",".join(names) + "\n" + ",".join("1" * len(names)) + "\n")
    assert wide.columns.tolist() == names


@pytest.mark.parametrize("delimiter", ["ab", "\n", '"', "\\s*"])
def test_a_delimiter_is_one_character(tmp_path: Path, delimiter: str) -> None:
    with pytest.raises(UserError, match="a delimiter must be one character"):
        read(tmp_path, "a,b\n1,2\n", delimiter=delimiter)


def test_a_file_that_unpacks_to_too_much_is_refused_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anyorder.data.unpacking.UNPACKED", 1_000_000)
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 2_000_000))
    with pytest.raises(UserError, match=r"unpacks to more than 1 MB.*unpack it yourself"):
        read_table(tmp_path / "bomb.csv.gz")


def test_formulas_are_escaped_where_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = ["=cmd|' /C calc'!A0", "+SUM(A1)", "-x", "@y", "\tz", "\rz", "＝1", "plain", "-5", "+491", None, "a=b"]
    frame = pd.DataFrame({"=n": range(len(texts)), "t": texts, "x": [-1.5] * len(texts)})
    frame["level"] = pd.Categorical(["=1", "b"] * 6)
    write_table(frame, tmp_path / "t.csv")
    assert read_table(tmp_path / "t.csv")["t"].tolist()[:2] == texts[:2]  # the data as they are, unless asked
    write_table(frame, tmp_path / "t.csv", escape_formulas=True)
    found = read_table(tmp_path / "t.csv")
    assert found.columns.tolist() == ["'=n", "t", "x", "level"]
    expected = [f"'{text}" for text in texts[:7]] + texts[7:]
    assert found["t"].astype(object).where(found["t"].notna(), None).tolist() == expected
    assert found["x"].tolist() == [-1.5] * len(texts)
    assert found["level"].tolist()[:2] == ["'=1", "b"]
    write_table(frame, "-", escape_formulas=True)
    assert "'=cmd" in capsys.readouterr().out
    write_table(frame, tmp_path / "t.parquet", escape_formulas=True)  # no spreadsheet's format
    assert read_table(tmp_path / "t.parquet")["t"].tolist()[0] == texts[0]


def test_parquet_with_flipped_bits_is_refused_or_the_same(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_table(FRAME, path)
    content, generator = path.read_bytes(), np.random.default_rng(0)
    for position in generator.integers(0, len(content), 60):
        damaged = bytearray(content)
        damaged[position] ^= 1 << int(generator.integers(8))
        path.write_bytes(damaged)
        with contextlib.suppress(UserError):
            read_table(path)


def test_readers_that_take_turns_leave_the_filters_of_warnings_alone(tmp_path: Path) -> None:
    before = list(warnings.filters)
    texts = [TableText(Source(lambda: io.BytesIO(b"a,b\n1,2\n3,4\n"), "it", str, 12), Said(), print) for _ in range(2)]
    for text in texts:
        text.plain = False  # Arrow gives no warnings
    first, second = (text.pieces(1) for text in texts)
    assert len(next(first)) == len(next(second)) == 1
    assert warnings.filters == before  # between two pieces the caller's own code runs
    assert len(list(first)) == len(list(second)) == 1
    assert warnings.filters == before
