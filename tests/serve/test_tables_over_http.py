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
    assert set(cells) == {(0, "kind"), (0, "size"), (0, "day"), (1, "day")}
    frame = pd.DataFrame(rows, columns=body["columns"]).astype({"size": float})
    shares = model.predict_proba(frame, "kind").iloc[0]
    assert cells[0, "kind"]["certainty"] == pytest.approx(shares.max(), abs=1e-6)
    ends = model.given(frame.drop(columns="size"))["size"].interval(0.9).iloc[0]
    assert (cells[0, "size"]["low"], cells[0, "size"]["high"]) == pytest.approx(tuple(ends), abs=1e-5)
    assert all(0 <= cell["certainty"] <= 1 for cell in cells.values())


def test_the_open_inference_protocol(service: Asking, models: dict[str, Any]) -> None:
    model = models["table"]
    assert service.get("/v2/health/live").json() == {"live": True}
    assert service.get("/v2/health/ready").json() == {"ready": True}
    assert service.get("/v2").json()["name"] == "anyorder"
    assert service.get("/v2/models/table/ready").json()["ready"]
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
