"""Numbers that fit by chance prove nothing and refute nothing; numbers that nobody could guess prove links."""

import random
from typing import Any

import pytest
from clinic import ClinicSource

from trajsmith.toolgraph import ToolGraph, build_graph
from trajsmith.toolgraph.edge_explanation import explain_edge
from trajsmith.toolgraph.evidence import (
    ExecutionEvidence,
    ExecutionSettings,
    GraphEvidence,
    apply_evidence,
    compute_schema_scores,
    execute_links,
)
from trajsmith.toolgraph.evidence.chance_matches import guess_numbers, is_same_entity, parse_whole_number
from trajsmith.toolgraph.evidence.score_rule import is_proved, is_refuted, score_from_execution
from trajsmith.toolgraph.graph import LinkEvidence

SPARSE = (10_417, 23_980, 38_112, 51_706, 66_093, 71_554)
DENSE = tuple(range(10_001, 10_007))


async def run(badges: tuple[int, ...] = SPARSE, calls: int = 300) -> tuple[ToolGraph, ExecutionEvidence]:
    source = ClinicSource(badges)
    tools = (await source.spec()).tools
    scores = compute_schema_scores(tools)
    executed = await execute_links(source, scores, ExecutionSettings(calls=calls), seed=3)
    return apply_evidence(build_graph(tools), GraphEvidence(executed=[executed]), scores), executed


def row(executed: ExecutionEvidence, source: str, target: str) -> LinkEvidence:
    return next(one for one in executed.links if one.key[:2] == (f"clinic.{source}", f"clinic.{target}"))


def edges(graph: ToolGraph) -> set[tuple[str, str]]:
    return {(edge.source.split(".")[1], edge.target.split(".")[1]) for edge in graph.edges}


async def test_a_number_that_another_table_has_too_proves_nothing() -> None:
    graph, executed = await run()
    found = row(executed, "list_doctors", "get_patient")
    assert found.worked == 0 and found.chance >= 4 and found.elsewhere_failed >= 3
    assert ("list_doctors", "get_patient") not in edges(graph)


async def test_why_tells_that_numbers_fit_by_chance() -> None:
    graph, executed = await run()
    found = row(executed, "list_doctors", "get_patient")
    assert f"    {found.summary}" in explain_edge(graph, "list_doctors", "get_patient")
    assert f"{found.chance} numbers worked that fit by chance" in found.summary


async def test_the_same_numbers_are_proof_where_names_say_the_same_thing() -> None:
    graph, executed = await run()
    found = row(executed, "list_visits", "get_patient")
    assert is_proved(found) and found.chance == 0
    assert ("list_visits", "get_patient") in edges(graph)


async def test_large_numbers_with_gaps_prove_a_link_that_no_name_shows() -> None:
    graph, executed = await run(SPARSE)
    assert is_proved(row(executed, "list_doors", "get_badge"))
    assert ("list_doors", "get_badge") in edges(graph)


async def test_large_numbers_without_gaps_prove_nothing_by_themselves() -> None:
    graph, executed = await run(DENSE)
    found = row(executed, "list_doors", "get_badge")
    assert found.worked == 0 and found.chance >= 4
    assert ("list_doors", "get_badge") not in edges(graph)


@pytest.mark.parametrize("calls", range(8, 60, 4))
async def test_what_no_call_was_left_to_tell_counts_as_chance(calls: int) -> None:
    _, executed = await run(DENSE, calls)
    assert executed.calls <= calls
    assert not [one.key for one in executed.links if one.key[1] == "clinic.get_badge" and is_proved(one)]


def test_chance_neither_refutes_nor_lowers_nor_raises() -> None:
    key: dict[str, Any] = {"source": "c.a", "target": "c.b", "output": "$.x", "input": "y", "by": "execution"}
    found = LinkEvidence(**key, chance=3, failed=9, elsewhere_failed=9)
    assert not is_refuted(found) and not is_proved(found)
    assert score_from_execution(0.6, found) == 0.6
    assert is_refuted(LinkEvidence(**key, failed=9, elsewhere_failed=9))


@pytest.mark.parametrize(
    ("giver", "output", "taker", "parameter", "expected"),
    [
        ("search_visits", "$.result[*].doctor_id", "get_doctor", "doctor_id", True),
        ("search_invoices", "$.result[*].customer", "get_customer", "customer_id", True),
        ("search_invoices", "$.result[*].billing_customer_id", "get_customer", "customer_id", True),
        ("list_plants", "$.plants[*].id", "water", "plant_id", True),
        ("search_plant_records", "$.result[*].id", "get_plant", "id", True),
        ("search_doctors", "$.result[*].doctor_id", "get_patient", "patient_id", False),
        ("search_order_lines", "$.result[*].order_line_id", "get_order", "order_id", False),
        ("list_doctors", "$.result[*].id", "get_patient", "id", False),
        ("get", "$.id", "find", "id", False),
    ],
)
def test_what_names_say_is_counted(giver: str, output: str, taker: str, parameter: str, expected: bool) -> None:
    assert is_same_entity(giver, output, taker, parameter) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (7, 7),
        ("7", 7),
        ("007", None),
        (True, None),
        (7.5, None),
        ("A7", None),
        ("", None),
        ("²", None),
        ("9" * 5000, None),
    ],
    ids=["int", "digits", "padded", "bool", "float", "letters", "empty", "superscript", "endless"],
)
def test_what_is_a_whole_number(value: Any, expected: int | None) -> None:
    assert parse_whole_number(value) == expected


@pytest.mark.parametrize("value", [40, "40"])
def test_guesses_lie_between_those_that_work_and_are_of_their_type(value: int | str) -> None:
    found = guess_numbers(value, ["25", "60", "Ada"], 200, random.Random(0))
    assert {type(one) for one in found} == {type(value)}
    numbers = {int(one) for one in found}
    assert numbers == set(range(23, 63)) - {40}


def test_one_number_is_guessed_around_and_a_name_is_not_guessed() -> None:
    assert set(guess_numbers(1, [], 50, random.Random(0))) == {2, 3}
    assert guess_numbers("Ada", ["1", "2"], 3, random.Random(0)) == []
