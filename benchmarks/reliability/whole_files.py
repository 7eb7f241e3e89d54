"""Small files of every kind that anyorder reads, and what is asked of each: the whole ones that an attack damages."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import struct
import warnings
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import anyorder as ao
from anyorder.cli.configuration import read_configuration, read_toml
from anyorder.cli.pictures import read_pictures
from anyorder.data.files import read_table, write_table
from anyorder.data.images import read_idx
from anyorder.data.tables import prepare
from anyorder.data.text import read_corpus
from anyorder.heads import Categorical
from anyorder.masking import Cardinality, Conditional
from anyorder.modalities.images.options import ImageOptions
from anyorder.modalities.tables.options import TableOptions
from anyorder.modalities.texts.options import TextOptions
from anyorder.model import AnyOrderModel
from anyorder.protocols import Canonical
from anyorder.tasks.acquisition.interview import Interview, Setup, resumed
from anyorder.training.curves import JsonLines
from anyorder.training.loop import Trainer
from anyorder.training.objectives import objective_for
from anyorder.training.options import Options
from anyorder.training.rows import encoded_rows
from anyorder.variables.encoding import Encoding

from whole_models import CHAIN, CORPUS, MLP, MODELS, ask_model, pictures, plain, table

RELEASED = Path(__file__).resolve().parents[2] / "tests" / "files" / "v1"


@dataclass(frozen=True)
class Kind:
    """One whole file: how to write it, and how a file in its place is opened and asked.

    ``family`` is the row of the figures; ``sealed``: a checksum protects all of it, so that damage must be noticed.
    ``form`` says what can be crafted: ``tensors``, ``coded`` (compressed), ``json``, ``lines``, ``toml`` or how the
    format is called.
    """

    family: str
    name: str
    file: str
    form: str
    write: Callable[[Path], None]
    ask: Callable[[Path, Path], Any]
    sealed: bool = False


# ---- what training leaves behind


@cache
def small_rows() -> tuple[Encoding, Any]:
    schema, frame = prepare(table()[["half", "flag", "grade"]])
    encoding = Encoding.fit(frame, schema, "standard")
    return encoding, encoded_rows(encoding, frame)


def trainer(network: Mapping[str, Any], checkpoint: Path | None = None) -> Trainer:
    """A run of eight steps."""
    encoding, rows = small_rows()
    heads = [Categorical(len(variable.levels)) for variable in encoding.schema.variables]
    model = AnyOrderModel.build(encoding, heads, dict(network), Canonical(), seed=0)
    options = Options(minutes=None, steps=8, batch=8, validate_every=2, validation_queries=8, checkpoint_every=1e9)
    halves = rows.take(torch.arange(40)), rows.take(torch.arange(40, 60))
    objective = objective_for(model, Conditional(Cardinality(least=0, spare=1)))
    return Trainer(model, objective, *halves, options, seed=0, checkpoint=checkpoint)


def half_trained(path: Path, network: Mapping[str, Any]) -> None:
    """The checkpoint of a run that was stopped half-way."""
    run = trainer(network)
    run.run(share=0.5)
    run.progress.seconds = 1.0
    run.save(path)


def go_on(path: Path, folder: Path, network: Mapping[str, Any]) -> Any:
    """The rest of the run, and what the model then says."""
    run = trainer(network, path)
    run.take_up(resume=True)
    run.checkpoint = None
    run.run()
    model = run.finish()
    _, rows = small_rows()
    known = torch.zeros_like(rows.observed)
    known[:, 0] = rows.observed[:, 0]
    with torch.no_grad():
        return plain(model.log_prob_beside(rows.values[:4], known[:4])[:, 1:])


def write_curve(path: Path) -> None:
    """The training curve of two runs."""
    curve = JsonLines(path)
    for step in range(0, 60, 10):
        for run in ("standard", "normal_scores"):
            curve.point(run, step, {"seconds": step / 10, "train": -1.5, "validation": -1.6, "learning_rate": 1e-3})


def go_on_with_curve(path: Path, _: Path) -> Any:
    """What a resumed run leaves of the curve, and another point."""
    curve = JsonLines(path)
    curve.forget("standard", 20)
    curve.point("standard", 30, {"train": -1.0})
    lines = path.read_text(encoding="utf-8").splitlines()
    return [json.dumps(json.loads(line)) for line in lines]


# ---- files that belong to a model


def interviewed(path: Path) -> None:
    """A transcript of three turns."""
    costs = {"rain": 2.0, "kind": 1.0, "flag": 1.5, "grade": 1.0}
    setup = Setup(about=("size",), candidates=tuple(costs), costs=costs, budget=9.0)
    session = Interview(_table_model(path.parent).core, setup, draws=8)
    session.tell({"grade": "b"})
    session.answer("kind", {"kind": "birch"})
    session.skip("rain")
    session.save(path)


def interview_again(path: Path, folder: Path) -> Any:
    """The next question and the posterior of a resumed interview."""
    session = resumed(path, _table_model(folder).core, Setup(), draws=8)
    question = session.next()
    return plain([question.best, question.stop, session.left, [a.mean() for a in session.posterior().values()]])


def compressed_table(path: Path) -> None:
    path.write_bytes(_table_model(path.parent).compress(table(12, seed=4)))


def compressed_text(path: Path) -> None:
    path.write_bytes(_text_model(path.parent).compress("the quick brown füx sees. " * 2))


def decompressed_table(path: Path, folder: Path) -> Any:
    return plain(_table_model(folder).decompress(path.read_bytes()))


def decompressed_text(path: Path, folder: Path) -> Any:
    return _text_model(folder).decompress(path.read_bytes())


@cache
def _table_model(folder: Path) -> Any:
    return ao.load(folder / "table_neural.anyorder")


@cache
def _text_model(folder: Path) -> Any:
    return ao.load(folder / "text_chain.anyorder")


# ---- options and data

TOML = """\
minutes = 0.5
seed = 3
missing = ["?", "-999"]
drop = ["id"]
missingness = "joint"
device = "cpu"
components = 4
encoding = "normal_scores"
engine = "auto"
trial = 0.3

[kinds]
zip = "categorical"

[bounds]
share = [0.0, 1.0]

[network]
name = "residual_mlp"
width = 32
blocks = 2
dropout = 0.1

[protocol]
name = "hashed"
seed = 4

[heads.continuous]
name = "spline"
bins = 8

[masking]
name = "cardinality"
least = 0

[trees]
bins = 8
rounds = 5

[training]
steps = 20
batch = 32
learning_rate = 0.001
"""
PRESET_TOML = """\
preset = "tiny"
validation_share = 0.1

[network]
name = "{network}"

[training]
minutes = 0.5
threads = 1
average = 0.99
"""


def ask_configuration(path: Path, _: Path) -> Any:
    arguments, options = read_configuration(path)
    return plain([arguments, TableOptions.read(options).to_json()])


def ask_preset(path: Path, _: Path, options: Any) -> Any:
    return plain(options.read(read_toml(path)).to_json())


def ask_table_file(path: Path, _: Path) -> Any:
    """The table as it is read, and what its columns are taken for."""
    frame = read_table(path)
    schema, _ = prepare(frame)
    return [json.dumps(schema.to_json()), _hash(frame.to_csv(index=False).encode())]


def ask_picture(path: Path, _: Path) -> Any:
    array = read_pictures(path, levels=None)
    return [list(array.shape), str(array.dtype), _hash(np.ascontiguousarray(array).tobytes())]


def ask_pictures(path: Path, _: Path) -> Any:
    """An array of pictures, as fitting reads it."""
    from anyorder.data.images import check_pictures

    array, levels = check_pictures(read_pictures(path, levels=None))
    return [list(array.shape), levels, _hash(array.tobytes())]


def ask_corpus(path: Path, _: Path) -> Any:
    return _hash(read_corpus(path).encode("utf-8", "surrogatepass"))


def ask_idx(path: Path, _: Path) -> Any:
    array = read_idx(path)
    return [list(array.shape), _hash(array.tobytes())]


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _picture(path: Path, mode: str, **more: Any) -> None:
    from PIL import Image

    shape = (16, 12) if mode in ("L", "I;16", "1") else (16, 12, len(mode))
    kind = np.uint16 if mode == "I;16" else np.uint8
    pixels = np.random.default_rng(3).integers(0, 2 if mode == "1" else 200, shape).astype(kind)
    Image.fromarray(pixels if mode != "1" else pixels.astype(bool)).save(path, **more)


def _npz(path: Path) -> None:
    np.savez_compressed(path, pictures=pictures(8), labels=np.arange(12))


def _zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("corpus.txt"), CORPUS, zipfile.ZIP_DEFLATED)


def _bytes(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _frame(path: Path) -> None:
    ao_table = table(30)
    if path.suffix == ".parquet":
        ao_table.to_parquet(path)
    else:
        gz: Any = {"method": "gzip", "mtime": 0} if path.suffix == ".gz" else None
        ao_table.to_csv(path, index=False, compression=gz, sep="\t" if ".tsv" in path.name else ",")


def _our_parquet(path: Path) -> None:
    write_table(table(300), path)


IDX = struct.pack(">HBB3I", 0, 8, 3, 12, 4, 4) + bytes(range(192))


def _copied(path: Path, source: Path) -> None:
    path.write_bytes(source.read_bytes())


def kinds() -> dict[str, Kind]:
    """Every kind of file by its name, in the order in which they must be written."""
    out = [
        Kind(f"model of a {family}" if family != "pictures" else "model of pictures", name, f"{name}.anyorder",
             "tensors", write, ask_model, sealed=True)
        for family, name, write in MODELS
    ]  # fmt: skip
    for source in sorted(RELEASED.glob("*.anyorder")):
        copy = partial(_copied, source=source)
        out.append(Kind("model, version 1", f"v1_{source.stem}", f"v1_{source.name}", "tensors", copy, ask_model, True))
    for name, network in (("checkpoint_mlp", MLP | {"dropout": 0.2}), ("checkpoint_chain", CHAIN)):
        write, ask = partial(half_trained, network=network), partial(go_on, network=network)
        out.append(Kind("checkpoint", name, f"{name}.safetensors", "tensors", write, ask, sealed=True))
    out += [
        Kind("compressed", "compressed_table", "table.aor", "coded", compressed_table, decompressed_table, sealed=True),
        Kind("compressed", "compressed_text", "text.aot", "coded", compressed_text, decompressed_text, sealed=True),
        Kind("transcript", "transcript", "interview.json", "json", interviewed, interview_again),
        Kind("training log", "log", "curve.jsonl", "lines", write_curve, go_on_with_curve),
        Kind("configuration", "toml_table", "table.toml", "toml", partial(_bytes, content=TOML.encode()),
             ask_configuration),
    ]  # fmt: skip
    for name, options, network in (("text", TextOptions, "causal_transformer"), ("pictures", ImageOptions, "unet")):
        content = PRESET_TOML.format(network=network).encode()
        ask = partial(ask_preset, options=options)
        out.append(Kind("configuration", f"toml_{name}", f"{name}.toml", "toml", partial(_bytes, content=content), ask))
    out.append(Kind("table", "table_ours", "ours.parquet", "our parquet", _our_parquet, ask_table_file))
    out += [Kind("table", f"table_{name}", f"table.{name}", form, _frame, ask_table_file, sealed=form == "gzip")
            for name, form in (("csv", "csv"), ("tsv", "csv"), ("csv.gz", "gzip"), ("parquet", "parquet"))]  # fmt: skip
    for name, mode, more in (
        ("grey.png", "L", {}),
        ("colour.png", "RGBA", {}),
        ("deep.png", "I;16", {}),
        ("picture.tiff", "RGB", {"compression": "tiff_lzw"}),
        ("plain.tiff", "L", {}),
        ("picture.jpg", "RGB", {}),
        ("picture.bmp", "RGB", {}),
        ("picture.gif", "L", {}),
        ("picture.webp", "RGB", {"lossless": True}),
        ("picture.ppm", "RGB", {}),
    ):
        form = "png" if name.endswith("png") else "ppm" if name.endswith("ppm") else "picture"
        out.append(
            Kind("picture", name.replace(".", "_"), name, form, partial(_picture, mode=mode, **more), ask_picture)
        )
    out += [
        Kind("array", "npy", "pictures.npy", "npy", lambda path: np.save(path, pictures(8)), ask_pictures),
        Kind("array", "npz", "pictures.npz", "zip", _npz, ask_pictures, sealed=True),
        Kind("array", "idx", "pictures-idx3.gz", "gzip", partial(_bytes, content=gzip.compress(IDX, mtime=0)), ask_idx,
             sealed=True),
        Kind("corpus", "corpus_txt", "corpus.txt", "text", partial(_bytes, content=CORPUS.encode()), ask_corpus),
        Kind("corpus", "corpus_xz", "corpus.xz", "xz", partial(_bytes, content=lzma.compress(CORPUS.encode())),
             ask_corpus, sealed=True),
        Kind("corpus", "corpus_zip", "corpus.zip", "zip", _zip, ask_corpus, sealed=True),
    ]  # fmt: skip
    return {kind.name: kind for kind in out}


def write_all(folder: Path, names: list[str] | None = None) -> None:
    """The whole files, and beside each its answers."""
    found = kinds()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in found if names is None else names:
            kind = found[name]
            path = folder / kind.file
            kind.write(path)
            again = folder / "asked" / kind.file
            again.parent.mkdir(exist_ok=True)
            again.write_bytes(path.read_bytes())  # a log is changed by asking
            answers = json.dumps(kind.ask(again, folder), sort_keys=True)
            (folder / f"{name}.answers").write_text(answers, encoding="utf-8")
