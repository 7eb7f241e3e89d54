"""A user's mistake is one line on standard error and status 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import refused


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["ask", "{model}", "prise | rooms=6"], "did you mean 'price'"),
        (["ask", "{model}", "price | rooms"], "rooms=VALUE"),
        (["ask", "{model}", "| rooms=6"], "nothing is asked"),
        (["ask", "{model}", "price | river=maybe"], "maybe"),
        (["ask", "{model}", "price", "--plot", "out.doc"], ".png"),
        (["ask", "nowhere.anyorder", "price"], "nowhere.anyorder"),
        (["sample", "{model}", "-n", "0"], "at least 1"),
        (["sample", "{model}", "-n", "ten"], "-n"),
        (["sample", "{model}", "-o", "no/such/folder.csv"], "no/such"),
        (["sample", "{model}", "-o", "out.xyz"], ".csv"),
        (["fill", "{model}", "nowhere.csv"], "nowhere.csv"),
        (["fill", "{model}", "{table}", "--draws", "0"], "at least 1"),
        (["score", "{model}", "{table}", "--given", "rums"], "did you mean 'rooms'"),
        (["fit", "{table}", "-o", "m.anyorder", "--resume"], "--checkpoint"),
        (["fit", "{table}", "-o", "no/such/m.anyorder"], "no/such"),
        (["fit", "{table}", "-o", "m.anyorder", "--minutes", "0"], "--minutes"),
        (["fit", "-"], "-o MODEL"),
        (["fit", "{table}", "-o", "m.anyorder", "--config", "nowhere.toml"], "'nowhere.toml' does not exist"),
        (["fit", "{table}", "-o", "m.anyorder", "--checkpoint", "{table}"], "--checkpoint needs a folder"),
        (["fit", "{table}", "-o", "m.anyorder", "--tensorboard", "{table}"], "--tensorboard needs a folder"),
        (["fit", "{table}", "-o", "m.anyorder", "--seed", "-1"], "--seed"),
        (["sample", "{model}", "--seed", "-1"], "--seed"),
        (["score", "{model}", "{table}", "--unseen", "perhaps"], "--unseen"),
        (["frobnicate"], "frobnicate"),
        (["fit", "--frobnicate"], "--frobnicate"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(
    arguments: list[str],
    says: str,
    model: str,
    table: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    filled = [argument.format(model=model, table=table) for argument in arguments]
    assert says in refused(capsys, *filled)
