"""Networks with dependencies around them: nothing leaks, all calls agree, and limits are what the rows say."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from anyorder.errors import UserError
from anyorder.networks import networks
from anyorder.networks.dependent import Dependency, DependentNetwork
from anyorder.networks.layout import Layout
from anyorder.support.registry import describe
from anyorder.testing import check_calls_agree, check_no_leak, mixed_layout, randomised

# The variables 1 (three levels) and 4 (five levels) of the layout: 4 fixes 1, and its last level was never seen.
FIXED = {"source": 4, "target": 1, "image": [0, 1, 2, 1, -1], "forward": 0.01, "backward": 0.1}
MLP = {"name": "residual_mlp", "width": 8, "blocks": 1, "expert": False}
CAUSAL = {"name": "causal_transformer", "width": 8, "blocks": 1, "heads": 2}


def wide(touched: tuple[int, ...] = (1, 4)) -> Layout:
    inner = mixed_layout()
    sizes = tuple(
        inner.width + inner.levels[variable] if variable in touched else size
        for variable, size in enumerate(inner.sizes)
    )
    return Layout(inner.levels, sizes, inner.groups, inner.grid, members=(inner,))


def network(inner: dict[str, Any] = MLP, *dependencies: dict[str, Any]) -> DependentNetwork:
    built = DependentNetwork(wide(), {"network": inner}, dependencies or (FIXED,))  # type: ignore[arg-type]
    randomised(built, torch.Generator().manual_seed(0))
    return built


@pytest.mark.parametrize("inner", [MLP, CAUSAL], ids=lambda inner: inner["name"])
def test_the_contract_is_kept(inner: dict[str, Any]) -> None:
    check_no_leak(network(inner))
    check_calls_agree(network(inner))
    assert network(inner).reads_order is (inner is CAUSAL)


def test_limits_speak_of_the_levels_that_are_ruled_out() -> None:
    built = network()
    after = mixed_layout().width
    values = torch.tensor([[0.0, 1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0, 4.0]], dtype=torch.float64)
    known = torch.tensor([[False, False, False, False, True]] * 2)
    forward = built.beside(values, known)[:, 1, after : after + 3]
    low = math.log(0.01)
    torch.testing.assert_close(forward.float(), torch.tensor([[0.0, low, low], [0.0, 0.0, 0.0]]))
    known = torch.tensor([[False, True, False, False, False]] * 2)
    backward = built.beside(values, known)[0, 4, after : after + 5]
    low = math.log(0.1)
    torch.testing.assert_close(backward.float(), torch.tensor([low, 0.0, low, 0.0, 0.0]))
    alone = built.network.beside(values, known)
    assert torch.equal(built.beside(values, known)[:, 0, : alone.shape[-1]], alone[:, 0])


def test_the_lowest_limit_counts_not_the_product() -> None:
    again = {**FIXED, "source": 3, "image": [0, 2], "forward": 0.001}
    inner, touched = mixed_layout(), (1, 3, 4)
    built = DependentNetwork(wide(touched), {"network": MLP}, (FIXED, again)).eval()  # type: ignore[arg-type]
    values = torch.zeros(1, 5, dtype=torch.float64)
    known = torch.tensor([[False, False, False, True, True]])
    found = built.beside(values, known)[0, 1, inner.width : inner.width + 3]
    torch.testing.assert_close(found.exp().float(), torch.tensor([1.0, 0.001, 0.001]))


def test_a_description_is_read_back() -> None:
    built = network()
    again = networks.build(describe(built), layout=wide())
    assert isinstance(again, DependentNetwork) and again.dependencies == built.dependencies
    assert describe(again) == describe(built)


@pytest.mark.parametrize(
    "change",
    [
        {"source": 0},
        {"source": 9},
        {"source": 1},
        {"target": -1},
        {"target": 4.0},
        {"image": [0, 1, 2, 1]},
        {"image": [0, 1, 2, 1, 3]},
        {"image": [0, 1, 2, 1, 0.5]},
        {"image": 7},
        {"forward": 0.0},
        {"backward": math.nan},
        {"backward": "0.5"},
        {"more": 1},
    ],
    ids=str,
)
def test_a_crafted_dependency_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        networks.build(
            {"name": "dependent", "inner": {"network": MLP}, "dependencies": [{**FIXED, **change}]}, layout=wide()
        )


def test_other_sizes_and_other_parts_are_refused() -> None:
    one = Dependency.read(FIXED)
    for layout in (mixed_layout(), wide((1,)), wide((1, 3, 4))):
        with pytest.raises(UserError):
            DependentNetwork(layout, {"network": MLP}, (one,))
    for dependencies in ((), "text", 3, [7]):
        with pytest.raises(UserError):
            DependentNetwork(wide(), {"network": MLP}, dependencies)  # type: ignore[arg-type]
    with pytest.raises(UserError):
        networks.build({"name": "dependent", "inner": {"other": MLP}, "dependencies": [FIXED]}, layout=wide())
