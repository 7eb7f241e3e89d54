"""Boosted trees as a mask network: one classifier a variable, over the bins or levels its head knows.

LightGBM takes unknown inputs natively, so one set of trees answers p(x_i | x_e) for every e it was shown
(:mod:`anyorder.boosting` shows it random ones). Its scores are the logits of the head; a little of the marginal is
mixed in, so that no value is ever ruled out by a leaf that happens not to hold it. The trees are kept as LightGBM's
own text, compressed, in one buffer of bytes: exact to the last digit, and nothing in it can run.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.errors import UserError
from anyorder.networks.base import MaskNetwork


@dataclass(eq=False)
class BoostedTrees(MaskNetwork):
    """``lengths``: bytes of each variable's trees, 0 where it has none and its marginal answers.

    ``atoms``: for a head of atoms and a continuum, how many of its classes are atoms; its features are then the
    logits of the atoms relative to the continuum, and those of the continuum's bins. ``doubt``: the marginal's share.
    """

    name: ClassVar[str] = "boosted_trees"

    lengths: tuple[int, ...] = ()
    atoms: tuple[int, ...] = ()
    doubt: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        self.lengths = tuple(self.lengths) or (0,) * self.layout.variables
        self.atoms = tuple(self.atoms) or (0,) * self.layout.variables
        self.text: Tensor
        self.marginal: Tensor
        self.register_buffer("text", torch.zeros(sum(self.lengths), dtype=torch.uint8))
        # The log-frequencies of each variable's classes.
        width = max(self.layout.width, 2)  # a yes/no head reads one feature but has two classes
        self.register_buffer("marginal", torch.zeros(self.layout.variables, width, dtype=torch.float64))
        self._boosters: list[Any] | None = None

    def set_trees(self, texts: Sequence[str], marginal: Float[Tensor, "variables width"]) -> BoostedTrees:
        """The network with these trees in place of its own."""
        packed = [zlib.compress(text.encode(), 6) if text else b"" for text in texts]
        lengths = tuple(len(part) for part in packed)
        network = BoostedTrees(self.layout, lengths, self.atoms, self.doubt)
        network.text.copy_(torch.from_numpy(np.frombuffer(b"".join(packed), dtype=np.uint8).copy()))
        network.marginal.copy_(marginal)
        return network

    def _load_from_state_dict(self, *arguments: Any) -> None:
        super()._load_from_state_dict(*arguments)
        self._boosters = None  # those of the bytes before

    def boosters(self) -> list[Any]:
        """LightGBM's models, read from the bytes once."""
        if self._boosters is None:
            data = self.text.cpu().numpy().tobytes()
            ends = np.cumsum(self.lengths)
            self._boosters = [
                _read(data[end - length : end]) if length else None
                for end, length in zip(ends, self.lengths, strict=True)
            ]
        return self._boosters

    def beside(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        prefix: Int[Tensor, "batch prefix"] | None = None,
    ) -> Float[Tensor, "batch variables width"]:
        features = torch.zeros(*values.shape, self.layout.width, dtype=values.dtype, device=values.device)
        inputs, unknown = _inputs(values, known), ~known.cpu().numpy()
        for variable in range(self.layout.variables):
            rows = np.flatnonzero(unknown[:, variable])
            if len(rows):
                here = torch.as_tensor(rows, device=values.device)
                features[here, variable] = self._answer(inputs[rows], variable).to(features)
        return features

    def at(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        target: Int[Tensor, " batch"],
        prefix: Int[Tensor, "batch prefix"] | None = None,
    ) -> Float[Tensor, "batch width"]:
        features = torch.zeros(len(values), self.layout.width, dtype=values.dtype, device=values.device)
        inputs, targets = _inputs(values, known), target.cpu().numpy()
        inputs[np.arange(len(targets)), targets] = np.nan
        for variable in np.unique(targets):
            rows = np.flatnonzero(targets == variable)
            here = torch.as_tensor(rows, device=values.device)
            features[here] = self._answer(inputs[rows], int(variable)).to(features)
        return features

    def _answer(self, inputs: Float[np.ndarray, "rows variables"], variable: int) -> Float[Tensor, "rows width"]:
        """Features of one variable, in float64, the width filled up with zeros."""
        size = self.layout.sizes[variable]
        atoms = self.atoms[variable]
        marginal = self.marginal[variable, : max(size, 2)].cpu()
        booster = self.boosters()[variable]
        if booster is None:
            log_probs = marginal.expand(len(inputs), -1)
        else:
            threads = torch.get_num_threads()
            scores = torch.from_numpy(booster.predict(inputs, raw_score=True, num_threads=threads))
            if scores.ndim == 1:  # two classes: one score, that of the second
                scores = torch.stack([torch.zeros_like(scores), scores], dim=1)
            sure, unsure = np.log1p(-self.doubt), np.log(self.doubt)
            log_probs = torch.logaddexp(scores.log_softmax(1) + sure, marginal.log_softmax(0) + unsure)
        if size == 1:  # a yes/no head reads the log-odds
            log_probs = log_probs[:, 1:2] - log_probs[:, :1]
        elif atoms:
            continuum = log_probs[:, atoms:].logsumexp(1, keepdim=True)
            log_probs = torch.cat([log_probs[:, :atoms] - continuum, log_probs[:, atoms:]], dim=1)
        return torch.nn.functional.pad(log_probs, (0, self.layout.width - log_probs.shape[1]))


def _inputs(values: Tensor, known: Tensor) -> Float[np.ndarray, "batch variables"]:
    """What the trees see: NaN where nothing is known."""
    return values.detach().double().masked_fill(~known, torch.nan).cpu().numpy()


def lightgbm() -> Any:
    """The library, or what to do without it."""
    try:
        import lightgbm as library
    except (ImportError, OSError) as error:  # OSError: its OpenMP runtime is not there
        raise UserError(
            f"boosted trees need LightGBM, which cannot be loaded here ({error}); "
            "install it with: pip install lightgbm, or fit with engine='neural'"
        ) from error
    return library


def _read(packed: bytes) -> Any:
    library = lightgbm()
    try:
        return library.Booster(model_str=zlib.decompress(packed).decode())
    except (zlib.error, UnicodeDecodeError, library.basic.LightGBMError) as error:
        raise UserError(f"the trees of this model are damaged ({error}); fit or copy it again") from error
