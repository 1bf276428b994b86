"""Embeddings in the tool graph: meaning adds to names, and a missing extra or model is one clear line."""

import importlib.util

import pytest

from toolgraph import build_graph
from toolgraph.embed import embedding_similarity
from trajectory import InputError, ToolSpec

PLACES = ToolSpec(
    server="maps",
    name="list_places",
    input_schema={"type": "object", "properties": {}},
    output_schema={"type": "object", "properties": {"town": {"type": "string"}}},
)
WEATHER = ToolSpec(
    server="maps",
    name="get_forecast",
    input_schema={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


@pytest.mark.parametrize("likeness", [0.0, 1.0], ids=["unlike", "alike"])
def test_meaning_alone_makes_no_edge(likeness):
    graph = build_graph([PLACES, WEATHER], similarity=lambda output, parameter: likeness)
    assert graph.edges == ()


def test_meaning_lifts_names_that_share_something():
    near = PLACES.model_copy(
        update={"output_schema": {"type": "object", "properties": {"city_label": {"type": "string"}}}}
    )
    assert build_graph([near, WEATHER]).edges == ()
    (edge,) = build_graph([near, WEATHER], similarity=lambda output, parameter: 0.95).edges
    assert (edge.source, edge.target) == ("maps.list_places", "maps.get_forecast")
    assert edge.evidence == ("schema", "embedding")


def test_a_missing_extra_names_the_command(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r'pip install "trajsmith\[embed\]"'):
        embedding_similarity("any/model")


def test_a_missing_model_is_wrong_input(tmp_path):
    pytest.importorskip("sentence_transformers", reason='needs the extra: pip install "trajsmith[embed]"')
    with pytest.raises(InputError, match="cannot load"):
        embedding_similarity(str(tmp_path / "no-model"))
