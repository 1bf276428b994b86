"""Environment collections for growth: specs of named environments, and text similarity."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.environments.sandbox.source import SandboxSource
from trajsmith.environments.sources import EnvironmentSettings, expand_settings, open_source
from trajsmith.pipeline.environment_references import find_named_entries
from trajsmith.pipeline.progress import open_progress
from trajsmith.records import EnvironmentSpec, InputError, TrajsmithError, read_stored

if TYPE_CHECKING:
    from trajsmith.envgen.growth.environment_shape import Encoder


def load_encoder(model: str | None) -> "Encoder":
    """The likeness of texts: a model's, or that of the words that come with the tool graph."""
    if model is None:
        return encode_words
    from trajsmith.toolgraph.embeddings import build_embedding_similarity

    return build_embedding_similarity(model)


def encode_words(texts: Sequence[str]) -> Any:
    """float32 [n, 64 + words] of length one: half of the likeness is that of the words' shipped vectors, centred as
    those of models are, half that of the weighted words themselves."""
    import numpy as np

    from trajsmith.toolgraph.embeddings import USUAL
    from trajsmith.toolgraph.lexicon import STOP, tokenize
    from trajsmith.toolgraph.word_statistics import Vocabulary

    vocabulary = Vocabulary()
    rows = [[token for token in tokenize(text) if token not in STOP] for text in (*USUAL, *texts)]
    numbers = [vocabulary.number(row) for row in rows]
    weights, vectors = vocabulary.tables()
    counted = np.zeros((len(rows), len(weights)), np.float32)
    for place, row in enumerate(numbers):
        np.add.at(counted[place], row, 1)
    weighted = np.log1p(counted) * weights
    meant = _unit(weighted @ vectors)
    centred = _unit(meant[len(USUAL) :] - meant[: len(USUAL)].mean(0))
    return np.hstack([centred, _unit(weighted[len(USUAL) :])]) / np.float32(np.sqrt(2))


def _unit(rows: Any) -> Any:
    import numpy as np

    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6)


def group_environments(specs: Sequence[EnvironmentSpec]) -> dict[str, str]:
    """Return the group of each environment in the second tier of the taxonomy.

    Raises:
        InputError: A package that the taxonomy needs is missing.
    """
    from trajsmith.envgen.growth.taxonomy import build_taxonomy

    return {name: group.name for group in build_taxonomy(specs, encode_words).leaves() for name in group.members}


def load_specs(where: Sequence[str] | None, library: bool) -> tuple[list[EnvironmentSpec], dict[str, float]]:
    """Return the specs of all named environments, and the check scores of uniquely named ones.

    One that cannot be opened is told, and the others are used.
    """
    if not where and not library:
        raise InputError("name directories or environments, or give --library")
    specs = [ENVIRONMENTS.get(name).describe() for name in ENVIRONMENTS.names()] if library else []
    scores: dict[str, float] = {}
    entries = [entry for reference in where or () for entry in _entries(reference, scores)]
    if entries:
        specs += _opened(entries)
    if not specs:
        raise InputError(f"no environment could be opened of {', '.join(where or ())}")
    names = [spec.name for spec in specs]
    return specs, {name: score for name, score in scores.items() if names.count(name) == 1}


def _opened(entries: Sequence[EnvironmentSettings]) -> list[EnvironmentSpec]:
    specs, err = list[EnvironmentSpec](), Console(stderr=True, highlight=False)
    with open_progress(err) as progress, progress.stage("environments", len(entries), 0, 0) as bar:
        for entry in entries:
            try:
                specs.append(asyncio.run(_spec(entry)))
                bar.advance()
            except TrajsmithError as error:
                err.print(f"left out: {error}", markup=False, soft_wrap=True)
                bar.advance(dropped=True)
    return specs


async def _spec(entry: EnvironmentSettings) -> EnvironmentSpec:
    source = open_source(entry)
    try:
        return await source.spec()
    finally:
        if isinstance(source, SandboxSource):
            source.close()


def _entries(reference: str, scores: dict[str, float]) -> list[EnvironmentSettings]:
    """The environments that a word stands for: those that `env gen` made in a directory, or what it names elsewhere."""
    folder = Path(reference)
    manifests = sorted([*folder.glob("made.json"), *folder.glob("*/made.json")]) if folder.is_dir() else []
    if not manifests:
        return [one for entry in find_named_entries(reference) for one in expand_settings(entry)]
    from trajsmith.envgen.generate import GenerationResult

    entries = []
    for file in manifests:
        record = read_stored(file, GenerationResult)
        if record.accepted:
            entries.append(EnvironmentSettings(python=str(file.parent / f"{record.name}.py")))
            if record.score is not None:
                scores[record.name] = record.score
    return entries
