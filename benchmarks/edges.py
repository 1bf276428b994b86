"""The tool graph's figures: edges, parameter kinds, build time; side by side with a plain cosine in the same run.

    python benchmarks/edges.py                      # tables; --curves FILE.svg draws precision and recall
    python benchmarks/edges.py --embedding MODEL    # the cosine of that model, and ours with it beside the words

Edges count as `graph edges` prints them with weight 2 or 3, by `score_edges.py`; kinds by `score_params.py` from what
`graph params` prints. "left out" is the honest column: a model and a threshold that never saw the set. "shipped" is the
model that all sets trained. The cosine is EnvFactory's first step: the best pair of an output and a parameter, all
pairs of tools, one threshold tuned on the same five sets (which ours, left out, is not). Its texts are encoded by the
shipped word vectors, or by MODEL. Needs scipy.
"""

import argparse
import resource
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _toolgraph_sets import FLOW, OTHER, SCALE, GoldSet, data_folder, gold_set, read_tools, scale_tools
from train_toolgraph import edge_rows, kind_set, link_set, validate_kinds, validate_links

from trajsmith.toolgraph import GraphSettings, ToolGraph, build_graph
from trajsmith.toolgraph.embeddings import build_embedding_similarity
from trajsmith.toolgraph.endpoint_table import build_table
from trajsmith.toolgraph.link_model import load_shipped_model
from trajsmith.toolgraph.match import Similarity
from trajsmith.toolgraph.parameter_kinds import list_parameter_lines

SIZES = (842, 5_376, 35_000)
LABELS = {"internal": "internal", "external": "user", "other": "other"}
COLUMNS = (
    "left out F1", "precision", "recall", "AP", "shipped F1", "kinds, left out", "kinds, shipped", "three kinds"
)  # fmt: skip
COLOURS = ("#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#0891b2", "#be185d", "#4d7c0f")


def cosine_rows(gold: GoldSet, similarity: Similarity | None) -> list[dict[str, Any]]:
    """Every pair of tools with the best cosine of an output and a parameter."""
    table = build_table(gold.tools, similarity)
    outs, ins = table.outputs, table.parameters
    width = 64 if similarity is not None else 0
    likeness = outs.text_vector[:, width:] @ ins.text_vector[:, width:].T * (2 if width else 1)
    best = np.full((len(gold.tools), len(gold.tools)), -1.0)
    np.maximum.at(best, (outs.tool[:, None], ins.tool[None]), likeness)
    names = [tool.full_name for tool in gold.tools]
    return [
        {"source": names[a], "target": names[b], "score": float(best[a, b])} for a, b in np.argwhere(best > 0) if a != b
    ]


def tuned(sets: dict[str, list[dict[str, Any]]]) -> float:
    """The threshold with the best mean F1 over the data-flow sets."""
    grid = np.linspace(0.1, 1.0, 91)
    means = [np.mean([gold_set(n).edge_figures(above(sets[n], cut))["f1"] for n in FLOW]) for cut in grid]
    return float(grid[int(np.argmax(means))])


def above(rows: list[dict[str, Any]], cut: float) -> list[dict[str, Any]]:
    return [row for row in rows if row["score"] >= cut]


def printed_edges(graph: ToolGraph) -> list[dict[str, Any]]:
    """Return the edges that count as predicted."""
    return [edge.as_line() for edge in graph.edges if edge.weight >= 2]


def printed_kinds(graph: ToolGraph) -> list[dict[str, Any]]:
    return [
        {"tool": line["tool"], "param": line["parameter"], "label": LABELS[line["kind"]]}
        for line in list_parameter_lines(graph.parameters)
    ]


def quality(similarity: Similarity | None) -> dict[str, list[dict[str, Any]]]:
    """Print edges and kinds of all sets; left-out predictions by set."""
    names = (*FLOW, *OTHER)
    sets = {name: link_set(name, similarity) for name in names}
    scores, _, figures = validate_links(sets)
    kinds = validate_kinds({name: kind_set(sets[name], scores[name]) for name in FLOW})[1]
    plain = {name: cosine_rows(gold_set(name), similarity) for name in names}
    cut = tuned(plain)
    graphs = {name: build_graph(gold_set(name).tools, GraphSettings(), similarity) for name in names}
    rows = []
    for name in names:
        gold = gold_set(name)
        mine = gold.edge_figures(printed_edges(graphs[name]))
        labels = printed_kinds(graphs[name])
        two = gold.parameter_figures(labels)["macro_f1"] if name in FLOW else None
        three = gold.parameter_figures(labels, three=True)["macro_f1"] if name in FLOW else None
        cosine = gold.edge_figures(above(plain[name], cut))["f1"]
        left = figures[name]
        edges = [left["f1"], left["precision"], left["recall"], left["average_precision"], mine["f1"]]
        rows.append([name, cosine, *edges, kinds[name]["macro_f1"] if name in FLOW else None, two, three])
    rows.insert(
        len(FLOW), ["mean of the five", *(np.mean([row[k] for row in rows[: len(FLOW)]]) for k in range(1, 10))]
    )
    table(
        ["set", f"cosine at {cut:.2f}", *COLUMNS],
        rows,
    )
    return {name: edge_rows(sets[name], scores[name]) for name in names}


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
    """A Markdown table."""
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(_cell(value) for value in row) + " |")
    print()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def curves(rows_by_set: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Draw precision over recall of the left-out predictions; a dot marks the left-out threshold."""
    width, height, left, top = 520, 380, 60, 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width + 300} {height + 70}" font-family="sans-serif" '
        f'font-size="12"><rect width="100%" height="100%" fill="white"/>'
        f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#999"/>'
    ]
    for tick in range(0, 11, 2):
        x, y = left + width * tick / 10, top + height * (1 - tick / 10)
        parts.append(f'<text x="{x}" y="{top + height + 18}" text-anchor="middle">{tick / 10}</text>')
        parts.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{tick / 10}</text>')
    parts.append(f'<text x="{left + width / 2}" y="{top + height + 40}" text-anchor="middle">recall</text>')
    parts.append(f'<text x="14" y="{top + height / 2}" transform="rotate(-90 14 {top + height / 2})">precision</text>')
    for number, (name, rows) in enumerate(rows_by_set.items()):
        colour, left_out = COLOURS[number], load_shipped_model()["links"]["left_out"][name]
        points = [gold_set(name).edge_figures(above(rows, cut)) for cut in sorted({row["score"] for row in rows})]
        places = [(left + width * p["recall"], top + height * (1 - p["precision"])) for p in points if p["predicted"]]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        dot = left + width * left_out["recall"], top + height * (1 - left_out["precision"])
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        parts.append(f'<circle cx="{dot[0]:.1f}" cy="{dot[1]:.1f}" r="4" fill="{colour}"/>')
        label = f"{name}: F1 {left_out['f1']:.2f}, AP {left_out['average_precision']:.2f}"
        parts.append(f'<text x="{left + width + 16}" y="{top + 20 + 20 * number}" fill="{colour}">{label}</text>')
    path.write_text("\n".join([*parts, "</svg>"]) + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embedding", default="")
    parser.add_argument("--curves", type=Path)
    parser.add_argument("--skip-scale", action="store_true")
    arguments = parser.parse_args()
    figures = quality(build_embedding_similarity(arguments.embedding) if arguments.embedding else None)
    if arguments.curves:
        curves(figures, arguments.curves)
    if not arguments.skip_scale:
        files()
        timing()


if __name__ == "__main__":
    main()
