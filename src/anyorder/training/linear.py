r"""Fitting the linear expert: ridge regressions for numbers, softmax regressions for levels and atoms.

$$\min_{W, b}\; -\sum_{n} \log p(y_n \mid W x_n + b) + \frac{\lambda}{2} \lVert W \rVert^2,$$

for every variable from all the others, with the penalty $\lambda$ under which held-out cells are most probable (of all
folds together, where there are several). Ridge is a closed form; softmax regression takes Newton steps along the path
of penalties, each by conjugate gradients. A hole among the inputs counts as its mean given the other inputs of its row,
the target left out. Numbers that an encoding has bent are inputs in model units, or, for targets whose held-out cells
are clearly more probable then, in the units of the data. What numbers differ by from their predictions on held-out rows
is the law of the residuals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.heads import Bernoulli, Categorical, DiscretizedLogisticMixture, GaussianMixture, Head
from anyorder.networks.gaussian import conditional_cross, fit_moments
from anyorder.networks.layout import Layout
from anyorder.networks.linear import LinearNetwork
from anyorder.training.rows import Rows

COMPONENTS = 3  # of the residuals of a number
MOST_MARKS = 32  # levels of one variable that are inputs of their own: the most common ones
MOST_ROWS = 6_000  # some thousand determine a line
ROUNDS = 10  # of EM for the moments of inputs with holes
# Penalties: of ridge, for each row; of softmax regression, in all.
RIDGE = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 1e-3, 1e-4, 1e-5)
SOFTMAX = (1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1)
PATIENCE = 2  # weaker penalties to try after the best one so far
PRIOR = 3.0  # residuals that are made up for each component, so that few real ones make no spike
MOST_RESIDUALS = 5_000
LEAST_SCALE = 1e-3  # of a number's deviation
KNOTS = 64  # by which a number is bent back to the units of the data
STRAIGHT = 0.98  # correlation of model units and units of the data, from which on there is no bend to speak of
WORTH = 1.0  # nats on the held-out cells of a target that inputs in the units of the data must gain

Units: TypeAlias = Callable[[Float[np.ndarray, " cells"]], Float[np.ndarray, " cells"]]
"""From model units to those of the data."""


def linear_head(head: Head) -> Head:
    """The variable's head with a family that a linear predictor can answer for, inside the same atoms and bounds."""

    def family(inner: Head, cells: Float[np.ndarray, " cells"]) -> Head:
        if inner.levels:
            return Bernoulli() if inner.levels == 2 else Categorical(inner.levels)
        reach = getattr(inner, "reach", None)  # a line leads further out than the column does
        if inner.points is not None:
            return DiscretizedLogisticMixture(COMPONENTS, inner.points, reach=reach)
        return GaussianMixture(COMPONENTS, reach=reach)

    return head.with_family(family, np.zeros(0))


def linear_seconds(heads: Sequence[Head], rows: int, *, holes: bool, unbent: int = 0) -> float:
    """About how long one fold takes; ``unbent``: how many numbers are inputs twice."""
    rows = min(rows, MOST_ROWS)
    inputs = sum(min(head.levels - 1, MOST_MARKS) if head.levels else 1 + head.atom_count for head in heads) + unbent
    filling = rows * (1e-5 + 5e-10 * inputs**3) * (ROUNDS + len(heads)) if holes else 0.0
    work = sum(rows * inputs * (head.levels or 1 + 2 * head.atom_count) for head in heads) * (2 if unbent else 1)
    return filling + len(heads) * (0.01 + 2e-9 * inputs**3) + 2e-7 * work


def fit_linear(
    heads: Sequence[Head],
    layout: Layout,
    training: Sequence[Rows],
    held_out: Sequence[Rows],
    *,
    late: Callable[[], bool] = lambda: False,
    bends: Mapping[int, Float[Tensor, "2 knots"]] | None = None,
) -> list[LinearNetwork]:
    """One network for each fold, from its training rows; held-out rows of all folds choose the penalties.

    ``heads`` are those of :func:`linear_head`. Once it is ``late``, variables are answered with their marginals.
    ``bends``: those of :func:`unbending`, for numbers that may be inputs in the units of the data.
    """
    pairs = zip(training, held_out, strict=True)
    folds = [_Fold.of(heads, layout, rows, judged, bends or {}) for rows, judged in pairs]
    for variable in range(layout.variables):
        inputs = [fold.cells(variable) for fold in folds]
        if heads[variable].levels or heads[variable].atom_count:
            _fit_classes(folds, inputs, variable, late=late)
        if not heads[variable].levels:
            _fit_number(folds, inputs, variable, late=late)
    used = torch.stack([fold.network.weight.any(dim=0) for fold in folds]).any(dim=0)
    return [_without_idle(fold.network, used) for fold in folds]


def unbending(units: Units, model: Float[np.ndarray, " cells"]) -> Float[Tensor, "2 knots"] | None:
    """Model units and scaled ``units`` of the data at some of a number's cells; None if they are nearly in line."""
    if len(np.unique(model)) < 3:
        return None
    with np.errstate(all="ignore"):
        data = units(model.astype(np.float64))
        scaled = (data - data.mean()) / data.std()
        if not np.isfinite(scaled).all() or abs(np.corrcoef(model, scaled)[0, 1]) > STRAIGHT:
            return None
        knots = np.quantile(model.astype(np.float64), np.linspace(0, 1, KNOTS))
        bend = np.stack([knots, (units(knots) - data.mean()) / data.std()])
    return torch.from_numpy(np.maximum.accumulate(bend, axis=1)) if np.isfinite(bend).all() else None


def _without_idle(network: LinearNetwork, used: Bool[Tensor, " inputs"]) -> LinearNetwork:
    """The network without the inputs in the units of the data that no predictor asks for."""
    idle = network.in_units & ~used
    if not bool(idle.any()):
        return network
    stay = ~idle[network.in_units]
    unbent = tuple(variable for variable, own in zip(network.unbent, stay.tolist(), strict=True) if own)
    smaller = replace(network, unbent=unbent, knots=network.knots if unbent else 0)
    state = network.state_dict()
    state |= {name: state[name][..., ~idle] for name in ("mean", "covariance", "weight")}
    state["covariance"] = state["covariance"][~idle]
    bend = state.pop("bend")[stay]
    smaller.load_state_dict(state | ({"bend": bend} if unbent else {}))
    return smaller


@dataclass(frozen=True)
class _Cells:
    """The rows in which one variable is there: its values, and the scaled inputs that may speak of it."""

    inputs: Float[Tensor, "rows used"]
    values: Float[Tensor, " rows"]
    judged: Float[Tensor, "others used"]
    judged_values: Float[Tensor, " others"]

    def where(self, some: Tensor, others: Tensor) -> _Cells:
        return _Cells(self.inputs[some], self.values[some], self.judged[others], self.judged_values[others])

    def by(self, columns: Bool[Tensor, " used"]) -> _Cells:
        """All rows with some of the inputs."""
        return replace(self, inputs=self.inputs[:, columns], judged=self.judged[:, columns])


@dataclass(frozen=True)
class _Fold:
    """What one fold learns from and is judged by, as inputs of its network."""

    network: LinearNetwork
    heads: Sequence[Head]
    rows: tuple[Rows, Rows]
    inputs: tuple[Tensor, Tensor]
    known: tuple[Tensor, Tensor]
    scale: Float[Tensor, " inputs"]

    @classmethod
    def of(cls, heads: Sequence[Head], layout: Layout, rows: Rows, judged: Rows, bends: Mapping[int, Tensor]) -> _Fold:
        rows, judged = (part.take(torch.arange(min(len(part), MOST_ROWS))) for part in (rows, judged))
        network = LinearNetwork(
            layout,
            tuple(_marks(head, rows, variable) for variable, head in enumerate(heads)),
            tuple(head.atom_count for head in heads),
            tuple(not head.levels and head.points is not None for head in heads),
            tuple(sorted(bends)),
            KNOTS if bends else 0,
        )
        if bends:
            network.bend.copy_(torch.stack([bends[variable] for variable in sorted(bends)]))
        values = rows.values.double()
        seen = torch.where(rows.observed, values, torch.nan)
        there = rows.observed.any(dim=0) & network.real
        network.low.copy_(torch.where(there, seen.nan_to_num(nan=torch.inf).amin(0), network.low))
        network.high.copy_(torch.where(there, seen.nan_to_num(nan=-torch.inf).amax(0), network.high))
        pairs = [network.inputs(part.values, part.observed) for part in (rows, judged)]
        mean, covariance = fit_moments(*pairs[0], rounds=ROUNDS)
        network.mean.copy_(mean)
        network.covariance.copy_(covariance)
        # An indicator is worth a step of one half: a rare level must not count for more because it is rare.
        scale = torch.where(network.mark.isnan(), covariance.diagonal().sqrt().clamp(min=1e-6), 0.5)
        return cls(network, heads, (rows, judged), (pairs[0][0], pairs[1][0]), (pairs[0][1], pairs[1][1]), scale)

    def cells(self, variable: int) -> _Cells:
        """The rows in which the variable is there, their holes filled by what the rest of the row says."""
        used = self.used(variable)
        parts = []
        for rows, inputs, known in zip(self.rows, self.inputs, self.known, strict=True):
            there = rows.observed[:, variable]
            filled = self._filled(inputs[there], known[there], used)
            parts += [filled, rows.values[there, variable].double()]
        return _Cells(*parts)

    def used(self, variable: int) -> Bool[Tensor, " inputs"]:
        """The inputs that may speak of a variable: not its own, and not its partner's."""
        layout = self.network.layout
        partner = layout.partners[variable] if layout.partners else -1
        return (self.network.owner != variable) & (self.network.owner != partner)

    def choices(self, variable: int) -> list[Bool[Tensor, " used"]]:
        """Which of the inputs in use count: numbers in model units, or those that can be in the units of the data."""
        used = self.used(variable)
        in_units, twice = self.network.in_units[used], self.network.twice[used]
        return [~in_units, ~twice] if bool(in_units.any()) else [~in_units]

    def _filled(self, inputs: Tensor, known: Tensor, used: Tensor) -> Tensor:
        """The inputs in use, scaled, each hole filled with its mean given those of its row that are there."""
        inputs, known = inputs[:, used], known[:, used]
        mean, covariance = self.network.mean[used], self.network.covariance[used][:, used]
        holes = (~known).any(dim=1).nonzero()[:, 0]
        for part in holes.split(max(1, (1 << 22) // max(1, covariance.numel()))):
            expected, _ = conditional_cross(mean, covariance, inputs[part], known[part])
            inputs[part] = torch.where(known[part], inputs[part], expected)
        return (inputs - mean) / self.scale[used]

    def set(self, predictors: Tensor, variable: int, columns: Tensor, weight: Tensor, intercept: Tensor) -> None:
        """Put the weights of scaled inputs, some ``columns`` of them, into the network, as those of the inputs."""
        network, used = self.network, self.used(variable).nonzero()[:, 0][columns]
        own = torch.zeros(len(predictors), len(network.owner), dtype=torch.float64)
        own[:, used] = weight / self.scale[used]
        network.weight[predictors] = own
        network.intercept[predictors] = intercept - own @ network.mean
        network.spread[predictors] = ((own @ network.covariance) * own).sum(dim=1).clamp(min=1e-12)


def _marks(head: Head, rows: Rows, variable: int) -> tuple[float, ...]:
    """The values of a variable that are inputs of their own."""
    if not head.levels:
        return tuple(getattr(head, "atoms", ()))
    if head.levels <= MOST_MARKS + 1:
        return tuple(map(float, range(1, head.levels)))
    codes = rows.values[rows.observed[:, variable], variable].long()
    common = codes.bincount(minlength=head.levels).argsort(descending=True, stable=True)[:MOST_MARKS]
    return tuple(sorted(map(float, common.tolist())))


def _fit_number(folds: Sequence[_Fold], cells: list[_Cells], variable: int, *, late: Callable[[], bool]) -> None:
    """Ridge regression, by the penalty that leaves the least squares on the held-out cells of all folds."""
    cells = [
        own.where(*(apart_from_atoms(folds[0].heads[variable], part) for part in (own.values, own.judged_values)))
        for own in cells
    ]
    chosen = _ridge(cells, folds[0].choices(variable)[0], late=late)
    for columns in folds[0].choices(variable)[1:]:
        other = _ridge(cells, columns, late=late)
        gain = (
            sum(len(own.judged_values) for own in cells)
            / 2
            * math.log(max(chosen.left, 1e-300) / max(other.left, 1e-300))
        )
        chosen = other if gain > WORTH else chosen
    residuals, deviation = [], 1.0
    cells = [own.by(chosen.columns) for own in cells]
    for fold, own, (weights, intercept) in zip(folds, cells, chosen.lines, strict=True):
        position = fold.network.logits + int((fold.network.numbers == variable).nonzero())
        fold.set(torch.tensor([position]), variable, chosen.columns, weights[None], intercept[None])
        residuals.append(own.judged_values - _within_seen(own.judged @ weights + intercept, own.values))
        if len(own.values) > 1:
            deviation = float(own.values.std().clamp(min=1e-6))
    law = residual_law(torch.cat(residuals), deviation)
    for fold in folds:
        number = int((fold.network.numbers == variable).nonzero())
        for name, tensor in zip(("shares", "offsets", "log_scales"), law, strict=True):
            fold.network.get_buffer(name)[number] = tensor


@dataclass(frozen=True)
class _Ridge:
    """Lines of all folds from some inputs, by the best penalty, and the squares that they leave on held-out cells."""

    columns: Bool[Tensor, " used"]
    lines: list[tuple[Tensor, Tensor]]
    left: float


def _ridge(cells: Sequence[_Cells], columns: Bool[Tensor, " used"], *, late: Callable[[], bool]) -> _Ridge:
    cells = [own.by(columns) for own in cells]
    paths = [ridge_path(own.inputs, own.values, () if late() else RIDGE) for own in cells]
    squares = torch.zeros(len(paths[0][0]), dtype=torch.float64)
    for own, (weights, intercepts) in zip(cells, paths, strict=True):
        left = own.judged_values - _within_seen(weights @ own.judged.T + intercepts[:, None], own.values)
        squares += left.square().sum(dim=1)
    best = int(squares.argmin())
    return _Ridge(columns, [(weights[best], intercepts[best]) for weights, intercepts in paths], float(squares[best]))


def apart_from_atoms(head: Head, values: Tensor) -> Tensor:
    """Which values are no atoms."""
    atoms = torch.tensor(getattr(head, "atoms", ()), dtype=torch.float32)
    return ~(values.float()[:, None] == atoms).any(dim=1)


def ridge_path(
    inputs: Float[Tensor, "rows used"], values: Float[Tensor, " rows"], penalties: Sequence[float]
) -> tuple[Float[Tensor, "penalties used"], Float[Tensor, " penalties"]]:
    """Weights and intercepts for each penalty (a row); the mean alone comes first."""
    nothing = inputs.new_zeros(1, inputs.shape[1])
    if not len(values):
        return nothing.expand(1 + len(penalties), -1), inputs.new_zeros(1 + len(penalties))
    centre, middle = inputs.mean(dim=0), values.mean()
    centred = inputs - centre
    strength, vectors = torch.linalg.eigh(centred.T @ centred)
    moment = vectors.T @ (centred.T @ (values - middle))
    strengths = torch.tensor(penalties, dtype=torch.float64)[:, None] * len(values)
    weights = torch.cat([nothing, (moment / (strength.clamp(min=0) + strengths)) @ vectors.T])
    return weights, middle - weights @ centre


def _within_seen(predicted: Float[Tensor, "*batch"], values: Float[Tensor, " rows"]) -> Float[Tensor, "*batch"]:
    """Predictions moved to the nearest value between the ends of what was seen, as the network does it."""
    return predicted.clamp(float(values.min()), float(values.max())) if len(values) else predicted


def residual_law(
    residuals: Float[Tensor, " cells"], deviation: float
) -> tuple[Float[Tensor, " components"], Float[Tensor, " components"], Float[Tensor, " components"]]:
    """Log shares, offsets and log scales of a mixture of normals for these residuals, by EM.

    ``deviation``: of the number itself; no component is much narrower than it.
    """
    residuals = residuals[:: -(-len(residuals) // MOST_RESIDUALS)] if len(residuals) else residuals
    scale = float(residuals.square().mean().sqrt()) if len(residuals) else deviation
    scale = max(scale, LEAST_SCALE * deviation)
    first = scale * torch.tensor([0.4, 1.0, 2.2], dtype=torch.float64)
    shares = torch.tensor([0.4, 0.5, 0.1], dtype=torch.float64)
    offsets, scales = torch.zeros_like(first), first
    for _ in range(60):
        standard = (residuals[:, None] - offsets) / scales
        log_parts = shares.log() - scales.log() - standard.square() / 2
        part = log_parts.softmax(dim=1)
        counts = part.sum(dim=0)
        moved = (part * residuals[:, None]).sum(dim=0) / (counts + PRIOR)
        squares = (part * (residuals[:, None] - moved).square()).sum(dim=0) + PRIOR * (first.square() + moved.square())
        before = scales
        offsets, shares = moved, (counts + 1) / (counts + 1).sum()
        scales = (squares / (counts + PRIOR)).sqrt().clamp(min=LEAST_SCALE * deviation)
        if bool(((scales - before).abs() <= 1e-3 * before).all()):
            break
    return shares.log(), offsets, scales.log()


def _fit_classes(folds: Sequence[_Fold], cells: list[_Cells], variable: int, *, late: Callable[[], bool]) -> None:
    """Softmax regression of the levels or of continuum and atoms, by the penalty that held-out cells choose."""
    head = folds[0].heads[variable]
    classes = head.levels or 1 + head.atom_count
    if classes < 2:
        return
    coded = [(_codes(head, own.values), _codes(head, own.judged_values)) for own in cells]
    chosen = _softmax(cells, coded, classes, folds[0].choices(variable)[0], late=late)
    for columns in folds[0].choices(variable)[1:]:
        other = _softmax(cells, coded, classes, columns, late=late)
        chosen = other if chosen.loss - other.loss > WORTH else chosen
    for fold, (parameters, marginal) in zip(folds, chosen.fits, strict=True):
        predictors = (fold.network.target[: fold.network.logits] == variable).nonzero()[:, 0]
        fold.set(predictors, variable, chosen.columns, parameters[:, :-1], parameters[:, -1])
        network = fold.network
        start = network.weight[predictors] @ network.mean + network.intercept[predictors]
        held_back = start / (1 + torch.pi / 8 * network.apart[predictors] * network.spread[predictors]).sqrt()
        network.missing[predictors] = marginal - held_back


@dataclass(frozen=True)
class _Softmax:
    """Softmax regressions of all folds from some inputs: parameters and marginal of each, and the nats they lose."""

    columns: Bool[Tensor, " used"]
    fits: list[tuple[Tensor, Tensor]]
    loss: float


def _softmax(
    cells: Sequence[_Cells],
    coded: Sequence[tuple[Tensor, Tensor]],
    classes: int,
    columns: Bool[Tensor, " used"],
    *,
    late: Callable[[], bool],
) -> _Softmax:
    """Those of the penalty under which held-out cells are most probable."""
    cells = [own.by(columns) for own in cells]
    fits = [SoftmaxRegression(own.inputs, codes, classes) for own, (codes, _) in zip(cells, coded, strict=True)]
    best = [fit.parameters for fit in fits]
    least = _loss(fits, cells, coded)
    worse = 0
    for penalty in SOFTMAX:
        if worse >= PATIENCE or late():
            break
        for fit in fits:
            fit.solve(penalty)
        loss = _loss(fits, cells, coded)
        worse += 1
        if loss < least:
            least, best, worse = loss, [fit.parameters for fit in fits], 0
    return _Softmax(columns, [(own, fit.marginal) for own, fit in zip(best, fits, strict=True)], least)


def _codes(head: Head, values: Tensor) -> Int[Tensor, " cells"]:
    """The level of each cell; of a number, 0 for the continuum, and then its atoms."""
    if head.levels:
        return values.long()
    atoms = torch.tensor(getattr(head, "atoms", ()), dtype=torch.float32)
    found = values.float()[:, None] == atoms
    return torch.where(found.any(dim=1), 1 + found.long().argmax(dim=1), 0)


def _loss(fits: Sequence[SoftmaxRegression], cells: Sequence[_Cells], coded: Sequence[tuple[Tensor, Tensor]]) -> float:
    return sum(float(fit.loss(own.judged, codes)) for fit, own, (_, codes) in zip(fits, cells, coded, strict=True))


class SoftmaxRegression:
    """Softmax regression along a path of penalties; every class has weights, and an intercept beside them."""

    def __init__(self, inputs: Float[Tensor, "rows used"], codes: Int[Tensor, " rows"], classes: int) -> None:
        self.inputs = torch.nn.functional.pad(inputs, (0, 1), value=1.0)
        self.hot = torch.nn.functional.one_hot(codes, classes).double()
        # One half of a cell for each class, so that one that was never seen is not ruled out.
        counts = self.hot.sum(dim=0) + 0.5
        log_counts = counts.log()
        self.marginal: Float[Tensor, " classes"] = log_counts - log_counts.mean()
        self.parameters = torch.zeros(classes, self.inputs.shape[1], dtype=torch.float64)
        self.parameters[:, -1] = self.marginal
        self.strength, self.vectors = torch.linalg.eigh(self.inputs.T @ self.inputs)

    @staticmethod
    def _log_probs(parameters: Tensor, inputs: Tensor) -> Float[Tensor, "rows classes"]:
        return (inputs @ parameters.T).log_softmax(dim=1)

    def loss(self, inputs: Float[Tensor, "rows used"], codes: Int[Tensor, " rows"]) -> Float[Tensor, ""]:
        """The nats of other cells in all."""
        log_probs = (inputs @ self.parameters[:, :-1].T + self.parameters[:, -1]).log_softmax(dim=1)
        return -log_probs.gather(1, codes[:, None]).sum()

    def solve(self, penalty: float, *, steps: int = 30, precision: float = 1e-3) -> None:
        """Newton steps from where the parameters are, until one of them would gain next to nothing."""
        # The intercepts are free but for a trace, which keeps what all classes share from wandering.
        held = torch.full((self.inputs.shape[1],), penalty, dtype=torch.float64)
        held[-1] = 1e-4
        value, log_probs = self._objective(self.parameters, held)
        for _ in range(steps):
            probs = log_probs.exp()
            gradient = (probs - self.hot).T @ self.inputs + held * self.parameters
            step = self._newton(gradient, probs, held)
            slope = float((gradient * step).sum())
            if slope < precision * max(1.0, 1e-3 * value):
                break
            size = 1.0
            while size > 1e-4:
                moved = self.parameters - size * step
                found, log_probs = self._objective(moved, held)
                if found <= value - 1e-4 * size * slope:
                    break
                size /= 2
            else:
                break
            self.parameters, value = moved, found

    def _objective(self, parameters: Tensor, held: Tensor) -> tuple[float, Tensor]:
        log_probs = self._log_probs(parameters, self.inputs)
        return float((held * parameters.square()).sum() / 2 - (self.hot * log_probs).sum()), log_probs

    def _newton(self, gradient: Tensor, probs: Tensor, held: Tensor) -> Tensor:
        """The Hessian's inverse times the gradient, by conjugate gradients.

        Their preconditioner is the Hessian with one weight for all rows of a class.
        """
        weights = (probs * (1 - probs)).mean(dim=0).clamp(min=1e-6)[:, None]
        divisor = weights * self.strength.clamp(min=0) + held[0]

        def precondition(vector: Tensor) -> Tensor:
            found: Tensor = (vector @ self.vectors / divisor) @ self.vectors.T
            return found

        def curved(vector: Tensor) -> Tensor:
            slopes = self.inputs @ vector.T
            change = probs * (slopes - (probs * slopes).sum(dim=1, keepdim=True))
            return change.T @ self.inputs + held * vector

        solution = torch.zeros_like(gradient)
        residual = gradient
        towards = precondition(residual)
        direction, product = towards, float((residual * towards).sum())
        enough = 1e-2 * product
        for _ in range(50):
            bent = curved(direction)
            size = product / max(float((direction * bent).sum()), 1e-300)
            solution = solution + size * direction
            residual = residual - size * bent
            towards = precondition(residual)
            found = float((residual * towards).sum())
            if found <= enough:
                break
            direction, product = towards + found / product * direction, found
        return solution
