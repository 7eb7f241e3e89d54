"""Pictures: a model of them against enumeration, filling, steps, temperature, files and mistakes."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

import anyorder as ao
from anyorder.data.images import digits
from anyorder.errors import UserError
from anyorder.modalities.images.core import decoded, encoded, image_masking, image_model
from anyorder.modalities.images.model import ImageModel, Moment
from anyorder.modalities.images.plots import UNKNOWN, strip
from anyorder.modalities.images.surprise import measured_surprise
from anyorder.model.few_steps import Budget, cheapest_in_random_order
from anyorder.protocols import Canonical, Hashed, Pixelwise, Protocol, Random
from anyorder.query import Query
from anyorder.training.loop import Trainer

TINY = {"name": "unet", "channels": 8, "blocks": 1, "levels": 1}


QUICK = {"training": {"minutes": None, "steps": 6, "threads": 1, "batch": 8, "validation_queries": 8}}


def untrained(
    shape: tuple[int, ...] = (2, 2),
    levels: int = 2,
    head: str = "auto",
    protocol: Protocol | None = None,
    modes: tuple[str, ...] = (),
    **network: int,
) -> ImageModel:
    described = {**TINY, "modes": len(modes), **network}
    core = image_model(shape, levels, described, protocol or Random(), head=head, components=2, seed=0)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in core.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return ImageModel(core.eval(), {"pictures": {"levels": levels, "modes": list(modes)}})


def every(shape: tuple[int, ...], levels: int) -> np.ndarray:
    ways = list(itertools.product(range(levels), repeat=int(np.prod(shape))))
    return np.array(ways, dtype=np.uint8).reshape(-1, *shape)


@pytest.mark.parametrize(
    ("levels", "head"), [(2, "auto"), (3, "auto"), (3, "categorical"), (3, "logistic"), (4, "mixture")]
)
@pytest.mark.parametrize("protocol", [Canonical(), Random()])
def test_probabilities_of_all_pictures_add_up(levels: int, head: str, protocol: Protocol) -> None:
    # The orders are fixed before a picture is seen, so each is a law, and eq. 14 a mixture of laws.
    model = untrained((2, 2), levels, head, protocol)
    singles = np.stack([model.log_prob(every((2, 2), levels), seed=seed) for seed in range(3)])
    assert np.exp(singles).sum(axis=1) == pytest.approx(1.0, abs=1e-4)
    averaged = model.log_prob(every((2, 2), levels), orders=4)
    assert np.exp(averaged).sum() == pytest.approx(1.0, abs=1e-4)
    assert (np.ptp(singles, axis=0).max() > 0.01) == protocol.random  # the network disagrees with itself
    known = np.array([[True, False], [False, False]])
    given = every((2, 2), levels)
    for value in range(levels):
        rows = given[given[:, 0, 0] == value]
        assert np.exp(model.log_prob(rows, known=known)).sum() == pytest.approx(1.0, abs=1e-4)


def test_what_is_scored_is_the_chain_that_is_filled() -> None:
    # A hashed protocol has an order for every set: that of the question counts, not that of the whole picture.
    model = untrained((2, 2), 2, protocol=Hashed())
    picture, known = np.array([[1, 0], [0, 1]], dtype=np.uint8), np.array([[True, False], [False, False]])
    mask = torch.from_numpy(known.reshape(1, -1))
    chain = model.core.chain(Query(mask, ~mask))
    with torch.no_grad():
        expected = float(model.core.step_log_prob(encoded(model.core, picture[None]), chain).sum())
    assert model.log_prob(picture[None], known=known)[0] == pytest.approx(expected, abs=1e-6)


def test_probabilities_of_orders_are_averaged() -> None:
    # SFARM eq. 14 by hand: every step of the orders that the seed fixes, the same ones for all pictures.
    model = untrained((2, 2), 2)
    pictures, everything = every((2, 2), 2), torch.ones(1, 4, dtype=torch.bool)
    generator = torch.Generator().manual_seed(5)
    nats = []
    for _ in range(3):
        order = model.core.protocol.keys(everything, generator)[0].argsort().tolist()
        told, total = torch.zeros(len(pictures), 4, dtype=torch.bool), torch.zeros(len(pictures))
        for place in order:
            with torch.no_grad():
                total += model.core.log_prob_beside(encoded(model.core, pictures), told)[:, place]
            told[:, place] = True
        nats.append(total.double().numpy())
    found = model.log_prob(pictures, orders=3, seed=5)
    assert found == pytest.approx(np.logaddexp.reduce(nats) - math.log(3), abs=1e-5)
    assert (found > np.mean(nats, axis=0) + 1e-6).any()
    assert found[3] == pytest.approx(model.log_prob(pictures[3:4], orders=3, seed=5)[0], abs=1e-6)


@pytest.mark.parametrize("head", ["categorical", "mixture"])
def test_pixels_survive_encoding(head: str) -> None:
    model = untrained((2, 3), 256 if head == "mixture" else 30, head)
    pictures = np.random.default_rng(0).integers(0, model.levels, (20, 2, 3)).astype(np.uint8)
    assert np.array_equal(decoded(model.core, encoded(model.core, pictures)), pictures)
    values = encoded(model.core, pictures)
    if head == "mixture":
        assert values.min() >= -1
        assert values.max() <= 1


def test_fills_follow_the_model_and_keep_what_is_known() -> None:
    model = untrained((2, 2), 2)
    picture, known = np.array([[1, 0], [0, 1]]), np.array([[True, False], [True, False]])
    draws = 6000
    filled = model.fill(picture, known, draws=draws, seed=3)
    assert filled.dtype == np.uint8
    assert (filled[:, known] == picture[known]).all()
    # One call a pixel in a random order: the mean over both orders of the two unknown pixels.
    expected = np.zeros(4)
    mask = torch.from_numpy(known.reshape(1, -1))
    for first, second in ((1, 3), (3, 1)):
        for code, (one, three) in enumerate(itertools.product((0, 1), repeat=2)):
            value = torch.tensor([[1.0, one, 0.0, three]])
            with torch.no_grad():
                before = model.core.log_prob_beside(value, mask)[0, first]
                told = mask.clone()
                told[0, first] = True
                after = model.core.log_prob_beside(value, told)[0, second]
            expected[code] += 0.5 * float((before + after).exp())
    counts = np.bincount(2 * filled[:, 0, 1] + filled[:, 1, 1], minlength=4)
    assert stats.chisquare(counts, expected / expected.sum() * draws).pvalue > 1e-3
    three, five = np.int64(3), np.int64(5)  # as they come out of arrays
    again = model.fill(picture, known, draws=three, steps=three, seed=five)
    assert np.array_equal(model.fill(picture, known, draws=3, steps=3, seed=5), again)


def test_a_stack_is_filled_picture_by_picture() -> None:
    model = untrained((2, 2), 2)
    pictures = np.array([[[1, 0], [0, 1]], [[0, 0], [1, 1]]])
    masks = np.array([[[True, False], [True, True]], [[False, False], [True, False]]])
    filled = model.fill(pictures, masks, draws=4000, seed=3)
    assert filled.shape == (4000, 2, 2, 2)
    assert (filled[:, masks] == pictures[masks]).all()
    for number in range(2):
        alone = model.fill(pictures[number], masks[number], draws=4000, seed=4)
        codes = [part.reshape(4000, 4) @ np.array([1, 2, 4, 8]) for part in (filled[:, number], alone)]
        counts = np.array([np.bincount(code, minlength=16) for code in codes])
        assert stats.chi2_contingency(counts[:, counts.sum(axis=0) > 0]).pvalue > 1e-3
    assert model.fill(pictures, masks[0], draws=2).shape == (2, 2, 2, 2)


def test_one_step_draws_all_pixels_side_by_side() -> None:
    model = untrained((2, 2), 2)
    drawn = model.sample(5000, steps=1, seed=0).reshape(-1, 4)
    with torch.no_grad():
        features = model.core.one_pass(torch.zeros(1, 4), torch.zeros(1, 4, dtype=torch.bool))
        chance = model.core.heads.of(0)(features).probs()[0, :, 1].numpy()
    assert np.abs(drawn.mean(axis=0) - chance).max() < 4 * math.sqrt(0.25 / 5000)


def test_a_low_temperature_gives_the_likeliest_pixel() -> None:
    for head in ("categorical", "mixture"):
        model = untrained((2, 2), 5, head)
        cold = model.sample(200, steps=1, temperature=1e-3)
        assert len(np.unique(cold.reshape(200, -1), axis=0)) <= (1 if head == "categorical" else 32)
        assert len(np.unique(model.sample(200, steps=1).reshape(200, -1), axis=0)) > 20
    with pytest.raises(UserError, match="above 0"):
        model.sample(1, temperature=0.0)


def test_a_budget_spends_calls_where_they_cost_least() -> None:
    model = untrained((3, 3), 2)
    pictures = np.random.default_rng(0).integers(0, 2, (200, 3, 3)).astype(np.uint8)
    budget = model.budget(pictures, 4)
    assert budget.calls == 4
    assert budget.nats >= -1e-9
    assert model.budget(pictures, 9).nats == pytest.approx(0.0, abs=1e-9)
    assert model.sample(3, steps=budget).shape == (3, 3, 3)
    assert model.sample(3, steps=3, order="confidence").shape == (3, 3, 3)
    # With five pixels known, the way that the budget was measured on is five steps gone.
    known = np.arange(9).reshape(3, 3) < 5
    moments = model.trace(pictures[0], known, steps=Budget((0, 2, 6, 8), 9, 0.0))
    assert [int((~moment.known).sum()) for moment in moments] == [4, 3, 1, 0]
    with pytest.raises(UserError, match="another model"):
        model.sample(1, steps=Budget((0, 2), 4, 0.0))


def test_fewer_steps_than_pixels_begin_where_they_cost_least(tmp_path: Path) -> None:
    model = ao.fit_images(digits().training[:60], preset="tiny", config=QUICK, seed=0)
    found = model.card["pictures"]["surprise"]
    assert found["known"][0] == 0 and found["known"][-1] == 63 and found["nats"] == sorted(found["nats"], reverse=True)
    # A curve of which the end alone matters: calls come late. What is known of a picture is as much of its way.
    model.card["pictures"]["surprise"] = {"known": [0, 47, 63], "nats": [3.0, 3.0, 0.0]}
    model.save(tmp_path / "late.anyorder")
    loaded = ao.load(tmp_path / "late.anyorder")
    assert isinstance(loaded, ImageModel)
    curve = np.interp(np.arange(64), [0, 47, 63], [3.0, 3.0, 0.0])
    for rows in (0, 2):
        known = np.arange(64).reshape(8, 8) < 8 * rows
        wanted = cheapest_in_random_order(curve[8 * rows :], 6).starts
        moments = loaded.trace(digits().test[0], known, steps=6)
        assert [int(moment.known.sum()) - 8 * rows for moment in moments[:-1]] == list(wanted)
        assert wanted[1] > 40 - 8 * rows
        filled = loaded.fill(digits().test[0], known, steps=6)[0]
        assert np.array_equal(filled, moments[-1].picture)
    even_ones = loaded.trace(digits().test[0], known, steps=6, mode="top_down")
    assert [int(moment.known.sum()) for moment in even_ones[:-1]] == [16, 24, 32, 40, 48, 56]
    for odd in ({"known": [0, 70], "nats": [1.0, 0.5]}, {"known": [0, 5], "nats": [0.5, 1.0]}, {"known": []}, 5):
        loaded.card["pictures"]["surprise"] = odd
        loaded.save(tmp_path / "odd.anyorder")
        with pytest.raises(UserError, match="surprise"):
            ao.load(tmp_path / "odd.anyorder")


def test_the_surprise_of_a_pixel_is_measured_with_all_of_its_channels() -> None:
    model = untrained((2, 2, 3), 4, "mixture", Pixelwise(3), coupled=4)
    pictures = np.random.default_rng(0).integers(0, 4, (40, 2, 2, 3)).astype(np.uint8)
    known, nats = measured_surprise(model.core, pictures, 4, 0)
    assert known == [0, 1, 2, 3]
    # With nothing known, the mean over pixels of -log p(r, g, b), each pixel asked first.
    first = []
    for pixel in range(4):
        values, mask = encoded(model.core, pictures), torch.zeros(40, 12, dtype=torch.bool)
        for channel in range(3 * pixel, 3 * pixel + 3):
            with torch.no_grad():
                first.append(-model.core.log_prob_beside(values, mask)[:, channel].mean())
            mask[:, channel] = True
    assert nats[0] == pytest.approx(float(torch.stack(first).sum()) / 4, abs=1e-4)


def test_nothing_to_fill_is_no_mistake_and_what_is_unknown_may_be_anything() -> None:
    picture, known = np.array([[1.0, 0.0], [0.0, 1.0]]), np.ones((2, 2), dtype=bool)
    for model in (untrained((2, 2), 2), untrained((2, 2), 5, "mixture")):
        for steps in (None, 3):
            assert np.array_equal(model.fill(picture, known, draws=2, steps=steps), np.stack([picture, picture]))
    holed = np.array([[1.0, math.nan], [0.0, 400.0]])
    model, seen = untrained((2, 2), 2), ~np.isnan(holed) & (holed < 256)
    filled = model.fill(holed, seen, draws=2, seed=1)
    assert np.array_equal(filled, model.fill(np.where(seen, holed, 1), seen, draws=2, seed=1))
    assert (filled[:, seen] == holed[seen]).all()
    assert model.fill(picture[None, :, :, None], known).shape == (1, 1, 2, 2)


def test_fitting_saving_and_modes(tmp_path: Path) -> None:
    pictures = digits().training[:60]
    model = ao.fit_images(pictures, preset="tiny", config=QUICK, seed=0)
    assert model.modes[0] == "random_pixels"
    assert len(model.modes) == 7
    path = tmp_path / "digits.anyorder"
    model.save(path)
    again = ao.load(path)
    assert isinstance(again, ImageModel)
    known = np.zeros((8, 8), dtype=bool)
    known[:, :4] = True
    for mode in (None, "left_to_right"):
        one = model.fill(pictures[0], known, draws=2, steps=4, seed=1, mode=mode)
        other = again.fill(pictures[0], known, draws=2, steps=4, seed=1, mode=mode)
        assert np.array_equal(one, other)
        assert (one[:, known] == pictures[0][known]).all()
    assert np.array_equal(again.log_prob(pictures[:2]), model.log_prob(pictures[:2]))
    assert model.log_prob(pictures[:1], mode="top_down") != model.log_prob(pictures[:1])
    with pytest.raises(UserError, match="did you mean 'top_down'"):
        model.fill(pictures[0], known, mode="top_dawn")
    weighted = ao.fit_images(
        pictures, preset="tiny", config={**QUICK, "masking": {"name": "modes", "weights": [6, 1, 1, 1, 1, 1, 1]}}
    )
    assert weighted.modes == model.modes
    chain = ao.fit_images(
        pictures,
        config={**QUICK, "network": {"name": "causal_transformer", "positions": "rotary", "width": 16, "blocks": 1}},
        seed=0,
    )
    assert chain.fill(pictures[0], known, steps=3).shape == (1, 8, 8)


@pytest.mark.parametrize("variables", ["pixels", "channels"])
def test_colour(variables: str, tmp_path: Path) -> None:
    pictures = np.random.default_rng(0).integers(0, 256, (30, 4, 4, 3)).astype(np.uint8)
    config = {**QUICK, "variables": variables, "network": TINY, "components": 2}
    model = ao.fit_images(pictures, config=config, seed=0)
    known = np.zeros((4, 4), dtype=bool)
    known[:2] = True
    for steps in (None, 3):
        filled = model.fill(pictures[0], known, draws=2, steps=steps)
        assert filled.shape == (2, 4, 4, 3)
        assert (filled[:, known] == pictures[0][known]).all()
    nats = model.log_prob(pictures[:3], known=known, orders=2)
    assert np.isfinite(nats).all()
    assert len(model.trace(pictures[0], known, steps=2)) == (7 if variables == "pixels" else 3)
    model.save(tmp_path / "colour.anyorder")
    assert np.array_equal(ao.load(tmp_path / "colour.anyorder").log_prob(pictures[:3], known=known, orders=2), nats)
    if variables == "pixels":
        with pytest.raises(UserError, match="grey pictures"):
            model.sample(1, order="confidence")
    budget = model.budget(pictures, 3)  # of whole pixels where their channels are coupled
    assert (budget.calls, budget.steps) == (3, 16 if variables == "pixels" else 48)
    assert model.sample(2, steps=budget).shape == (2, 4, 4, 3)


# Left to right, two columns: the first is the region, whatever the cut, and pixels lie row by row.
LEFT_FIRST = [(*one, *other) for one in ((0, 2), (2, 0)) for other in ((1, 3), (3, 1))]
# An interior patch of one pixel: the three around it first.
PATCH_LAST = [(*around, inside) for inside in range(4) for around in itertools.permutations({*range(4)} - {inside})]


def along_order(model: ImageModel, mode: str, order: tuple[int, ...]) -> np.ndarray:
    """The probability of all pictures along one order in a mode, one pixel after the other."""
    core = model.core.in_mode(model.modes.index(mode))
    values = encoded(core, every((2, 2), 2))
    known, nats = torch.zeros_like(values, dtype=torch.bool), torch.zeros(len(values))
    with torch.no_grad():
        for pixel in order:
            nats = nats + core.log_prob_beside(values, known)[:, pixel]
            known[:, pixel] = True
    return nats.exp().double().numpy()


@pytest.mark.parametrize(("mode", "orders"), [("left_to_right", LEFT_FIRST), ("interior_patch", PATCH_LAST)])
def test_a_mode_is_drawn_and_scored_along_its_own_trajectories(mode: str, orders: list[tuple[int, ...]]) -> None:
    model = untrained((2, 2), 2, modes=("random_pixels", "left_to_right", "interior_patch"))
    ways = np.stack([along_order(model, mode, order) for order in orders])
    drawn = model.sample(6000, mode=mode, seed=1).reshape(-1, 4) @ np.array([8, 4, 2, 1])
    expected = ways.mean(axis=0) / ways.mean(axis=0).sum()
    assert stats.chisquare(np.bincount(drawn, minlength=16), 6000 * expected).pvalue > 1e-3
    met = set()
    for seed in range(3 * len(orders)):
        nats = model.log_prob(every((2, 2), 2), mode=mode, seed=seed)
        apart = np.abs(np.exp(nats) - ways).max(axis=1)
        assert apart.min() < 1e-5
        met.add(int(apart.argmin()))
    assert len(met) > len(orders) / 2


def test_what_is_known_stands_for_the_region_of_a_mode() -> None:
    model = untrained((2, 2), 2, modes=("random_pixels", "left_to_right"))
    pictures, known = every((2, 2), 2), np.array([[True, False], [False, False]])
    masks = np.stack([known if number % 2 else ~(known | True) for number in range(16)])
    together = model.log_prob(pictures, known=masks, mode="left_to_right", seed=3)
    # Whole pictures and others in one stack: each is scored as if it were alone.
    assert together[::2] == pytest.approx(model.log_prob(pictures[::2], mode="left_to_right", seed=3), abs=1e-5)
    alone = model.log_prob(pictures[1::2], known=known, mode="left_to_right", seed=3)
    assert together[1::2] == pytest.approx(alone, abs=1e-5)
    assert np.exp(model.log_prob(pictures[:8], known=known, mode="left_to_right")).sum() == pytest.approx(1, abs=1e-4)
    with pytest.raises(UserError, match="no masking mode of pictures"):
        ImageModel(model.core, {"pictures": {"levels": 2, "modes": ["uniform", "x"]}}).sample(1, mode="uniform")


def test_a_mode_in_coupled_colour_walks_whole_pixels() -> None:
    model = untrained((2, 2, 3), 4, "mixture", Pixelwise(3), modes=("left_to_right",), coupled=4)
    assert model.sample(3, mode="left_to_right", seed=0).shape == (3, 2, 2, 3)
    chain = model._in("left_to_right").chain(
        Query.marginal(torch.ones(9, 12, dtype=torch.bool)), torch.Generator().manual_seed(0)
    )
    pixels = chain.order.view(9, 4, 3)
    assert torch.equal(pixels % 3, torch.arange(3).expand_as(pixels))
    assert {tuple(order) for order in (pixels[..., 0] // 3).tolist()} <= set(LEFT_FIRST)


def test_colour_takes_a_network_pass_a_pixel() -> None:
    model = untrained((2, 3, 3), 4, "mixture", Pixelwise(3), coupled=4)
    pictures = np.random.default_rng(0).integers(0, 4, (5, 2, 3, 3)).astype(np.uint8)
    known = np.array([[True, False, True], [False, False, False]])
    rows: list[int] = []
    model.core.network.trunk.register_forward_pre_hook(lambda trunk, inputs: rows.append(len(inputs[0])))  # type: ignore[union-attr]
    for ask, passes in (
        (lambda: model.log_prob(pictures), 5 * 6),
        (lambda: model.log_prob(pictures, known=known, orders=2), 2 * 5 * 4),
        (lambda: model.sample(5), 5 * 6),
        (lambda: model.fill(pictures, known, steps=2), 5 * 2),
    ):
        rows.clear()
        ask()
        assert sum(rows) == passes


def test_a_strip_of_colour_shows_whole_pixels() -> None:
    # Red alone is there of the second pixel: it is not shown yet.
    picture = np.array([[[9, 8, 7], [200, 0, 0]]], dtype=np.uint8)
    known = np.array([[[True, True, True], [True, False, False]]])
    drawn = strip([Moment(picture, known, picture.astype(float))], 256, scale=1)
    assert drawn[2, 2].tolist() == [9, 8, 7]
    assert drawn[2, 3].tolist() == list(UNKNOWN)


def test_a_run_is_resumed_to_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = digits().training[:40]
    options = {"preset": "tiny", "config": QUICK, "seed": 0}
    whole = ao.fit_images(pictures, **options)  # type: ignore[arg-type]
    run = Trainer.run
    monkeypatch.setattr(Trainer, "run", lambda self, **given: run(self, share=0.5, **given))
    half = ao.fit_images(pictures, checkpoint=tmp_path / "run", **options)  # type: ignore[arg-type]
    monkeypatch.undo()
    assert half.card["training"]["steps"] == 3
    again = ao.fit_images(pictures, checkpoint=tmp_path / "run", resume=True, **options)  # type: ignore[arg-type]
    for one, other in zip(whole.core.parameters(), again.core.parameters(), strict=True):
        assert torch.equal(one, other)


def test_the_seven_modes_are_of_the_pictures_size() -> None:
    masking = image_masking((3, 5, 3))
    query = masking.draw(20, 45, torch.Generator().manual_seed(0))
    assert query.asked.shape == (20, 45)


def test_mistakes_in_questions_are_named() -> None:
    model = untrained((2, 2), 2)
    picture, known = np.zeros((2, 2)), np.zeros((2, 2), dtype=bool)
    for arguments, words in (
        ({"picture": np.zeros((3, 2))}, "shape"),
        ({"picture": np.zeros((0, 2, 2))}, "shape"),
        ({"known": np.zeros((2, 2))}, "booleans"),
        ({"known": np.zeros((3, 3), dtype=bool)}, "must have the shape"),
        ({"draws": 0}, "draws"),
        ({"steps": 0}, "1 or more"),
        ({"order": "sure"}, "unknown order"),
        ({"draws": 2.0}, "whole number"),
        ({"steps": 2.5}, "whole number"),
        ({"temperature": "0.5"}, "number above 0"),
        ({"seed": None}, "seed must be"),
        ({"mode": "top_down"}, "no masking modes"),
        ({"picture": np.full((2, 2), 200), "known": ~known}, "from 0 to 1, got some up to 200"),
        ({"picture": [np.zeros((2, 2)), np.zeros((3, 2))]}, "one size"),
    ):
        with pytest.raises(UserError, match=words):
            model.fill(**{"picture": picture, "known": known, **arguments})  # type: ignore[arg-type]
    for options, words in (
        ({"steps": Budget((0, 2), 9, 0.0)}, "another model"),
        ({"steps": 2, "temperature": -1}, "number above 0"),
        ({"steps": 2, "seed": None}, "seed must be"),
    ):
        with pytest.raises(UserError, match=words):
            model.trace(picture, known, **options)  # type: ignore[arg-type]
    for wrong in ({"orders": 2.5}, {"seed": None}):
        with pytest.raises(UserError, match="whole number"):
            model.log_prob(picture[None], **wrong)  # type: ignore[arg-type]
    assert model.fill(picture, known, temperature=np.float32(0.5)).shape == (1, 2, 2)
    with pytest.raises(UserError, match="one size"):
        ao.fit_images([np.zeros((2, 2)), np.zeros((3, 2))], config=QUICK)
    with pytest.raises(UserError, match="two pictures"):
        ao.fit_images(np.zeros((1, 4, 4), dtype=np.uint8), config=QUICK)
    with pytest.raises(UserError, match="8 levels"):
        ao.fit_images(np.full((9, 4, 4), 7, dtype=np.uint8), config={**QUICK, "head": "bernoulli"})


def test_colour_that_is_coupled_needs_an_order_and_a_head_for_it() -> None:
    pictures = np.random.default_rng(0).integers(0, 64, (8, 4, 4, 3)).astype(np.uint8)
    config = {"training": {"minutes": None, "steps": 1, "threads": 1}, "network": {"name": "unet", "channels": 8}}
    with pytest.raises(UserError, match="separates the channels"):
        ao.fit_images(pictures, levels=64, preset="tiny", config={**config, "protocol": {"name": "random"}})
    fitted = ao.fit_images(pictures, levels=64, preset="tiny", config={**config, "head": "categorical"})
    assert fitted.core.network.coupled == 0  # a head that channels cannot share takes them one by one
    assert np.isfinite(fitted.log_prob(pictures[:1])).all()


@pytest.mark.parametrize("name", ["gaussian", "boosted_trees", "blend"])
def test_networks_that_are_not_trained_are_refused(name: str) -> None:
    with pytest.raises(UserError, match="cannot be trained"):
        ao.fit_images(np.zeros((4, 4, 4), dtype=np.uint8), config={"network": {"name": name}})
