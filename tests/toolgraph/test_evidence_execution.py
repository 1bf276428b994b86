"""Execution proves and refutes links by contrast, the same for one seed, within its budget."""

from typing import Any

import pytest
from harbour import HarbourSource

from trajsmith.records import EnvironmentFault, ToolSpec
from trajsmith.toolgraph import ToolGraph, build_graph
from trajsmith.toolgraph.edge_explanation import explain_edge
from trajsmith.toolgraph.evidence import (
    ExecutionEvidence,
    ExecutionSettings,
    GraphEvidence,
    apply_evidence,
    compute_schema_scores,
    execute_all_links,
    execute_links,
)
from trajsmith.toolgraph.evidence.contrast_tests import replace_argument
from trajsmith.toolgraph.evidence.execution import find_missing_outputs
from trajsmith.toolgraph.evidence.score_rule import PROVED, is_proved, is_refuted
from trajsmith.toolgraph.evidence.value_leaves import Leaf
from trajsmith.toolgraph.graph import LinkEvidence

SETTINGS = ExecutionSettings(calls=300)


async def run(
    lies: bool = False, settings: ExecutionSettings = SETTINGS, seed: int = 3, silent: bool = False
) -> tuple[ToolGraph, ExecutionEvidence]:
    source = HarbourSource(lies, silent)
    tools = (await source.spec()).tools
    scores = compute_schema_scores(tools)
    executed = await execute_links(source, scores, settings, seed)
    return apply_evidence(build_graph(tools), GraphEvidence(executed=[executed]), scores), executed


def row(executed: ExecutionEvidence, source: str, output: str) -> LinkEvidence:
    key = f"harbour.{source}", "harbour.get_boat", output, "boat_id"
    return next(found for found in executed.links if found.key == key)


def score(graph: ToolGraph, source: str, target: str = "get_boat") -> float | None:
    pair = f"harbour.{source}", f"harbour.{target}"
    return next((edge.score for edge in graph.edges if (edge.source, edge.target) == pair), None)


async def test_values_that_work_where_others_fail_prove_a_link() -> None:
    graph, executed = await run()
    found = row(executed, "list_boats", "$.result[*].boat_id")
    assert found.worked >= 4 and found.failed == 0
    assert found.elsewhere_failed >= 3 and found.elsewhere_worked == 0
    assert found.states == 2
    assert is_proved(found)
    edge = next(e for e in graph.edges if (e.source, e.target) == ("harbour.list_boats", "harbour.get_boat"))
    assert edge.score >= PROVED and edge.weight == 3
    assert edge.evidence == ("schema", "execution")


async def test_values_that_never_work_refute_a_link_that_the_schemas_believe() -> None:
    source = HarbourSource()
    assert score(build_graph((await source.spec()).tools), "list_wrecks") is not None
    graph, executed = await run()
    found = row(executed, "list_wrecks", "$.result[*].boat_id")
    assert is_refuted(found)
    assert score(graph, "list_wrecks") is None
    kept = [one for one in graph.evidence if one.key == found.key]
    assert [(one.worked, one.failed) for one in kept] == [(0, found.failed)]


async def test_why_tells_the_counts_of_edges_and_of_what_was_refuted() -> None:
    graph, executed = await run()
    there, gone = explain_edge(graph, "list_boats", "get_boat"), explain_edge(graph, "list_wrecks", "get_boat")
    assert f"    {row(executed, 'list_boats', '$.result[*].boat_id').summary}" in there
    assert gone[0].endswith("there is no edge.")
    assert f"    {row(executed, 'list_wrecks', '$.result[*].boat_id').summary}" in gone


async def test_a_link_that_no_schema_shows_is_found_by_its_values() -> None:
    source = HarbourSource()
    assert score(build_graph((await source.spec()).tools), "read_plates") is None
    graph, executed = await run()
    assert is_proved(row(executed, "read_plates", "$.result[*].engraved"))
    assert (score(graph, "read_plates") or 0) >= PROVED


async def test_a_result_that_no_schema_declares_gets_its_real_fields() -> None:
    source = HarbourSource(silent=True)
    vague = next(e for e in build_graph((await source.spec()).tools).edges if e.source == "harbour.list_boats")
    assert [link.output for link in vague.links] == ["$"]
    graph, _ = await run(silent=True)
    edge = next(e for e in graph.edges if (e.source, e.target) == ("harbour.list_boats", "harbour.get_boat"))
    assert [(link.output, link.input) for link in edge.links] == [("$.result[*].boat_id", "boat_id")]
    assert edge.weight == 3


async def test_a_parameter_that_takes_anything_proves_nothing() -> None:
    _, executed = await run()
    tried = executed.parameters["harbour.write_note", "name"]
    assert tried.tried == tried.free > 0
    assert not [found for found in executed.links if found.target == "harbour.write_note" and is_proved(found)]


async def test_a_parameter_tells_what_execution_says_of_it() -> None:
    graph, _ = await run()
    node = next(node for node in graph.parameters if node.tool == "harbour.get_boat")
    assert node.kind == "internal"
    assert node.evidence[-1].startswith("execution: ") and "other tools give" in node.evidence[-1]


async def test_an_output_schema_that_lies_is_reported_once_per_tool() -> None:
    graph, _ = await run(lies=True)
    lies = [text for text in graph.findings if "promises" in text]
    assert lies == ["tool harbour.get_boat: execution: its output schema promises $.owner_id, which no result has"]


async def test_a_tool_that_breaks_is_a_finding_and_is_not_called_again() -> None:
    _, executed = await run()
    assert [text for text in executed.findings if "fall_over" in text] == [
        text for text in executed.findings if "it broke" in text
    ]
    assert len(executed.findings) == 1


async def test_one_seed_makes_the_same_calls() -> None:
    first, second = (await run())[1], (await run())[1]
    assert first == second


@pytest.mark.parametrize("calls", [6, 20, 60])
async def test_the_budget_is_kept(calls: int) -> None:
    _, executed = await run(settings=ExecutionSettings(calls=calls))
    assert 0 < executed.calls <= calls


async def test_an_environment_that_does_not_start_leaves_the_graph_to_the_schemas() -> None:
    class Down(HarbourSource):
        async def open(self) -> Any:
            raise EnvironmentFault("start", "harbour", "no such file")

    found = await execute_all_links([Down()], {}, SETTINGS, 0)
    assert [one.links for one in found] == [()]
    assert found[0].findings == (
        "environment harbour: execution: its links were not tried: harbour: start: no such file",
    )


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("id", "A", {"id": "new", "rows": [{"sku": "A"}, {"sku": "B"}]}),
        ("rows[*].sku", "B", {"id": "A", "rows": [{"sku": "A"}, {"sku": "new"}]}),
        ("tags", "A", {"id": "A", "rows": [{"sku": "A"}, {"sku": "B"}], "tags": ["new", "B"]}),
    ],
    ids=["top", "nested", "a list"],
)
def test_one_argument_is_changed_alone(path: str, value: str, expected: dict[str, Any]) -> None:
    arguments = {"id": "A", "rows": [{"sku": "A"}, {"sku": "B"}]} | ({"tags": ["A", "B"]} if path == "tags" else {})
    assert replace_argument(arguments, Leaf(path, path.split(".")[-1], value), "new") == expected
    assert arguments["id"] == "A"


@pytest.mark.parametrize(
    ("required", "results", "expected"),
    [
        (["id", "note"], [{"id": 1}], ["$.note"]),
        (["id"], [{"id": 1}], []),
        ([], [{"id": 1}, {"id": 2}, {"id": 3}], ["$.note"]),
        (["id", "note"], [{"id": 1}, {"id": 2, "note": "x"}], []),
        (["id", "note"], [], []),
        (["id", "note"], [[{"id": 1, "note": "x"}]], ["$.id", "$.note"]),
        (["id", "note"], [None], []),
    ],
    ids=["required", "optional", "never in many", "in one", "nothing seen", "a list instead", "nothing told"],
)
def test_what_no_result_has_although_it_is_promised(
    required: list[str], results: list[Any], expected: list[str]
) -> None:
    schema = {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "note": {"type": "string"}},
        "required": required,
    }
    spec = {"server": "s", "name": "get", "inputSchema": {"type": "object"}, "outputSchema": schema}
    assert find_missing_outputs(ToolSpec.model_validate(spec), results) == expected
