r"""AdamW (Loshchilov and Hutter 2019), with the same kernel and the same numbers as ``torch.optim.AdamW(fused=True)``.

$$\theta \leftarrow (1 - \eta\lambda)\,\theta - \eta\,\hat m / (\sqrt{\hat v} + \epsilon)$$

Torch's own optimizers import its compiler when the first of them is made, which takes one to two seconds: a tenth of
a fit of fifteen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

EPSILON = 1e-8


class AdamW:
    """``groups``: parameters with a ``weight_decay`` of their own.

    ``state``: of each parameter that has been moved, by its number, the step and the moments of its gradients.
    """

    def __init__(self, groups: list[dict[str, Any]], lr: float, betas: tuple[float, float] = (0.9, 0.999)) -> None:
        self.param_groups = [{**group, "lr": lr, "betas": betas} for group in groups]
        self.state: dict[int, dict[str, Tensor]] = {}

    @property
    def parameters(self) -> list[Tensor]:
        """The parameters of all groups; their places are their numbers."""
        return [weight for group in self.param_groups for weight in group["params"]]

    def zero_grad(self) -> None:
        for weight in self.parameters:
            weight.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Move every parameter that has a gradient."""
        first = 0
        for group in self.param_groups:
            weights = {first + place: weight for place, weight in enumerate(group["params"])}
            first += len(weights)
            weights = {number: weight for number, weight in weights.items() if weight.grad is not None}
            if not weights:
                continue
            states = [self.state.setdefault(number, _at_first(weight)) for number, weight in weights.items()]
            steps, means, squares = ([state[name] for state in states] for name in ("step", "exp_avg", "exp_avg_sq"))
            torch._foreach_add_(steps, 1)
            torch._fused_adamw_(
                list(weights.values()),
                [weight.grad for weight in weights.values()],
                means,
                squares,
                [],
                steps,
                lr=group["lr"],
                beta1=group["betas"][0],
                beta2=group["betas"][1],
                weight_decay=group["weight_decay"],
                eps=EPSILON,
                amsgrad=False,
                maximize=False,
            )

    def restore(self, state: Mapping[int, Mapping[str, Tensor]]) -> None:
        """Go on from the ``state`` of another one, of the same parameters."""
        weights = self.parameters
        self.state = {
            number: {name: tensor.to(weights[number].device).clone() for name, tensor in own.items()}
            for number, own in state.items()
        }


def _at_first(weight: Tensor) -> dict[str, Tensor]:
    return {
        "step": torch.zeros((), device=weight.device),
        "exp_avg": torch.zeros_like(weight),
        "exp_avg_sq": torch.zeros_like(weight),
    }
