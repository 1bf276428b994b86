"""The graph's file: what goes in comes out, whatever its form, and a bad file says why."""

import gzip
import resource
import xml.etree.ElementTree as ET
import zlib
from pathlib import Path

import msgspec
import networkx
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_graphs import random_graph, tool

from trajsmith.records import InputError, ToolSpec
from trajsmith.records.storage import open_whole_file
from trajsmith.toolgraph import Edge, ParameterNode, ToolGraph, ValueLink, storage
from trajsmith.toolgraph.networkx_graph import write_graphml, write_node_link

LINK = ValueLink(output="$.a", input="b", score=0.5)
EDGE = Edge(source="s.x", target="s.y", weight=3, score=0.5, links=(LINK,), evidence=("schema", "execution"))
NODE = ParameterNode(tool="s.y", parameter="b", kind="internal", required=True, evidence=("schema: an id",))
GRAPH = ToolGraph(
    tools=(tool("s", "x", True), tool("s", "y", None)), parameters=(NODE,), edges=(EDGE,), findings=("odd",)
)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(st.integers(0, 2**32))
def test_columns_give_every_graph_back(seed: int) -> None:
    graph = random_graph(seed, servers=3)
    data = orjson.loads(graph.to_bytes())
    assert data["columns"] == storage.VERSION
    rows = {"parameters": ParameterNode, "edges": Edge}
    unpacked = storage.unpack(data, rows)
    assert (unpacked["parameters"], unpacked["edges"]) == (graph.parameters, graph.edges)
    assert ToolGraph.model_validate({**data, **unpacked}) == graph


@pytest.mark.parametrize("name", ["graph.json", "graph.json.gz", "elsewhere"])
def test_a_file_is_read_by_what_it_holds_and_not_by_its_name(tmp_path: Path, name: str) -> None:
    GRAPH.save(tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(storage.GZIP) == name.endswith(".gz")
    (tmp_path / name).rename(tmp_path / "renamed")
    assert ToolGraph.load(tmp_path / "renamed") == GRAPH
    assert [path.name for path in tmp_path.iterdir()] == ["renamed"]


def test_the_same_graph_is_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one.gz", "two.gz"):
        ToolGraph.model_validate(GRAPH.model_dump()).save(tmp_path / name)
    assert (tmp_path / "one.gz").read_bytes() == (tmp_path / "two.gz").read_bytes()


def test_rows_are_read_too(tmp_path: Path) -> None:
    """The form of a run's graph.json, and of a dump."""
    (tmp_path / "graph.json").write_bytes(orjson.dumps(GRAPH.model_dump(mode="json", exclude_none=True)))
    assert ToolGraph.load(tmp_path / "graph.json") == GRAPH


def test_the_tools_of_a_file_are_plain_mcp_tools() -> None:
    data = orjson.loads(GRAPH.to_bytes())
    assert [ToolSpec.model_validate(spec) for spec in data["tools"]] == list(GRAPH.tools)
    assert data["tools"][0]["inputSchema"] == {"type": "object", "properties": {}}


def test_every_text_stands_once() -> None:
    data = orjson.loads(GRAPH.model_copy(update={"edges": (EDGE, EDGE, EDGE)}).to_bytes())
    assert len(set(data["texts"])) == len(data["texts"])
    assert data["edges"]["source"] == [data["texts"].index("s.x")] * 3
    assert data["edges"]["links"]["counts"] == [1, 1, 1]


def broken(change: dict) -> bytes:
    data = orjson.loads(GRAPH.to_bytes())
    for path, value in change.items():
        *way, last = path.split(".")
        at = data
        for key in way:
            at = at[key]
        if value is None:
            del at[last]
        else:
            at[last] = value
    return orjson.dumps(data)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(b"[]", "Invalid JSON: no object", id="a-list"),
        pytest.param(gzip.compress(b"{}")[:-6], "the packed file is torn", id="torn-gzip"),
        pytest.param(gzip.compress(b"{"), "Invalid JSON", id="torn-json-in-gzip"),
        pytest.param(b'{"columns": 7}', r"written by a later version \(columns 7\)", id="later-version"),
        pytest.param(broken({"edges.weight": None}), "edges.*weight|weight", id="no-column"),
        pytest.param(broken({"edges.weight": []}), "column 'weight' has 0 of 1 rows", id="short-column"),
        pytest.param(broken({"edges.colour": [1]}), "unknown column 'colour'", id="unknown-column"),
        pytest.param(broken({"edges.source": [99]}), "a column is missing or torn", id="no-such-text"),
        pytest.param(broken({"parameters.kind": [0]}), "a column is missing or torn", id="no-such-kind"),
        pytest.param(broken({"edges.weight": ["3"]}), "a column is missing or torn", id="text-for-a-number"),
        pytest.param(
            broken({"tools": []}), "it has no tool 's.x', but an edge or a parameter of it", id="unknown-tool"
        ),
        pytest.param(b'{"tools": [], "parameters": [], "edges": [{"source": 1}]}', "edges", id="bad-row"),
    ],
)
def test_a_bad_file_says_why_in_one_line(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "graph.json").write_bytes(content)
    with pytest.raises(InputError, match=f"^graph .*graph.json: .*{reason}") as caught:
        ToolGraph.load(tmp_path / "graph.json")
    assert "\n" not in str(caught.value)


def test_fields_that_a_later_version_adds_are_stored_and_have_defaults_in_old_files() -> None:
    class Richer(msgspec.Struct, frozen=True, kw_only=True):
        source: str
        links: tuple[ValueLink, ...]
        seen: int = 0
        notes: dict[str, float] = {}
        words: tuple[str, ...] = ()

    rows = (
        Richer(source="s.x", links=(LINK, LINK), seen=4, notes={"a": 0.5}, words=("x", "y")),
        Richer(source="s.y", links=()),
    )
    data = storage.pack({"rows": rows})
    assert storage.unpack(orjson.loads(orjson.dumps(data)), {"rows": Richer})["rows"] == rows
    old = storage.pack({"rows": rows})
    for name in ("seen", "notes", "words"):
        del old["rows"][name]
    assert storage.unpack(old, {"rows": Richer})["rows"][0] == Richer(source="s.x", links=(LINK, LINK))


def test_tables_without_rows_are_fine() -> None:
    empty = ToolGraph(tools=(), parameters=(), edges=())
    data = orjson.loads(empty.to_bytes())
    assert storage.unpack(data, {"parameters": ParameterNode, "edges": Edge}) == {"parameters": (), "edges": ()}


def test_a_graph_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        EDGE.weight = 2  # type: ignore[misc]
    assert hash(GRAPH.edges[0]) == hash(msgspec.structs.replace(EDGE))


# GraphML


def test_graphml_holds_tools_edges_and_evidence(tmp_path: Path) -> None:
    odd = tool("s", 'z<&">\x00\ud800', True)
    write_graphml(GRAPH.model_copy(update={"tools": (*GRAPH.tools, odd)}), tmp_path / "graph.graphml")
    space = "{http://graphml.graphdrawing.org/xmlns}"
    root = ET.parse(tmp_path / "graph.graphml").getroot()
    keys = {key.get("id"): key.get("attr.name") for key in root.iter(f"{space}key")}
    nodes = {node.get("id"): node for node in root.iter(f"{space}node")}
    assert nodes.keys() == {"s.x", "s.y", 's.z<&">\ufffd\ufffd'}
    (edge,) = root.iter(f"{space}edge")
    assert (edge.get("source"), edge.get("target")) == ("s.x", "s.y")
    assert {keys[data.get("key")]: data.text for data in edge} == {
        "weight": "3",
        "score": "0.5",
        "links": "$.a -> b (0.50)",
        "evidence": "schema, execution",
    }
    data = {keys[data.get("key")]: data.text for data in nodes["s.y"]}
    assert (data["writes"], data["internal"]) == ("True", "b")


def test_networkx_reads_what_was_written(tmp_path: Path) -> None:
    graph = random_graph(7, servers=3, most=40)
    write_graphml(graph, tmp_path / "graph.graphml")
    read = networkx.read_graphml(tmp_path / "graph.graphml")
    assert set(read.nodes) == set(graph.by_name)
    assert {(source, target): found["weight"] for source, target, found in read.edges(data=True)} == {
        (edge.source, edge.target): edge.weight for edge in graph.edges
    }
    assert read.is_directed() and not read.is_multigraph()
    some = graph.edges[0]
    assert read.edges[some.source, some.target]["score"] == some.score


def test_a_graph_comes_back_from_networkx_and_from_its_json(tmp_path: Path) -> None:
    graph = random_graph(7, servers=3, most=40)
    assert ToolGraph.from_networkx(graph.to_networkx()) == graph
    write_node_link(graph, tmp_path / "graph.json")
    read = networkx.node_link_graph(orjson.loads((tmp_path / "graph.json").read_bytes()), edges="edges")
    assert ToolGraph.from_networkx(read) == graph


def test_a_networkx_graph_may_be_changed_or_made_by_hand() -> None:
    view = GRAPH.to_networkx(parameters=False)
    view.remove_node("s.x")
    assert ToolGraph.from_networkx(view).edges == ()
    view.add_edge("desk.ask", "s.y", weight=2, score=0.7)
    (edge,) = ToolGraph.from_networkx(view).edges
    assert (edge.source, edge.target, edge.weight) == ("desk.ask", "s.y", 2)
    view.add_edge("s.y", "desk.ask")
    with pytest.raises(InputError, match=r"edge s\.y -> desk\.ask has no attribute 'weight'"):
        ToolGraph.from_networkx(view)


def test_a_file_that_cannot_be_written_whole_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_bytes(b"before")
    with pytest.raises(OSError, match="disk full"), open_whole_file(path) as file:
        file.write(b"half")
        raise OSError("disk full")
    assert {found.name: found.read_bytes() for found in tmp_path.iterdir()} == {"graph.json": b"before"}


def test_a_file_that_unpacks_without_end_is_refused_in_little_memory(tmp_path):
    packer = zlib.compressobj(wbits=31)
    parts = [packer.compress(b" " * (1 << 20)) for _ in range(200)]
    (tmp_path / "graph.json.gz").write_bytes(b"".join([*parts, packer.flush()]))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match="unpacks to more than 64 MB"):
        storage.read(tmp_path / "graph.json.gz")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10


def test_a_torn_packed_file_is_named(tmp_path):
    (tmp_path / "graph.json.gz").write_bytes(b"\x1f\x8bnot gzip at all")
    with pytest.raises(ValueError, match="torn"):
        storage.read(tmp_path / "graph.json.gz")
