"""From scores of answers to ranks, differences with their errors, and the summary that is printed.

A line of every table is one (set, mechanism); its figures are means over the seeds. A method that failed with one of
the seeds has no figure there and ranks last. The best peer is the best of the methods that are not anyorder.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

import parts
import table_sets
from methods import METHODS, OURS, PEERS
from score import Cells, mean_rank, paired_error
from sets import GENERATED, MECHANISMS, SETS

PICTURE = "images/peers.png"
"""Drawn by ``plot.py``, from the folder of the documentation."""
LOWER_IS_BETTER = ("crps", "rmse", "log_loss")
COMPARED = ("crps", "log_loss")
"""Scores of which every cell is kept, so that differences have errors."""
LABELS = ("tuning", "unseen")


@dataclass(frozen=True)
class Scored:
    """The scores of one answer: means, and for some scores all cells."""

    row: dict[str, Any]
    cells: dict[str, Cells]

    @property
    def place(self) -> tuple[str, str]:
        return self.row["set"], self.row["mechanism"]


def wide(rows: Sequence[dict[str, Any]], score: str) -> pd.DataFrame:
    """One line a (set, mechanism), one column a method, for the tables that have that score."""
    frame = pd.DataFrame(rows)
    if score not in frame:
        return pd.DataFrame()
    whole = frame.groupby(["set", "mechanism", "method"])[score].agg(lambda values: values.mean(skipna=False))
    table = whole.unstack("method").dropna(how="all")
    table = table.reindex(columns=[name for name in METHODS if name in table.columns])
    return table.sort_index(key=lambda level: level.map((*SETS, GENERATED, *MECHANISMS).index))


def ranks(rows: Sequence[dict[str, Any]], score: str) -> dict[str, float]:
    """Mean rank of each method among the peers and one row of anyorder: its own, or ``auto`` for a peer.

    So that no method is moved down by two relatives of the same rival. Only tables count on which all of these have run
    (or failed); in the middle of a run, or where one was left out, there are fewer.
    """
    found = {}
    there = {row["method"] for row in rows}
    for method in sorted(there):
        rival = "anyorder auto" if method in PEERS else method
        names = there & {*PEERS, rival}
        run = {place: {row["method"] for row in rows if _place(row) == place} for place in set(map(_place, rows))}
        table = wide([row for row in rows if row["method"] in names and names <= run[_place(row)]], score)
        if method in table:
            found[method] = float(mean_rank(table)[method])
    return found


def _place(row: dict[str, Any]) -> tuple[str, str]:
    return row["set"], row["mechanism"]


def by_method(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each method: mean ranks, mean coverage, draws beyond the data, and how many answers it failed to give."""
    tables = {score: wide(rows, score) for score in (*LOWER_IS_BETTER, "coverage", "coverage_ties", "draws_beyond")}
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
        if method in tables["draws_beyond"]:
            line["draws_beyond_data"] = _round(tables["draws_beyond"][method].mean(), 5)
            line["furthest_in_widths"] = _round(max(row.get("furthest", 0.0) for row in mine), 2)
        line["failed"] = sum("error" in row for row in mine)
        lines.append(line)
    return lines


def differences(found: Sequence[Scored], score: str) -> list[dict[str, Any]]:
    """For every (set, mechanism): the best peer, and every other method minus it with the paired bootstrap error."""
    table = wide([one.row for one in found], score)
    lines = []
    for place, line in table.iterrows():
        peers = line.reindex(PEERS).dropna()
        if peers.empty:
            continue
        best = str(peers.idxmin())
        cells = {method: _cells(found, place, method, score) for method in line.dropna().index}
        said: dict[str, Any] = {"set": place[0], "label": table_sets.label(place[0]), "mechanism": place[1]}
        said |= {"best_peer": best, "of_best": _round(peers[best], 4)}
        for method, mine in cells.items():
            if method != best and len(mine) == len(cells[best]):
                difference, error = paired_error(mine, cells[best])
                said[method] = {"difference": _round(difference, 4), "error": _round(error, 4)}
        lines.append(said)
    return lines


def _cells(found: Iterable[Scored], place: Any, method: str, score: str) -> list[Cells]:
    return [
        one.cells[score] for one in found if one.place == place and one.row["method"] == method and score in one.cells
    ]


def verdicts(lines: dict[str, list[dict[str, Any]]], found: Sequence[Scored]) -> list[dict[str, Any]]:
    """For every row of anyorder and label: how often it is the best, or within one error of the best peer."""
    counted = []
    for score, table in lines.items():
        for method in OURS:
            for label in LABELS:
                mine = [line[method] for line in table if line["label"] == label and method in line]
                if not mine:
                    continue
                within = [one["difference"] <= one["error"] for one in mine]
                counted.append(
                    {"method": method, "tables": label, "score": score, "comparisons": len(mine)}
                    | {"better_than_best_peer": sum(one["difference"] < 0 for one in mine)}
                    | {"better_or_within_one_error": sum(within)}
                    | {"mean_rank": _round(ranks(_of_label(found, label), score).get(method), 2)}
                )
    return counted


def _of_label(found: Sequence[Scored], label: str) -> list[dict[str, Any]]:
    return [one.row for one in found if table_sets.label(one.row["set"]) == label]


def summary(found: Sequence[Scored]) -> str:
    """What is printed at the end of a run."""
    if not found:
        return "nothing is done yet\n"
    rows = [one.row for one in found]
    blocks = []
    for score, heading in (
        ("crps", "CRPS in training standard deviations (fair, 20 draws; smaller is better)"),
        ("coverage", "coverage of the nominal 90 % interval (Weibull)"),
        ("coverage_ties", "coverage with ties broken at random"),
        ("rmse", "standardised RMSE of the mean of the draws"),
        ("point_rmse", "standardised RMSE of the point fill (anyorder only)"),
        ("draws_beyond", "share of draws beyond the training range"),
        ("truth_beyond", "share of hidden cells beyond the training range"),
        ("furthest", "the furthest draw beyond the training range, in widths of it"),
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
            blocks += [heading, table.round(digits).to_string(na_rep="-"), ""]
    lines = {score: differences(found, score) for score in COMPARED}
    for score, table in lines.items():
        if table:
            shown = [{name: _shown(value) for name, value in line.items()} for line in table]
            frame = pd.DataFrame(shown).set_index(["set", "label", "mechanism"])
            blocks += [f"{score}: difference to the best peer, with its paired error", frame.to_string(na_rep="-"), ""]
    counted = verdicts(lines, found)
    if counted:
        blocks += ["against the best peer", pd.DataFrame(counted).to_string(index=False, na_rep="-"), ""]
    blocks += ["per method", pd.DataFrame(by_method(rows)).to_string(index=False, na_rep="-"), ""]
    blocks += ["made at", *parts.of_one_version(rows), ""]
    errors = [
        f"{row['method']} on {row['set']}-{row['mechanism']}-{row['seed']}: {row['error']}"
        for row in rows
        if "error" in row
    ]
    if errors:
        blocks += ["failed", *errors, ""]
    return "\n".join(blocks) + "\n"


def payload(found: Sequence[Scored]) -> dict[str, Any]:
    """The result file: ranks first, then verdicts, differences with errors, and the figures of every method."""
    rows = [one.row for one in found]
    lines = {score: differences(found, score) for score in COMPARED}
    plain = [
        {name: _round(value, 5) if isinstance(value, float) else value for name, value in row.items()} for row in rows
    ]
    names = list(dict.fromkeys(row["set"] for row in rows))
    seeds = sorted({row["seed"] for row in rows})
    commits = parts.of_one_version([row for row in rows if row["method"] in OURS])
    content: dict[str, Any] = {
        "title": f"The peers, side by side: hidden cells of {len(names)} tables",
        "about": "30 % of the cells hidden completely at random (mcar), 30 % of two thirds of the columns at random "
        "given the rest (mar), or a share of its own for every row, uniform up to 80 % (varied), in training and test "
        f"rows; 20 draws for every hidden test cell; means over {len(seeds)} seeds of splits and masks. Tables "
        f"labelled `tuning` ({', '.join(name for name in names if table_sets.label(name) == 'tuning')}) were looked at "
        f"while the library was made, those labelled `unseen` "
        f"({', '.join(name for name in names if table_sets.label(name) == 'unseen')}) were not. CRPS (fair estimator) "
        "and RMSE in training standard deviations; coverage of the nominal 90 % interval between Weibull quantiles, as "
        "it is and with ties broken at random; log-loss of levels from smoothed frequencies of draws. Best peer: of "
        "the methods that are not anyorder. Errors are paired: a bootstrap of test rows. Ranks are among the peers and "
        "one row of anyorder (auto, for a peer); a failed method ranks last on that table. miceforest imputes training "
        "and test rows together, so its fitting time holds the filling; a random forest's draws are 20 seeds. Rows of "
        f"anyorder were made at commit {', '.join(commits) or 'unknown'}.",
        "seed": seeds,
        "picture": PICTURE,
        "rows": by_method(rows),
        "against_the_best_peer": verdicts(lines, found),
    }
    for score, table in lines.items():
        content[f"{score}_minus_best_peer"] = [{name: _shown(value) for name, value in line.items()} for line in table]
    content |= {
        "crps": on_page(rows, "crps"),
        "coverage_with_ties_broken_at_random": on_page(rows, "coverage_ties"),
        "draws_beyond_the_training_range": on_page(rows, "draws_beyond", 5),
        "log_loss_of_levels": on_page(rows, "log_loss"),
        "log_loss_of_levels_exact": on_page(rows, "exact_log_loss"),
        "seconds_to_fit_and_fill": on_page(rows, "all_seconds"),
        "details": plain,
    }
    if len(commits) > 1:
        content["partial"] = f"Rows of anyorder come from several versions of the code: {', '.join(commits)}."
    return {name: value for name, value in content.items() if value != []}


def on_page(rows: Sequence[dict[str, Any]], score: str, digits: int = 3) -> list[dict[str, Any]]:
    """One score as a table for the documentation: a line for each (set, mechanism)."""
    lines = wide(rows, score)
    return [
        {"set": name, "label": table_sets.label(name), "mechanism": mechanism}
        | {method: _round(value, digits) for method, value in line.items()}
        for (name, mechanism), line in lines.iterrows()
    ]


def _shown(value: Any) -> Any:
    """A difference with its error as one text: +0.012 ± 0.004."""
    return f"{value['difference']:+.3f} ± {value['error']:.3f}" if isinstance(value, dict) else value


def _round(value: Any, digits: int) -> float | None:
    return None if value is None or pd.isna(value) else round(float(value), digits)
