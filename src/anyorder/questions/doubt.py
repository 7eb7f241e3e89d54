r"""The model's own doubt about an answer: how far its parts are apart, each of which has not seen one fold of the rows.

$$\mathrm{doubt}(\theta) = \sqrt{\frac{K - 1}{K} \sum_{f=1}^K (\theta_f - \bar\theta)^2},$$

the jackknife's standard error of an answer, with theta_f the same question asked of the parts that never saw fold f. It
says how much the answer hangs on the rows that happened to be in the table; a mistake that all parts share it cannot
see. It takes K answers more, so they are asked for when the doubt is: an answer whose doubt nobody reads costs nothing.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, Protocol, TypeVar, cast
from weakref import WeakKeyDictionary

from anyorder.model import AnyOrderModel
from anyorder.model.leave_out import folds, leave_out
from anyorder.questions.estimate import Estimate

Method = TypeVar("Method", bound=Callable[..., Any])
_PARTS: WeakKeyDictionary[AnyOrderModel, list[AnyOrderModel]] = WeakKeyDictionary()


def parts_of(model: AnyOrderModel) -> list[AnyOrderModel]:
    """For each fold the parts that have not seen it, as a model; none where there are no folds."""
    found = _PARTS.get(model)
    if found is None:
        count = folds(model)
        found = _PARTS[model] = [leave_out(model, fold) for fold in range(count)] if count > 1 else []
    return found


def jackknife(answers: Sequence[float]) -> float:
    """The standard error of an answer, from the answers of the parts; infinite if one of them is no number."""
    if len(answers) < 2:
        return 0.0
    mean = math.fsum(answers) / len(answers)
    if not math.isfinite(mean):
        return 0.0 if all(answer == answers[0] for answer in answers) else math.inf
    squares = math.fsum((answer - mean) ** 2 for answer in answers)
    return math.sqrt(squares * (len(answers) - 1) / len(answers))


def with_doubt(found: Estimate, again: Callable[[], Sequence[float]]) -> Estimate:
    """An estimate that also has the doubt of the parts; ``again``: what they answer to the same question."""
    own = found.doubted

    def doubt() -> float:
        return math.hypot(own() if callable(own) else own, jackknife([float(answer) for answer in again()]))

    return dataclasses.replace(found, doubted=doubt)


class _InParts(Protocol):
    """What has the same thing as each part of the model says it."""

    parts: Callable[[], Sequence[Any]] | None


def doubted(method: Method) -> Method:
    """A method whose estimates know the doubt about them: the same method of every part, when it is asked for."""

    @wraps(method)
    def asked(self: _InParts, *arguments: Any, **options: Any) -> Any:
        found, parts = method(self, *arguments, **options), self.parts
        if parts is None:
            return found
        if isinstance(found, Estimate):
            return with_doubt(found, lambda: [method(part, *arguments, **options) for part in parts()])
        if isinstance(found, Mapping):
            kept: list[Mapping[Any, float]] = []

            def again(key: Any) -> list[float]:
                if not kept:
                    kept.extend(method(part, *arguments, **options) for part in parts())
                return [each[key] for each in kept]

            return {
                key: with_doubt(one, lambda key=key: again(key)) if isinstance(one, Estimate) else one  # type: ignore[misc]
                for key, one in found.items()
            }
        return found

    return cast(Method, asked)
