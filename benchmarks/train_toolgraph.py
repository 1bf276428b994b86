"""Train the tool graph's two models on the open sets, and cross-validate them by leaving a source of sets out.

    python benchmarks/train_toolgraph.py            # figures, and toolgraph/data/model.json
    python benchmarks/train_toolgraph.py --dry-run  # figures only

Needs scipy for the optimiser: pip install scipy. Recipe: every open set is read twice, with outputs as declared and
without any; the bundled environments, without outputs, are labelled by execution (benchmarks/bundled_labels.json);
recorded dialogues (benchmarks/sgd_sets.py, in the folder TRAJSMITH_SETS) count a fiftieth each. A
link is a true one if gold states it (where gold states only the edge: the best link of the pair, chosen again in each
of four rounds); a pair without a gold edge gives its best link as a false one; pairs that gold does not judge are left
out. Every set has the same weight, sets that are views of one source less. The loss is that of logistic regression plus
LAMBDA / 2 times the squared distance to the prior weights, whose signs are kept. The threshold has the best mean F1,
smoothed over neighbouring thresholds, sources counted once. The terms of tools without outputs are scaled and shifted
by what fits the left-out pairs best (Platt), so that one threshold serves.
"""

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from _toolgraph_sets import (
    BARE,
    BUNDLED,
    DIALOGUES,
    FLOW,
    OTHER,
    SMALL,
    GoldSet,
    family,
    find_set_folder,
    gold_set,
    id_rule,
    same_path,
    top_level,
)  # fmt: skip
from scipy.optimize import minimize

from trajsmith.toolgraph.candidates import find_cross_server_pairs, find_home_pairs
from trajsmith.toolgraph.endpoint_table import EndpointTable, build_table
from trajsmith.toolgraph.link_model import PRIOR, compute_link_terms, logistic
from trajsmith.toolgraph.link_scoring import KEPT, ScoredLinks, compute_link_features
from trajsmith.toolgraph.match import Similarity
from trajsmith.toolgraph.parameter_kinds import KIND_PRIOR, KindModel, compute_kind_terms

LAMBDA, ROUNDS, POSITIVES = 30.0, 4, 30.0
KIND_LAMBDA = 40.0
BALANCE = 0.5
"""How far the rarer kind of a set weighs more: 0 not at all, 1 as much as the other."""
LIGHT = {"taskbench": 0.5, "bundled": 0.25}
"""Sources whose sets are views of one, or many small ones: weight of each set."""
DIALOGUE_LIGHT = 0.02
"""The same for each of the sets that `sgd_sets.py` makes."""
GRID = np.arange(-5.5, 2.01, 0.05)
"""Thresholds that are tried, as logarithms of odds."""
SMOOTH = 0.4
KIND_CUT = 0.4
"""Probability from which a parameter is internal: to miss one costs a chain, to take one for internal a look-up."""
PROMISED = np.array([name.startswith("promise") for name in PRIOR])
"""bool: terms of tools that declare no outputs."""
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


def link_set(
    name: str, similarity: Similarity | None = None, build: Callable[..., EndpointTable] | None = None
) -> LinkSet:
    """Candidates, features and labels of a set; `build` reads its tools."""
    gold = gold_set(name)
    table = build(gold.tools) if build is not None else build_table(gold.tools, similarity)
    home, far = find_home_pairs(table), find_cross_server_pairs(table)
    o, p, features = compute_link_features(table, np.concatenate([home[0], far[0]]), np.concatenate([home[1], far[1]]))
    pair = table.outputs.tool[o].astype(np.int64) * len(gold.tools) + table.parameters.tool[p]
    truth = judge(gold, pair)
    names, core, stated = [tool.name for tool in gold.tools], gold.core, np.zeros(len(o), bool)
    for row in np.flatnonzero(truth == 1):
        edge = names[pair[row] // len(names)], names[pair[row] % len(names)]
        here = table.outputs.endpoints[o[row]].field.path, table.parameters.endpoints[p[row]].field.path
        stated[row] = any(
            same_path(here[0], way["source_path"]) and same_path(here[1], way["param"])
            for way in core[edge].get("links") or []
        )
    return LinkSet(gold, table, o, p, features, compute_link_terms(features), pair, truth, stated)


def judge(gold: GoldSet, pair: Any) -> Any:
    """int [n]: 1 for gold edges, 0 for pairs that are none, -1 for those that gold does not judge."""
    names, core, spared = [tool.name for tool in gold.tools], gold.core, gold.spared
    known, place = np.unique(pair, return_inverse=True)
    truth = np.zeros(len(known), int)
    for row, number in enumerate(known.tolist()):
        edge = names[number // len(names)], names[number % len(names)]
        judged = edge[0] != edge[1] and (gold.universe is None or gold.universe.judged(edge)) and edge not in spared
        truth[row] = int(edge in core) if judged else -1
    return truth[place.reshape(-1)]


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
        (None, None) if name in ("bias", "promise") else (0, None) if value > 0 else (None, 0)
        for name, value in prior.items()
    ]

    def loss(w: Any) -> tuple[float, Any]:
        chance = np.clip(logistic(x @ w), 1e-12, 1 - 1e-12)
        value = (
            -(weight * (y * np.log(chance) + (1 - y) * np.log(1 - chance))).sum() + pull / 2 * ((w - anchor) ** 2).sum()
        )
        return value, x.T @ (weight * (chance - y)) + pull * (w - anchor)

    return minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x


def weigh_set(name: str) -> float:
    """Return how much a set counts."""
    return DIALOGUE_LIGHT if name.removesuffix(BARE) in DIALOGUES else LIGHT.get(family(name), 1.0)


def fit_links(sets: Sequence[LinkSet]) -> Any:
    """Weights in the order of `PRIOR`."""
    w = np.array(list(PRIOR.values()))
    for _ in range(ROUNDS):
        parts = []
        for data in sets:
            rows, true = chosen_rows(data, data.terms @ w)
            share = weigh_set(data.gold.name) * POSITIVES / max(1, true.sum())
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


def choose_threshold(curves: dict[str, Any], names: Sequence[str]) -> float:
    """Return the threshold of the best mean F1; sets of one source count as one."""
    sources: dict[str, list[Any]] = {}
    for name in names:
        sources.setdefault(family(name), []).append(curves[name])
    return float(logistic(GRID[smooth(np.mean([np.mean(rows, 0) for rows in sources.values()], 0)).argmax()]))


def learn_from(names: Iterable[str], left_out: str | None) -> list[str]:
    """Return the sets of other sources that are large enough to learn from."""
    return [name for name in names if family(name) != left_out and name.removesuffix(BARE) not in SMALL]


@dataclass(frozen=True)
class SourceFold:
    """Weights and threshold learned without one source."""

    weights: Any
    """Of links, in the order of `PRIOR`."""
    threshold: float
    kinds: Any
    """Weights of kinds, in the order of `KIND_PRIOR`."""


def train(sets: dict[str, LinkSet]) -> tuple[dict[str | None, SourceFold], dict[str, Any], dict[str, Any]]:
    """Learn without each source in turn, and from all (None).

    Returns:
        Folds by source; scores of links, and terms of kinds, of every set by the fold without its source.
    """
    sources: list[str | None] = [*sorted({family(name) for name in sets}), None]
    raw = {source: fit_links([sets[name] for name in learn_from(sets, source)]) for source in sources}
    curves = {name: edge_curve(data, logistic(data.terms @ raw[family(name)])) for name, data in sets.items()}
    weights: dict[str | None, Any] = {}
    cuts: dict[str | None, float] = {}
    for source in sources:
        others = learn_from(sets, source)
        cuts[source] = choose_threshold(curves, [name for name in others if name in FLOW])
        bare = [(sets[name], sets[name].terms @ raw[family(name)]) for name in others if name.endswith(BARE)]
        slope, shift = calibrate(bare)
        weights[source] = np.where(PROMISED, raw[source] * slope, raw[source])
        weights[source][list(PRIOR).index("promise")] += shift
    scores = {name: logistic(data.terms @ weights[family(name)]) for name, data in sets.items()}
    kinds = {name: kind_set(data, scores[name]) for name, data in sets.items() if data.gold.parameters}
    folds = {
        source: SourceFold(
            weights[source], cuts[source], fit_kinds([kinds[name] for name in learn_from(kinds, source)])
        )
        for source in sources
    }
    return folds, scores, kinds


def calibrate(parts: Sequence[tuple[LinkSet, Any]]) -> tuple[float, float]:
    """Return slope and shift of the logarithms of odds that fit the pairs of left-out sets best (Platt)."""
    x, y, weight = [], [], []
    for data, odds in parts:
        best = best_of_pair(data.pair, odds) & (data.truth >= 0)
        x.append(odds[best])
        y.append(data.truth[best] == 1)
        weight.append(np.full(int(best.sum()), weigh_set(data.gold.name) / best.sum()))
    odds, true, share = np.concatenate(x), np.concatenate(y).astype(float), np.concatenate(weight)

    def loss(ab: Any) -> float:
        chance = np.clip(logistic(ab[0] * odds + ab[1]), 1e-9, 1 - 1e-9)
        return float(-(share * (true * np.log(chance) + (1 - true) * np.log(1 - chance))).sum())

    slope, base = minimize(loss, [1.0, 0.0], method="Nelder-Mead").x
    return float(slope), float(base)


def measure_edges(data: LinkSet, score: Any, cut: float) -> dict[str, Any]:
    """Return the figures of a set's edges at a threshold."""
    rows = edge_rows(data, score)
    at = data.gold.edge_figures([row for row in rows if row["score"] >= cut])
    figures = {"threshold": round(cut, 3)} | {key: at[key] for key in ("precision", "recall", "f1")}
    sweep = data.gold.edge_figures(rows, sweep=True)
    return figures | {"average_precision": sweep["average_precision"], "best_f1": sweep["best_f1"]}


def logit(chance: float) -> float:
    return float(np.log(chance / (1 - chance)))


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
            rare = np.where(y, y.sum(), (~y).sum()).astype(float) ** -BALANCE
            parts.append((x, y, weigh_set(data.gold.name) * POSITIVES * rare / rare.sum()))
        x, y, weight = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        w = descend(x, y.astype(float), weight, KIND_PRIOR, KIND_LAMBDA, w)
    return w


def kind_figure(data: KindSet, w: Any, cut: float) -> dict[str, Any]:
    """Score the kinds at a threshold; a parameter is internal if one of its leaves is."""
    chance = KindModel(dict(zip(KIND_PRIOR, w, strict=True)), cut).probability(data.terms)
    labels = ["internal" if chance[rows].max() >= cut else "user" for rows in data.leaves]
    rows = [row | {"label": label} for row, label in zip(data.rows, labels, strict=True)]
    return data.gold.parameter_figures(rows)


def reliability(sets: dict[str, LinkSet], scores: dict[str, Any]) -> list[list[float]]:
    """Scores of left-out edges in four bands: lower end, mean score, share that is true, sets of equal weight."""
    s = np.concatenate([scores[n][best_of_pair(d.pair, scores[n]) & (d.truth >= 0)] for n, d in sets.items()])
    y = np.concatenate([d.truth[best_of_pair(d.pair, scores[n]) & (d.truth >= 0)] for n, d in sets.items()])
    ends = np.array([0.0, 0.1, 0.25, 0.5, 1.0])
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
    sets = load_sets()
    folds, scores, kinds = train(sets)
    figures = {name: measure_edges(data, scores[name], folds[family(name)].threshold) for name, data in sets.items()}
    kind_figures = {
        name: kind_figure(data, folds[family(name)].kinds, KIND_CUT)["macro_f1"] for name, data in kinds.items()
    }
    for name, row in figures.items():
        rule = f" rule {id_rule_figure(kinds[name].gold):.3f}" if name in kinds else ""
        kind = f"| kinds {kind_figures[name]:.3f}{rule}" if name in kinds else ""
        print(f"{name:32s}", " ".join(f"{key} {value:.3f}" for key, value in row.items()), kind)
    for end in ("", BARE):
        flow = float(np.mean([figures[name + end]["f1"] for name in FLOW]))
        nine = float(np.mean([figures[name + end]["f1"] for name in (*SMALL, *FLOW, *OTHER)]))
        mean = float(np.mean([kind_figures[name + end] for name in FLOW]))
        print(f"left out by source{end}: edges {flow:.3f} (data-flow sets), {nine:.3f} (all); kinds {mean:.3f}")
    calibration = reliability({name + end: sets[name + end] for name in FLOW for end in ("", BARE)}, scores)
    print("score from, mean score, share true, edges:", calibration)
    if arguments.dry_run:
        return
    whole = folds[None]
    model = {
        "recipe": " ".join((__doc__ or "").split("Recipe: ")[1].split()),
        "trained_on": learn_from(sets, None),
        "links": {
            "weights": named(PRIOR, whole.weights),
            "threshold": round(whole.threshold, 3),
            "left_out": figures,
        },
        "kinds": {"weights": named(KIND_PRIOR, whole.kinds), "threshold": KIND_CUT, "left_out": kind_figures},
        "calibration": {"columns": ["score from", "mean score", "share true", "edges"], "rows": calibration},
    }
    TARGET.write_text(json.dumps(model, indent=1) + "\n", "utf-8")


def list_set_names() -> list[str]:
    """Return the names of all sets: with outputs as declared, and bare; the bundled environments, bare."""
    dialogues = [name for name in DIALOGUES if find_set_folder(name).is_dir()]
    open_sets = (*SMALL, *FLOW, *OTHER, *dialogues)
    return [*open_sets, *(name + BARE for name in (*open_sets, *BUNDLED))]


def load_sets(similarity: Similarity | None = None) -> dict[str, LinkSet]:
    """Return all sets by name."""
    return {name: link_set(name, similarity) for name in list_set_names()}


def id_rule_figure(gold: GoldSet) -> float:
    """Return macro F1 of the one-line rule."""
    return float(gold.parameter_figures(id_rule(gold))["macro_f1"])


def named(prior: dict[str, float], weights: Any) -> dict[str, float]:
    return {name: round(float(value), 4) for name, value in zip(prior, weights, strict=True)}


if __name__ == "__main__":
    main()
