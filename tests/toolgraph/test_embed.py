"""Embeddings in the tool graph: meaning adds to names, texts are encoded once, and a missing extra is one clear line.

The fake stands where sentence-transformers would be: a model that knows which words mean the same.
"""

import importlib.machinery
import importlib.util
import sqlite3
import sys
import types

import numpy as np
import pytest

from trajsmith.records import InputError, ToolSpec
from trajsmith.toolgraph import GraphSettings, build_graph
from trajsmith.toolgraph.edge_explanation import explain_match
from trajsmith.toolgraph.embeddings import USUAL, build_embedding_similarity, find_model

SAME = {"town": "city", "metropolis": "city"}


def spec(name, inputs, outputs):
    def schema(names):
        fields = {field: {"type": "string"} for field in names}
        return {"type": "object", "properties": fields, "required": list(names)}

    return ToolSpec(server="maps", name=name, input_schema=schema(inputs), output_schema=schema(outputs))


PLACES = spec("list_places", [], ["town"])
WEATHER = spec("get_forecast", ["city"], ["rain"])


class FakeModel:
    """Words to numbers of their own; synonyms have one, and it knows that they matter."""

    loaded: list[str] = []
    seen: list[str] = []

    def __init__(self, name):
        if name == "no/model":
            raise OSError("no such\n repository")
        self.loaded.append(name)

    def encode(self, texts, normalize_embeddings, batch_size, show_progress_bar):
        assert normalize_embeddings
        self.seen.extend(texts)
        vectors = np.zeros((len(texts), 256), np.float32)
        for row, text in enumerate(texts):
            for word in text.replace(":", " ").split():
                vectors[row, sum(SAME.get(word, word).encode()) % 256] += 5 if word in SAME or word == "city" else 1
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture
def fake(monkeypatch):
    """Stands in for the library."""
    module = types.ModuleType("sentence_transformers")
    module.__spec__ = importlib.machinery.ModuleSpec("sentence_transformers", None)
    module.SentenceTransformer = FakeModel
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    monkeypatch.setattr(FakeModel, "loaded", [])
    monkeypatch.setattr(FakeModel, "seen", [])
    return FakeModel


def test_words_of_one_meaning_make_an_edge_that_words_alone_do_not(fake, tmp_path):
    assert build_graph([PLACES, WEATHER]).edges == ()
    (edge,) = build_graph([PLACES, WEATHER], similarity=build_embedding_similarity("any/model", tmp_path)).edges
    assert (edge.source, edge.target) == ("maps.list_places", "maps.get_forecast")
    assert edge.evidence == ("schema", "embedding")


def test_words_of_another_meaning_make_none(fake, tmp_path):
    other = spec("list_places", [], ["mountain"])
    assert build_graph([other, WEATHER], similarity=build_embedding_similarity("any/model", tmp_path)).edges == ()


def test_an_encoder_has_a_say_beside_the_words(fake, tmp_path):
    plain = explain_match(PLACES, WEATHER, GraphSettings())[0].score
    assert (
        explain_match(PLACES, WEATHER, GraphSettings(), build_embedding_similarity("any/model", tmp_path))[0].score
        > plain
    )


def test_each_text_is_encoded_once_ever(fake, tmp_path):
    copy = PLACES.model_copy(update={"server": "other"})
    build_graph([PLACES, WEATHER, copy], None, build_embedding_similarity("m", tmp_path))
    assert len(fake.seen) == len(set(fake.seen))
    assert set(fake.seen) >= {*USUAL, "place town:", "forecast city:"}
    before = list(fake.seen)
    build_graph([PLACES, WEATHER], None, build_embedding_similarity("m", tmp_path))
    assert fake.seen == before, "everything was on disk"
    assert fake.loaded == ["m"], "a model is loaded for new texts only"


def test_a_changed_text_is_encoded_and_another_model_keeps_its_own_vectors(fake, tmp_path):
    build_graph([PLACES, WEATHER], None, build_embedding_similarity("m", tmp_path))
    fake.seen.clear()
    changed = spec("get_forecast", ["region"], ["rain"])
    build_graph([PLACES, changed], None, build_embedding_similarity("m", tmp_path))
    assert fake.seen == ["forecast region:"]
    build_graph([PLACES], None, build_embedding_similarity("other", tmp_path))
    assert "place town:" in fake.seen


def test_vectors_are_of_length_one_without_what_all_texts_share(fake, tmp_path):
    encode = build_embedding_similarity("m", tmp_path)
    vectors = encode(["name of the city", "price of the ticket"])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1], abs=1e-5)
    raw = FakeModel("m").encode(["name of the city", "price of the ticket"], True, 1, False)
    assert vectors[0] @ vectors[1] < raw[0] @ raw[1]


def test_a_spoilt_cache_is_wrong_input(fake, tmp_path):
    encode = build_embedding_similarity("m", tmp_path)
    encode(["one"])
    (stored,) = tmp_path.glob("*.sqlite")
    stored.write_bytes(b"no database at all" * 100)
    with pytest.raises(InputError, match=f"cannot use the cache {stored}"):
        encode(["two"])


def test_a_cache_of_another_length_is_wrong_input(fake, tmp_path):
    encode = build_embedding_similarity("m", tmp_path)
    encode(["one"])
    (stored,) = tmp_path.glob("*.sqlite")
    with sqlite3.connect(stored) as connection:
        connection.execute("update vectors set vector = ? where rowid = 1", (b"\0" * 12,))
    with pytest.raises(InputError, match="delete it"):
        encode(["one"])


def test_a_missing_extra_names_the_command(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'sentence-transformers<.+' 'torch<.+'$"):
        build_embedding_similarity("any/model")


def test_a_missing_model_is_wrong_input(fake, tmp_path):
    with pytest.raises(InputError, match=r"cannot load 'no/model': no such repository; without a hub: `pip"):
        build_embedding_similarity("no/model", tmp_path)(["one"])


def test_a_preset_is_found_in_its_package_and_else_on_the_hub(monkeypatch, tmp_path):
    assert find_model("any/model") == "any/model"
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert find_model("minilm") == "sentence-transformers/all-MiniLM-L6-v2"
    spec = importlib.machinery.ModuleSpec("m", None, origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec)
    assert find_model("minilm") == str(tmp_path / "model")
    assert find_model("bge-m3") == "BAAI/bge-m3"
