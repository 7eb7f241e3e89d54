"""The U-Net: the contract of mask networks, sizes, modes, and the parameter counts of the papers' presets."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest
import torch

from anyorder.errors import UserError
from anyorder.heads import DiscretizedLogisticMixture
from anyorder.networks import UNet, Walk
from anyorder.networks.base import chosen
from anyorder.networks.layout import Layout
from anyorder.networks.parts.colour import coupled
from anyorder.networks.parts.unet_entry import Entry, from_separate_entries
from anyorder.networks.parts.unet_parts import FromPatches, ResidualBlock, ToPatches
from anyorder.query import Chain
from anyorder.testing import check_calls_agree, check_gradients, check_no_leak, randomised
from anyorder.variables.lattice import Lattice
from anyorder.variables.warp import Warp


def picture_layout(height: int = 4, width: int = 3, planes: int = 1, levels: int = 3) -> Layout:
    variables = height * width * planes
    grid = (height, width) if planes == 1 else (height, width, planes)
    return Layout((levels,) * variables, (max(levels, 2),) * variables, (0,) * variables, grid)


def small(layout: Layout, **options: object) -> UNet:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = UNet(layout, channels=8, blocks=1, **options)  # type: ignore[arg-type]
    return randomised(network, torch.Generator().manual_seed(1))


def colour_layout() -> Layout:
    return Layout((0,) * 18, (6,) * 18, (0,) * 18, (2, 3, 3))


CASES = {
    "coupled colour": (colour_layout(), {"coupled": 5}),
    "one level": (picture_layout(), {}),
    "two levels, odd size": (picture_layout(5, 3), {"levels": 2}),
    "attention everywhere": (picture_layout(), {"attention": "every"}),
    "no attention": (picture_layout(), {"attention": "none"}),
    "colour": (picture_layout(3, 3, planes=3), {}),
    "real values": (picture_layout(levels=0), {}),
    "modes": (picture_layout(), {"modes": 3}),
    "patches": (picture_layout(4, 4), {"patch": 2}),
    "patches of an odd size, two levels": (picture_layout(5, 7), {"patch": 2, "levels": 2}),
    "patches in coupled colour": (colour_layout(), {"coupled": 5, "patch": 2}),
    "patches in colour": (picture_layout(3, 3, planes=3), {"patch": 2}),
    "a wide entry": (picture_layout(), {"entry": 16}),
    "embedded levels": (picture_layout(), {"embedded": 3}),
    "embedded levels in colour": (picture_layout(3, 3, planes=3), {"embedded": 3, "entry": 16}),
    "embedded levels of a lattice": (picture_layout(levels=0), {"embedded": 5}),
    "embedded levels in patches of an odd size": (picture_layout(5, 3), {"embedded": 3, "patch": 2}),
    "embedded levels in coupled colour": (colour_layout(), {"coupled": 5, "embedded": 5}),
}


@pytest.mark.parametrize("case", CASES)
def test_contract(case: str) -> None:
    layout, options = CASES[case]
    network = small(layout, **options)
    check_no_leak(network, 0)
    check_calls_agree(network, 0)


@pytest.mark.parametrize(
    "case",
    ["one level", "two levels, odd size", "attention everywhere", "coupled colour", "patches", "embedded levels"],
)
def test_every_parameter_matters(case: str) -> None:
    layout, options = CASES[case]
    check_gradients(small(layout, **options))


def test_variables_lie_row_by_row_with_the_channels_of_a_pixel_beside_each_other() -> None:
    layout = picture_layout(3, 4, planes=2)
    network = small(layout).double()
    flat = torch.arange(24, dtype=torch.float64)[None]
    planes = network._planes(flat)
    assert planes[0, 1, 2, 3] == (2 * 4 + 3) * 2 + 1

    class Marked(torch.nn.Conv2d):
        """Says of every output which plane, feature, row and column it is."""

        def forward(self, pixels: torch.Tensor, size: tuple[int, ...]) -> torch.Tensor:
            plane, feature, row, column = (torch.arange(size).double() for size in (2, layout.width, 3, 4))
            marks = 1000 * plane[:, None, None, None] + 100 * feature[:, None, None] + 10 * row[:, None] + column
            return marks.flatten(0, 1)[None]

    network.leave = Marked(8, 2 * layout.width, 1).double()
    features = network.beside(flat * 0, flat >= 0)
    for row, column, plane in ((0, 0, 0), (0, 1, 1), (2, 3, 0)):
        for feature in range(layout.width):
            found = features[0, (row * 4 + column) * 2 + plane, feature]
            assert float(found) == 1000 * plane + 100 * feature + 10 * row + column


def test_patches_are_squares_of_neighbouring_pixels() -> None:
    # With weights of one and no mixing of channels, a position is the sum of its square, and gives it back.
    enter, leave = ToPatches(1, 1, 2).double(), FromPatches(1, 1, 2).double()
    for parameter in (enter.weight, leave.weight):
        torch.nn.init.ones_(parameter)
    torch.nn.init.zeros_(enter.bias)
    with torch.no_grad():
        leave.bias.copy_(torch.tensor([0.0, 0.1, 0.2, 0.3]))
    picture = torch.arange(15, dtype=torch.float64).view(1, 1, 3, 5)
    positions = enter(picture)
    assert positions[0, 0].tolist() == [[0 + 1 + 5 + 6, 2 + 3 + 7 + 8, 4 + 9], [10 + 11, 12 + 13, 14]]
    back = leave(positions, (3, 5))
    assert back.shape == picture.shape
    torch.testing.assert_close(back[0, 0, :2, 2:4], 20 + torch.tensor([[0.0, 0.1], [0.2, 0.3]], dtype=torch.float64))
    torch.testing.assert_close(back[0, 0, 2, 4], torch.tensor(14.0, dtype=torch.float64))


@pytest.mark.parametrize(("planes", "patch", "levels"), [(1, 1, 4), (3, 1, 3), (1, 2, 5), (3, 2, 2), (2, 3, 1)])
def test_the_entry_is_a_convolution_beside_embeddings_of_levels(planes: int, patch: int, levels: int) -> None:
    # Against plain loops over positions: a window one pixel wider than the square, and the vectors of its levels.
    generator = torch.Generator().manual_seed(planes + patch)
    entry = randomised(Entry(planes, 8, patch, levels).double(), generator)
    level = torch.randint(levels, (2, planes, 5, 4), generator=generator)
    known = torch.rand(level.shape, generator=generator) < 0.6
    picture = (level * (2 / max(levels - 1, 1)) - 1).double().where(known, 0.0)
    found = entry(picture, known)
    down, across = -(-5 // patch), -(-4 // patch)
    assert found.shape == (2, 8, down, across)
    both = torch.zeros(2, 2 * planes, down * patch + 2, across * patch + 2, dtype=torch.float64)
    both[:, :, 1:6, 1:5] = torch.cat([picture, known.double()], dim=1)
    rows = torch.full((2, planes, down * patch, across * patch), levels)  # unknown
    rows[:, :, :5, :4] = level.where(known, levels)
    for row, column in itertools.product(range(down), range(across)):
        window = both[:, :, row * patch : (row + 1) * patch + 2, column * patch : (column + 1) * patch + 2]
        numbers = torch.einsum("bcij,ocij->bo", window, entry.convolve.weight) + entry.convolve.bias
        square = rows[:, :, row * patch : (row + 1) * patch, column * patch : (column + 1) * patch]
        weight = entry.project.weight.unflatten(1, (planes, 2))
        vectors = torch.einsum("bpije,opeij->bo", entry.embed.weight[square], weight) + entry.project.bias
        torch.testing.assert_close(found[:, :, row, column], torch.cat([numbers, vectors], dim=1))


def test_a_wide_entry_has_more_than_the_rank_of_its_inputs() -> None:
    # Two inputs a pixel, value and mask: an entry without neighbours and embeddings could not have a rank above two.
    generator = torch.Generator().manual_seed(0)
    network = small(picture_layout(5, 5, levels=8), entry=32, embedded=8).double()
    level = torch.randint(8, (40, 1, 5, 5), generator=generator)
    known = torch.rand(level.shape, generator=generator) < 0.5
    came_in = network.enter((level / 3.5 - 1).double().where(known, 0.0), known)[:, :, 2, 2]
    assert int(torch.linalg.matrix_rank(came_in - came_in.mean(dim=0))) > 16


@pytest.mark.parametrize(("planes", "patch"), [(1, 1), (3, 1), (2, 2)])
def test_the_separate_entries_of_version_1_are_a_case_of_this_one(planes: int, patch: int) -> None:
    generator = torch.Generator().manual_seed(5)
    one, other = (randomised(ToPatches(planes, width, patch).double(), generator) for width in (6, 2))
    own = {f"enter_picture.{name}": tensor for name, tensor in one.state_dict().items()}
    own |= {f"enter_mask.{name}": tensor for name, tensor in other.state_dict().items()}
    renewed = from_separate_entries({**own, "norm.bias": torch.zeros(1)})
    assert "norm.bias" in renewed
    entry = Entry(planes, 8, patch, 1).double()
    entry.load_state_dict({name.removeprefix("enter."): renewed[name] for name in renewed if name != "norm.bias"})
    known = torch.rand(3, planes, 5, 3, generator=generator) < 0.5
    picture = torch.randn(known.shape, generator=generator, dtype=torch.float64).where(known, 0.0)
    torch.testing.assert_close(entry(picture, known), torch.cat([one(picture), other(known.double())], dim=1))


@pytest.mark.parametrize("case", ["one level", "patches of an odd size, two levels", "patches in colour"])
def test_an_untrained_network_answers_what_it_began_with(case: str) -> None:
    layout, options = CASES[case]
    network = UNet(layout, channels=8, blocks=1, **options).double()  # type: ignore[arg-type]
    variables = len(layout.levels)
    # Pixels share their head, channels have one each.
    starts = torch.randn(network.planes, layout.width, generator=torch.Generator().manual_seed(0)).double()
    starts = starts.repeat(variables // network.planes, 1)
    network.begin(starts)
    values, known = torch.zeros(2, variables, dtype=torch.float64), torch.zeros(2, variables, dtype=torch.bool)
    torch.testing.assert_close(network.beside(values, known), starts.expand(2, -1, -1))


@pytest.mark.parametrize("patch", [0, 1.5, 4])
def test_patches_that_cannot_be(patch: float) -> None:
    with pytest.raises(UserError, match="patch"):
        small(picture_layout(3, 3), patch=patch)


def test_modes_are_heard_and_none_is_the_rule() -> None:
    network = small(picture_layout(), modes=2)
    values, known = torch.zeros(3, 12, dtype=torch.float64), torch.zeros(3, 12, dtype=torch.bool)
    plain = network.beside(values, known)
    view = network.in_mode(1)
    heard = view.beside(values, known)
    each = network.staged(values, known, torch.tensor([2, 1, 0]))
    torch.testing.assert_close(each[0], plain[0])
    torch.testing.assert_close(each[1], heard[1])
    assert not torch.allclose(heard, plain)
    assert not torch.allclose(each[2], plain[2])
    torch.testing.assert_close(network.beside(values, known), plain)
    torch.testing.assert_close(network.in_mode(0).beside(values, known)[2], each[2])
    torch.testing.assert_close(view.beside(values, known), heard)
    assert network.in_mode(None) is network
    with pytest.raises(UserError, match="modes 0 to 1"):
        network.in_mode(2)
    with pytest.raises(UserError, match="no masking modes"):
        small(picture_layout()).in_mode(0)


def test_a_view_in_a_mode_shares_every_weight() -> None:
    network = small(picture_layout(), modes=2)
    view = network.in_mode(1)
    assert all(one is other for one, other in zip(network.parameters(), view.parameters(), strict=True))
    values, known = torch.zeros(3, 12, dtype=torch.float64), torch.zeros(3, 12, dtype=torch.bool)
    before = view.beside(values, known)
    with torch.no_grad():
        network.leave.bias.add_(1.0)
    torch.testing.assert_close(view.beside(values, known), before + 1.0)


def test_what_is_told_is_heard_however_large_the_pixels_become() -> None:
    # The size of the first convolution is seen by the normalisation behind it alone, and so it grows in training.
    generator = torch.Generator().manual_seed(0)
    block = randomised(ResidualBlock(8, 8, 6).double(), generator)
    pixels = torch.randn(1, 8, 5, 5, generator=generator, dtype=torch.float64)
    one, other = torch.randn(2, 1, 6, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        heard = block(pixels, one) - block(pixels, other)
        for parameter in block.first.parameters():
            parameter.mul_(1000)
        still = block(pixels, one) - block(pixels, other)
    assert float(heard.abs().max()) > 0.1
    torch.testing.assert_close(still, heard, rtol=1e-3, atol=1e-4)


def test_coupled_channels_are_one_mixture_a_pixel() -> None:
    # p(r) p(g | r) p(b | r, g) by three one-dimensional answers = the sum over components, enumerated over all colours.
    levels, count = 4, 2
    generator = torch.Generator().manual_seed(0)
    raw = torch.randn(1, 1, count * 10, generator=generator, dtype=torch.float64)
    points = torch.linspace(-1, 1, levels, dtype=torch.float64)
    lattice = Lattice(0.0, 1.0, levels, Warp.affine((levels - 1) / 2, (levels - 1) / 2))
    head = DiscretizedLogisticMixture(count, lattice).double()
    total = 0.0
    for colour in itertools.product(range(levels), repeat=3):
        values = points[list(colour)].view(1, 1, 3)
        nats = torch.zeros((), dtype=torch.float64)
        for channel in range(3):
            known = (torch.arange(3) < channel).view(1, 1, 3)
            features = coupled(raw, values, known, levels)[0, 0, channel]
            nats = nats + head(features).log_prob(values[0, 0, channel])
        direct = _by_components(raw[0, 0], values[0, 0], head, count)
        assert float(nats) == pytest.approx(direct, abs=1e-8)
        total += math.exp(float(nats))
    assert total == pytest.approx(1.0, abs=1e-8)


def test_a_channel_ahead_of_unknown_ones_has_the_mean_of_its_draws() -> None:
    levels, count = 16, 2
    generator = torch.Generator().manual_seed(3)
    raw = torch.randn(1, 1, count * 10, generator=generator, dtype=torch.float64)
    raw[..., 7 * count :] = 0.7  # the channels depend on each other strongly, and stay away from the outer levels
    raw[..., 4 * count : 7 * count] = -2.5
    raw[..., count : 4 * count] *= 0.1
    raw[..., count : 2 * count] += 0.3
    lattice = Lattice(0.0, 1.0, levels, Warp.affine((levels - 1) / 2, (levels - 1) / 2))
    head = DiscretizedLogisticMixture(count, lattice).double()
    nothing = torch.zeros(1, 1, 3, dtype=torch.bool)
    ahead = head(coupled(raw, torch.full((1, 1, 3), 0.9, dtype=torch.float64), nothing, levels)[0, 0]).mean()
    values = torch.zeros(20_000, 1, 3, dtype=torch.float64)
    for channel in range(3):
        known = (torch.arange(3) < channel).expand(len(values), 1, 3)
        features = coupled(raw.expand(len(values), -1, -1), values, known, levels)[:, 0, channel]
        values[:, 0, channel] = head(features).sample(generator)
    torch.testing.assert_close(ahead, values[:, 0].mean(dim=0), atol=0.02, rtol=0.0)


def _by_components(raw: torch.Tensor, colour: torch.Tensor, head: DiscretizedLogisticMixture, count: int) -> float:
    logits, rest = raw[:count].log_softmax(0), raw[count:].view(9, count)
    red, green = colour[0], colour[1]
    slopes = rest[6:].tanh()
    total = torch.zeros((), dtype=torch.float64)
    for k in range(count):
        means = [rest[0, k], rest[1, k] + slopes[0, k] * red, rest[2, k] + slopes[1, k] * red + slopes[2, k] * green]
        one = DiscretizedLogisticMixture(1, head.lattice).double()
        nats = logits[k]
        for channel in range(3):
            features = torch.stack([torch.zeros((), dtype=torch.float64), means[channel], rest[3 + channel, k]])
            nats = nats + one(features).log_prob(colour[channel])
        total = total + nats.exp()
    return float(total.log())


def test_a_staged_pass_is_asking_channels_one_after_the_other() -> None:
    network = small(colour_layout(), coupled=5).double()
    generator = torch.Generator().manual_seed(2)
    values = torch.randint(5, (4, 18), generator=generator).double() / 2 - 1
    known = (torch.rand(4, 6, generator=generator) < 0.5).repeat_interleave(3, dim=1)
    staged = network.staged(values, known, None)
    for channel in range(3):
        for pixel in range(6):
            place = 3 * pixel + channel
            alone = known.clone()
            alone[:, 3 * pixel : place] = True
            one = network.beside(values, alone)[:, place]
            rows = ~known[:, place]
            torch.testing.assert_close(staged[rows, place], one[rows])


def passes(network: UNet, answer: Callable[[], object]) -> int:
    """How many rows go through the trunk meanwhile."""
    rows: list[int] = []
    hook = network.trunk.register_forward_pre_hook(lambda trunk, inputs: rows.append(len(inputs[0])))
    answer()
    hook.remove()
    return sum(rows)


def colour_chain(batch: int, pixels: int, generator: torch.Generator, *, known: int = 0) -> Chain:
    """Pixels in random order, their channels in turn; the first ones are evidence."""
    order = torch.stack([torch.randperm(pixels, generator=generator) for _ in range(batch)])
    steps = (3 * order[:, :, None] + torch.arange(3)).flatten(1)
    return Chain(steps[:, : 3 * known], steps[:, 3 * known :], 3 * pixels)


def test_coupled_colour_takes_a_pass_a_pixel_and_says_what_a_pass_a_channel_says() -> None:
    network = small(colour_layout(), coupled=5, embedded=5).double()
    generator = torch.Generator().manual_seed(4)
    values = torch.randint(5, (2, 18), generator=generator).double() / 2 - 1
    for known in (0, 2):
        chain = colour_chain(2, 6, generator, known=known)
        slow = torch.stack(
            [
                chosen(network.beside(values, chain.known_before(step)), chain.order[:, step])
                for step in range(chain.steps)
            ],
            dim=1,
        )
        torch.testing.assert_close(network.along(values, chain), slow)
        assert passes(network, lambda chain=chain: network.along(values, chain)) == 2 * (6 - known)
        walk, pixel_by_pixel = network.walk(values, chain), []

        def walked(walk: Walk = walk, chain: Chain = chain, found: list[torch.Tensor] = pixel_by_pixel) -> None:
            for step in range(chain.steps):
                found.append(walk.features())
                walk.tell(values.gather(1, chain.order[:, step : step + 1])[:, 0])

        assert passes(network, walked) == 2 * (6 - known)
        torch.testing.assert_close(torch.stack(pixel_by_pixel, dim=1), slow)


def test_any_order_of_coupled_channels_is_answered_as_step_by_step() -> None:
    # Channels apart, backwards, with one known from the start: passes are shared only where nothing new is whole.
    network = small(colour_layout(), coupled=5).double()
    generator = torch.Generator().manual_seed(6)
    values = torch.randint(5, (3, 18), generator=generator).double() / 2 - 1
    order = torch.stack([torch.randperm(18, generator=generator) for _ in range(3)])
    chain = Chain(order[:, :4], order[:, 4:], 18)
    slow = [chosen(network.beside(values, chain.known_before(at)), chain.order[:, at]) for at in range(chain.steps)]
    torch.testing.assert_close(network.along(values, chain), torch.stack(slow, dim=1))


def test_a_view_that_remembers_never_gives_an_old_answer() -> None:
    network = small(colour_layout(), coupled=5, modes=2).double()
    generator = torch.Generator().manual_seed(7)
    view = network.in_mode(1).remembering()
    for _ in range(20):  # a few kinds of changes, in any order, so that many calls repeat what mattered
        values = torch.randint(2, (1, 18), generator=generator).double()
        known = torch.zeros(1, 18, dtype=torch.bool)
        known[:, : int(torch.randint(5, (1,), generator=generator))] = True
        torch.testing.assert_close(view.beside(values, known), network.in_mode(1).beside(values, known))
    assert network._last is None  # what is remembered belongs to the view
    assert small(picture_layout()).remembering()._last is None


def test_mistakes_are_named() -> None:
    with pytest.raises(UserError, match="grid of pixels"):
        UNet(Layout((2,) * 4, (1,) * 4, (0,) * 4, (4,)))
    with pytest.raises(UserError, match="multiples of 4"):
        UNet(picture_layout(), channels=6)
    for wrong in (1, -5, 2.0, (5, 5), "5", None):
        with pytest.raises(UserError, match="coupled"):
            small(colour_layout(), coupled=wrong)
    for levels, wrong in ((3, 1), (3, 4), (0, 1), (3, -2), (3, 3.0)):
        with pytest.raises(UserError, match="embedded"):
            small(picture_layout(levels=levels), embedded=wrong)
    with pytest.raises(UserError, match="halved 3 times"):
        UNet(picture_layout(), levels=4)
    with pytest.raises(UserError, match="attention"):
        UNet(picture_layout(), attention="some")
