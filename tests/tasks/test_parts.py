"""Tables in many files: the same bits however they are divided, what is finished stays, and errors name the file."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anyorder as ao
from anyorder.data.parts import PartedTable
from anyorder.errors import UserError
from anyorder.support.atomic import WriteError
from anyorder.tasks import part_anomalies, parts

from disks import no_file_above

ROWS, BLOCK = 200, 60


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    height = rng.normal(170, 9, ROWS)
    frame = pd.DataFrame(
        {
            "height": height,
            "weight": (0.5 * height + rng.normal(0, 4, ROWS)).round(1),
            "visits": pd.array(rng.poisson(4, ROWS), dtype="Int64"),
            "plan": rng.choice(["free", "basic", "pro"], ROWS),
            "member": pd.array(rng.random(ROWS) < 0.5, dtype="boolean"),
            "since": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, ROWS), unit="D"),
        }
    )
    return frame.mask(rng.random(frame.shape) < 0.15)


@pytest.fixture(scope="module")
def model() -> ao.TableModel:
    brief = {"folds": 2, "training": {"steps": 20, "minutes": None}, "network": {"name": "residual_mlp", "width": 16}}
    return ao.fit(table(), engine="neural", config=brief, seed=0)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (parts, part_anomalies):
        monkeypatch.setattr(module, "block_rows", lambda model: BLOCK)


def divided(folder: Path, count: int, ending: str = ".parquet") -> Path:
    """The table in so many parts, the names of which do not sort by their letters."""
    folder.mkdir()
    cuts = np.linspace(0, ROWS, count + 1).astype(int)
    for number, (start, stop) in enumerate(itertools.pairwise(cuts.tolist())):
        part, path = table().iloc[start:stop], folder / f"part-{number}{ending}"
        if ending == ".parquet":
            part.to_parquet(path, row_group_size=37)
        else:
            part.to_csv(path, index=False)
    return folder


def together(folder: Path) -> pd.DataFrame:
    return PartedTable(folder).frame(next(PartedTable(folder).blocks([(0, PartedTable(folder).rows)])))


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_the_answers_are_the_same_bits_however_the_table_is_divided(
    ending: str, model: ao.TableModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for count, batch in ((1, 1 << 14), (3, 100), (7, 7))[: 3 if ending == ".parquet" else 2]:
        monkeypatch.setattr("anyorder.data.parts.ROWS", batch)
        source = divided(tmp_path / f"in{count}", count, ending)
        assert model.fill_files(source, tmp_path / f"filled{count}").parts == count
        model.fill_files(source, tmp_path / f"drawn{count}", draws=2, seed=3)
        scores = model.score_files(source, tmp_path / f"scored{count}")
        assert model.score_files(source).mean == scores.mean
        odd = model.anomalies_files(source, top=4) if ending == ".parquet" else []
        frames = [together(tmp_path / f"{what}{count}") for what in ("filled", "drawn", "scored")]
        cells = [(one.column, str(one.value), str(one.expected), one.probability, one.surprise) for one in odd]
        found.append((frames, (scores.rows, scores.mean, scores.standard_error), cells))
    for frames, summary, cells in found[1:]:
        assert (summary, cells) == found[0][1:]
        for one, other in zip(frames, found[0][0], strict=True):
            pd.testing.assert_frame_equal(one, other, check_exact=True)
    filled, drawn, scored = found[0][0]
    if ending == ".parquet":
        known = table().notna()
        assert filled.notna().all().all() and len(drawn) == 2 * ROWS and drawn["draw"].tolist()[:4] == [0, 1, 0, 1]
        for name in known.columns:
            assert (filled[name][known[name]].tolist()) == (table()[name][known[name]].tolist())
        schema = PartedTable(tmp_path / "in1").schema
        assert PartedTable(tmp_path / "filled1").schema.equals(schema)
        whole = model.log_prob(table())
        np.testing.assert_allclose(scored["log_prob"].astype(float), whole, rtol=1e-5)
        assert found[0][1][1] == pytest.approx(whole.mean(), abs=1e-6)
        assert found[0][1][2] == pytest.approx(whole.std() / np.sqrt(ROWS), rel=1e-6)
        expected = model.anomalies(table(), top=4)
        assert [one[0] for one in found[0][2]] == [one.column for one in expected]
    else:
        text = pd.read_csv(tmp_path / "in1" / "part-0.csv", dtype=str, keep_default_na=False)
        written = pd.read_csv(tmp_path / "filled1" / "part-0.csv", dtype=str, keep_default_na=False)
        assert (written[text != ""].fillna("") == text[text != ""].fillna("")).all().all()  # to the letter
        assert (written != "").all().all()


def test_other_seeds_and_other_blocks_draw_otherwise(model: ao.TableModel, tmp_path: Path) -> None:
    source = divided(tmp_path / "in", 2)
    model.fill_files(source, tmp_path / "a", draws=1, seed=1)
    model.fill_files(source, tmp_path / "b", draws=1, seed=2)
    assert not together(tmp_path / "a").equals(together(tmp_path / "b"))
    model.sample_files(3 * BLOCK, tmp_path / "c", part_rows=50)
    model.sample_files(3 * BLOCK, tmp_path / "d", part_rows=500)
    drawn = together(tmp_path / "c")
    pd.testing.assert_frame_equal(drawn, together(tmp_path / "d"))
    assert not drawn.iloc[:BLOCK].reset_index(drop=True).equals(drawn.iloc[BLOCK : 2 * BLOCK].reset_index(drop=True))


def test_what_is_there_is_not_made_again(model: ao.TableModel, tmp_path: Path) -> None:
    source, out = divided(tmp_path / "in", 5), tmp_path / "out"
    first = model.fill_files(source, out)
    assert (first.rows, first.parts, first.kept) == (ROWS, 5, 0)
    before = {path.name: path.stat().st_mtime_ns for path in out.iterdir()}
    whole = together(out)
    assert model.fill_files(source, out).kept == 5
    assert {path.name: path.stat().st_mtime_ns for path in out.iterdir()} == before
    (out / "part-2.parquet").unlink()  # one is lost, of another only a half is there
    (out / "part-4.parquet").write_bytes((out / "part-4.parquet").read_bytes()[:100])
    assert model.fill_files(source, out).kept == 3
    pd.testing.assert_frame_equal(together(out), whole, check_exact=True)
    assert model.fill_files(source, out, draws=1).kept == 0  # other options
    assert model.fill_files(source, out, draws=1, seed=1).kept == 0
    changed = pq.read_table(source / "part-4.parquet").slice(1)
    pq.write_table(changed, source / "part-4.parquet")  # its rows share a block with those of part 3
    assert model.fill_files(source, out, draws=1, seed=1).kept == 3
    record = json.loads((out / "_part-4.parquet.json").read_text())
    assert record["task"] == "fill" and record["options"]["seed"] == 1 and record["first_row"] == 160


def test_an_interruption_keeps_the_finished_parts(
    model: ao.TableModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = divided(tmp_path / "in", 5), tmp_path / "out"
    fill, calls = parts.fill_point, list[int]()

    def interrupted(*given: Any) -> pd.DataFrame:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return fill(*given)

    with monkeypatch.context() as patch:
        patch.setattr(parts, "fill_point", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fill_files(source, out)
    assert sorted(os.listdir(out)) == ["_part-0.parquet.json", "part-0.parquet"]
    assert model.fill_files(source, out).kept == 1
    model.fill_files(source, tmp_path / "at once")
    pd.testing.assert_frame_equal(together(out), together(tmp_path / "at once"), check_exact=True)


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_a_full_disk_names_the_part_and_keeps_the_others(
    ending: str, model: ao.TableModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = divided(tmp_path / "in", 3, ending), tmp_path / "out"
    model.fill_files(source, tmp_path / "sizes")
    fill, calls = parts.fill_point, list[int]()

    def filling(*given: Any) -> pd.DataFrame:
        calls.append(1)
        if len(calls) == 3:  # the first part is written
            limit.__enter__()
        return fill(*given)

    limit = no_file_above(1500)
    monkeypatch.setattr(parts, "fill_point", filling)
    try:
        with pytest.raises(WriteError, match=rf"part-1\{ending}.*File too large.*goes on from there"):
            model.fill_files(source, out)
    finally:
        limit.__exit__(None, None, None)
    assert sorted(os.listdir(out)) == [f"_part-0{ending}.json", f"part-0{ending}"]
    assert model.fill_files(source, out).kept == 1


def rewritten(folder: Path, change: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    change(pd.read_parquet(folder / "part-1.parquet")).to_parquet(folder / "part-1.parquet")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: rewritten(f, lambda t: t.rename(columns={"plan": "plans"})), "other columns.*'plans'.*lacks 'plan'"),
        (lambda f: rewritten(f, lambda t: t.assign(height="tall")), "another schema.*'height' is .*string.*double"),
        (lambda f: rewritten(f, lambda t: t.iloc[:0]), "has no rows"),
        (lambda f: (f / "part-1.parquet").write_bytes(b""), "cannot read the part"),
        (lambda f: (f / "part-1.parquet").write_bytes(b"PAR1" + 50 * b"x"), "cannot read the part"),
        (lambda f: rewritten(f, lambda t: t.assign(plan=["pro"] * (len(t) - 1) + ["gold"])), "'plan', row 66.*gold"),
    ],
)
def test_a_part_that_is_wrong_is_named(
    change: Callable[[Path], Any], said: str, model: ao.TableModel, tmp_path: Path
) -> None:
    source = divided(tmp_path / "in", 3)
    change(source)
    with pytest.raises(UserError, match=said) as caught:
        model.fill_files(source, tmp_path / "out")
    assert "part-1.parquet" in str(caught.value)
    if "gold" in said:  # found when its turn came
        assert (tmp_path / "out" / "part-0.parquet").exists()
        note = "never seen"
        with pytest.warns(UserWarning, match=note):
            assert model.fill_files(source, tmp_path / "unseen", unseen="missing").rows == ROWS


def test_types_that_differ_as_those_of_one_column_do_are_joined(model: ao.TableModel, tmp_path: Path) -> None:
    source = divided(tmp_path / "in", 3)
    rewritten(source, lambda t: t.assign(visits=t["visits"].fillna(1).astype("int32"), plan=None))
    rewritten(source, lambda t: t.assign(height=t["height"].astype("float32"), member=t["member"].fillna(True)))
    filled = tmp_path / "out"
    model.fill_files(source, filled)
    assert PartedTable(filled).schema.field("visits").type == pa.int64()
    assert pq.read_table(filled / "part-1.parquet")["plan"].null_count == 0


def test_folders_that_name_columns_and_patterns(model: ao.TableModel, tmp_path: Path) -> None:
    for plan in ("free", "pro"):
        (tmp_path / "in" / f"plan={plan}").mkdir(parents=True)
        rows = table()[table()["plan"] == plan].drop(columns="plan")
        rows.to_parquet(tmp_path / "in" / f"plan={plan}" / "part-0.parquet")
    (tmp_path / "in" / "_SUCCESS").touch()
    model.fill_files(tmp_path / "in", tmp_path / "out")
    assert set(pq.read_table(tmp_path / "out" / "plan=pro" / "part-0.parquet")["plan"].to_pylist()) == {"pro"}
    found = PartedTable(tmp_path / "in" / "*" / "*.parquet")
    assert [part.name for part in found.parts] == ["plan=free/part-0.parquet", "plan=pro/part-0.parquet"]
    assert "plan" in found.names


@pytest.mark.parametrize(
    ("source", "out", "said"),
    [
        ("in", "in", "holds the table that is read"),
        ("in", "in/filled", "is in the folder that is read"),
        ("in", "in/part-0.parquet", "go into a folder"),
        ("in", "other", "no part of this table"),
        ("nothing", "out", "no such file or folder"),
        ("nothing/*.parquet", "out", "no Parquet or CSV"),
        ("empty", "out", "no Parquet or CSV"),
        ("mixed", "out", "both Parquet and CSV"),
    ],
)
def test_wrong_folders_are_refused_before_any_work(
    source: str, out: str, said: str, model: ao.TableModel, tmp_path: Path
) -> None:
    divided(tmp_path / "in", 2)
    for name in ("empty", "mixed", "other"):
        (tmp_path / name).mkdir()
    shutil.copy(tmp_path / "in" / "part-0.parquet", tmp_path / "mixed")
    shutil.copy(tmp_path / "in" / "part-0.parquet", tmp_path / "other" / "mine.parquet")
    (tmp_path / "mixed" / "a.csv").write_text("height\n1\n", encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError, match=re.escape(said)):
        model.fill_files(tmp_path / source, tmp_path / out)
    assert sorted(tmp_path.rglob("*")) == before


def test_columns_that_the_table_does_not_have_are_added_and_others_kept(model: ao.TableModel, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    rows = table().drop(columns="weight")
    rows.to_parquet(tmp_path / "in" / "a.parquet")
    model.fill_files(tmp_path / "in", tmp_path / "out")
    assert together(tmp_path / "out").columns.tolist() == [*rows.columns, "weight"]
    table().assign(id=range(ROWS), nested=[[1]] * ROWS).to_parquet(tmp_path / "in" / "a.parquet")
    with pytest.warns(UserWarning, match="'id'"):
        model.fill_files(tmp_path / "in", tmp_path / "out")
    assert pq.read_table(tmp_path / "out" / "a.parquet")["id"].to_pylist() == list(range(ROWS))
