"""Similarity of meaning by sentence-transformers; each distinct text is encoded once."""

import importlib.util

from grounding.fields import SchemaField
from toolgraph.match import Similarity
from trajectory import InputError


def describe(field: SchemaField) -> str:
    """What is encoded of a field: its name in words, its entity, its description."""
    return f"{' '.join(field.context)} {field.name.replace('_', ' ')}: {field.description}".strip()


def embedding_similarity(model: str) -> Similarity:
    """Cosine similarity of encoded field descriptions, clipped to 0..1.

    Raises:
        InputError: The extra `embed` is not installed, or the model cannot be loaded.
    """
    if importlib.util.find_spec("sentence_transformers") is None:
        raise InputError('graph.embedding needs the extra "embed": pip install "trajsmith[embed]"')
    from sentence_transformers import SentenceTransformer

    try:
        encoder = SentenceTransformer(model)
    except (OSError, ValueError) as error:
        raise InputError(f"graph.embedding: cannot load {model!r}: {' '.join(str(error).split())[:200]}") from error
    vectors: dict[str, object] = {}

    def encode(text: str) -> object:
        if text not in vectors:
            vectors[text] = encoder.encode(text, normalize_embeddings=True)
        return vectors[text]

    def similarity(output: SchemaField, parameter: SchemaField) -> float:
        import numpy

        return float(numpy.clip(numpy.dot(encode(describe(output)), encode(describe(parameter))), 0.0, 1.0))  # type: ignore[call-overload]

    return similarity
