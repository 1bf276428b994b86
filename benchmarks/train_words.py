"""Make toolgraph/data/words.npz: how common words are among tools, and a vector of each by the company it keeps.

    python benchmarks/train_words.py

Reads the public lists of tools in the folder `scale` of the shared data (no gold anywhere). Company: words of one
field's name and description, and of one tool's. Needs scipy.
"""

import argparse
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from _toolgraph_sets import data_folder, read_tools
from scipy.sparse import coo_matrix, csr_matrix
from scipy.sparse.linalg import svds

from trajsmith.grounding.fields import list_input_fields, list_output_fields
from trajsmith.toolgraph.lexicon import extract_distinctive_tokens
from trajsmith.toolgraph.word_statistics import DIMENSIONS

RAREST = 6
"""Documents that a word must be in."""
LONGEST = 24
"""Words of a text that count."""
FIELDS = 60
"""Fields of a tool that count."""
TARGET = Path(__file__).parents[1] / "toolgraph" / "data" / "words.npz"

Document = tuple[tuple[str, ...], list[tuple[str, ...]]]


def documents() -> list[Document]:
    """Each distinct tool once: its words, and those of each of its fields."""
    documents_by_tool: dict[tuple[str, str], Document] = {}
    for path in sorted((data_folder() / "scale").glob("*.tools.jsonl")):
        for tool in read_tools(path):
            fields = [*list_input_fields(tool), *list_output_fields(tool)][:FIELDS]
            texts = [extract_distinctive_tokens(f"{field.name} {field.description}") for field in fields]
            documents_by_tool[tool.name, tool.description] = (
                extract_distinctive_tokens(f"{tool.name} {tool.description}"),
                texts,
            )
    return list(documents_by_tool.values())


def company(documents: Iterable[Document], index: dict[str, int]) -> Any:
    """Sparse symmetric counts; a field's words are nearer company than a tool's."""
    rows: list[int] = []
    columns: list[int] = []
    counts: list[float] = []
    for whole, fields in documents:
        for text, weight in ((whole, 1.0), *((field, 2.0) for field in fields)):
            ids = list(dict.fromkeys(index[word] for word in text[:LONGEST] if word in index))
            for one in ids:
                others = [other for other in ids if other != one]
                rows += [one] * len(others)
                columns += others
                counts += [weight / len(text) ** 0.5] * len(others)
    return coo_matrix((counts, (rows, columns)), shape=(len(index), len(index))).tocsr()


def vectors(counts: Any) -> Any:
    """Truncated SVD of positive pointwise mutual information (context smoothed by 0.75), rows of length one."""
    total, sums = counts.sum(), np.asarray(counts.sum(1)).ravel()
    cells = counts.tocoo()
    expected = sums[cells.row] * sums[cells.col] ** 0.75 * total**0.25
    information = np.log(np.maximum(cells.data * total / expected, 1e-9))
    positive = information > 0
    matrix = csr_matrix((information[positive], (cells.row[positive], cells.col[positive])), shape=counts.shape)
    left, strength, _ = svds(matrix, k=DIMENSIONS, random_state=0)
    scaled = left * np.sqrt(strength)
    return scaled / np.maximum(np.linalg.norm(scaled, axis=1, keepdims=True), 1e-9)


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    documents_by_tool = documents()
    frequency = Counter(
        word for whole, fields in documents_by_tool for word in {*whole, *(w for field in fields for w in field)}
    )
    vocabulary = sorted((w for w, count in frequency.items() if count >= RAREST), key=lambda w: (-frequency[w], w))
    counts = company(documents_by_tool, {word: row for row, word in enumerate(vocabulary)})
    stored = np.clip(np.round(vectors(counts) * 127), -127, 127).astype(np.int8)
    np.savez_compressed(
        TARGET,
        vectors=stored,
        df=np.array([frequency[word] for word in vocabulary], np.int32),
        words=np.array("\n".join(vocabulary)),
        docs=len(documents_by_tool),
    )
    print(f"{len(documents_by_tool)} tools, {len(vocabulary)} words, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
