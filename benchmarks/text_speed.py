"""Speed of models of texts: exact likelihoods, sampling with and without a cache, speculative sampling, filling.

    python benchmarks/text_speed.py --model MODEL --json benchmarks/results/text_speed.json    (about ten minutes)

Strings of 250 characters over 27 symbols. Likelihood: the causal transformer in one pass; the bidirectional one of the
same size unrolled, a pass for every character that is asked; and MAC's way, a pass over the whole batch for each of
the 250 positions whether a row asks for it or not. Sampling: with the cache, and by running all that is known anew for
every character. These do not depend on the weights. How many calls speculative sampling takes does: it wants a trained
``--model``. Everything of one table is timed in one process, best of a few runs.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

import anyorder as ao
from anyorder.data.text import Alphabet, Windows, text8
from anyorder.masking import Cardinality
from anyorder.modalities.texts.core import codes_of, text_masking, text_model
from anyorder.modalities.texts.model import TextModel
from anyorder.modalities.texts.options import TextOptions
from anyorder.model import AnyOrderModel
from anyorder.model.speculative import speculate
from anyorder.networks import CausalTransformer
from anyorder.protocols import Canonical
from anyorder.query import Chain, Query
from anyorder.training.objectives import objective_for

import smoke_data
from common import Json, Record, Smoke, best_of, print_rows

TIMES = ("networks", "model", "training")
LENGTH = 250
ALPHABET = Alphabet(" abcdefghijklmnopqrstuvwxyz")
THREADS = 2


def build(name: str, preset: str = "small", length: int = LENGTH) -> AnyOrderModel:
    network = TextOptions(preset=preset, network={"name": name}).described_network()
    return text_model(ALPHABET, length, network, Canonical(), seed=0).eval()


def parameters(model: AnyOrderModel) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@torch.no_grad()
def loop_over_all(model: AnyOrderModel, values: torch.Tensor, chain: Chain) -> torch.Tensor:
    """MAC's way: one pass for every position, of the whole batch, whichever rows ask for it."""
    total = torch.zeros(len(values))
    known = chain.evidence
    for place in range(model.variables):
        asked = (chain.order == place).any(dim=1)
        nats = model.log_prob_beside(values, known)[:, place]
        total += nats.where(asked, 0.0)
        known = known.clone()
        known[:, place] |= asked
    return total


@torch.no_grad()
def likelihoods(strings: int, runs: int, length: int, preset: str) -> list[dict[str, Any]]:
    """Seconds for the joint and for marginals (M_card) of the same strings."""
    chain_model, mask_model = (build(f"{kind}_transformer", preset, length) for kind in ("causal", "bidirectional"))
    generator = torch.Generator().manual_seed(0)
    values = torch.randint(27, (strings, length), generator=generator).float()
    queries = {
        "joint": Query.marginal(torch.ones(strings, length, dtype=torch.bool)),
        "marginal": Cardinality().draw(strings, length, generator),
    }
    ways = {
        "chain network, one pass": (chain_model, lambda c: chain_model.step_log_prob(values[: c.batch], c)),
        "mask network, unrolled": (mask_model, lambda c: mask_model.step_log_prob(values[: c.batch], c)),
        "mask network, MAC's loop": (mask_model, lambda c: loop_over_all(mask_model, values[: c.batch], c)),
    }
    rows = []
    for way, (model, work) in ways.items():
        row: dict[str, Any] = {"likelihood": way, "parameters": parameters(model)}
        for name, query in queries.items():
            chain = Canonical().chain(query)
            work(Canonical().chain(query.rows(slice(1))))  # warm
            row[f"{name}, s"] = best_of(runs, lambda work=work, chain=chain: work(chain))
        rows.append(row)
    for row in rows:
        for name in queries:
            row[f"{name}, times slower"] = round(row[f"{name}, s"] / rows[0][f"{name}, s"], 1)
            row[f"{name}, s"] = round(row[f"{name}, s"], 4)
    # Both ways of the mask network must give the same numbers, or one of them is not what it is called.
    few = Canonical().chain(queries["marginal"].rows(slice(2)))
    unrolled = mask_model.step_log_prob(values[:2], few).sum(dim=1)
    torch.testing.assert_close(loop_over_all(mask_model, values[:2], few), unrolled, rtol=1e-3, atol=1e-2)
    return rows


@torch.no_grad()
def without_cache(model: AnyOrderModel, values: torch.Tensor, chain: Chain, generator: torch.Generator) -> None:
    """One character at a time, all that is known run anew each time."""
    for step in range(chain.steps):
        part = Chain(chain.order[:, :step], chain.order[:, step : step + 1], model.variables)
        features = model.network.along(values, part)[:, 0]
        target = chain.order[:, step]
        drawn = model.heads.sample_at(features, target, generator)
        values = values.index_put((torch.arange(len(values)), target), drawn)


@torch.no_grad()
def sampling(model: AnyOrderModel, batch: int, runs: int) -> list[dict[str, Any]]:
    """Seconds and network calls for whole strings, ``batch`` side by side."""
    length = model.variables
    chain = Canonical().chain(Query.marginal(torch.ones(batch, length, dtype=torch.bool)))
    values, generator = torch.zeros(batch, length), torch.Generator().manual_seed(0)
    count = batch * length
    rows = []
    seconds = best_of(runs, lambda: without_cache(model, values, chain, generator))
    rows.append({"sampling": "without a cache", "calls per character": 1.0, "s": seconds})
    seconds = best_of(runs, lambda: model.draw(values, chain, generator))
    rows.append({"sampling": "with the cache", "calls per character": 1.0, "s": seconds})
    for drafts in (1, 2, 4, 8):
        calls, times = [], []
        for _ in range(runs):
            began = time.perf_counter()
            found = speculate(model, values, chain, generator, drafts=drafts)
            times.append(time.perf_counter() - began)
            calls.append(float(found.calls.sum() / found.drawn.sum()))
        name = f"speculative, {drafts} draft{'s' * (drafts > 1)}"
        rows.append({"sampling": name, "calls per character": sum(calls) / runs, "s": min(times)})
    for row in rows:
        row["strings side by side"] = batch
        row["characters a second"] = round(count / row["s"])
        row["times the cache's speed"] = round(rows[1]["s"] / row["s"], 2)
        row["calls per character"] = round(row["calls per character"], 3)
    return [{name: value for name, value in row.items() if name != "s"} for row in rows]


def filling(model: TextModel, text: str, runs: int) -> dict[str, Any]:
    """One string with 30 % holes, and speculation where context lies on both sides."""
    holes = torch.rand(len(text), generator=torch.Generator().manual_seed(0)) < 0.3
    asked = "".join("_" if hole else character for hole, character in zip(holes.tolist(), text, strict=True))
    known = (~holes)[None]
    values = Windows(codes_of(model.alphabet, text), len(text)).apart()
    chain = model.core.chain(Query(known, ~known))
    found = [speculate(model.core, values, chain, torch.Generator().manual_seed(run), drafts=4) for run in range(runs)]
    calls = sum(float(one.calls.sum() / one.drawn.sum()) for one in found) / runs
    return {
        "holes": int(holes.sum()),
        "greedy fill, s": round(best_of(runs, lambda: model.fill(asked)), 3),
        "20 joint draws, s": round(best_of(runs, lambda: model.fill(asked, draws=20)), 3),
        "speculative, 4 drafts: calls per hole": round(calls, 3),
    }


def training_step(model: AnyOrderModel, values: torch.Tensor) -> None:
    """Forward and backward over the library's own mixture of questions."""
    objective = objective_for(model, text_masking(ALPHABET, model.network))
    seen, generator = torch.ones(values.shape, dtype=torch.bool), torch.Generator().manual_seed(0)
    (-objective.scores(model, values, seen, torch.zeros_like(values), generator).mean()).backward()


def presets(names: Sequence[str], length: int) -> list[dict[str, Any]]:
    """Parameters and characters a second of every preset: trained on, scored, drawn one string at a time."""
    rows = []
    for preset in names:
        model = build("causal_transformer", preset, length)
        batch = 1 if preset == "mac" else 8
        values = torch.randint(27, (batch, length), generator=torch.Generator().manual_seed(0)).float()
        everything = torch.ones(values.shape, dtype=torch.bool)
        chain = Canonical().chain(Query.marginal(everything))
        with torch.no_grad():
            scored = best_of(3, lambda model=model, values=values, chain=chain: model.step_log_prob(values, chain))
            one = chain.rows(slice(1))
            drawn = best_of(1, lambda model=model, one=one: model.draw(torch.zeros(1, length), one))
        trained = best_of(3, lambda model=model, values=values: training_step(model, values))
        rows.append(
            {
                "preset": preset,
                **CausalTransformer.presets[preset],
                "parameters": parameters(model),
                "trained, characters a second": round(batch * length / trained),
                "scored, characters a second": round(batch * length / scored),
                "drawn, characters a second": round(length / drawn),
            }
        )
    return rows


def main(
    model: Annotated[Path | None, typer.Option(help="a trained model of text8, for speculation and filling")] = None,
    strings: int = 8,
    runs: int = 2,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Time everything and print the tables."""
    torch.set_num_threads(THREADS)
    record, length, preset, batches = Record(json, smoke=smoke), LENGTH, "small", (1, 16, 64)
    loaded, text = (None if model is None else ao.load(model)), ""
    if smoke:
        strings, runs, length, preset, batches = 2, 1, 12, "tiny", (1, 2)
        corpus = smoke_data.text()
        text, budget = corpus.test[:length], smoke_data.MINUTES
        loaded = ao.fit_text(corpus.training, length=length, minutes=budget, preset=preset, seed=0)
    elif loaded is not None:
        text = text8().test[:length]
    payload: dict[str, Any] = {
        "title": "Speed of models of texts",
        "about": f"Strings of {length} characters, preset `{preset}`, {THREADS} threads, all in one run; "
        f"likelihoods of {strings} strings. Speculative sampling is exact; a call of it runs several characters, so "
        "fewer calls are not always less time: the last column tells.",
        "seed": 0,
        "likelihood": likelihoods(strings, runs, length, preset),
    }
    if loaded is not None:
        assert isinstance(loaded, TextModel)
        payload["sampling"] = [row for batch in batches for row in sampling(loaded.core, batch, runs)]
        payload[f"filling one string of {length} characters, 30 % holes"] = [filling(loaded, text, runs)]
    payload["presets"] = presets(["tiny"] if smoke else list(CausalTransformer.presets), length)
    for name, rows in payload.items():
        if isinstance(rows, list):
            print(name)
            print_rows(rows, width=150)
    record.write(payload)


if __name__ == "__main__":
    typer.run(main)
