"""Boosted trees as a mask network: for every variable a tree of questions about its bins or levels, each boosted.

LightGBM takes unknown inputs natively, so one set of trees answers p(x_i | x_e) for every e it was shown
(:mod:`anyorder.training.trees.growing` shows it random ones). The probabilities of the answers along the way to a class
multiply (:mod:`anyorder.networks.parts.halving`); a little of the marginal is mixed in, so that no value is ever ruled
out by a leaf that happens not to hold it. The trees are kept as LightGBM's own text, compressed, in one buffer of
bytes: exact to the last digit, and nothing in it can run.
"""

from __future__ import annotations

import io
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
from anyorder.networks.layout import Layout
from anyorder.networks.parts.halving import Split


@dataclass(eq=False)
class BoostedTrees(MaskNetwork):
    """``splits``: each variable's questions; ``lengths``: bytes of each one's trees, 0 where the marginal answers it.

    ``atoms``: for a head of atoms and a continuum, how many of its classes are atoms; its features are then the
    logits of the atoms relative to the continuum, and those of the continuum's bins. ``doubt``: the marginal's share.
    """

    name: ClassVar[str] = "boosted_trees"
    trainable: ClassVar[bool] = False

    splits: tuple[tuple[Split, ...], ...] = ()
    lengths: tuple[tuple[int, ...], ...] = ()
    atoms: tuple[int, ...] = ()
    doubt: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        self.splits = tuple(tuple(Split(*split) for split in own) for own in self.splits)
        self.splits = self.splits or ((),) * self.layout.variables
        self.lengths = tuple(map(tuple, self.lengths)) or tuple((0,) * len(own) for own in self.splits)
        self.atoms = tuple(self.atoms) or (0,) * self.layout.variables
        self.text: Tensor
        self.marginal: Tensor
        self.register_buffer("text", torch.zeros(sum(map(sum, self.lengths)), dtype=torch.uint8))
        # The log-frequencies of each variable's classes.
        width = max(self.layout.width, 2)  # a yes/no head reads one feature but has two classes
        self.register_buffer("marginal", torch.zeros(self.layout.variables, width, dtype=torch.float64))
        self._boosters: list[list[Any]] | None = None

    @classmethod
    def of(
        cls,
        layout: Layout,
        splits: Sequence[Sequence[Split]],
        texts: Sequence[Sequence[str]],
        atoms: Sequence[int],
        marginal: Float[Tensor, "variables width"],
    ) -> BoostedTrees:
        """The network that answers each variable's questions with these trees, in LightGBM's text ("" for none)."""
        packed = [[zlib.compress(text.encode(), 6) if text else b"" for text in own] for own in texts]
        lengths = tuple(tuple(map(len, own)) for own in packed)
        network = cls(layout, tuple(map(tuple, splits)), lengths, tuple(atoms))
        joined = b"".join(part for own in packed for part in own)
        network.text.copy_(torch.from_numpy(np.frombuffer(joined, dtype=np.uint8).copy()))
        network.marginal.copy_(marginal)
        return network

    def _load_from_state_dict(self, *arguments: Any) -> None:
        super()._load_from_state_dict(*arguments)
        self._boosters = None  # those of the bytes before

    @property
    def learned(self) -> tuple[bool, ...]:
        return tuple(any(own) for own in self.lengths)

    def boosters(self) -> list[list[Any]]:
        """LightGBM's models for every question of every variable, read from the bytes once."""
        if self._boosters is None:
            data = io.BytesIO(self.text.cpu().numpy().tobytes())
            self._boosters = [[_read(data.read(length)) if length else None for length in own] for own in self.lengths]
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
        marginal = self.marginal[variable, : max(size, 2)].cpu().log_softmax(0)
        if any(self.lengths[variable]):
            log_probs = self._log_probs(inputs, variable, marginal)
            sure, unsure = np.log1p(-self.doubt), np.log(self.doubt)
            log_probs = torch.logaddexp(log_probs + sure, marginal + unsure)
        else:
            log_probs = marginal.expand(len(inputs), -1)
        if size == 1:  # a yes/no head reads the log-odds
            log_probs = log_probs[:, 1:2] - log_probs[:, :1]
        elif atoms:
            continuum = log_probs[:, atoms:].logsumexp(1, keepdim=True)
            log_probs = torch.cat([log_probs[:, :atoms] - continuum, log_probs[:, atoms:]], dim=1)
        return torch.nn.functional.pad(log_probs, (0, self.layout.width - log_probs.shape[1]))

    def _log_probs(
        self, inputs: Float[np.ndarray, "rows variables"], variable: int, marginal: Float[Tensor, " classes"]
    ) -> Float[Tensor, "rows classes"]:
        """What the answers to all questions on the way to each class multiply to."""
        log_probs = torch.zeros(len(inputs), len(marginal), dtype=torch.float64)
        counted = with_count(inputs)
        for split, booster in zip(self.splits[variable], self.boosters()[variable], strict=True):
            low, middle, high = split
            if booster is None:
                here = marginal[low:high]
                answers = torch.stack([here[: middle - low].logsumexp(0), here[middle - low :].logsumexp(0)])
                answers = (answers if middle > low else here).log_softmax(0).expand(len(inputs), -1)
            else:
                scores = booster.predict(counted, raw_score=True, num_threads=torch.get_num_threads())
                answers = torch.from_numpy(scores)
                if answers.ndim == 1:  # a yes/no question: one score, that of yes
                    answers = torch.stack([torch.zeros_like(answers), answers], dim=1)
                answers = answers.log_softmax(1)
            if middle > low:
                log_probs[:, low:middle] += answers[:, :1]
                log_probs[:, middle:high] += answers[:, 1:]
            else:
                log_probs[:, low:high] += answers
        return log_probs


def _inputs(values: Tensor, known: Tensor) -> Float[np.ndarray, "batch variables"]:
    """What the trees see: NaN where nothing is known."""
    return values.detach().double().masked_fill(~known, torch.nan).cpu().numpy()


def with_count(inputs: Float[np.ndarray, "rows variables"]) -> Float[np.ndarray, "rows more"]:
    """Beside the cells, how many of them are known.

    What one cell tells depends on what the others tell. A tree that had to find out by asking for each of them in turn
    would never come to say much about a single known cell.
    """
    count = np.count_nonzero(~np.isnan(inputs), axis=1)
    return np.concatenate([inputs, count[:, None]], axis=1)


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
