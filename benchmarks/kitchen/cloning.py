"""Behavioural cloning: a network that gives the mean action for a state, by least squares on demonstrations.

    minimise the mean over steps of |action - network(state)|^2

The baseline beside any-order policies. States are standardised, but a column that hardly moves in the demonstrations is
not blown up to the same width: a nudge of another knob would then be far from all that the network has seen.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from anyorder.support.atomic import atomic_path
from anyorder.support.randomness import drawing_from

from episodes import Vectors

LEAST = 0.01  # rad or m, and per second: the scale of a column that moves less
HELD_OUT = 0.1  # of the episodes, to stop by


@dataclass(frozen=True)
class Schedule:
    """How a network is trained; the defaults take about three minutes on one core for 40,000 steps."""

    width: int = 256
    depth: int = 3  # hidden layers
    epochs: int = 100
    batch: int = 256
    rate: float = 1e-3  # falls to 0 along half a cosine
    decay: float = 1e-4
    minutes: float = float("inf")


class Cloned:
    """A cloned policy; ``seen`` are the columns of the state that it reads."""

    def __init__(self, network: nn.Module, seen: Sequence[int], centre: Tensor, scale: Tensor) -> None:
        self.network, self.seen, self._centre, self._scale = network.eval(), list(seen), centre, scale
        self.held_out = float("nan")  # mean squared error on episodes that were not learned from

    @torch.inference_mode()
    def mean(self, states: NDArray[np.floating]) -> Vectors:
        """The mean actions ``[steps, 9]`` of states ``[steps, 59]``."""
        rows = torch.tensor(np.asarray(states)[:, self.seen], dtype=torch.float32)
        found = self.network((rows - self._centre) / self._scale)
        return np.clip(found.double().numpy(), -1.0, 1.0)

    def act(self, states: Vectors, seeds: Sequence[int], step: int) -> Vectors:
        """The mean actions: a cloned policy has no randomness."""
        return self.mean(states)

    def complete(self, states: Vectors, given: Vectors, seeds: Sequence[int], step: int) -> Vectors:
        """What is given, and beside it its own mean: it does not hear what is given."""
        return np.where(np.isnan(given), self.mean(states), given)

    def save(self, path: Path) -> None:
        """Write weights and scales."""
        parts = {f"network.{name}": part for name, part in self.network.state_dict().items()}
        with atomic_path(path) as beside:
            save_file({**parts, "seen": torch.tensor(self.seen), "centre": self._centre, "scale": self._scale}, beside)

    @classmethod
    def load(cls, path: Path) -> Self:
        """A policy that was saved."""
        parts = load_file(path)
        seen, centre, scale = (parts.pop(name) for name in ("seen", "centre", "scale"))
        weights = [part for name, part in parts.items() if name.endswith("weight")]
        network = perceptron(len(seen), len(parts[max(parts)]), len(weights[0]), len(weights) - 1)
        network.load_state_dict({name.removeprefix("network."): part for name, part in parts.items()})
        return cls(network, seen.tolist(), centre, scale)

    @classmethod
    def learn(cls, frame: pd.DataFrame, schedule: Schedule = Schedule(), *, seed: int = 0) -> Self:  # noqa: B008 (frozen)
        """Clone demonstrations, in the form that ``anyorder.data.demonstrations`` reads."""
        names = [name for name in frame.columns if name.startswith("state_")]
        states, actions = (_columns(frame, name) for name in ("state_", "action_"))
        generator = torch.Generator().manual_seed(seed)
        held = _held_out(frame["episode"].to_numpy(), generator)
        centre = states[~held].mean(dim=0)
        scale = states[~held].std(dim=0).clamp_min(LEAST)
        with drawing_from(generator):
            network = perceptron(states.shape[1], actions.shape[1], schedule.width, schedule.depth)
        rows = (states - centre) / scale
        train = _train(network, rows[~held], actions[~held], schedule, generator)
        policy = cls(train, [int(name.removeprefix("state_")) for name in names], centre, scale)
        with torch.no_grad():
            policy.held_out = float(((network(rows[held]) - actions[held]) ** 2).mean())
        return policy


def perceptron(inputs: int, outputs: int, width: int, depth: int) -> nn.Sequential:
    """Layers of one width with SiLU between them."""
    layers: list[nn.Module] = []
    for index in range(depth):
        layers += [nn.Linear(inputs if index == 0 else width, width), nn.SiLU()]
    return nn.Sequential(*layers, nn.Linear(width, outputs))


def _columns(frame: pd.DataFrame, prefix: str) -> Tensor:
    names = [name for name in frame.columns if name.startswith(prefix)]
    return torch.tensor(frame[names].to_numpy(), dtype=torch.float32)


def _held_out(episodes: NDArray[np.integer], generator: torch.Generator) -> Tensor:
    """Whole episodes: neighbouring steps are nearly the same."""
    there = np.unique(episodes)
    drawn = torch.randperm(len(there), generator=generator)[: max(1, round(HELD_OUT * len(there)))]
    return torch.as_tensor(np.isin(episodes, there[drawn.numpy()]))


def _train(
    network: nn.Module, states: Tensor, actions: Tensor, schedule: Schedule, generator: torch.Generator
) -> nn.Module:
    optimiser = torch.optim.AdamW(network.parameters(), schedule.rate, weight_decay=schedule.decay)
    steps = schedule.epochs * -(-len(states) // schedule.batch)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    until = time.monotonic() + 60 * schedule.minutes
    for _ in range(schedule.epochs):
        for rows in torch.randperm(len(states), generator=generator).split(schedule.batch):
            loss = ((network(states[rows]) - actions[rows]) ** 2).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            falling.step()
        if time.monotonic() > until:
            break
    return network
