"""`trajsmith graph`, as a user types it."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import orjson
import pytest

from trajsmith.cli import app
from trajsmith.cli import graph as cli_graph
from trajsmith.records import Chain
from trajsmith.toolgraph import ToolGraph

Call = Callable[..., SimpleNamespace]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Call:
    """Run a command in this process as the console script does."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: object) -> SimpleNamespace:
        monkeypatch.setattr(sys, "argv", ["trajsmith", "graph", *map(str, arguments)])
        capfdbinary.readouterr()
        code: int | str | None = 0
        try:
            app.main()
        except SystemExit as stop:
            code = stop.code or 0
        sys.stdout.flush()
        said = capfdbinary.readouterr()
        return SimpleNamespace(code=code, out=said.out.decode(), err=said.err.decode())

    return run


@pytest.fixture
def graph(call: Call, tmp_path: Path) -> Path:
    path = tmp_path / "graph.json"
    assert call("build", "--library", "bank", "--library", "retail", "--out", path).code == 0
    return path


def test_a_packed_graph_is_small_and_says_the_same(call: Call, graph: Path, tmp_path: Path) -> None:
    packed = tmp_path / "graph.json.gz"
    assert call("build", "--library", "bank", "--library", "retail", "--out", packed).code == 0
    assert packed.stat().st_size < graph.stat().st_size / 4
    assert call("edges", packed).out == call("edges", graph).out != ""
    assert call("params", packed).out == call("params", graph).out != ""


def test_a_long_build_says_how_long_and_shows_how_far_the_encoder_is(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def encoder(model: str) -> Callable[[Sequence[str]], Any]:
        assert model == "some-model"

        def encode(texts: Sequence[str]) -> Any:
            asked.append(len(texts))
            return np.ones((len(texts), 4), np.float32) / 2

        return encode

    monkeypatch.setattr("trajsmith.toolgraph.embeddings.build_embedding_similarity", encoder)
    monkeypatch.setattr(cli_graph, "BATCH", 7)
    monkeypatch.setattr(cli_graph, "LARGE", 10)
    said = call("build", "--library", "bank", "--out", tmp_path / "graph.json", "--embedding", "some-model")
    assert said.code == 0
    assert "16 tools: about 0 s on one core" in said.err
    assert len(asked) > 2 and max(asked) == 7
    assert "texts in batches of 7: done" in said.err


@pytest.mark.parametrize("more", [[], ["--no-cross-server"]], ids=["across", "apart"])
def test_an_update_gives_the_file_of_a_full_build(call: Call, tmp_path: Path, more: list[str]) -> None:
    old, full, new = tmp_path / "old.json", tmp_path / "full.json", tmp_path / "new.json"
    assert call("build", "--library", "bank", "--library", "retail", "--out", old, *more).code == 0
    assert call("build", "--library", "bank", "--library", "travel", "--out", full, *more).code == 0
    assert call("build", "--library", "bank", "--library", "travel", "--out", old, "--update", *more).code == 0
    assert old.read_bytes() == full.read_bytes()
    assert call("build", "--library", "bank", "--out", new, "--update", *more).code == 0
    homes = {edge.source.split(".")[0] == edge.target.split(".")[0] for edge in ToolGraph.load(full).edges}
    assert homes == ({True} if more else homes | {True})


def test_show_writes_a_page(call: Call, graph: Path, tmp_path: Path) -> None:
    said = call("show", graph, "--html", tmp_path / "graph.html", "--server", "bank")
    assert said.code == 0
    assert "16 tools" in said.err
    html = (tmp_path / "graph.html").read_text()
    assert "bank.list_accounts" in html and "retail." not in html


def test_show_lists_tools_with_who_gives_what_they_need(call: Call, graph: Path) -> None:
    lines = call("show", graph, "--server", "bank").out.splitlines()
    assert lines[0].startswith("16 tools, 1 servers, ")
    place = lines.index("  pay_payee (may write)")
    assert lines[place + 1] == "    account_id internal  <- list_accounts (3)"
    assert lines[place + 4] == "    reference external, optional"
    short = call("show", graph, "--most", 3).out.splitlines()
    assert sum(line.endswith(("(reads)", "(may write)")) for line in short) == 3
    assert short[-1] == "and 29 tools more"


def test_show_tells_all_about_one_tool(call: Call, graph: Path) -> None:
    lines = call("show", graph, "--tool", "list_accounts").out.splitlines()
    assert lines[0].startswith("bank.list_accounts (reads): List a customer's accounts")
    assert lines[1].startswith("  customer_id internal: ")
    assert lines[2].startswith("    from bank.find_customer_by_phone $.customer_id  weight 3, score ")
    assert any(line.startswith("    bank.list_transactions  $.result[*].account_id -> account_id") for line in lines)


def test_show_why_answers_in_words(call: Call, graph: Path) -> None:
    said = call("show", graph, "--why", "bank.list_accounts", "list_transactions")
    assert said.code == 0
    assert "list_transactions relies on what list_accounts gives" in said.out
    assert "there is no edge" in call("show", graph, "--why", "list_transactions", "list_accounts").out


def test_export_writes_graphml(call: Call, graph: Path, tmp_path: Path) -> None:
    assert call("export", graph, "--out", tmp_path / "graph.graphml").code == 0
    text = (tmp_path / "graph.graphml").read_text()
    assert text.count("<edge ") == len(ToolGraph.load(graph).edges)


def test_sample_prints_chains(call: Call, graph: Path) -> None:
    said = call("sample", graph, "--count", 5, "--length", 4, 6, "--servers", 2, "--seed", 3)
    assert said.code == 0
    chains = [Chain.from_line(line) for line in said.out.splitlines()]
    assert len(chains) == 5
    assert all(4 <= len(chain.tools) <= 6 for chain in chains)
    assert said.out == call("sample", graph, "--count", 5, "--length", 4, 6, "--servers", 2, "--seed", 3).out
    assert {
        chain.environment for chain in map(Chain.from_line, call("sample", graph, "--server", "bank").out.splitlines())
    } == {"bank"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "{graph}", "--why", "list_accounts", "nothing"], "the graph has no tool 'nothing'"),
        (["show", "{graph}", "--tool", "bank.list_acounts"], 'did you mean "bank.list_accounts"'),
        (["show", "{graph}", "--server", "bnk"], "the graph has no server 'bnk'; did you mean \"bank\"?"),
        (["show", "nowhere.json"], "No such file or directory; build it again with `trajsmith graph build`"),
        (["build", "--tools", "/dev/null", "--out", "x.json"], "the file is empty; it takes one tool a line"),
        (["build", "--tools", "{graph}", "--out", "x.json"], "no tool: it has no name"),
        (["build", "--library", "bank", "--out", "/nowhere/x.json"], "there is no folder /nowhere"),
        (["build", "--library", "bank", "--environment", "bank", "--out", "x.json"], "give one of --tools FILE.jsonl,"),
        (["build", "--environment", "bnk", "--out", "x.json"], "no environment named 'bnk'"),
        (["build", "--environment", "bank", "--update", "--out", "x.json"], "--update is for --tools and --library"),
        (["sample", "{graph}", "--set", "weak"], "--set weak: write it as name=value"),
        (["sample", "{graph}", "--set", "weak=2"], "sample: weak: "),
        (["show", "{graph}", "--html", "/nowhere/at/all.html"], "cannot write /nowhere/at/all.html"),
        (["show", "{graph}", "--server", "travel"], "the graph has no server 'travel': it has bank, retail"),
        (["export", "{graph}", "--out", "/nowhere/at/all.graphml"], "cannot write /nowhere/at/all.graphml"),
        (["sample", "{graph}", "--length", "5", "3"], "the smaller number comes first"),
        (["sample", "{graph}", "--method", "magic"], "method"),
    ],
    ids=[
        "no-such-tool",
        "misspelt-tool",
        "misspelt-server",
        "no-file",
        "empty-file",
        "no-tools",
        "no-folder",
        "two-sources",
        "no-such-environment",
        "update-of-an-environment",
        "setting-without-value",
        "setting-too-large",
        "unwritable-page",
        "no-such-server",
        "unwritable-graphml",
        "length",
        "method",
    ],
)
def test_faults_are_one_line(call: Call, graph: Path, arguments: list[str], said: str) -> None:
    found = call(*(argument.format(graph=graph) for argument in arguments))
    assert found.code == 2
    assert said in found.err
    assert found.err.count("\n") == 1


def test_edges_are_the_lines_of_the_design(call: Call, graph: Path) -> None:
    first = orjson.loads(call("edges", graph).out.splitlines()[0])
    assert list(first) == ["source", "target", "weight", "score", "parameters", "evidence"]
    assert list(first["parameters"][0]) == ["output", "input"]
