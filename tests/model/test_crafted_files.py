"""Model files made on purpose, with a right checksum: refused by the file and the field, before they cost anything."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from crafted_files import Change, crafted, setting, with_header, with_words

import anyorder as ao
from anyorder.errors import UserError
from anyorder.model.checkpoint import load_model, model_from_bytes, model_to_bytes, read_tensors
from anyorder.model.tensor_bytes import LONGEST_HEADER, VERSION, from_bytes
from anyorder.support.strict_json import DEEPEST, MOST_VALUES

from models import categorical_model, gaussian_model

FILES = Path(__file__).resolve().parents[1] / "files" / "v1"
MLP = {"name": "residual_mlp", "width": 16, "blocks": 1}
TRANSFORMER = {"name": "causal_transformer", "width": 16, "blocks": 1, "heads": 2, "positions": "rotary"}
PERCEPTRON = {"name": "sfarm_mlp", "width": 8}


@pytest.fixture(scope="module")
def small() -> bytes:
    return model_to_bytes(categorical_model(MLP, steps=1), {})


def refusal(data: bytes) -> str:
    """What is said when these bytes are read."""
    with pytest.raises(UserError) as error:
        model_from_bytes(data)
    return str(error.value)


# The words before anything else is looked at.


def test_a_header_longer_than_the_file_or_the_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.anyorder"
    path.write_bytes((10**15).to_bytes(8, "little") + b"{}")
    with pytest.raises(UserError, match="ends before its header"):
        read_tensors(path)
    with path.open("wb") as file:  # a sparse file: nothing of it is read but its first eight bytes
        file.write((LONGEST_HEADER + 1).to_bytes(8, "little"))
        file.truncate(LONGEST_HEADER + 100)
    with pytest.raises(UserError, match="are read"):
        read_tensors(path)


def test_a_file_larger_than_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.anyorder"
    with path.open("wb") as file:
        file.write((2).to_bytes(8, "little") + b"{}")
        file.truncate(2**43)
    with pytest.raises(UserError, match="this machine has"):
        read_tensors(path)


@pytest.mark.parametrize("depth", [DEEPEST + 1, 100_000])
@pytest.mark.parametrize("opening, closing", ["[]", ('{"a":', "}")])
def test_deep_nesting_is_refused(depth: int, opening: str, closing: str) -> None:
    nested = opening * depth + ("0" if opening != "[" else "") + closing * depth
    assert "nest" in refusal(with_header(f'{{"kind": "model", "description": {nested}}}'))
    assert "nest" in refusal(with_words(f'{{"__metadata__": {nested}}}'))


def test_many_values_are_refused() -> None:
    assert f"more than {MOST_VALUES} values" in refusal(with_header("[" + "0," * (MOST_VALUES + 1) + "0]"))


@pytest.mark.parametrize(
    "words, problem",
    [
        ('{"kind": "model", "kind": "model"}', "'kind' twice"),
        ('{"kind": "model", "description": {"a": 1e999}}', "inf where a finite number"),
        ('{"kind": "model", "description": {"a": [NaN]}}', "nan where a finite number"),
        ('{"kind": "model", "description": {"a": -Infinity}}', "-inf where a finite number"),
        ('{"kind": ' + "9" * 5000 + "}", "no JSON"),
        ('{"kind": "model"', "no JSON"),
        ("", "no JSON"),
        ("[]", "must be an object"),
        ("null", "must be an object"),
        ("{}", "None file, not a model"),
        ('{"kind": "model"}', "the entry 'description' is missing"),
        ('{"kind": "model", "description": []}', "description"),
        ('{"kind": "model", "description": {}}', "description.encoding: the entry 'encoding' is missing"),
    ],
)
def test_odd_words_are_refused(words: str, problem: str) -> None:
    assert problem in refusal(with_header(words))


@pytest.mark.parametrize("words", ["[]", "null", "3", '{"__metadata__": []}', '{"__metadata__": {"format": 3}}', '"'])
def test_odd_metadata_are_refused(words: str) -> None:
    assert "damaged" in refusal(with_words(words))


def test_tensors_that_overlap_or_lie_outside_are_refused() -> None:
    for offsets in ([0, 8], [4, 0], [-4, 0], [0, 2**64]):
        entry = {"dtype": "F32", "shape": [1], "data_offsets": offsets}
        assert "damaged" in refusal(with_words(json.dumps({"a": entry}), bytes(4)))


def test_a_version_1_file_that_lacks_everything_is_refused() -> None:
    tensorless = crafted(with_header('{"kind": "model", "card": {}}'), lambda header, tensors: None, version=1)
    assert "the entry 'description' is missing" in refusal(tensorless)


def test_the_version_is_named(small: bytes) -> None:
    same: Change = lambda header, tensors: None  # noqa: E731
    assert f"newer anyorder (format {VERSION + 1}); upgrade" in refusal(crafted(small, same, VERSION + 1))
    assert "there is no format '2.5', only 1 and 2" in refusal(crafted(small, same, "2.5"))
    assert "there is no format" in refusal(crafted(small, same, "9" * 5000))


# What the words declare.


@pytest.mark.parametrize(
    "path, value, problem",
    [
        ("description.network.width", "wide", "description.network: network 'residual_mlp' cannot be made"),
        ("description.network.width", -5, "description.network: "),
        ("description.network.width", 17, "tensors: the tensor 'network.enter.weight' is (16, 1"),
        ("description.network.blocks", 2, "tensors: the tensor 'network.trunk.1"),
        ("description.network.blocks", 0, "nothing in the description has it"),
        ("description.network.name", "unet", "description.network: "),
        ("description.network.name", "perceptron", "description.network: unknown network 'perceptron'"),
        ("description.network.name", [], "description.network: network: 'name' must be a text"),
        ("description.network", [], "description.network: "),
        ("description.network", None, "description.network: "),
        ("description.protocol", {"name": "canonical", "order": [1, 0]}, "description.protocol: "),
        ("description.protocol", {"name": "pixelwise", "channels": 3}, "description.protocol: "),
        ("description.heads", {}, "description.heads: there are heads for 0 of 4 variables"),
        ("description.heads.0.variables", 0, "description.heads.0: variables must be a whole number"),
        ("description.heads.0.variables", 10**12, "description.heads.0: there are heads for more than the 4"),
        ("description.heads.0.head.levels", 3, "description.heads.0: a head of 3 levels cannot answer"),
        ("description.heads.0.head", "categorical", "description.heads.0: "),
        ("description.encoding.schema.grid", [2, -2], "description.encoding.schema: "),
        (
            "description.encoding.schema.variables.1.kind",
            "odd",
            "description.encoding.schema.variables.1: unknown kind",
        ),
        ("description.encoding.schema.variables.1.dtype", "odd", "description.encoding.codecs.1: "),
        ("description.encoding.schema.variables.1.levels", ["a", "a"], "variables.1: 'b': its levels must differ"),
        ("description.encoding.codecs", [{}], "description.encoding: expected 4 codecs"),
        ("card", [], "card: expected an object"),
    ],
)
def test_the_field_is_named(small: bytes, path: str, value: Any, problem: str) -> None:
    assert problem in refusal(crafted(small, setting(path, value)))


def test_a_head_of_levels_is_not_for_numbers(small: bytes) -> None:
    with (FILES / "table_neural.anyorder").open("rb") as file:
        data = file.read()
    head = {"name": "categorical", "levels": 4}
    assert "description.heads.0: a head of 4 levels" in refusal(
        crafted(data, setting("description.heads.0.head", head))
    )


def test_an_energy_head_cannot_ask_for_any_number_of_draws() -> None:
    data = (FILES / "table_neural.anyorder").read_bytes()
    head = {"name": "energy", "evaluation_draws": 10**12}
    assert "description.heads.0: an energy head takes" in refusal(
        crafted(data, setting("description.heads.0.head", head))
    )


@pytest.mark.parametrize(
    "entry, value",
    [
        ("x", [0.0, 0.0]),
        ("x", [1.0, 0.0]),
        ("x", [-1.7e308, 1.7e308]),
        ("z", [1.0, 0.0]),
        ("slope", [0.0, 1.0]),
        ("slope", [1.0]),
        ("slope", "ab"),
        ("knots", [1.0]),
    ],
)
def test_a_warp_must_rise(entry: str, value: Any) -> None:
    model = gaussian_model(np.zeros(2), np.eye(2))
    data = model_to_bytes(model, {})
    assert "description.encoding.codecs.0: " in refusal(
        crafted(data, setting(f"description.encoding.codecs.0.warp.{entry}", value))
    )


def test_a_time_must_have_a_form_that_times_have() -> None:
    data = (FILES / "table_trees.anyorder").read_bytes()
    _, header = from_bytes(data)
    variables = header["description"]["encoding"]["schema"]["variables"]
    number = [variable["kind"] for variable in variables].index("datetime")
    path = f"description.encoding.schema.variables.{number}"
    spoilt = crafted(data, setting(f"{path}.dtype", "float64"))
    assert f"description.encoding.codecs.{number}: " in refusal(spoilt)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_weights_must_be_finite(small: bytes, number: float) -> None:
    def spoil(header: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
        tensors["network.leave.bias"][3] = number

    assert "tensors: the tensor 'network.leave.bias' holds a number that is not finite" in refusal(
        crafted(small, spoil)
    )


@pytest.mark.parametrize("number", [2e9, -3e38])
def test_weights_with_which_sums_overflow_are_refused(small: bytes, number: float) -> None:
    def enlarge(header: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
        tensors["network.leave.bias"][3] = number

    assert "tensors: the tensor 'network.leave.bias' holds a weight beyond 1e+09" in refusal(crafted(small, enlarge))


def test_weights_that_are_merely_large_are_read(small: bytes) -> None:
    def enlarge(header: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
        tensors["network.leave.bias"][:] = -9e8

    model, _ = model_from_bytes(crafted(small, enlarge))
    assert bool((model.network.leave.bias < -8e8).all())


def test_tensors_of_another_dtype_are_refused(small: bytes) -> None:
    def widen(header: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
        tensors["network.leave.bias"] = tensors["network.leave.bias"].double()

    assert "is (11,) of float64, and the description asks for (11,) of float32" in refusal(crafted(small, widen))


def test_faults_stay_attached(small: bytes) -> None:
    with pytest.raises(UserError) as error:
        model_from_bytes(crafted(small, setting("description.encoding", 3)))
    assert isinstance(error.value.__cause__, TypeError)


# Sizes: a few words must not take memory or time that the file does not have. Tried in a process that may take neither.

SIZES: dict[str, list[tuple[str, Any]]] = {
    "residual_mlp": [
        ("network.width", 30_000),
        ("network.width", 10**12),
        ("network.blocks", 1_000_000),
        ("network.expert", True),
        ("heads.0.variables", 10**12),
    ],
    "causal_transformer": [
        ("network.width", 30_000),
        ("network.blocks", 1_000_000),
        ("network.heads", 10**12),
        ("network.positions", "learned"),
    ],
    "sfarm_mlp": [("network.layers", 10**9), ("network.layers", 10**15), ("network.time", 10**12)],
    "unet": [
        ("network.channels", 40_000),
        ("network.channels", 4 * 10**12 + 4),
        ("network.levels", 10**10),
        ("network.blocks", 10**6),
        ("network.patch", 10**9),
        ("network.modes", 10**9),
        ("network.entry", 4 * 10**9),
        ("encoding.schema.grid", [10**6, 10**6]),
        ("encoding.schema.grid", [512, 513]),
        ("encoding.schema.grid", [1] * 100_000),
        ("heads.0.head", {"name": "gaussian_mixture", "components": 10**9}),
        ("heads.0.head", {"name": "categorical", "levels": 10**12}),
        ("heads.0.head", {"name": "energy", "hidden": 10**6}),
        ("heads.0.head", {"name": "energy", "latent": 10**9}),
        ("heads.0.head", {"name": "ace_energy", "hidden": 10**6}),
        ("heads.0.head", {"name": "ace_energy", "blocks": 64, "hidden": 10**5}),
    ],
}

CHILD = """
import json, resource, sys
import anyorder
from pathlib import Path
taken = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize")) * 1024
resource.setrlimit(resource.RLIMIT_AS, (taken + 1_200_000_000,) * 2)
resource.setrlimit(resource.RLIMIT_CPU, (100, 100))
from anyorder.errors import UserError
from anyorder.model.checkpoint import load_model
said = {}
for path in sorted(Path(sys.argv[1]).iterdir()):
    try:
        load_model(path)
        said[path.name] = "loaded"
    except UserError as error:
        said[path.name] = str(error)
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def said_of_sizes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("sizes")
    for name, changes in SIZES.items():
        if name == "unet":
            data = (FILES / "pictures_few_levels.anyorder").read_bytes()
            model, card = model_from_bytes(data)
            data = model_to_bytes(model, card)  # in version 2, where the pixel is there once
        else:
            network = {"residual_mlp": MLP, "causal_transformer": TRANSFORMER, "sfarm_mlp": PERCEPTRON}[name]
            data = model_to_bytes(categorical_model(network, steps=1), {})
        for number, (path, value) in enumerate(changes):
            (folder / f"{name} {number}").write_bytes(crafted(data, setting(f"description.{path}", value)))
    run = subprocess.run([sys.executable, "-c", CHILD, str(folder)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    found: dict[str, str] = json.loads(run.stdout)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
@pytest.mark.parametrize("name, number", [(name, n) for name, cases in SIZES.items() for n in range(len(cases))])
def test_no_size_is_taken_at_its_word(said_of_sizes: dict[str, str], name: str, number: int) -> None:
    said = said_of_sizes[f"{name} {number}"]
    assert "cannot be read: description" in said or "cannot be read: tensors: " in said
    assert "more memory than there is" not in said


# The card.


@pytest.mark.parametrize(
    "name, path, value, problem",
    [
        ("text", "card.modality", ["text"], "the modality"),
        ("text", "card.modality", "images", "not a model of pictures"),
        ("text", "card.scores", 3, "card.scores: expected an object"),
        ("text", "card.alphabet", "abc", "card.alphabet: "),
        ("text", "card.alphabet", {"unit": "bytes"}, "card.alphabet: the entry 'symbols' is missing"),
        ("text", "card.alphabet.symbols", "abc", "card.alphabet: its symbols are not the levels"),
        ("text", "card.alphabet.unit", "words", "card.alphabet: "),
        ("pictures_few_levels", "card.modality", "text", "card.alphabet: "),
        ("pictures_few_levels", "card.pictures", None, "card.pictures: "),
        (
            "pictures_few_levels",
            "card.pictures.levels",
            64,
            "card.pictures: levels: a pixel of this model has 4, got 64",
        ),
        ("pictures_few_levels", "card.pictures.modes", [1], "card.pictures: modes: "),
        ("table_neural", "card.training", [], "card.training: expected an object"),
    ],
)
def test_the_card_is_checked(tmp_path: Path, name: str, path: str, value: Any, problem: str) -> None:
    made = tmp_path / "m.anyorder"
    made.write_bytes(crafted((FILES / f"{name}.anyorder").read_bytes(), setting(path, value)))
    load_model(made)  # the core has nothing to do with it
    with pytest.raises(UserError, match=problem) as error:
        ao.load(made)
    assert str(made) in str(error.value)
