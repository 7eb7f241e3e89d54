"""Trees in LightGBM's own text, so that it can be asked what it makes of them: what ours are held against.

Numbers are written with as many digits as bring back the same bits. Its parser trusts the text, so the arrays must be
those of whole trees.
"""

from __future__ import annotations

import functools

import numpy as np

from anyorder.networks.parts.tree_arrays import ANY_NUMBER, CATEGORICAL, TreeArrays


def write_trees(trees: TreeArrays, scores: int, features: int) -> str:
    """The model of these trees, which were checked before: each round has one for each of its ``scores``."""
    categorical = (trees.decisions & CATEGORICAL).astype(bool)
    nodes = np.cumsum(np.append(0, trees.leaf_counts - 1))  # those before each tree, and all
    sets = np.cumsum(np.append(0, categorical))  # sets of levels before each node, and all
    thresholds = np.zeros(len(categorical))
    thresholds[~categorical] = np.where(trees.thresholds == ANY_NUMBER, np.inf, trees.thresholds)
    thresholds[categorical] = (sets[:-1] - np.repeat(sets[nodes[:-1]], np.diff(nodes)))[categorical]  # its tree's n-th
    columns = [column.tolist() for column in (trees.split_features, thresholds, trees.decisions, *trees.children())]
    values, words = trees.leaf_values.tolist(), trees.set_bits.view(np.uint32).tolist()
    ends = np.cumsum(np.append(0, trees.set_words)).tolist()  # of each set in the words
    lines = [_head(scores, features)]
    first_nodes, first_sets, leaf = nodes.tolist(), sets[nodes].tolist(), 0
    for tree, count in enumerate(trees.leaf_counts.tolist()):
        here = slice(first_nodes[tree], first_nodes[tree + 1])
        split, cut, decision, left, right = (column[here] for column in columns)
        own = ends[first_sets[tree] : first_sets[tree + 1] + 1]
        numbers = (*split, *cut, *decision, *left, *right, *values[leaf : leaf + count])
        lines.append(f"Tree={tree}\nnum_cat={len(own) - 1}\n{_shape(count) % numbers}")
        if len(own) > 1:
            lines.append("cat_boundaries=" + " ".join([str(end - own[0]) for end in own]))
            lines.append("cat_threshold=" + " ".join(map(str, words[own[0] : own[-1]])))
        lines.append("")
        leaf += count
    return "\n".join([*lines, "end of trees\n"])


@functools.lru_cache(maxsize=64)
def _head(scores: int, features: int) -> str:
    return (
        f"tree\nversion=v4\nnum_class={scores}\nnum_tree_per_iteration={scores}\nlabel_index=0\n"
        f"max_feature_idx={features - 1}\nfeature_names={' '.join(map(str, range(features)))}\n"
        f"feature_infos={_row(features, 'none')}\n"
    )


@functools.lru_cache(maxsize=64)
def _shape(leaves: int) -> str:
    """The lines of a tree with so many leaves, its numbers left open: filling them in at once is the quickest way."""
    whole, exact = _row(leaves - 1, "%d"), "%.17g"
    return (
        f"num_leaves={leaves}\nsplit_feature={whole}\nthreshold={_row(leaves - 1, exact)}\ndecision_type={whole}\n"
        f"left_child={whole}\nright_child={whole}\nleaf_value={_row(leaves, exact)}\nis_linear=0\nshrinkage=1"
    )


def _row(count: int, what: str) -> str:
    return " ".join([what] * count)
