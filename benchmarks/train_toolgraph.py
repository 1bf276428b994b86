"""Train the tool graph's two models on the open sets, and cross-validate them by leaving a set out.

    python benchmarks/train_toolgraph.py            # figures, and toolgraph/data/model.json
    python benchmarks/train_toolgraph.py --dry-run  # figures only

Needs scipy for the optimiser: pip install scipy. Recipe: a link is a true one if gold states it (where gold
states only the edge: the best link of the pair, chosen again in each of four rounds); a pair without a gold edge gives
its best link as a false one; pairs that gold does not judge are left out. Every set has the same weight. The loss is
that of logistic regression plus LAMBDA / 2 times the squared distance to the prior weights, whose signs are kept. The
threshold has the best mean F1 over the data-flow sets, smoothed over neighbouring thresholds.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from _toolgraph_sets import FAMILY, FLOW, OTHER, GoldSet, gold_set, same_path, top_level
from scipy.optimize import minimize

from trajsmith.toolgraph.candidates import find_cross_server_pairs, find_home_pairs
from trajsmith.toolgraph.endpoint_table import EndpointTable, build_table
from trajsmith.toolgraph.link_model import PRIOR, compute_link_terms, logistic
from trajsmith.toolgraph.link_scoring import KEPT, ScoredLinks, compute_link_features
from trajsmith.toolgraph.match import Similarity
from trajsmith.toolgraph.parameter_kinds import KIND_PRIOR, KindModel, compute_kind_terms

LAMBDA, ROUNDS, POSITIVES = 30.0, 4, 30.0
KIND_LAMBDA = 3.0
LIGHT = {"taskbench_multimedia": 0.5, "taskbench_multimedia_blind": 0.5}
"""Sets that are two views of one."""
GRID = np.arange(-3.5, 2.01, 0.05)
"""Thresholds that are tried, as logarithms of odds."""
SMOOTH = 0.4
TARGET = Path(__file__).parents[1] / "toolgraph" / "data" / "model.json"


@dataclass
class LinkSet:
    """The candidates of a set, with what gold says of them."""

    gold: GoldSet
    table: EndpointTable
    output: Any
    parameter: Any
    features: dict[str, Any]
    terms: Any
    pair: Any
    """Number of the (source, target) pair."""
    truth: Any
    """1: gold edge, 0: none, -1: not judged."""
    stated: Any
    """bool: gold states this very link."""


def link_set(name: str, similarity: Similarity | None = None) -> LinkSet:
    """Candidates, features and labels of a set."""
    gold = gold_set(name)
    table = build_table(gold.tools, similarity)
    home, far = find_home_pairs(table), find_cross_server_pairs(table)
    o, p, features = compute_link_features(table, np.concatenate([home[0], far[0]]), np.concatenate([home[1], far[1]]))
    source, target = table.outputs.tool[o], table.parameters.tool[p]
    names = [tool.name for tool in gold.tools]
    core, spared = gold.core, gold.spared
    truth, stated = np.zeros(len(o), int), np.zeros(len(o), bool)
    for row, edge in enumerate(zip((names[i] for i in source), (names[i] for i in target), strict=True)):
        judged = edge[0] != edge[1] and (gold.universe is None or gold.universe.judged(edge)) and edge not in spared
        truth[row] = -1 if not judged else int(edge in core)
        if truth[row] == 1:
            ways = core[edge].get("links") or []
            here = table.outputs.endpoints[o[row]].field.path, table.parameters.endpoints[p[row]].field.path
            stated[row] = any(
                same_path(here[0], way["source_path"]) and same_path(here[1], way["param"]) for way in ways
            )
    pair = source.astype(np.int64) * len(names) + target
    return LinkSet(gold, table, o, p, features, compute_link_terms(features), pair, truth, stated)


def best_of_pair(pair: Any, score: Any) -> Any:
    """bool: the best row of each pair."""
    order = np.lexsort((np.arange(len(pair)), -score, pair))
    first = np.r_[True, np.diff(pair[order]) != 0] if len(order) else np.zeros(0, bool)
    chosen = np.zeros(len(pair), bool)
    chosen[order[first]] = True
    return chosen


def chosen_rows(data: LinkSet, score: Any) -> tuple[Any, Any]:
    """Rows that are learned from, and which of them are true."""
    judged = data.truth >= 0
    stated_pairs = np.isin(data.pair, data.pair[data.stated])
    ranked = np.where(stated_pairs & ~data.stated, -99.0, score)
    rows = np.flatnonzero(best_of_pair(data.pair, ranked) & judged)
    return rows, data.truth[rows] == 1


def descend(x: Any, y: Any, weight: Any, prior: dict[str, float], pull: float, start: Any) -> Any:
    """Weights of least loss that keep the signs of the prior."""
    anchor = np.array(list(prior.values()))
    bounds = [
        (None, None) if name == "bias" else (0, None) if value > 0 else (None, 0) for name, value in prior.items()
    ]

    def loss(w: Any) -> tuple[float, Any]:
        chance = np.clip(logistic(x @ w), 1e-12, 1 - 1e-12)
        value = (
            -(weight * (y * np.log(chance) + (1 - y) * np.log(1 - chance))).sum() + pull / 2 * ((w - anchor) ** 2).sum()
        )
        return value, x.T @ (weight * (chance - y)) + pull * (w - anchor)

    return minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x


def fit_links(sets: Sequence[LinkSet]) -> Any:
    """Weights in the order of `PRIOR`."""
    w = np.array(list(PRIOR.values()))
    for _ in range(ROUNDS):
        parts = []
        for data in sets:
            rows, true = chosen_rows(data, data.terms @ w)
            share = LIGHT.get(data.gold.name, 1.0) * POSITIVES / max(1, true.sum())
            parts.append((data.terms[rows], true, np.full(len(rows), share)))
        x, y, weight = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        w = descend(x, y.astype(float), weight, PRIOR, LAMBDA, w)
    return w


def edge_rows(data: LinkSet, score: Any) -> list[dict[str, Any]]:
    """Predicted edges with their scores, as the scorer reads them."""
    size = len(data.gold.tools)
    rows = np.flatnonzero(best_of_pair(data.pair, score))
    name = [tool.full_name for tool in data.gold.tools]
    return [
        {"source": name[data.pair[row] // size], "target": name[data.pair[row] % size], "score": float(score[row])}
        for row in rows
    ]


def curve(figure: Callable[[float], float]) -> Any:
    """A figure at every threshold of the grid."""
    return np.array([figure(float(logistic(point))) for point in GRID])


def smooth(values: Any) -> Any:
    kernel = np.exp(-0.5 * ((GRID[:, None] - GRID[None]) / SMOOTH) ** 2)
    return kernel @ values / kernel.sum(1)


def edge_curve(data: LinkSet, score: Any) -> Any:
    """F1 at every threshold."""
    best = best_of_pair(data.pair, score) & (data.truth >= 0)
    s, y, core = score[best], data.truth[best] == 1, len(data.gold.core)
    return curve(lambda cut: 2 * y[s >= cut].sum() / max(1, (s >= cut).sum() + core))


def apart(name: str, names: Sequence[str]) -> list[str]:
    """Sets that are no view of this one."""
    return [other for other in names if FAMILY.get(other, other) != FAMILY.get(name, name)]


def threshold_of(curves: dict[str, Any], names: Sequence[str]) -> float:
    return float(logistic(GRID[smooth(np.mean([curves[name] for name in names], 0)).argmax()]))


def validate_links(sets: dict[str, LinkSet]) -> tuple[dict[str, Any], float, dict[str, Any]]:
    """Scores of every set by a model without it; the threshold; the figures."""
    scores = {
        name: logistic(data.terms @ fit_links([sets[other] for other in apart(name, list(sets))]))
        for name, data in sets.items()
    }
    curves = {name: edge_curve(data, scores[name]) for name, data in sets.items()}
    figures = {}
    for name, data in sets.items():
        cut = threshold_of(curves, apart(name, FLOW))
        rows = edge_rows(data, scores[name])
        at = data.gold.edge_figures([row for row in rows if row["score"] >= cut])
        sweep = data.gold.edge_figures(rows, sweep=True)
        figures[name] = {"threshold": round(cut, 3)} | {key: at[key] for key in ("precision", "recall", "f1")}
        figures[name] |= {"average_precision": sweep["average_precision"], "best_f1": sweep["best_f1"]}
    return scores, threshold_of(curves, FLOW), figures


@dataclass
class KindSet:
    """Parameters of a set with gold labels."""

    gold: GoldSet
    terms: Any
    leaves: list[Any]
    """Rows of the leaves of each gold parameter."""
    rows: list[dict[str, Any]]


def kind_set(data: LinkSet, score: Any) -> KindSet:
    """Terms of every parameter, by links that a model without this set scored."""
    features = {name: data.features[name] for name in KEPT}
    terms = compute_kind_terms(ScoredLinks(data.table, data.output, data.parameter, score.astype(np.float32), features))
    at: dict[tuple[str, str], list[int]] = {}
    for row, end in enumerate(data.table.parameters.endpoints):
        at.setdefault((data.gold.tools[end.tool].name, top_level(end.field.path)), []).append(row)
    rows = [row for row in data.gold.parameters if (row["tool"], row["param"]) in at]
    return KindSet(data.gold, terms, [np.array(at[row["tool"], row["param"]]) for row in rows], rows)


def fit_kinds(sets: Sequence[KindSet]) -> Any:
    """Weights in the order of `KIND_PRIOR`; classes of equal weight, `mixed` left out."""
    w = np.array(list(KIND_PRIOR.values()))
    for _ in range(ROUNDS):
        parts = []
        for data in sets:
            kind_rows = [
                (rows, row["label"])
                for rows, row in zip(data.leaves, data.rows, strict=True)
                if row["label"] != "mixed"
            ]
            y = np.array([label == "internal" for _, label in kind_rows])
            x = np.array([data.terms[rows[np.argmax(data.terms[rows] @ w)]] for rows, _ in kind_rows])
            parts.append((x, y, np.where(y, POSITIVES / 2 / max(1, y.sum()), POSITIVES / 2 / max(1, (~y).sum()))))
        x, y, weight = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        w = descend(x, y.astype(float), weight, KIND_PRIOR, KIND_LAMBDA, w)
    return w


def kind_figure(data: KindSet, w: Any, cut: float) -> dict[str, Any]:
    """Score the kinds at a threshold; a parameter is internal if one of its leaves is."""
    chance = KindModel(dict(zip(KIND_PRIOR, w, strict=True)), cut).probability(data.terms)
    labels = ["internal" if chance[rows].max() >= cut else "user" for rows in data.leaves]
    rows = [row | {"label": label} for row, label in zip(data.rows, labels, strict=True)]
    return data.gold.parameter_figures(rows)


def validate_kinds(sets: dict[str, KindSet]) -> tuple[float, dict[str, Any]]:
    """The threshold, and macro F1 of every set by a model and a threshold without it."""
    weights = {name: fit_kinds([sets[other] for other in apart(name, list(sets))]) for name in sets}
    curves = {n: curve(lambda cut, n=n: kind_figure(sets[n], weights[n], cut)["macro_f1"]) for n in sets}  # type: ignore[misc]
    figures = {}
    for name in sets:
        cut = threshold_of(curves, apart(name, list(sets)))
        figures[name] = {
            "threshold": round(cut, 3),
            "macro_f1": kind_figure(sets[name], weights[name], cut)["macro_f1"],
        }
    return threshold_of(curves, list(sets)), figures


def reliability(sets: dict[str, LinkSet], scores: dict[str, Any]) -> list[list[float]]:
    """Scores of left-out edges in five bands: lower end, mean score, share that is true, sets of equal weight."""
    s = np.concatenate([scores[n][best_of_pair(d.pair, scores[n]) & (d.truth >= 0)] for n, d in sets.items()])
    y = np.concatenate([d.truth[best_of_pair(d.pair, scores[n]) & (d.truth >= 0)] for n, d in sets.items()])
    ends = np.array([0.0, 0.1, 0.25, 0.5, 0.75, 1.0])
    bands = [(low, (s >= low) & (s < high)) for low, high in pairwise(ends)]
    return [
        [float(low), round(float(s[b].mean()), 3), round(float(y[b].mean()), 3), int(b.sum())]
        for low, b in bands
        if b.any()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry-run", action="store_true")
    arguments = parser.parse_args()
    sets = {name: link_set(name) for name in (*FLOW, *OTHER)}
    scores, cut, figures = validate_links(sets)
    kinds = {name: kind_set(sets[name], scores[name]) for name in FLOW}
    kind_cut, kind_figures = validate_kinds(kinds)
    flow = float(np.mean([figures[name]["f1"] for name in FLOW]))
    mean = float(np.mean([row["macro_f1"] for row in kind_figures.values()]))
    for name, row in {**figures, **{f"{name} (kinds)": row for name, row in kind_figures.items()}}.items():
        print(f"{name:34s}", " ".join(f"{key} {value:.3f}" for key, value in row.items()))
    print(f"edge F1, macro of the data-flow sets, each left out: {flow:.3f}; parameter kinds: {mean:.3f}")
    calibration = reliability({name: sets[name] for name in FLOW}, scores)
    print("score from, mean score, share true, edges:", calibration)
    print(f"thresholds {cut:.3f} {kind_cut:.3f}")
    if arguments.dry_run:
        return
    whole = [kind_set(sets[name], scores[name]) for name in FLOW]
    model = {
        "recipe": " ".join((__doc__ or "").split("Recipe: ")[1].split()),
        "trained_on": list(sets),
        "links": {
            "weights": named(PRIOR, fit_links(list(sets.values()))),
            "threshold": round(cut, 3),
            "left_out": figures,
        },
        "kinds": {
            "weights": named(KIND_PRIOR, fit_kinds(whole)),
            "threshold": round(kind_cut, 3),
            "left_out": kind_figures,
        },
        "calibration": {"columns": ["score from", "mean score", "share true", "edges"], "rows": calibration},
    }
    TARGET.write_text(json.dumps(model, indent=1) + "\n", "utf-8")


def named(prior: dict[str, float], weights: Any) -> dict[str, float]:
    return {name: round(float(value), 4) for name, value in zip(prior, weights, strict=True)}


if __name__ == "__main__":
    main()
