"""Masking modes of pictures: the direct sampler against the walked chain, transitions, and the questions they ask."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from anyorder.errors import UserError
from anyorder.masking import Modes, RandomPixels, TwoStage, maskings
from anyorder.modalities.images.core import image_masking
from anyorder.support.registry import describe

HEIGHT, WIDTH, DRAWS = 3, 4, 20_000
NAMES = [
    "random_pixels",
    "left_to_right",
    "right_to_left",
    "top_down",
    "bottom_up",
    "interior_patch",
    "exterior_patch",
]


def mode(name: str, channels: int = 1) -> TwoStage:
    built = maskings.build({"name": name, "height": HEIGHT, "width": WIDTH, "channels": channels})
    assert isinstance(built, TwoStage)
    return built


def numbers(masks: torch.Tensor) -> np.ndarray:
    """Each mask as one number."""
    return (masks.long() * 2 ** torch.arange(masks.shape[1])).sum(dim=1).numpy()


def simulated(two_stage: TwoStage, draws: int, generator: torch.Generator) -> torch.Tensor:
    """The order of whole trajectories, one activation after the other."""
    region = two_stage.region(draws, generator).flatten(1)
    region = region if two_stage.together else region.repeat_interleave(two_stage.channels, dim=1)
    active, order = torch.zeros_like(region), []
    for _ in range(active.shape[1]):
        inside = region & ~active
        running = torch.where(inside.any(dim=1, keepdim=True), inside, ~active)
        chosen = torch.multinomial(running.double(), 1, generator=generator)
        active.scatter_(1, chosen, True)
        order.append(chosen[:, 0])
    return torch.stack(order, dim=1)


def walked(name: str, step: int, draws: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Masks before ``step`` and the pixel that comes next, by simulating whole trajectories."""
    order = simulated(mode(name), draws, torch.Generator().manual_seed(seed))
    active = torch.zeros(draws, HEIGHT * WIDTH, dtype=torch.bool).scatter(1, order[:, :step], True)
    return active, order[:, step]


def agree(one: np.ndarray, other: np.ndarray) -> float:
    """The p-value of two samples coming from one law; rare values are put together."""
    values = np.unique(np.concatenate([one, other]))
    counts = np.array([[np.sum(sample == value) for value in values] for sample in (one, other)])
    often = counts.sum(axis=0) >= 20
    table = np.concatenate([counts[:, often], counts[:, ~often].sum(axis=1, keepdims=True)], axis=1)
    table = table[:, table.sum(axis=0) > 0]
    return 1.0 if table.shape[1] < 2 else float(stats.chi2_contingency(table).pvalue)


@pytest.mark.parametrize("step", [0, 1, 4, 7, 11])
@pytest.mark.parametrize("name", NAMES)
def test_any_step_is_drawn_as_the_chain_reaches_it(name: str, step: int) -> None:
    active, _ = walked(name, step, DRAWS // 4, seed=1)
    steps = torch.full((DRAWS // 4,), step)
    drawn = mode(name).stage(DRAWS // 4, HEIGHT * WIDTH, torch.Generator().manual_seed(2), steps)
    assert bool((drawn.known.sum(dim=1) == step).all())
    assert agree(numbers(active), numbers(drawn.known)) > 1e-4


@pytest.mark.parametrize("name", NAMES)
def test_transitions_have_the_stated_probabilities(name: str) -> None:
    # For every pair (mask, next pixel) that the walk meets: how often, against what the direct sampler's weights say.
    step = 5
    active, following = walked(name, step, DRAWS, seed=3)
    drawn = mode(name).stage(DRAWS, HEIGHT * WIDTH, torch.Generator().manual_seed(4), torch.full((DRAWS,), step))
    weight = drawn.next.double() / drawn.next.sum(dim=1, keepdim=True)
    seen = torch.zeros(HEIGHT * WIDTH, HEIGHT * WIDTH)  # [an active pixel, the next]
    expected = torch.zeros_like(seen, dtype=torch.float64)
    for row in range(DRAWS):
        seen[active[row], following[row]] += 1
    expected = drawn.known.double().T @ weight
    error = (seen.double() - expected).abs() / (2 * expected).clamp(min=25).sqrt()
    assert float(error.max()) < 4.5
    assert float((seen / seen.sum() - expected / expected.sum()).abs().sum()) < 0.1


@pytest.mark.parametrize("name", NAMES)
def test_whole_trajectories_are_ranked_as_the_chain_walks_them(name: str) -> None:
    ranks = mode(name).ranks(DRAWS // 4, HEIGHT * WIDTH, torch.Generator().manual_seed(3))
    assert torch.equal(ranks.sort(dim=1).values, torch.arange(HEIGHT * WIDTH).expand_as(ranks))
    for step in (1, 5, 9):
        active, following = walked(name, step, DRAWS // 4, seed=4)
        assert agree(numbers(active), numbers(ranks < step)) > 1e-4
        assert agree(following.numpy(), (ranks == step).long().argmax(dim=1).numpy()) > 1e-4


def test_channels_of_a_pixel_are_walked_in_turn_or_apart() -> None:
    together = mode("top_down", channels=3).ranks(50, HEIGHT * WIDTH * 3, torch.Generator().manual_seed(0))
    pixels = together.view(50, -1, 3)
    assert bool((pixels[..., 0] % 3 == 0).all())
    assert torch.equal(pixels - pixels[..., :1], torch.arange(3).expand_as(pixels))
    apart = maskings.build({"name": "top_down", "height": 2, "width": 2, "channels": 3, "together": False})
    assert isinstance(apart, TwoStage)
    upper = apart.ranks(200, 12, torch.Generator().manual_seed(0))[:, :6]
    assert bool((upper < 6).all()) and len(upper.unique(dim=0)) > 100  # a cut of two rows is between them


def test_channels_can_be_activated_one_by_one() -> None:
    apart = maskings.build({"name": "left_to_right", "height": 2, "width": 3, "channels": 2, "together": False})
    assert isinstance(apart, TwoStage)
    order = simulated(apart, 5000, torch.Generator().manual_seed(1))
    active = torch.zeros(5000, 12, dtype=torch.bool).scatter(1, order[:, :5], True)
    drawn = apart.stage(5000, 12, torch.Generator().manual_seed(2), torch.full((5000,), 5))
    assert agree(numbers(active), numbers(drawn.known)) > 1e-4
    pixels = drawn.known.view(-1, 6, 2)
    assert bool((pixels.any(dim=2) != pixels.all(dim=2)).any())


def test_the_uniform_mode_has_each_pixel_active_in_proportion_to_the_step() -> None:
    generator = torch.Generator().manual_seed(0)
    for step in (1, 6, 11):
        known = RandomPixels(HEIGHT, WIDTH).stage(DRAWS, 12, generator, torch.full((DRAWS,), step)).known
        share = known.double().mean(dim=0)
        assert float((share - step / 12).abs().max()) < 4.5 * np.sqrt(0.25 / DRAWS)


@pytest.mark.parametrize("name", NAMES)
def test_questions_ask_for_the_second_stage(name: str) -> None:
    query = mode(name, channels=3).draw(500, HEIGHT * WIDTH * 3, torch.Generator().manual_seed(0))
    assert bool((query.evidence ^ query.asked).all())
    assert bool(query.asked.any(dim=1).all())
    pixels = query.evidence.view(500, HEIGHT, WIDTH, 3)
    assert torch.equal(pixels.any(dim=3), pixels.all(dim=3))  # channels are known together
    known = pixels[..., 0]
    # Turned so that a direction goes from left to right: the first line is known, the last is not, none follows a gap.
    turned = {
        "left_to_right": known,
        "right_to_left": known.flip(2),
        "top_down": known.transpose(1, 2),
        "bottom_up": known.flip(1).transpose(1, 2),
    }
    if name in turned:
        lines = turned[name]
        assert bool(lines[:, :, 0].all())
        assert not bool(lines[:, :, -1].any())
        assert bool((lines[:, :, :-1] >= lines[:, :, 1:]).all())
    if name in ("interior_patch", "exterior_patch"):
        patch = ~known if name == "interior_patch" else known
        height, width = patch.any(dim=2).sum(dim=1), patch.any(dim=1).sum(dim=1)
        assert torch.equal(patch.sum(dim=(1, 2)), height * width)  # a rectangle


def test_a_mixture_knows_the_mode_of_each_row() -> None:
    modes = Modes(tuple(mode(name) for name in NAMES))
    stage = modes.stage(7000, 12, torch.Generator().manual_seed(0))
    counts = torch.bincount(stage.mode, minlength=7)
    assert float((counts - 1000).abs().max()) < 150
    rows = stage.mode == NAMES.index("left_to_right")
    alone = mode("left_to_right").stage(int(rows.sum()), 12, torch.Generator().manual_seed(1))
    assert agree(numbers(stage.known[rows]), numbers(alone.known)) > 1e-4
    assert not bool((stage.known & stage.next).any())
    assert bool(stage.next.any(dim=1).all())
    weighted = Modes(modes.modes, (1.0,) + (0.0,) * 6)
    assert bool((weighted.stage(50, 12, torch.Generator().manual_seed(0)).mode == 0).all())
    assert maskings.build(describe(modes)) == modes


def test_mistakes_are_named() -> None:
    with pytest.raises(UserError, match="12 variables, not 9"):
        mode("top_down").stage(2, 9, torch.Generator())
    with pytest.raises(UserError, match="whole number"):
        RandomPixels(0, 3)
    with pytest.raises(UserError, match="one size"):
        Modes((RandomPixels(2, 2), RandomPixels(2, 3)))
    with pytest.raises(UserError, match="one or more"):
        Modes(())
    with pytest.raises(UserError, match="2 weights for 1"):
        Modes((RandomPixels(2, 2),), (1.0, 1.0))


def test_pictures_are_learned_by_seven_modes_two_thirds_of_the_time_at_random() -> None:
    masking = image_masking((HEIGHT, WIDTH))
    assert isinstance(masking, Modes)
    assert [part.name for part in masking.modes] == NAMES
    drawn = masking.stage(DRAWS, HEIGHT * WIDTH, torch.Generator().manual_seed(0)).mode
    found = torch.bincount(drawn, minlength=7) / DRAWS
    expected = torch.tensor([2 / 3, *(6 * [1 / 18])])
    assert float(((found - expected).abs() / (expected * (1 - expected) / DRAWS).sqrt()).max()) < 4.5
