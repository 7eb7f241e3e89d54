"""Modules built without initial weights, for those that are then read from a file.

Drawing the weights of a large network takes longer than reading them, and moves torch's global random state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from anyorder.support.randomness import DRAWS

_FILLING = {draw for draw in DRAWS if draw.__name__.endswith("_")}
_MAKING = {torch.randn, torch.rand}


class WeightsUnset(TorchFunctionMode):
    """Within, tensors that torch would fill with random numbers hold what was in memory. For this thread alone.

    Draws that are more than a filling (a permutation) are made, from a generator that is thrown away. What is drawn
    from a generator of one's own is drawn as ever: it may be no weight.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        options = dict(kwargs or {})
        if options.get("generator") is None:
            if func in _FILLING or getattr(func, "__module__", None) == "torch.nn.init":
                return args[0] if args else options["tensor"]
            if func in _MAKING:
                options.pop("generator", None)
                func = torch.empty
            elif func in DRAWS:
                options["generator"] = torch.Generator()
        return func(*args, **options)
