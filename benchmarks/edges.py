"""The tool graph's figures: edges and parameter kinds with and without declared outputs, the ablation, build time.

    python benchmarks/edges.py                      # tables; --curves FILE.svg draws precision and recall
    python benchmarks/edges.py --embedding MODEL    # the ablation's third step: that encoder beside the words
    python benchmarks/edges.py --model FOLDER       # and a local language model as judge of unsure edges
    python benchmarks/edges.py --cross-encoder FOLDER    # and an encoder that is trained on the other sources as judge
    python benchmarks/edges.py --skip-scale         # without the build times

Every figure is left out by source: neither the weights nor the threshold have seen a set of that source (tau2, bfcl,
nestful, ...). "Bare" sets have name, description and input schema only. Edges by `score_edges.py`, from the threshold;
kinds by `score_params.py`, macro F1 of user and internal. The cosine is EnvFactory's first step: the best pair of an
output and a parameter, all pairs of tools, one threshold tuned on the other sources; a tool without outputs gives what
its name says. The id rule: a parameter whose name ends like an id is internal. Needs scipy.
"""

import argparse
import resource
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from _graph_cross_encoder import refine_by_cross_encoder
from _graph_curves import draw_curves
from _graph_model import refine_scores
from _toolgraph_sets import (
    BARE,
    BUNDLED,
    FLOW,
    OTHER,
    SCALE,
    SMALL,
    data_folder,
    family,
    read_tools,
    scale_tools,
)  # fmt: skip
from train_toolgraph import (
    KIND_CUT,
    LinkSet,
    choose_threshold,
    edge_curve,
    id_rule_figure,
    judge,
    kind_figure,
    learn_from,
    link_set,
    list_set_names,
    load_sets,
    measure_edges,
    train,
)  # fmt: skip

from trajsmith.records import ToolSpec
from trajsmith.toolgraph import build_graph
from trajsmith.toolgraph.embeddings import build_embedding_similarity
from trajsmith.toolgraph.endpoint_table import EndpointTable, build_table
from trajsmith.toolgraph.match import Similarity

SIZES = (842, 5_376, 35_000)
NINE = (*SMALL, *FLOW, *OTHER)


def cosine_set(data: LinkSet, similarity: Similarity | None) -> tuple[LinkSet, Any]:
    """Every pair of an output and a parameter of two tools, with the cosine of their texts."""
    table = data.table
    outs, ins = table.outputs, table.parameters
    width = 64 if similarity is not None else 0
    likeness = outs.text_vector[:, width:] @ ins.text_vector[:, width:].T * (2 if width else 1)
    o, p = np.nonzero(outs.tool[:, None] != ins.tool[None])
    score = np.clip(likeness[o, p], 1e-6, 1 - 1e-6)
    pair = outs.tool[o].astype(np.int64) * len(data.gold.tools) + ins.tool[p]
    return replace(data, output=o, parameter=p, pair=pair, truth=judge(data.gold, pair)), score


def cosine_figures(sets: dict[str, LinkSet], similarity: Similarity | None) -> dict[str, float]:
    """Return F1 of the cosine by set, its threshold tuned on the other sources."""
    plain = {name: cosine_set(data, similarity) for name, data in sets.items()}
    curves = {name: edge_curve(*both) for name, both in plain.items()}
    figures = {}
    for name, (data, score) in plain.items():
        others = [other for other in learn_from(sets, family(name)) if other.endswith(BARE) == name.endswith(BARE)]
        cut = choose_threshold(curves, [other for other in others if other.removesuffix(BARE) in FLOW])
        figures[name] = measure_edges(data, score, cut)["f1"]
    return figures


def quality(similarity: Similarity | None) -> tuple[dict[str, LinkSet], dict[str, Any]]:
    """Print edges and kinds of all sets, left out by source; return the sets and their scores."""
    sets = load_sets(similarity)
    folds, scores, kinds = train(sets)
    plain = cosine_figures(sets, similarity)
    for end, title in (("", "outputs declared"), (BARE, "no outputs")):
        rows: list[list[Any]] = []
        for name in [name + end for name in (*NINE, *(BUNDLED if end else ()))]:
            figures = measure_edges(sets[name], scores[name], folds[family(name)].threshold)
            row = [name, family(name), plain[name], *(figures[key] for key in ("f1", "precision", "recall"))]
            row.append(figures["average_precision"])
            judged = name in kinds
            row.append(id_rule_figure(sets[name].gold) if judged else None)
            row.append(kind_figure(kinds[name], folds[family(name)].kinds, KIND_CUT)["macro_f1"] if judged else None)
            rows.append(row)
        for label, names in (("mean of the five data-flow sets", FLOW), ("mean of the nine", NINE)):
            chosen = [row for row in rows if row[0].removesuffix(BARE) in names]
            rows.append([label, "", *(_mean([row[column] for row in chosen]) for column in range(2, 9))])
        print(f"{title}, left out by source\n")
        table(["set", "source", "cosine F1", "F1", "precision", "recall", "AP", "id rule, kinds", "kinds"], rows)
    return sets, scores


def without_words(data: ToolSpec) -> ToolSpec:
    """Return a tool without descriptions of any kind."""

    def bare(node: Any) -> Any:
        if isinstance(node, list):
            return [bare(item) for item in node]
        if not isinstance(node, dict):
            return node
        return {
            key: bare(value) for key, value in node.items() if not (key == "description" and isinstance(value, str))
        }

    return data.model_copy(
        update={
            "description": "",
            "input_schema": bare(data.input_schema),
            "output_schema": bare(data.output_schema),
        }
    )


def names_only(tools: Sequence[ToolSpec], similarity: Similarity | None = None) -> EndpointTable:
    """Return the table of tools of which only names and types are known: no descriptions, no vectors."""
    plain = build_table([without_words(tool) for tool in tools])
    sides = (replace(side, text_vector=np.zeros_like(side.text_vector)) for side in (plain.outputs, plain.parameters))
    outputs, parameters = sides
    return replace(plain, outputs=outputs, parameters=parameters)


def ablation(embedding: str, model: str = "", cross_encoder: str = "") -> None:
    """Print what names, words, an encoder and a model bring, each left out by source in the same way, with its cost."""
    steps: list[tuple[str, Any]] = [
        ("names and types", names_only),
        ("+ descriptions and word vectors", build_table),
    ]
    if embedding:
        similarity = build_embedding_similarity(embedding)
        steps.append((f"+ encoder ({Path(embedding).name})", lambda tools: build_table(tools, similarity)))
    rows: list[list[Any]] = []
    edges: list[list[Any]] = []
    chosen: list[list[Any]] = []
    for label, build in steps:
        began = time.process_time()
        sets = {name: link_set(name, build=build) for name in list_set_names()}
        spent = time.process_time() - began
        folds, scores, kinds = train(sets)
        variants = [(label, scores, spent)]
        if label.startswith("+ descriptions"):
            cosines = cosine_figures(sets, None)
            edges.insert(0, ["cosine", *by_source(cosines)])
            chosen.insert(0, ["id rule", *by_source({name: id_rule_figure(one.gold) for name, one in kinds.items()})])
            if model:
                began = time.process_time()
                refined, areas = refine_scores(sets, scores, model)
                variants.append(
                    (f"the same, + model ({Path(model).name})", refined, spent + time.process_time() - began)
                )
                print("area under the curve of the model, unsure links:", {n: round(a, 2) for n, a in areas.items()})
            if cross_encoder:
                began = time.process_time()
                refined, curves = refine_by_cross_encoder(sets, scores, cross_encoder)
                variants.append(("the same, + trained cross-encoder", refined, spent + time.process_time() - began))
                table(
                    ["area under the curve", "score", "cross-encoder"],
                    [[name, area["score"], area["encoder"]] for name, area in curves.items()],
                )
        for name, judged, cost in variants:
            rows.append(ablation_row(name, sets, folds, judged, kinds, cost))
            figures = {key: measure_edges(sets[key], judged[key], folds[family(key)].threshold)["f1"] for key in sets}
            edges.append([name, *by_source(figures)])
        macro = {key: kind_figure(one, folds[family(key)].kinds, KIND_CUT)["macro_f1"] for key, one in kinds.items()}
        chosen.append([label, *by_source(macro)])
    head = [f"{figure}{end}" for end in ("", ", bare") for figure in ("edges, five", "edges, nine", "kinds")]
    table(["evidence", *head, "CPU ms per tool"], rows)
    sources = [f"{source}{end}" for end in ("", ", bare") for source in SOURCES]
    table(["edges by source", *sources], edges)
    table(["kinds by source", *sources], chosen)


SOURCES = tuple(dict.fromkeys(family(name) for name in NINE))


def by_source(figures: dict[str, float]) -> list[float | None]:
    """Mean figure of each source's sets, declared and then bare; None where there is none."""
    return [
        _mean([figures.get(name + end) for name in NINE if family(name) == source])
        for end in ("", BARE)
        for source in SOURCES
    ]


def ablation_row(
    label: str, sets: dict[str, LinkSet], folds: Any, scores: dict[str, Any], kinds: dict[str, Any], spent: float
) -> list[Any]:
    """Means of edges and kinds, declared and bare, and CPU milliseconds per tool."""
    row: list[Any] = [label]
    for end in ("", BARE):
        edges = {
            name: measure_edges(sets[name + end], scores[name + end], folds[family(name)].threshold)["f1"]
            for name in NINE
        }
        chosen = [kind_figure(kinds[name + end], folds[family(name)].kinds, KIND_CUT)["macro_f1"] for name in FLOW]
        row += [_mean([edges[name] for name in FLOW]), _mean(list(edges.values())), _mean(chosen)]
    return [*row, 1000 * spent / sum(len(data.gold.tools) for data in sets.values())]


def errors(sets: dict[str, LinkSet], scores: dict[str, Any], cut: float) -> None:
    """Print wrong and missed edges of the data-flow sets by what kind of link they are."""
    rows = []
    for end, title in (("", "declared"), (BARE, "bare")):
        counts: dict[str, list[int]] = {}
        for name in FLOW:
            data, score = sets[name + end], scores[name + end]
            x = data.features
            seen = set()
            for row in np.lexsort((-score,)):
                pair, truth = int(data.pair[row]), int(data.truth[row])
                if pair in seen or truth < 0:
                    continue
                seen.add(pair)
                kind = (
                    "a result to work on" if x["carried"][row] + x["promise_worker"][row] > 0
                    else "an identifier" if x["identifier"][row] > x["named"][row]
                    else "a named value"
                )  # fmt: skip
                place = counts.setdefault(kind, [0, 0, 0])
                place[0 if truth and score[row] >= cut else 1 if score[row] >= cut else 2] += (
                    1 if truth or score[row] >= cut else 0
                )
            missing = len(data.gold.core) - len({p for p, t in zip(data.pair, data.truth, strict=True) if t == 1})
            counts.setdefault("nothing fits", [0, 0, 0])[2] += missing
        rows += [[title, kind, *place] for kind, place in counts.items()]
    table(["outputs", "the best link is", "right", "wrong", "missed"], rows)


def timing() -> None:
    """Print CPU time and memory of builds, words only; nothing is cached but the shipped words."""
    rows = []
    for number in SIZES:
        tools = scale_tools(number)
        began = time.process_time()
        graph = build_graph(tools)
        spent = time.process_time() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        rows.append([f"{number} tools", spent, len(graph.edges), len(graph.parameters), len(graph.findings), peak])
    table(["build", "CPU s", "edges", "parameters", "findings", "peak GB"], rows)


def files() -> None:
    """Print that every file of the scale folder builds."""
    rows = []
    for name in SCALE:
        tools = read_tools(data_folder() / "scale" / f"{name}.tools.jsonl")
        began = time.process_time()
        graph = build_graph(tools)
        weights = [sum(edge.weight == weight for edge in graph.edges) for weight in (3, 2, 1)]
        rows.append([name, len(tools), *weights, len(graph.findings), time.process_time() - began])
    table(["file", "tools", "weight 3", "2", "1", "findings", "CPU s"], rows)


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a Markdown table."""
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(_cell(value) for value in row) + " |")
    print()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _mean(values: list[Any]) -> float | None:
    numbers = [value for value in values if value is not None]
    return float(np.mean(numbers)) if numbers else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embedding", default="")
    parser.add_argument("--model", default="")
    parser.add_argument("--cross-encoder", default="")
    parser.add_argument("--curves", type=Path)
    parser.add_argument("--skip-scale", action="store_true")
    arguments = parser.parse_args()
    sets, scores = quality(None)
    ablation(arguments.embedding, arguments.model, arguments.cross_encoder)
    errors(sets, scores, 0.2)
    if arguments.curves:
        draw_curves(sets, scores, arguments.curves)
    if not arguments.skip_scale:
        files()
        timing()


if __name__ == "__main__":
    main()
