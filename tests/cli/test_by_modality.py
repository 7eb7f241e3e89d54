"""One command for every modality: options join, the model's modality answers, and foreign options are refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from anyorder.cli.by_modality import MODALITIES, by_modality
from anyorder.cli.options import Count, Json, Seed
from anyorder.errors import UserError

calls: list[tuple[str, dict[str, Any]]] = []


def play_sound(
    model: Any,
    file: Annotated[Path, typer.Argument(metavar="SOUND", help="a sound file")],
    count: Count = 3,
    seed: Seed = 0,
    loud: Annotated[float, typer.Option(help="how loud")] = 0.5,
) -> None:
    """Plays it."""
    calls.append(("sound", {"file": file, "count": count, "seed": seed, "loud": loud}))


def play_film(
    model: Any,
    screen: Annotated[str, typer.Option(metavar="NAME", help="where")],
    count: Count = 1,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Shows it."""
    calls.append(("film", {"screen": screen, "count": count, "seed": seed, "as_json": as_json}))


def module(name: str, function: Any) -> ModuleType:
    made = ModuleType(name)
    made.__dict__.update(MODALITY=name, NOUN=f"{name}s", play=function)
    return made


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> typer.Typer:
    """``play MODEL``, where the name of the file says which modality it is a model of."""
    monkeypatch.chdir(tmp_path)
    for name in ("sound", "film", "smell"):
        Path(name).touch()
    monkeypatch.setattr(
        "anyorder.modalities.load.load", lambda path: SimpleNamespace(modality=path.name, noun=f"{path.name}s")
    )
    calls.clear()
    found = typer.Typer(add_completion=False, rich_markup_mode=None)
    modules = (module("sound", play_sound), module("film", play_film))
    found.command()(by_modality("play", "Plays anything.", modules))
    return found


def mistake(app: typer.Typer, *arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert isinstance(result.exception, UserError)
    assert not calls
    return str(result.exception)


def test_the_modality_of_the_model_answers_with_its_own_defaults(app: typer.Typer) -> None:
    assert CliRunner().invoke(app, ["sound", "a.wav", "--seed", "7"]).exit_code == 0
    assert CliRunner().invoke(app, ["film", "--screen", "left", "--json"]).exit_code == 0
    assert calls == [
        ("sound", {"file": Path("a.wav"), "count": 3, "seed": 7, "loud": 0.5}),
        ("film", {"screen": "left", "count": 1, "seed": 0, "as_json": True}),
    ]


def test_an_option_of_another_modality_is_refused_even_at_its_default(app: typer.Typer) -> None:
    said = mistake(app, "film", "--screen", "left", "--loud", "0.5")
    assert said == "--loud is for models of sounds; 'film' is a model of films"
    said = mistake(app, "sound", "a.wav", "--json", "--screen", "x")
    assert said == "--screen and --json are for models of films; 'sound' is a model of sounds"


def test_what_is_missing_is_shown_as_it_is_typed(app: typer.Typer) -> None:
    assert mistake(app, "sound") == "'sound' is a model of sounds and needs SOUND: anyorder play MODEL SOUND"
    said = mistake(app, "film", "a.wav")
    assert said == (
        "the argument 'a.wav' is for models of sounds; 'film' is a model of films: anyorder play MODEL --screen NAME"
    )


def test_a_modality_without_the_command_is_named(app: typer.Typer) -> None:
    assert mistake(app, "smell") == "play works with models of sounds and films, but 'smell' is a model of smells"


def test_help_says_whose_an_option_is(app: typer.Typer) -> None:
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).output
    text = " ".join(shown.split())
    for words in (
        "With a model of sounds: plays it.",
        "[SOUND]",
        "--loud <float> sounds: how loud [default: 0.5]",
        "--screen NAME films: where",
        "how many to draw [default: (3 for sounds, 1 for films)]",
        "--seed <int range> the same seed gives the same draws",
    ):
        assert words in text
    assert text.index("--seed") < text.index("--loud") < text.index("--screen")  # shared first, then by modality


def test_every_face_has_its_commands() -> None:
    from anyorder.modalities.load import FACES, face_of

    assert {one.MODALITY for one in MODALITIES} == set(FACES)
    for one in MODALITIES:
        assert face_of(one.MODALITY).noun in (one.NOUN, f"a {one.NOUN.removesuffix('s')}")
        assert all(hasattr(one, command) for command in ("fill", "sample", "score", "info"))


@pytest.mark.parametrize("arguments", [["--help"], ["fill", "--help"], ["fit-images", "--help"]])
def test_help_is_quick(arguments: list[str]) -> None:
    """Importing torch takes seconds, and ``--help`` does not need it."""
    code = (
        "import sys; from anyorder.cli import main; status = main(sys.argv[1:]); "
        "sys.exit(status or sum(name in sys.modules for name in ('torch', 'pandas', 'scipy', 'matplotlib')))"
    )
    command = [sys.executable, "-c", code, *arguments]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
