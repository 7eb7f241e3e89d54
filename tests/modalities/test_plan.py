"""What a run costs: operations by hand, the same with numbers and without, and the table of the papers' presets."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from anyorder.errors import UserError
from anyorder.modalities import plan as planning
from anyorder.modalities.images.core import image_model
from anyorder.modalities.plan import PRESETS, plan
from anyorder.model import AnyOrderModel
from anyorder.protocols import Canonical
from anyorder.query import Chain
from anyorder.training.cost import cost_of
from anyorder.training.options import Options
from anyorder.training.speed import at_speed

from commands import refused, run

PAGE = Path(__file__).parents[2] / "docs" / "devices.md"
# Those of a row share their network, so that one pass tells of all of them.
ALIKE = [
    ("mac_text8", "ardm_text8"),
    ("mac_cifar10", "ardm_cifar10", "mac_imagenet32"),
    ("sfarm_mnist",),
    ("sfarm_fashion",),
    ("sfarm_cifar10",),
    ("sfarm_celeba64", "sfarm_imagenet64"),
]
A40 = planning._device("A40", "float32")
STEPS = Options(minutes=None, steps=10)


@pytest.mark.parametrize("presets", ALIKE, ids=lambda presets: presets[0])
def test_every_preset_of_the_papers_passes_and_the_page_says_what_it_costs(presets: tuple[str, ...]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    options, core, staged = planning._untrained(presets[0])
    described = core.description()
    cost = cost_of(core, options.training, staged=staged)
    for preset in presets:
        if preset != presets[0]:
            kind = type(options)
            own = kind.read({"preset": preset})
            assert (own.network, own.size) == (options.network, options.size)
            assert PRESETS[preset].shape == PRESETS[presets[0]].shape
            options = own
        found = planning.plan_of(preset, cost, options.training, "A40", A40)
        row = next(line for line in page.splitlines() if line.startswith(f"| `{preset}`"))
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        expected = [f"{found.parameters:,}", f"{found.memory / 1e9:.1f} GB", f"{found.operations_of_step:.2e}"]
        steps = f"{found.steps:,} ({found.epochs:,})"
        assert cells[2:] == [*expected, steps, found.to_text()["time"].partition(" for ")[0]]
        assert found.fits
    assert described["network"]["name"] in ("unet", "bidirectional_transformer")
    if (
        presets[0] == "mac_text8"
    ):  # a product with a matrix of weights is 2 x weights x rows, and twice that for gradients
        blocks, attention = 12 * 12 * 768**2, 12 * 2 * 2 * 250**2 * 768
        assert cost.operations == pytest.approx(3 * (2 * blocks * 250 + attention), rel=0.01)
        assert cost.convolved == 0


def test_the_table_has_all_presets() -> None:
    assert sorted(name for names in ALIKE for name in names) == sorted(PRESETS)


@pytest.mark.parametrize(
    ("network", "change"),
    [
        ({"name": "unet", "channels": 8, "blocks": 1, "attention": "every"}, {}),
        ({"name": "causal_transformer", "width": 16, "blocks": 2, "heads": 2}, {}),
        ({"name": "causal_transformer", "width": 16, "blocks": 2, "heads": 2}, {"recompute": True}),
    ],
)
def test_operations_without_numbers_are_those_with_them(network: dict[str, object], change: dict[str, bool]) -> None:
    def model() -> AnyOrderModel:
        return image_model((4, 4), 3, network, Canonical(), head="categorical", components=1, seed=0)

    options = replace(STEPS, **change)
    cost = cost_of(model(), options)
    own = model().train()
    values = torch.zeros(2, 16)
    counter = FlopCounterMode(display=False)
    with at_speed(own, options), counter, sdpa_kernel(SDPBackend.MATH):  # a CPU has its own
        if network["name"] == "unet":
            features = own.one_pass(values, torch.zeros(2, 16, dtype=torch.bool))
        else:
            order = torch.arange(16).expand(2, -1)
            features = own.network.along(values, Chain(order[:, :0], order, 16))
        own.heads.log_prob_beside(features, values).mean().backward()
    assert cost.operations == counter.get_total_flops() / 2
    assert cost.parameters == sum(weight.numel() for weight in own.parameters())
    if change:
        plain = cost_of(model(), STEPS)
        assert cost.kept < 0.6 * plain.kept and 1.1 < cost.operations / plain.operations < 1.4


def test_more_devices_take_less_time_and_share_the_rows() -> None:
    one, eight = plan("sfarm_mnist"), plan("sfarm_mnist", count=8, teraflops=2.0)
    assert one.rows_at_once == 128 and eight.rows_at_once == 16 and eight.memory < one.memory
    assert eight.operations == one.operations and eight.operations_a_second == 2e12
    sums = one.steps * 4 * one.parameters * 2 * 7 / 8 / planning.LINK
    assert eight.seconds == pytest.approx(one.operations / 16e12 + sums)
    assert one.seconds > plan("sfarm_mnist", precision="bfloat16").seconds


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "plan", "--preset", "sfarm_mnist", "--device", "cpu").out
    assert "333,769" in text and "1 x cpu" in text
    said = json.loads(run(capsys, "plan", "--preset", "sfarm_mnist", "--count", "4", "--json").out)
    assert said["parameters"] == 333_769 and said["count"] == 4 and said["days"] == said["seconds"] / 86_400
    assert "did you mean 'sfarm_mnist'" in refused(capsys, "plan", "--preset", "mnist")
    assert "did you mean 'A40'" in refused(capsys, "plan", "--preset", "sfarm_mnist", "--device", "A41")
    assert "bfloat16" in refused(capsys, "plan", "--preset", "sfarm_mnist", "--device", "T4", "--precision", "bfloat16")
    assert "precision" in refused(capsys, "plan", "--preset", "sfarm_mnist", "--precision", "int8")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a graphics processor")
def test_a_processor_that_is_not_there_and_a_speed_that_is_none() -> None:
    with pytest.raises(UserError, match="no graphics processor"):
        plan("sfarm_mnist", "cuda")
    with pytest.raises(UserError, match="teraflops"):
        plan("sfarm_mnist", teraflops=0.0)
