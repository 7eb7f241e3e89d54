"""The questions of ``test_same_bits.py``: run as a script, it prints their answers, bit for bit."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

import anyorder as ao

Answers = list[dict[str, list[str]]]


def ask_all(files: Sequence[str]) -> Answers:
    """Answers to single questions, and to rows asked together, as hexadecimal floats by model."""
    table, trees, texts, pictures = (ao.load(path) for path in files)
    one: dict[str, list[Any]] = {}
    many: dict[str, list[Any]] = {}
    for label, model in (("table", table), ("trees", trees)):
        assert isinstance(model, ao.TableModel)
        frame, known = model.sample(1, seed=5), model.given(rooms=5, river="yes")
        price = known["price"]
        one[label] = [
            *(price.mean(), *price.quantile([0.1, 0.9]), price.entropy(), known.log_prob(price=20.0)),
            *(model.prob("price > 20, river=yes | rooms=3"), *known.sample(1, seed=3)["price"]),
            *(*model.fill(frame.assign(price=None))["price"], *model.log_prob(frame)),
            *model.given(river="no")["rooms"].probs().values(),
            model.next_question({"rooms": 3}, about="price", draws=4).candidates[0].gain,
            model.given(price="10..30").using(draws=2)["river"].probs()["yes"],
        ]
        rows = model.sample(90, seed=1).assign(price=np.linspace(5.0, 40.0, 90))
        many[label] = [*model.log_prob(rows), *model.fill(rows.assign(price=None))["price"]]
    assert isinstance(texts, ao.TextModel) and isinstance(pictures, ao.ImageModel)
    phrase = "to be or not to"
    one["texts"] = [*texts.log_prob([phrase]), texts.fill("to _e or").nats, *map(ord, texts.sample(1, seed=2)[0])]
    many["texts"] = [*texts.log_prob([phrase] * 7)]
    side = pictures.sample(1, seed=4)
    one["pictures"] = [*pictures.log_prob(side), *side.ravel().tolist()]
    many["pictures"] = [*pictures.log_prob(np.repeat(side, 7, axis=0))]
    return [{name: [float(number).hex() for number in found] for name, found in part.items()} for part in (one, many)]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    assert torch.get_num_threads() == int(sys.argv[1])
    sys.stdout.write(json.dumps(ask_all(sys.argv[2:])))
