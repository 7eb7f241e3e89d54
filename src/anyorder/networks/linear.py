r"""A linear or logistic regression for every variable, with unknown inputs integrated out in closed form.

Every variable has a few predictors, linear in what the others say (numbers in model units, some of them in those of the
data besides, levels and atoms as indicators): $\eta = w^\top x + b$. Of a number, $\eta$ is the location, and the
residual's law is a mixture of normals; of levels, the $\eta$ are logits. Where inputs are unknown, $\eta$ is itself
normal given the known ones, with a mean $m$ and a variance $s^2$ (:mod:`.parts.predictors`). A number's components get
broader by $s^2$, which is exact; the logits of levels are held back as MacKay (1992) has it, and are those of the
marginal once nothing is known:

$$\mathrm{logit} = \kappa(s^2)\, m + \frac{s^2}{s_0^2}\,\delta, \qquad \kappa(s^2) = (1 + \pi s^2 / 8)^{-1/2},$$

where $s_0^2$ and $\delta$ are the variance without evidence and what is then missing to the marginal.
So little evidence gives broad answers, and all of it those of the regression.
:mod:`anyorder.training.linear` fits it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.errors import UserError
from anyorder.networks.base import MaskNetwork, Network
from anyorder.networks.gaussian import check_covariance
from anyorder.networks.parts.line_answers import LineAnswers
from anyorder.networks.parts.line_inputs import LineInputs
from anyorder.networks.parts.line_stack import LineStack
from anyorder.networks.parts.predictors import predictor_moments
from anyorder.networks.parts.stack import Apart, Stack
from anyorder.support.checks import inside, whole

LARGEST = 1e30  # of any number that a file may hold here
MOST_KNOTS = 10_000


@dataclass(eq=False)
class LinearNetwork(MaskNetwork):
    """``marks``: the values of each variable that are inputs of their own: levels, atoms; a number is one besides.

    ``atoms``: how many atoms each variable's head has; ``logistic``: whether its components are logistic, not normal;
    ``unbent``: the numbers that are also inputs in the units of the data, each bent back by so many ``knots``.
    Heads of levels must be ``bernoulli`` or ``categorical``, those of numbers mixtures of three features a component.
    """

    name: ClassVar[str] = "linear"
    trainable: ClassVar[bool] = False

    marks: tuple[tuple[float, ...], ...] = ()
    atoms: tuple[int, ...] = ()
    logistic: tuple[bool, ...] = ()
    unbent: tuple[int, ...] = field(default=(), metadata={"later": True})
    knots: int = field(default=0, metadata={"later": True})

    def __post_init__(self) -> None:
        super().__post_init__()
        layout = self.layout
        # Without a word on it, all levels but the first are marked: that one is what is left.
        self.marks = tuple(map(tuple, self.marks)) or tuple(tuple(map(float, range(1, k))) for k in layout.levels)
        self.atoms = tuple(self.atoms) or (0,) * layout.variables
        self.logistic = tuple(self.logistic) or (False,) * layout.variables
        self.unbent = tuple(self.unbent)
        self.components = self._check_options()
        self._place_inputs()
        self._place_answers()
        inputs, predictors, reals = len(self.owner), len(self.target), len(self.numbers)
        self.low: Tensor
        self.high: Tensor
        self.mean: Tensor
        self.covariance: Tensor
        self.weight: Tensor
        self.intercept: Tensor
        self.spread: Tensor
        self.missing: Tensor
        self.shares: Tensor
        self.offsets: Tensor
        self.log_scales: Tensor
        self.kept: list[str] = []
        # Numbers beyond the ends of what was seen count as these ends, and so do predictions of them: a line must not
        # run away from the data.
        self._keep("low", torch.full((layout.variables,), -1.0))
        self._keep("high", torch.full((layout.variables,), 1.0))
        self._keep("mean", torch.zeros(inputs))
        self._keep("covariance", torch.eye(inputs))
        self._keep("weight", torch.zeros(predictors, inputs))
        self._keep("intercept", torch.zeros(predictors))
        self._keep("spread", torch.ones(predictors))  # the variance of a predictor when nothing is known,
        self._keep("missing", torch.zeros(predictors))  # and what its logit then lacks to the marginal's
        for name in ("shares", "offsets", "log_scales"):  # of the components of each number's residual
            self._keep(name, torch.zeros(reals, self.components))
        if self.unbent:  # model units and those of the data, scaled
            self.bend: Tensor
            self._keep("bend", torch.linspace(-1.0, 1.0, self.knots).expand(len(self.unbent), 2, -1))

    def _keep(self, name: str, tensor: Tensor) -> None:
        self.kept.append(name)
        self.register_buffer(name, tensor.double().contiguous())

    def _check_options(self) -> int:
        """How many components the mixtures have, if all options fit the layout."""
        layout = self.layout
        if {len(self.marks), len(self.atoms), len(self.logistic)} != {layout.variables}:
            raise UserError(f"linear: marks, atoms and logistic must speak of each of {layout.variables} variables")
        found = set()
        entries = zip(self.marks, self.atoms, self.logistic, layout.levels, layout.sizes, strict=True)
        for marks, atoms, logistic, levels, size in entries:
            span = f"[0, {levels - 1}]" if levels else f"[{-LARGEST}, {LARGEST}]"
            if not all(inside(mark, span) for mark in marks) or list(marks) != sorted(set(marks)):
                raise UserError(f"linear: marks must increase and be values in {span}, got {marks!r:.80}")
            whole("linear: atoms", atoms, 0, max(size - 1, 0))
            if not isinstance(logistic, bool):
                raise UserError(f"linear: logistic must be yes or no for each variable, got {logistic!r:.80}")
            if not size:
                continue  # context: an input without an answer
            answer = size == (1 if levels == 2 else levels) and not atoms if levels else not (size - atoms) % 3
            if not answer:
                raise UserError(f"linear: no answer has {size} features for {levels} levels and {atoms} atoms")
            found |= set() if levels else {(size - atoms) // 3}
        whole("linear: knots", self.knots, 2 if self.unbent else 0, MOST_KNOTS)
        for variable in self.unbent:
            whole("linear: unbent", variable, 0, layout.variables - 1)
        if list(self.unbent) != sorted(set(self.unbent)) or any(layout.levels[variable] for variable in self.unbent):
            raise UserError(f"linear: unbent must increase and be numbers, got {self.unbent!r:.80}")
        if len(found) > 1:
            raise UserError(f"linear: all numbers must have the same number of components, got {sorted(found)}")
        return found.pop() if found else 0

    def _place_inputs(self) -> None:
        """Where each input comes from: the variable, and the value that it marks (NaN for the number itself).

        ``in_units``: the inputs in the units of the data, which come last; ``twice``: those that they repeat.
        """
        own = [
            (variable, mark)
            for variable, levels in enumerate(self.layout.levels)
            for mark in (*self.marks[variable], *(() if levels else (math.nan,)))
        ]
        own += [(variable, math.nan) for variable in self.unbent]
        self.owner: Tensor
        self.mark: Tensor
        self.in_units: Tensor
        self.twice: Tensor
        in_units = torch.arange(len(own)) >= len(own) - len(self.unbent)
        bent_back = torch.tensor([variable in self.unbent and math.isnan(mark) for variable, mark in own])
        self.register_buffer("in_units", in_units, persistent=False)
        self.register_buffer("twice", bent_back.bool() & ~in_units, persistent=False)
        self.real: Tensor
        owner = torch.tensor([variable for variable, _ in own], dtype=torch.long)
        self.register_buffer("owner", owner, persistent=False)
        self.register_buffer("mark", torch.tensor([mark for _, mark in own], dtype=torch.float64), persistent=False)
        self.register_buffer("real", torch.tensor(self.layout.levels) == 0, persistent=False)

    def _place_answers(self) -> None:
        """The predictors: the logits of all classes of all variables first, then the locations of numbers.

        ``base``: the first logit of the same variable, from which the others are counted; ``slot``: where in the flat
        features each one after it stands; ``number_slot``: where a number's mixture does.
        """
        width = self.layout.width
        target: list[int] = []
        later: list[int] = []
        base, slot, number_slot = [], [], []
        for variable in self.layout.answered:
            levels, atoms = self.layout.levels[variable], self.atoms[variable]
            classes = levels or 1 + atoms
            first = len(target)
            if classes > 1:
                target += [variable] * classes
                base += [first] * classes
                later += range(first + 1, first + classes)
                # A softmax has a feature for its first level too; a yes/no answer and atoms have not.
                slot += [variable * width + k - (levels <= 2) for k in range(1, classes)]
            if not levels:
                number_slot.append(variable * width + atoms)
        self.logits = len(target)
        reals = [variable for variable in self.layout.answered if not self.layout.levels[variable]]
        of = torch.tensor([*target, *reals], dtype=torch.long)
        of_class = of[: self.logits]
        classes_of = of_class.bincount(minlength=self.layout.variables)[of_class].double()
        mixture = torch.arange(3 * self.components)
        self.target: Tensor
        self.numbers: Tensor
        self.base: Tensor
        self.later: Tensor
        self.slot: Tensor
        self.number_slot: Tensor
        self.apart: Tensor
        self.lattice: Tensor
        places = {
            "target": of,
            "numbers": torch.tensor(reals, dtype=torch.long),
            "base": torch.tensor(base, dtype=torch.long),
            "later": torch.tensor(later, dtype=torch.long),
            "slot": torch.tensor(slot, dtype=torch.long),
            "number_slot": torch.tensor(number_slot, dtype=torch.long)[:, None] + mixture,
            # The variance of a difference of two logits, by that of one of them: they add up to zero.
            "apart": 2 * classes_of / (classes_of - 1),
            "lattice": torch.tensor([self.logistic[variable] for variable in reals], dtype=torch.bool),
        }
        for name, tensor in places.items():
            self.register_buffer(name, tensor, persistent=False)

    @cached_property
    def _indicators(self) -> list[tuple[int, int]]:
        """Each indicator of missing cells, and its column, which comes before it."""
        return [(variable, column) for variable, column in enumerate(self.layout.partners) if 0 <= column < variable]

    def _load_from_state_dict(self, *arguments: Any) -> None:
        super()._load_from_state_dict(*arguments)
        if self.covariance.is_meta:
            return
        for name in self.kept:
            if not bool((self.get_buffer(name).abs() <= LARGEST).all()):
                raise UserError(f"linear: {name} must hold finite numbers")
        if self.unbent and not bool((self.bend.diff(dim=2) >= 0).all()):
            raise UserError("linear: the points by which numbers are bent back must increase")
        if not bool((self.low <= self.high).all() and (self.spread > 0).all()):
            raise UserError("linear: the ends of what was seen must increase, and variances be above zero")
        check_covariance(self.covariance)

    @property
    def learned(self) -> tuple[bool, ...]:
        told = torch.zeros(self.layout.variables, dtype=torch.bool)
        told[self.target[self.weight.cpu().any(dim=1)]] = True
        return tuple(told.tolist())

    def inputs(
        self, values: Float[Tensor, "*batch variables"], known: Bool[Tensor, "*batch variables"]
    ) -> tuple[Float[Tensor, "*batch inputs"], Bool[Tensor, "*batch inputs"]]:
        """What the predictors are linear in, and which of it is known; anything where it is not."""
        every = torch.arange(len(self.owner), device=self.owner.device)
        counted = self._counted(known)
        read = LineInputs.of(self, every, self.low, self.high).read(values.where(counted, 0.0))
        return read, counted[..., self.owner]

    def known_inputs(self, known: Bool[Tensor, "*batch variables"]) -> Bool[Tensor, "*batch inputs"]:
        """Which inputs are known where these variables are."""
        return self._counted(known)[..., self.owner]

    def _counted(self, known: Bool[Tensor, "*batch variables"]) -> Bool[Tensor, "*batch variables"]:
        """Beside a value it says nothing more that it was missing, and no row has shown both: only the value counts."""
        for indicator, column in self._indicators:
            known = known.clone()
            known[..., indicator] &= ~known[..., column]
        return known

    def predictors_of(self, variable: int) -> Int[Tensor, " some"]:
        """The predictors of one variable."""
        return (self.target == variable).nonzero()[:, 0]

    def beside(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        prefix: Int[Tensor, "batch prefix"] | None = None,
    ) -> Float[Tensor, "batch variables width"]:
        location, variance = predictor_moments(self.mean, self.covariance, self.weight, *self.inputs(values, known))
        every = torch.arange(len(self.target), device=self.target.device)
        answers = LineAnswers.of(self, {name: self.get_buffer(name)[None] for name in self.kept}, every)
        flat = answers.features(location[None], answers.widths(variance[None]))[0]
        features: Tensor = flat.unflatten(1, (-1, self.layout.width))
        return features.to(values.dtype)

    @classmethod
    def stack(cls, networks: Sequence[Network]) -> Stack:
        own = [network for network in networks if isinstance(network, cls)]
        alike = {(one.layout, one.marks, one.atoms, one.logistic, one.unbent, one.knots) for one in own}
        together = len(own) == len(networks) > 1 == len(alike)
        together = together and (not own[0].unbent or all(torch.equal(one.bend, own[0].bend) for one in own))
        return LineStack(own) if together else Apart(networks)
