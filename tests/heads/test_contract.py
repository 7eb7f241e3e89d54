"""What a head says of itself, so that nobody outside has to ask which class it is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from anyorder.heads import (
    Bernoulli,
    Binned,
    Bounded,
    Categorical,
    Gaussian,
    GaussianMixture,
    Head,
    Ordinal,
    Spiked,
)
from anyorder.heads.bank import HeadBank, shared
from anyorder.heads.blend import Blend
from anyorder.support.registry import describe

PROBS = torch.tensor([0.7, 0.05, 0.25], dtype=torch.float64)


@pytest.mark.parametrize("head", [Bernoulli(), Categorical(3)], ids=lambda head: head.name)
def test_free_heads_can_say_any_probabilities(head: Head) -> None:
    assert head.free
    probs = PROBS[: head.levels] / PROBS[: head.levels].sum()
    logits = probs.log() if head.size == head.levels else (probs[1:] / probs[:1]).log()
    said = head(logits).log_prob(torch.arange(head.levels, dtype=torch.float64)[:, None]).exp()
    torch.testing.assert_close(said.flatten(), probs)


@pytest.mark.parametrize("head", [Ordinal(3), Gaussian(), Binned()], ids=lambda head: head.name)
def test_other_heads_are_not_free(head: Head) -> None:
    assert not head.free


def test_classes_are_levels_atoms_and_bins() -> None:
    values = torch.tensor([0.0, 1.0, -2.0, 0.1, 3.0])
    classes, count = Binned((-0.5, 0.5)).classes(values)
    assert (classes.tolist(), count) == ([1, 2, 0, 1, 2], 3)
    spiked = Spiked((0.0, 1.0), Bounded(Binned((-0.5, 0.5)), -5.0, None))
    classes, count = spiked.classes(values)
    assert (classes.tolist(), count, spiked.atom_count) == ([0, 1, 2, 3, 4], 5, 2)
    outside = Bounded(spiked, -5.0, None)
    assert (outside.classes(values)[0].tolist(), outside.atom_count) == ([0, 1, 2, 3, 4], 2)
    assert Ordinal(4).classes(torch.tensor([3.0, 0.0]))[0].tolist() == [3, 0]
    with pytest.raises(TypeError, match="gaussian head are no classes"):
        Gaussian().classes(values)


def test_another_family_keeps_bounds_and_atoms() -> None:
    seen: list[tuple[str, list[float]]] = []

    def family(inner: Head, values: np.ndarray) -> Head:
        seen.append((inner.name, values.tolist()))
        return Gaussian()

    head = Bounded(Spiked((0.0,), GaussianMixture(2)), -1.0, 4.0)
    changed = head.with_family(family, np.array([0.0, 0.5, 0.0, 2.0], dtype=np.float32))
    assert seen == [("gaussian_mixture", [0.5, 2.0])]  # the atoms are not the family's to answer for
    assert describe(changed) == describe(Bounded(Spiked((0.0,), Gaussian()), -1.0, 4.0))


def test_a_blend_names_its_members() -> None:
    members = (Gaussian(), GaussianMixture(2))
    assert Blend(members, (0.5, 0.5), (0, 2)).blended == members
    assert Gaussian().blended == ()


@pytest.mark.parametrize("repeat", [lambda: [Categorical(3)] * 4, lambda: [Categorical(3) for _ in range(4)]])
def test_equal_heads_are_shared(repeat: Callable[[], list[Head]]) -> None:
    heads = [*repeat(), Bernoulli(), *repeat()]
    distinct, assigned = shared(heads)
    assert [head.name for head in distinct] == ["categorical", "bernoulli"]
    assert assigned == [0, 0, 0, 0, 1, 0, 0, 0, 0]
    bank = HeadBank(heads)
    assert bank.of(8) is bank.of(0) is heads[0]
    assert bank.of(4) is heads[4]
