"""Indices of nearest neighbours for the candidates of the tool graph: recall, CPU time, the same result twice.

    python benchmarks/neighbours.py      # needs: pip install faiss-cpu hnswlib

The task is that of `trajsmith.toolgraph.candidates` on 35,000 tools (the scale lists and renamed copies): the
distinct texts of outputs are the index, those of parameters ask. Recall counts what is as near as the true k-th
neighbour.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from _toolgraph_sets import scale_tools

from trajsmith.toolgraph.candidates import EXPANSION, NEAREST, _asking
from trajsmith.toolgraph.endpoint_table import build_table
from trajsmith.toolgraph.match import sort_by_server

TOOLS, QUESTIONS = 35_000, 20_000
LINKS = 16
"""Neighbours of a node in the HNSW graphs, for all libraries alike."""


@dataclass(frozen=True)
class NeighbourSearch:
    """Base vectors and queries of a search; float32 rows of length one."""

    base: Any
    asked: Any


def the_task() -> NeighbourSearch:
    table = build_table(sort_by_server(scale_tools(TOOLS)))
    base = np.unique(table.outputs.text_vector, axis=0)
    asked = np.unique(table.parameters.text_vector[_asking(table.parameters)], axis=0)
    chosen = np.random.default_rng(0).permutation(len(asked))[:QUESTIONS]
    return NeighbourSearch(base, np.ascontiguousarray(asked[chosen]))


def exact(task: NeighbourSearch) -> Any:
    """The true neighbours, in blocks."""
    blocks = [task.asked[at : at + 512] @ task.base.T for at in range(0, len(task.asked), 512)]
    return np.concatenate([np.argpartition(-block, NEAREST, 1)[:, :NEAREST] for block in blocks])


def with_usearch(task: NeighbourSearch) -> Any:
    from usearch.index import Index

    index = Index(
        ndim=task.base.shape[1], metric="ip", dtype="f32", connectivity=LINKS, expansion_add=EXPANSION,
        expansion_search=EXPANSION,
    )  # fmt: skip
    index.add(np.arange(len(task.base)), task.base, threads=1)
    return index.search(task.asked, NEAREST, threads=1).keys.astype(np.int64)


def with_hnswlib(task: NeighbourSearch) -> Any:
    import hnswlib

    index = hnswlib.Index("ip", task.base.shape[1])
    index.init_index(len(task.base), M=LINKS, ef_construction=EXPANSION, random_seed=1)
    index.add_items(task.base, num_threads=1)
    index.set_ef(EXPANSION)
    return index.knn_query(task.asked, NEAREST, num_threads=1)[0].astype(np.int64)


def with_faiss_hnsw(task: NeighbourSearch) -> Any:
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexHNSWFlat(task.base.shape[1], LINKS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = index.hnsw.efSearch = EXPANSION
    index.add(task.base)
    return index.search(task.asked, NEAREST)[1]


def with_faiss_ivf(task: NeighbourSearch) -> Any:
    import faiss

    faiss.omp_set_num_threads(1)
    width = task.base.shape[1]
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(width), width, 256, faiss.METRIC_INNER_PRODUCT)
    index.train(task.base)
    index.add(task.base)
    index.nprobe = 12
    return index.search(task.asked, NEAREST)[1]


WAYS: dict[str, Callable[[NeighbourSearch], Any]] = {
    "all pairs (numpy)": exact,
    "usearch, HNSW": with_usearch,
    "hnswlib, HNSW": with_hnswlib,
    "faiss, HNSW": with_faiss_hnsw,
    "faiss, IVF 256/12": with_faiss_ivf,
}


def likeness(task: NeighbourSearch, neighbours: Any) -> Any:
    """float32 [questions, neighbours]."""
    return np.einsum("ij,ikj->ik", task.asked, task.base[neighbours])


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    task = the_task()
    least = likeness(task, exact(task)).min(1, keepdims=True) - 1e-5
    print(f"{len(task.base)} texts, {len(task.asked)} questions, {NEAREST} neighbours each\n")
    print("| index | CPU s | recall | same twice |\n|---|---|---|---|")
    for name, search in WAYS.items():
        began = time.process_time()
        solution = search(task)
        spent = time.process_time() - began
        recall, again = np.mean(likeness(task, solution) >= least), np.array_equal(solution, search(task))
        print(f"| {name} | {spent:.1f} | {recall:.3f} | {'yes' if again else 'no'} |", flush=True)


if __name__ == "__main__":
    main()
