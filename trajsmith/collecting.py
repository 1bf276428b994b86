"""A collection of environments as growth compares them: what each says of itself, and the likeness of texts."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from environments.library import library_environment, library_names
from environments.sandbox.source import SandboxSource
from environments.sources import EnvironmentSettings, expand, open_source
from trajectory import EnvironmentSpec, InputError, TrajsmithError
from trajsmith.naming import named_entries
from trajsmith.progress import open_progress

if TYPE_CHECKING:
    from envgen.growth.shape import Encoder


def encoder(model: str | None) -> "Encoder":
    """The likeness of texts: a model's, or that of the words that come with the tool graph."""
    if model is None:
        return encode_words
    from toolgraph.embed import embedding_similarity

    return embedding_similarity(model)


def encode_words(texts: Sequence[str]) -> Any:
    """float32 [n, 64 + words] of length one: half of the likeness is that of the words' shipped vectors, centred as
    those of models are, half that of the weighted words themselves."""
    import numpy as np

    from toolgraph.embed import USUAL
    from toolgraph.lexicon import STOP, tokens
    from toolgraph.words import Vocabulary

    vocabulary = Vocabulary()
    rows = [[token for token in tokens(text) if token not in STOP] for text in (*USUAL, *texts)]
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


def open_specs(where: Sequence[str] | None, library: bool) -> tuple[list[EnvironmentSpec], dict[str, float]]:
    """What all named environments say of themselves, and the doctor's scores of those that no other is called like.

    One that cannot be opened is told, and the others are used.
    """
    if not where and not library:
        raise InputError("name directories or environments, or give --library")
    specs = [library_environment(name).describe() for name in library_names()] if library else []
    scores: dict[str, float] = {}
    entries = [entry for reference in where or () for entry in _entries(reference, scores)]
    if entries:
        specs += _opened(entries)
    if not specs:
        raise InputError(f"no environment could be opened of {', '.join(where or ())}")
    names = [spec.name for spec in specs]
    return specs, {name: score for name, score in scores.items() if names.count(name) == 1}


def _opened(entries: Sequence[EnvironmentSettings]) -> list[EnvironmentSpec]:
    found, err = list[EnvironmentSpec](), Console(stderr=True, highlight=False)
    with open_progress(err) as progress, progress.stage("environments", len(entries), 0, 0) as bar:
        for entry in entries:
            try:
                found.append(asyncio.run(_spec(entry)))
                bar.advance()
            except TrajsmithError as error:
                err.print(f"left out: {error}", markup=False, soft_wrap=True)
                bar.advance(dropped=True)
    return found


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
    made = sorted([*folder.glob("made.json"), *folder.glob("*/made.json")]) if folder.is_dir() else []
    if not made:
        return [one for entry in named_entries(reference) for one in expand(entry)]
    from envgen.generate import Made

    found = []
    for file in made:
        record = Made.model_validate_json(file.read_bytes())
        if record.accepted:
            found.append(EnvironmentSettings(python=str(file.parent / f"{record.name}.py")))
            if record.score is not None:
                scores[record.name] = record.score
    return found
