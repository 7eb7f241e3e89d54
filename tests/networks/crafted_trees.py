"""Model files whose trees were changed at random, with a checksum that matches: each is refused, or gives answers.

Run as ``python crafted_trees.py FILE FOLDER COUNT SEED``, since a library that fails here takes its process with it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from anyorder.errors import UserError
from anyorder.model.checkpoint import load_model, read_tensors, save_model, write_tensors
from anyorder.model.likelihood import log_probs
from anyorder.networks.parts.tree_arrays import DTYPES
from anyorder.query import Query


def changed(tensor: Tensor, generator: np.random.Generator) -> Tensor:
    """The tensor with one or several of its numbers changed in one of many ways."""
    out = tensor.numpy().copy()
    some = generator.choice(out.size, min(out.size, int(generator.choice([1, 1, 3, out.size]))), replace=False)
    kind = generator.integers(5)
    if kind == 0:  # others of the same array
        out[some] = generator.permutation(out[some])
    elif kind == 1:
        out[some] = generator.choice(out, len(some))
    elif kind == 2:  # a little more or less
        out[some] = out[some] + generator.integers(-2, 3, len(some)).astype(out.dtype)
    elif kind == 3:  # a bit flipped
        data = out.view(np.uint8)
        data[generator.integers(len(data))] ^= 1 << generator.integers(8)
    else:
        limits: Any = np.iinfo(out.dtype) if out.dtype.kind in "iu" else np.finfo(out.dtype)
        odd = [limits.min, limits.max, 0, 1] + ([np.nan, np.inf, -np.inf, 5e-324] if out.dtype.kind == "f" else [])
        out[some] = generator.choice(np.array(odd, out.dtype), len(some))
    return torch.from_numpy(out)


def attack(source: Path, folder: Path, count: int, seed: int) -> tuple[int, int]:
    """How many of so many files were refused, and how many answered."""
    generator = np.random.default_rng(seed)
    save_model(*load_model(source), folder / "whole.anyorder")
    tensors, header = read_tensors(folder / "whole.anyorder")
    names = [name for name in tensors if name.rpartition(".")[2] in DTYPES and tensors[name].numel()]
    path, refused, answered = folder / "crafted.anyorder", 0, 0
    for _ in range(count):
        name = names[generator.integers(len(names))]
        write_tensors(path, {**tensors, name: changed(tensors[name], generator)}, header)
        try:
            model = load_model(path)[0]
            values = torch.zeros(3, model.variables)
            known = torch.as_tensor(generator.random(values.shape) < 0.5)
            nats = log_probs(model, values, Query(known, ~known))
        except UserError:
            refused += 1
        else:
            assert not np.isnan(nats).any()
            answered += 1
    return refused, answered


if __name__ == "__main__":
    counts = attack(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    sys.stdout.write("{} {}\n".format(*counts))
