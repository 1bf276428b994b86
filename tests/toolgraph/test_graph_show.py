"""The page and the words: what a user sees of a graph."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from random_graphs import random_graph

from trajsmith.records import InputError, ToolSpec
from trajsmith.toolgraph import Edge, GraphSettings, ParameterNode, ToolGraph, ValueLink, build_graph
from trajsmith.toolgraph.edge_explanation import explain_edge, find_tool
from trajsmith.toolgraph.graph import LinkEvidence
from trajsmith.toolgraph.html_page import build_page_data, select_servers, write_page
from trajsmith.toolgraph.layout import place_tools

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--enable-logging=stderr", "--v=0", "--dump-dom",
    "--window-size=1400,900",
)  # fmt: skip
POLICY = re.compile(r"<meta http-equiv=\"Content-Security-Policy\"[^>]*>")
"""Left out where the user is a script that the page does not know."""
STRING = {"type": "string"}
HOSTILE = "</script><script>throw Error(1)</script><img src=x>"


def spec(name: str, inputs: Any = (), outputs: Any = (), server: str = "shop", description: str = "") -> ToolSpec:
    properties = dict.fromkeys(inputs, STRING)
    return ToolSpec.model_validate(
        {
            "server": server,
            "name": name,
            "description": description,
            "inputSchema": {"type": "object", "properties": properties, "required": list(inputs)},
            "outputSchema": {"type": "object", "properties": dict.fromkeys(outputs, STRING)} if outputs else None,
        }
    )


TOOLS = (
    spec("find_order", ["email"], ["order_id", "status"], description=f"Finds it. {HOSTILE}"),
    spec("list_orders", [], ["order_id"]),
    spec("cancel_order", ["order_id"]),
    spec("ring_bell"),
    spec("cancel_order", ["order_id"], server="kiosk"),
)
LINK = ValueLink(output="$.order_id", input="order_id", score=0.91)
GRAPH = ToolGraph(
    tools=TOOLS,
    parameters=(
        ParameterNode(tool="shop.find_order", parameter="email", kind="external", required=True, evidence=("known",)),
        ParameterNode(
            tool="shop.cancel_order", parameter="order_id", kind="internal", required=True, evidence=("an id",)
        ),
    ),
    edges=(
        Edge(
            source="shop.find_order",
            target="shop.cancel_order",
            weight=3,
            score=0.91,
            links=(LINK,),
            evidence=("schema", "execution"),
        ),
        Edge(
            source="shop.list_orders",
            target="kiosk.cancel_order",
            weight=2,
            score=0.6,
            links=(LINK,),
            evidence=("schema",),
        ),
        Edge(
            source="shop.list_orders",
            target="shop.cancel_order",
            weight=3,
            score=0.9,
            links=(LINK,),
            evidence=("schema",),
        ),
    ),
    evidence=(
        LinkEvidence(
            source="shop.list_orders",
            target="kiosk.cancel_order",
            output="$.order_id",
            input="order_id",
            by="execution",
            worked=3,
            failed=1,
            elsewhere_failed=4,
            states=2,
        ),
    ),
)


# Layout


def overlaps(discs: list[tuple[float, float, float]]) -> list[tuple[int, int]]:
    return [
        (one, two)
        for one, (x, y, r) in enumerate(discs)
        for two, (u, v, s) in enumerate(discs[:one])
        if ((x - u) ** 2 + (y - v) ** 2) ** 0.5 < r + s
    ]


@pytest.mark.parametrize("seed", range(4))
def test_discs_do_not_touch_and_hold_their_tools(seed: int) -> None:
    graph = random_graph(seed, servers=9, most=120)
    data = build_page_data(graph)
    discs = [tuple(server[1:]) for server in data["servers"]]
    assert overlaps(discs) == []
    for _, _, home, _, _, x, y in data["tools"]:
        left, top, radius = discs[home]
        assert ((x - left) ** 2 + (y - top) ** 2) ** 0.5 < radius
    assert len({(x, y) for *_, x, y in data["tools"]}) == len(data["tools"])
    assert data == build_page_data(graph)


def test_servers_that_share_edges_stand_near_one_another() -> None:
    homes = [server for server in range(20) for _ in range(9)]
    edges = [(0 * 9 + step, 17 * 9 + step) for step in range(9)]
    _, discs = place_tools(homes, edges)
    far = [((x - discs[0][0]) ** 2 + (y - discs[0][1]) ** 2) ** 0.5 for x, y, _ in discs]
    assert far[17] == pytest.approx(min(far[1:]), rel=0.01)


def test_no_tools_and_large_servers_can_be_laid_out() -> None:
    assert place_tools([], []) == ([], [])
    places, discs = place_tools([0] * 900, [(0, 1), (1, 2)])
    assert len(set(places)) == 900 and len(discs) == 1


# The page


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "graph.html"
    assert write_page(GRAPH, path, "<shop & kiosk>") == (5, 3)
    return path


def test_the_page_is_one_file_that_needs_nothing_else(page: Path) -> None:
    assert [path.name for path in page.parent.iterdir()] == ["graph.html"]
    html = page.read_text()
    assert not re.search(r"(?:https?:)?//[a-z0-9-]+\.[a-z]", html)
    assert not re.findall(r'(?:src|href)="(?!#|data:)', html)
    assert "default-src 'none'" in html
    assert "&lt;shop &amp; kiosk&gt;" in html and "<shop" not in html


def test_hostile_descriptions_cannot_leave_the_data(page: Path) -> None:
    html = page.read_text()
    assert html.count("</script>") == 2
    data = json.loads(re.search(r'id="data">(.*?)</script>', html, re.S)[1])  # type: ignore[index]
    assert HOSTILE in data["tools"][0][3]


def test_a_page_can_be_narrowed_to_servers(tmp_path: Path) -> None:
    assert write_page(GRAPH, tmp_path / "a.html", "a", ["kiosk"]) == (1, 0)
    assert write_page(GRAPH, tmp_path / "b.html", "b", ["kiosk", "shop"]) == (5, 3)
    assert select_servers(GRAPH, ["shop"]).evidence == ()
    assert select_servers(GRAPH, ["shop", "kiosk"]) == GRAPH
    with pytest.raises(InputError, match="no server 'bank': it has shop, kiosk"):
        select_servers(GRAPH, ["bank"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "b.html"]


USER = """<script>{
const said = [], by = (id) => document.getElementById(id), canvas = by("view"), box = canvas.getBoundingClientRect();
const note = (name) => said.push(name + "=" + by("detail").innerText.replace(/\\s+/g, " "));
canvas.setPointerCapture = () => {};
const point = (kind, clientX, clientY) =>
  canvas.dispatchEvent(new PointerEvent(kind, { pointerId: 1, clientX, clientY, bubbles: true }));
const search = by("search");
search.value = "cancel kiosk"; search.dispatchEvent(new Event("input"));
said.push("hits=" + [...document.querySelectorAll("#hits button")].map((hit) => hit.textContent).join("|"));
search.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
note("tool");
document.querySelector("#detail .tool").click();
note("edge");
document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
said.push("closed=" + by("right").hidden);
search.value = "ring_bell"; search.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
const now = canvas.getBoundingClientRect(), x = now.left + now.width / 2, y = now.top + now.height / 2;
point("pointermove", x, y); said.push("tip=" + by("tip").textContent);
point("pointerdown", x, y); point("pointerup", x, y); note("clicked");
document.body.dataset.said = said.join(" ## ");
}</script>"""


def test_a_larger_graph_is_drawn_around_one_tool(tmp_path: Path) -> None:
    long = random_graph(3, servers=2, most=9)
    tools = tuple(tool.model_copy(update={"description": "word " * 100}) for tool in long.tools)
    long = long.model_copy(update={"tools": tools})
    data = build_page_data(long, most=len(tools) - 1)
    assert data["large"] is True
    assert {tuple(row[5:]) for row in data["tools"]} == {(0.0, 0.0)}
    assert {len(row[3]) for row in data["tools"]} == {160}
    assert build_page_data(long)["large"] is False
    assert write_page(GRAPH, tmp_path / "large.html", "large", most=2) == (5, 3)


LARGE_USER = """<script>{
const said = [], by = (id) => document.getElementById(id);
const drawn = () => [...document.querySelectorAll("#detail h2")].map((one) => one.textContent).join("|");
by("search").value = "cancel"; by("search").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
said.push("tool=" + drawn());
document.querySelector("#detail .tool").click();
said.push("edge=" + drawn());
said.push("listed=" + document.querySelectorAll("#servers label").length);
document.body.dataset.said = said.join(" ## ");
}</script>"""


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")
def test_a_user_of_a_large_page_searches_and_follows_edges(tmp_path: Path) -> None:
    path = tmp_path / "large.html"
    write_page(GRAPH, path, "large", most=2)
    path.write_text(POLICY.sub("", path.read_text()).replace("</body>", LARGE_USER + "</body>"))
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", path.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)
    assert "CONSOLE" not in shown.stderr
    said = re.search(r'data-said="([^"]*)"', shown.stdout)
    assert said is not None
    assert said[1].startswith("tool=cancel_order")
    assert "→ cancel_order" in said[1] and said[1].endswith("listed=0")


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")
def test_a_user_searches_clicks_and_reads_evidence(page: Path, tmp_path: Path) -> None:
    path = tmp_path / "used.html"
    path.write_text(POLICY.sub("", page.read_text()).replace("</body>", USER + "</body>"))
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", path.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)
    assert "CONSOLE" not in shown.stderr
    found = re.search(r'data-said="([^"]*)"', shown.stdout)
    assert found is not None
    said = dict(part.split("=", 1) for part in found[1].replace("&gt;", ">").split(" ## "))
    assert said["hits"] == "cancel_order kiosk"
    assert "kiosk" in said["tool"] and "list_orders" in said["tool"]
    assert "2: one way among others" in said["edge"] and "$.order_id → order_id" in said["edge"]
    assert "its values worked 3 times in 2 states, failed 1; values from elsewhere worked 0 times" in said["edge"]
    assert said["closed"] == "true"
    assert said["tip"] == "shop.ring_bell"
    assert said["clicked"].startswith("ring_bell shop may write no description")
    assert "5 tools, 3 edges, 2 servers" in shown.stdout


# Why


def test_why_tells_weight_evidence_parameters_and_who_else_gives_them() -> None:
    text = "\n".join(explain_edge(GRAPH, "find_order", "shop.cancel_order"))
    assert text.startswith("shop.find_order -> shop.cancel_order: there is an edge of weight 3, score 0.91.")
    assert "cancel_order relies on what find_order gives" in text
    assert "it was run: cancel_order succeeded with a value that find_order had just given" in text
    assert (
        "it can be filled from $.order_id of the result, score 0.91: it identifies the thing that is asked for" in text
    )
    assert "it is internal and required: an id" in text
    assert "other tools give it too: shop.list_orders" in text


BUILT = build_graph(TOOLS)


@pytest.mark.parametrize(
    ("source", "target", "reasons"),
    [
        pytest.param("cancel_order", "list_orders", ["does not say what it gives"], id="no-output"),
        pytest.param("find_order", "ring_bell", ["ring_bell takes no parameters"], id="no-parameters"),
        pytest.param("list_orders", "list_orders", ["one and the same tool"], id="itself"),
        pytest.param("list_orders", "find_order", ["-> email: score", "is needed for an edge"], id="nothing-fits"),
    ],
)
def test_why_not_tells_what_was_looked_at(source: str, target: str, reasons: list[str]) -> None:
    shop = ToolGraph(tools=TOOLS[:4], parameters=(), edges=())
    text = "\n".join(explain_edge(shop, source, target, GraphSettings()))
    assert text.startswith(f"shop.{source} -> shop.{target}: there is no edge.")
    for reason in reasons:
        assert reason in text


def test_why_not_tells_of_the_edge_the_other_way_round() -> None:
    text = "\n".join(explain_edge(GRAPH, "shop.cancel_order", "find_order"))
    assert "There is one the other way round: shop.find_order -> shop.cancel_order." in text


def test_every_built_edge_can_be_explained() -> None:
    assert BUILT.edges
    for edge in BUILT.edges:
        assert "there is an edge" in explain_edge(BUILT, edge.source, edge.target)[0]


def test_tools_are_found_by_full_name_or_by_a_plain_name_that_only_one_has() -> None:
    assert find_tool(GRAPH, "find_order").full_name == "shop.find_order"
    with pytest.raises(
        InputError, match=r"2 tools are named 'cancel_order': say which, for example shop\.cancel_order"
    ):
        find_tool(GRAPH, "cancel_order")
    with pytest.raises(InputError, match="the graph has no tool 'nothing'"):
        find_tool(GRAPH, "nothing")
