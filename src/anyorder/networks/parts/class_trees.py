r"""The trees of one variable together with its questions: scores in, log-probabilities of its classes out.

$$\log p_k = \sum_{\text{questions on the way to } k} \log p(\text{the answer that leads to } k),$$

a sum over a few entries of one table, since the answers to all questions are known at once. A question without trees
is answered by the marginal; a little of the marginal is mixed into the result (:mod:`anyorder.networks.boosted_trees`
says why).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from anyorder.networks.parts.halving import Split, ways
from anyorder.networks.parts.tree_arrays import TreeArrays


@dataclass(frozen=True, eq=False)
class ClassTrees:
    """``ways``: the answers that lead to each class, padded with one that is always given."""

    trees: TreeArrays
    score: Int[np.ndarray, " trees"]  # to which of the scores each tree adds
    scores: int
    ways: Int[np.ndarray, "classes depth"]
    constant: Float[np.ndarray, " answers"]  # what is answered without trees
    yes: Int[np.ndarray, " some"]  # the answers "yes" to questions of yes and no with trees; "no" stands before each
    yes_score: Int[np.ndarray, " some"]  # and the score of each
    several: tuple[tuple[slice, slice], ...]  # answers and scores of other questions with trees
    marginal: Float[np.ndarray, " classes"]
    doubt: float

    @classmethod
    def of(
        cls,
        splits: Sequence[Split],
        parts: Sequence[TreeArrays],
        marginal: Float[np.ndarray, " classes"],
        doubt: float,
    ) -> ClassTrees:
        """The questions about a variable, the trees of each, and the log-probabilities of its classes without them."""
        counts = [split.answers for split in splits]
        constant = np.zeros(sum(counts) + 1)
        yes, yes_score, several, score_of = [], [], [], []
        answer = score = 0
        for split, part, count in zip(splits, parts, counts, strict=True):
            low, middle, high = split
            ends = [low, middle, high] if middle > low else list(range(low, high + 1))
            mass = np.array([np.logaddexp.reduce(marginal[start:end]) for start, end in itertools.pairwise(ends)])
            constant[answer : answer + count] = _log_softmax(mass)
            scores, trees = scores_of(split), len(part.leaf_counts)
            score_of.append(score + np.arange(trees) % scores)
            if trees and count == 2:
                yes.append(answer + 1)
                yes_score.append(score)
            elif trees:
                several.append((slice(answer, answer + count), slice(score, score + count)))
            answer, score = answer + count, score + scores
        return cls(
            trees=TreeArrays.joined(parts),
            score=np.concatenate(score_of) if score_of else np.zeros(0, np.int64),
            scores=score,
            ways=ways(splits, len(marginal)),
            constant=constant,
            yes=np.array(yes, np.int64),
            yes_score=np.array(yes_score, np.int64),
            several=tuple(several),
            marginal=marginal,
            doubt=doubt,
        )

    def log_probs(self, scores: Float[np.ndarray, "rows scores"]) -> Float[np.ndarray, "rows classes"]:
        """The log-probability of every class, given the sums of the trees."""
        if not len(self.score):
            return np.repeat(self.marginal[None], len(scores), axis=0)
        answers = np.repeat(self.constant[None], len(scores), axis=0)
        if len(self.yes):
            odds = scores[:, self.yes_score]
            no = -np.logaddexp(0.0, odds)
            answers[:, self.yes - 1] = no
            answers[:, self.yes] = no + odds
        for here, own in self.several:
            answers[:, here] = _log_softmax(scores[:, own])
        log_probs = answers[:, self.ways].sum(axis=2)
        mixed: Float[np.ndarray, "rows classes"] = np.logaddexp(
            log_probs + np.log1p(-self.doubt), self.marginal + np.log(self.doubt)
        )
        return mixed


def scores_of(split: Split) -> int:
    """How many scores a round of boosting adds to: that of yes, or one for every answer."""
    return 1 if split.answers == 2 else split.answers


def _log_softmax(scores: Float[np.ndarray, "*rows answers"]) -> Float[np.ndarray, "*rows answers"]:
    shifted = scores - scores.max(axis=-1, keepdims=True)
    found: Float[np.ndarray, "*rows answers"] = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return found
