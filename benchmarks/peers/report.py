"""From rows of scores to ranks, ratios and the summary that is printed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pandas as pd

from methods import METHODS, PEERS
from score import mean_rank
from sets import GENERATED, MECHANISMS, SETS

PICTURE = "images/peers.png"
"""Drawn by ``plot.py``, from the folder of the documentation."""
LOWER_IS_BETTER = ("crps", "rmse", "log_loss")


def wide(rows: list[dict[str, Any]], score: str) -> pd.DataFrame:
    """One line a (set, mechanism), one column a method, for the tables that have that score."""
    frame = pd.DataFrame(rows)
    if score not in frame:
        return pd.DataFrame()
    table = frame.pivot(index=["set", "mechanism"], columns="method", values=score).dropna(how="all")
    table = table.reindex(columns=[name for name in METHODS if name in table.columns])
    return table.sort_index(key=lambda level: level.map((*SETS, GENERATED, *MECHANISMS).index))


def by_set(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """CRPS of each set, the mean of its mechanisms; NaN for a method that lacks one of them."""
    return wide(rows, "crps").groupby(level="set", sort=False).agg(lambda values: values.mean(skipna=False))


def ranks(rows: list[dict[str, Any]], score: str) -> dict[str, float]:
    """Mean rank of each method among the peers and one engine of anyorder: its own, or ``auto`` for a peer.

    So that no method is moved down by two relatives of the same rival. Only tables count on which all of these have run
    (or failed); in the middle of a run, or where one was left out, there are fewer.
    """
    found = {}
    there = {row["method"] for row in rows}
    for method in sorted(there):
        rival = "anyorder auto" if method in PEERS else method
        names = there & {*PEERS, rival}
        mine = [row for row in rows if row["method"] in names]
        done = Counter((row["set"], row["mechanism"]) for row in mine)
        table = wide([row for row in mine if done[row["set"], row["mechanism"]] == len(names)], score)
        if method in table:
            found[method] = float(mean_rank(table)[method])
    return found


def by_method(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each method: mean ranks, mean coverage, and how many tables it failed on."""
    tables = {score: wide(rows, score) for score in (*LOWER_IS_BETTER, "coverage", "coverage_ties")}
    ranked = {score: ranks(rows, score) for score in LOWER_IS_BETTER if len(tables[score])}
    best = tables["crps"].reindex(columns=PEERS).min(axis=1) if len(tables["crps"]) else None
    lines = []
    for method in METHODS:
        mine = [row for row in rows if row["method"] == method]
        if not mine:
            continue
        line: dict[str, Any] = {"method": method}
        for score, rank in ranked.items():
            line[f"{score}_mean_rank"] = _round(rank.get(method), 2)
        if best is not None and method in tables["crps"]:
            line["crps_over_best_peer_mean"] = _round((tables["crps"][method] / best).mean(), 3)
        for score in ("coverage", "coverage_ties"):
            if method in tables[score]:
                line[f"{score}_mean"] = _round(tables[score][method].mean(), 3)
        line["failed"] = sum("error" in row for row in mine)
        lines.append(line)
    return lines


def summary(rows: list[dict[str, Any]]) -> str:
    """What is printed at the end of a run."""
    if not rows:
        return "nothing is done yet\n"
    parts = []
    for score, heading in (
        ("crps", "CRPS in training standard deviations (fair, 20 draws; smaller is better)"),
        ("crps_plain", "CRPS, plain empirical"),
        ("coverage", "coverage of the nominal 90 % interval (Weibull)"),
        ("coverage_ties", "coverage with ties broken at random"),
        ("rmse", "standardised RMSE of the mean of the draws"),
        ("log_loss", "log-loss of levels, smoothed frequencies of 20 draws"),
        ("exact_log_loss", "log-loss of levels, exact probabilities (anyorder only)"),
        ("accuracy", "accuracy of the most frequent level"),
        ("fit_seconds", "seconds to fit"),
        ("fill_seconds", "seconds to fill"),
        ("fit_processor", "processor seconds to fit"),
        ("fill_processor", "processor seconds to fill"),
    ):
        table = wide(rows, score)
        if len(table):
            digits = 1 if score.endswith(("seconds", "processor")) else 3
            parts += [heading, table.round(digits).to_string(na_rep="-"), ""]
    crps = wide(rows, "crps")
    if len(crps):
        best = crps.reindex(columns=PEERS).min(axis=1)
        parts += ["CRPS over that of the best peer", crps.div(best, axis=0).round(3).to_string(na_rep="-"), ""]
        sets = by_set(rows)
        parts += ["CRPS, mean of both mechanisms", sets.round(3).to_string(na_rep="-"), ""]
        best = sets.reindex(columns=PEERS).min(axis=1)
        parts += ["the same over that of the best peer", sets.div(best, axis=0).round(3).to_string(na_rep="-"), ""]
    parts += ["per method", pd.DataFrame(by_method(rows)).to_string(index=False, na_rep="-"), ""]
    errors = [f"{row['method']} on {row['set']}-{row['mechanism']}: {row['error']}" for row in rows if "error" in row]
    if errors:
        parts += ["failed", *errors, ""]
    return "\n".join(parts) + "\n"


def payload(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The result file: ranks first, then one row per table, mechanism and method."""
    plain = [
        {name: _round(value, 4) if isinstance(value, float) else value for name, value in row.items()} for row in rows
    ]
    return {
        "title": "The peers, side by side: hidden cells of six tables",
        "about": "30 % of the cells hidden completely at random (mcar), or 30 % of two thirds of the columns at random "
        "given the rest (mar), in training and test rows; 20 draws for every hidden test cell. CRPS (fair estimator) "
        "and RMSE in training standard deviations; coverage of the nominal 90 % interval between Weibull quantiles, as "
        "it is and with ties broken at random; log-loss of levels from smoothed frequencies of draws. Best peer: of "
        "the methods that are not anyorder. Ranks are among the peers and one engine of anyorder (auto, for a peer); a "
        "failed method ranks last on that table. miceforest imputes training and test rows together, so its fitting "
        "time holds the filling; the random forest's draws are 20 seeds.",
        "seed": 0,
        "picture": PICTURE,
        "rows": by_method(rows),
        "crps_mean_of_both_mechanisms": [
            {"set": name} | {method: _round(value, 3) for method, value in line.items()}
            for name, line in by_set(rows).iterrows()
        ],
        "crps": on_page(rows, "crps"),
        "coverage_with_ties_broken_at_random": on_page(rows, "coverage_ties"),
        "log_loss_of_levels": on_page(rows, "log_loss"),
        "log_loss_of_levels_exact": on_page(rows, "exact_log_loss"),
        "seconds_to_fit_and_fill": on_page(rows, "all_seconds"),
        "details": plain,
    }


def on_page(rows: list[dict[str, Any]], score: str) -> list[dict[str, Any]]:
    """One score as a table for the documentation: a line for each (set, mechanism)."""
    lines = wide(rows, score)
    return [
        {"set": name, "mechanism": mechanism} | {method: _round(value, 3) for method, value in line.items()}
        for (name, mechanism), line in lines.iterrows()
    ]


def _round(value: Any, digits: int) -> float | None:
    return None if value is None or pd.isna(value) else round(float(value), digits)
