"""Tables go in and out as JSON, CSV, Parquet and Arrow: the same cells in each."""

from __future__ import annotations

import io
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from asking import Asking

PATH = "/v1/models/table"
CSV, PARQUET, ARROW = "text/csv", "application/vnd.apache.parquet", "application/vnd.apache.arrow.stream"


def sent(frame: pd.DataFrame, kind: str) -> bytes:
    if kind == CSV:
        return frame.to_csv(index=False).encode()
    buffer, table = io.BytesIO(), pa.Table.from_pandas(frame, preserve_index=False)
    if kind == PARQUET:
        pq.write_table(table, buffer)
    else:
        with pa.ipc.new_stream(buffer, table.schema) as stream:
            stream.write_table(table)
    return buffer.getvalue()


def received(content: bytes, kind: str) -> pd.DataFrame:
    if kind == CSV:
        return pd.read_csv(io.BytesIO(content), parse_dates=["day", "moment"])
    if kind == PARQUET:
        return pq.read_table(io.BytesIO(content)).to_pandas()
    return pa.ipc.open_stream(content).read_all().to_pandas()


@pytest.mark.parametrize("there", [CSV, PARQUET, ARROW])
@pytest.mark.parametrize("back", [CSV, PARQUET, ARROW])
def test_there_and_back(there: str, back: str, service: Asking, models: dict[str, Any]) -> None:
    model = models["table"]
    rows = model.sample(6, seed=1)
    holes = rows.assign(size=rows["size"].where([True, False] * 3), kind=rows["kind"].where([False, True] * 3))
    answer = service.post(f"{PATH}/fill", content=sent(holes, there), headers={"content-type": there, "accept": back})
    assert answer.status_code == 200 and answer.headers["content-type"].startswith(back)
    filled, expected = received(answer.content, back), model.fill(holes)
    assert list(filled) == list(expected)
    for name in expected:
        theirs, ours = filled[name].to_numpy(), expected[name].to_numpy()
        if expected[name].dtype.kind == "f":
            assert theirs == pytest.approx(ours, rel=1e-12), name
        elif expected[name].dtype.kind == "M":
            assert (pd.DatetimeIndex(theirs) == pd.DatetimeIndex(ours)).all(), name
        else:
            assert list(map(str, theirs)) == list(map(str, ours)), name


def test_a_csv_keeps_its_dialect(service: Asking) -> None:
    text = "size;count\n0,5;20\n;21\n"
    answer = service.post(f"{PATH}/fill", content=text, headers={"content-type": CSV, "accept": CSV}).text
    first, second, third, *_ = answer.splitlines()
    assert first.startswith("size;count") and second.startswith("0,5;20") and third[0] != ";" and "," in third


def test_how_sure_a_filled_cell_is(service: Asking, models: dict[str, Any]) -> None:
    model = models["table"]
    rows = [[20, None, None, None], [30, "ash", 1.0, None]]
    body = {"columns": ["count", "kind", "size", "day"], "rows": rows}
    answer = service.post(f"{PATH}/fill?uncertainty=true", body).json()
    cells = {(cell["row"], cell["column"]): cell for cell in answer["filled"]}
    # Those of columns that the table does not have are filled too.
    added = {(row, name) for row in (0, 1) for name in model.columns if name not in body["columns"]}
    assert set(cells) == {(0, "kind"), (0, "size"), (0, "day"), (1, "day")} | added
    frame = pd.DataFrame(rows, columns=body["columns"]).astype({"size": float})
    shares = model.predict_proba(frame, "kind").iloc[0]
    assert cells[0, "kind"]["certainty"] == pytest.approx(shares.max(), abs=1e-6)
    ends = model.given(frame.drop(columns="size"))["size"].interval(0.9).iloc[0]
    assert (cells[0, "size"]["low"], cells[0, "size"]["high"]) == pytest.approx(tuple(ends), abs=1e-5)
    assert all(0 <= cell["certainty"] <= 1 for cell in cells.values())
    # Of a number: how much narrower the 90 % are than with nothing known.
    before = model.marginals()["size"]
    expected = 1 - (ends["high"] - ends["low"]) / (before.high - before.low)
    assert cells[0, "size"]["certainty"] == pytest.approx(max(expected, 0), abs=1e-5)


def test_the_open_inference_protocol(service: Asking, models: dict[str, Any]) -> None:
    model = models["table"]
    assert service.get("/v2/health/live").json() == {"live": True}
    assert service.get("/v2/health/ready").json() == {"ready": True}
    assert service.get("/v2").json()["name"] == "anyorder"
    assert all(service.get(f"/v2/models/{name}/ready").json()["ready"] for name in ("table", "text", "pictures"))
    described = service.get("/v2/models/table").json()
    assert [(one["name"], one["datatype"]) for one in described["inputs"]][:5] == [
        *(("size", "FP64"), ("count", "FP64"), ("half", "FP64"), ("flag", "BYTES"), ("kind", "BYTES"))
    ]
    inputs = [
        {"name": "size", "shape": [2], "datatype": "FP64", "data": [0.5, None]},
        {"name": "kind", "shape": [2, 1], "datatype": "BYTES", "data": [["ash"], [""]]},
    ]
    outputs = [{"name": "kind"}, {"name": "log_prob"}, {"name": "size"}]
    answer = service.post("/v2/models/table/infer", {"id": "7", "inputs": inputs, "outputs": outputs}).json()
    frame = pd.DataFrame({"size": [0.5, None], "kind": ["ash", None]})
    filled = model.fill(frame)
    found = {one["name"]: one["data"] for one in answer["outputs"]}
    assert answer["id"] == "7" and answer["model_name"] == "table"
    assert found["kind"] == filled["kind"].tolist() and found["size"] == filled["size"].tolist()
    assert found["log_prob"] == model.log_prob(frame).tolist()


def test_what_a_csv_leaves_out_is_said(service: Asking) -> None:
    text = "kind,count\nash,20\nbirch,21\ncedar,22\nTotal,63\n"
    found = service.post(f"{PATH}/score", content=text, headers={"content-type": CSV}).json()
    assert found["rows"] == 3 and "line 5" in found["notes"][0] and "rows=all" in found["notes"][0]
    # As the note says: every line is a row, and this one has a level that there is not.
    refused = service.post(f"{PATH}/score", content=text, headers={"content-type": f"{CSV}; charset=utf-8; rows=all"})
    assert refused.status_code == 400 and "Total" in refused.json()["error"]["message"]
    wrong = service.post(f"{PATH}/score", content=text, headers={"content-type": f"{CSV}; rows=some"})
    assert wrong.status_code == 400 and wrong.json()["error"]["where"] == "content-type"


@pytest.mark.parametrize("kind", [PARQUET, ARROW])
@pytest.mark.parametrize("counts", [[20, 21, 22], [20, 24, 23]], ids=["even", "uneven"])
def test_an_index_of_pandas_is_a_column(kind: str, counts: list[int], service: Asking) -> None:
    frame = pd.DataFrame({"count": counts, "size": [0.5, None, 1.0]})
    table = pa.Table.from_pandas(frame.set_index("count"))
    buffer = io.BytesIO()
    if kind == PARQUET:
        pq.write_table(table, buffer)
    else:
        with pa.ipc.new_stream(buffer, table.schema) as stream:
            stream.write_table(table)
    filled = service.post(f"{PATH}/fill", content=buffer.getvalue(), headers={"content-type": kind}).json()
    column = filled["columns"].index("count")
    assert [row[column] for row in filled["rows"]] == counts


def test_the_type_that_is_liked_best(service: Asking) -> None:
    body = {"count": 2}
    for accept, expected in (
        ("text/csv;q=0.5, application/json", "application/json"),
        (f"text/csv;q=0.5, {ARROW};q=0.9, application/json;q=0", ARROW),
        ("text/html, */*;q=0.1", "application/json"),
    ):
        answer = service.post(f"{PATH}/sample", body, headers={"accept": accept})
        assert answer.headers["content-type"].startswith(expected), accept
    assert service.post(f"{PATH}/sample", body, headers={"accept": "text/csv;q=0"}).status_code == 406


def test_a_table_without_columns_keeps_its_rows(service: Asking) -> None:
    assert len(service.post(f"{PATH}/fill", {"columns": [], "rows": [[], []]}).json()["rows"]) == 2


def test_what_is_given_is_shown_in_its_own_order(models: dict[str, Any]) -> None:
    from asking import asked

    with asked({"table": models["table"]}) as service:
        orders = ({"count": 25, "kind": "ash"}, {"kind": "ash", "count": 25})
        said = [service.post(f"{PATH}/marginals", {"given": given}).json()["given"] for given in orders]
    assert [text.split("=")[0].strip() for text in said] == ["count", "kind"]
