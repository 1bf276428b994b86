"""Evidence of an environment at hand: recorded calls as examples, searches that find nothing, both kinds together."""

from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from trajsmith.cli.app import app
from trajsmith.environments import Environment, EnvironmentState, NativeSession, StateModel, ToolError, tool
from trajsmith.phrasing import Phrasebook
from trajsmith.records import EnvironmentSpec, JsonObject
from trajsmith.toolgraph import ToolGraph
from trajsmith.toolgraph.evidence import (
    ExecutionEvidence,
    ExecutionSettings,
    GraphEvidence,
    RecordedEvidence,
    Recording,
    collect_evidence,
    execute_links,
)
from trajsmith.toolgraph.evidence.contrast_tests import ParameterTrials
from trajsmith.toolgraph.evidence.graph_evidence import FEW, compute_final_scores
from trajsmith.toolgraph.evidence.recorded_flows import ValueFlow, ValueOrigins
from trajsmith.toolgraph.evidence.recordings import RecordedCall
from trajsmith.toolgraph.evidence.score_rule import PROVED, REFUTED, is_proved, is_refuted
from trajsmith.toolgraph.evidence.value_leaves import walk_leaves
from trajsmith.toolgraph.graph import LinkEvidence, LinkKey

PIERS = ("north", "south", "west", "quarry", "mill", "lock")
SETTINGS = ExecutionSettings(calls=400)


class Pier(StateModel):
    pier: str
    town: str


class Ferry(StateModel):
    ferry_id: str
    leaves: str


class Ferries(Environment[EnvironmentState]):
    """Ferries between piers."""

    @tool(effect="read")
    def list_piers(self) -> list[Pier]:
        """All piers, with the towns that they are in."""
        return [Pier(pier=name, town=f"{name}wick") for name in PIERS]

    @tool(effect="read")
    def find_ferries(self, pier: str) -> list[Ferry]:
        """Ferries that leave from a pier.

        Args:
            pier: Where they leave.
        """
        return [Ferry(ferry_id=f"F-{pier}-7", leaves="09:30")] if pier in PIERS else []

    @tool(effect="read")
    def open_log(self, phrase: str) -> list[Ferry]:
        """Read the log of the harbour master.

        Args:
            phrase: The words that open it.
        """
        if phrase != "ebb and flow":
            raise ToolError("these are not the words")
        return [Ferry(ferry_id="F-log-1", leaves="11:00")]


class FerriesSource:
    name = "ferries"
    isolation = "in process"
    notes: tuple[str, ...] = ()
    phrasebook = Phrasebook()

    async def spec(self) -> EnvironmentSpec:
        return Ferries.describe()

    async def states(self, seed: int) -> list[JsonObject]:
        return [EnvironmentState(now=datetime(2026, 3, 2, 9)).model_dump(mode="json")]

    async def open(self) -> NativeSession:
        return NativeSession(Ferries, Ferries.describe())


SCORES: dict[LinkKey, float] = {
    ("ferries.list_piers", "ferries.find_ferries", "$.result[*].pier", "pier"): 0.4,
    ("ferries.list_piers", "ferries.find_ferries", "$.result[*].town", "pier"): 0.4,
}


async def test_a_search_that_finds_nothing_refutes_a_link_beside_one_that_works() -> None:
    executed = await execute_links(FerriesSource(), SCORES, SETTINGS, seed=3)
    links = {row.key[2]: row for row in executed.links if row.key[1] == "ferries.find_ferries"}
    assert is_proved(links["$.result[*].pier"])
    assert is_refuted(links["$.result[*].town"]) and links["$.result[*].town"].failed >= 4


async def test_recorded_calls_are_tried_as_examples() -> None:
    alone = await execute_links(FerriesSource(), SCORES, SETTINGS, seed=3)
    calls = [("open_log", {"phrase": "ebb and flow"}), ("open_log", {"phrase": "wrong"}), ("unknown", {})]
    recordings = [Recording("1", tuple(RecordedCall(name, "", arguments, None, True) for name, arguments in calls))]
    shown = await execute_links(FerriesSource(), SCORES, SETTINGS, 3, recordings)
    assert "ferries.open_log" in shown.worked - alone.worked
    assert shown == await execute_links(FerriesSource(), SCORES, SETTINGS, 3, recordings)


def proof(key: LinkKey, worked: int, failed: int = 0) -> LinkEvidence:
    source, target, output, parameter = key
    return LinkEvidence(
        source=source,
        target=target,
        output=output,
        input=parameter,
        by="execution",
        worked=worked,
        failed=failed,
        elsewhere_failed=9,
        states=1,
    )


def evidence_of(parameter: str, calls: int) -> GraphEvidence:
    """Recorded calls that fill a parameter of `find_ferries` with what the user said."""
    return GraphEvidence(RecordedEvidence(origins={("ferries.find_ferries", parameter): ValueOrigins(user=calls)}))


@pytest.mark.parametrize(("calls", "expected"), [(0, PROVED), (FEW - 1, PROVED), (FEW, 0.02)])
def test_execution_adds_no_link_to_a_parameter_that_recorded_calls_fill(calls: int, expected: float) -> None:
    key = ("ferries.list_piers", "ferries.find_ferries", "$.result[*].town", "pier")
    evidence = evidence_of("pier", calls)
    evidence.links = {key: proof(key, worked=6)}
    assert compute_final_scores(evidence, {key: 0.02}, 0.2)[key] == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize(("free", "seen", "expected"), [(4, 1, REFUTED), (2, 1, 0.2), (4, 0, 0.4), (4, 6, 0.9)])
def test_a_parameter_that_takes_anything_keeps_only_links_that_recordings_show(
    free: int, seen: int, expected: float
) -> None:
    key = ("ferries.list_piers", "ferries.find_ferries", "$.result[*].town", "pier")
    evidence = evidence_of("pier", seen)
    assert evidence.recorded is not None
    if seen > 1:
        evidence.recorded.origins[key[1], "pier"].internal = 6
        evidence.recorded.flows[key] = ValueFlow(first=6, id_like=True, tasks=set("abcdef"))
    evidence.parameters = {(key[1], "pier"): ParameterTrials(tried=4, free=free)}
    assert compute_final_scores(evidence, {key: 0.4}, 0.2)[key] == pytest.approx(expected, abs=0.11)


def test_an_output_that_no_result_has_gives_nothing() -> None:
    key = ("ferries.list_piers", "ferries.find_ferries", "$.result[*].town", "pier")
    executed = ExecutionEvidence(absent=frozenset({key[::2]}))
    assert compute_final_scores(GraphEvidence(executed=[executed]), {key: 0.4}, 0.2)[key] == REFUTED


def test_execution_takes_links_away_from_a_tool_whose_use_is_recorded() -> None:
    key = ("ferries.list_piers", "ferries.find_ferries", "$.result[*].town", "pier")
    evidence = evidence_of("pier", FEW)
    evidence.links = {key: proof(key, worked=0, failed=6)}
    assert compute_final_scores(evidence, {key: 0.4}, 0.2)[key] == REFUTED


class LockedState(EnvironmentState):
    is_open: bool = False


class LockedFerries(Environment[LockedState]):
    """Ferries whose log is locked."""

    @tool(effect="write")
    def unlock(self, phrase: str) -> Pier:
        """Open the log.

        Args:
            phrase: The words that open it.
        """
        if phrase != "ebb and flow":
            raise ToolError("these are not the words")
        self.state.is_open = True
        return Pier(pier="lock", town="lockwick")

    @tool(effect="read")
    def list_piers(self) -> list[Pier]:
        """All piers, with the towns that they are in."""
        return [Pier(pier=name, town=f"{name}wick") for name in PIERS]

    @tool(effect="read")
    def read_log(self, pier: str, notes: list[str]) -> Ferry:
        """Read the log of a pier.

        Args:
            pier: Whose log.
            notes: What to write beside it.
        """
        if not self.state.is_open or pier not in PIERS:
            raise ToolError("there is no such log")
        return Ferry(ferry_id=f"F-{pier}-7", leaves="09:30")


class LockedSource(FerriesSource):
    name = "locked_ferries"

    async def spec(self) -> EnvironmentSpec:
        return LockedFerries.describe()

    async def states(self, seed: int) -> list[JsonObject]:
        return [LockedState(now=datetime(2026, 3, 2, 9)).model_dump(mode="json")]

    async def open(self) -> NativeSession:
        return NativeSession(LockedFerries, LockedFerries.describe())


async def test_arguments_of_recorded_calls_are_changed_where_the_calls_were_made() -> None:
    key: LinkKey = ("locked_ferries.list_piers", "locked_ferries.read_log", "$.result[*].pier", "pier")
    calls: list[tuple[str, JsonObject]] = [
        ("unlock", {"phrase": "ebb and flow"}),
        ("list_piers", {}),
        ("read_log", {"pier": "mill", "notes": ["calm"]}),
    ]
    recording = Recording("1", tuple(RecordedCall(name, "", arguments, None, True) for name, arguments in calls))
    alone = await execute_links(LockedSource(), {key: 0.4}, SETTINGS, 3)
    shown = await execute_links(LockedSource(), {key: 0.4}, SETTINGS, 3, [recording, recording])
    assert "locked_ferries.read_log" in shown.worked - alone.worked
    assert is_proved(next(row for row in shown.links if row.key == key))
    evidence = GraphEvidence(executed=[shown])
    assert evidence.takes_anything("locked_ferries.read_log", "notes")
    assert not evidence.takes_anything("locked_ferries.read_log", "pier")


def test_a_list_of_scalars_is_one_parameter() -> None:
    schema = LockedFerries.describe().tools[-1].input_schema
    leaves = walk_leaves({"pier": "mill", "notes": ["calm", "fog"]}, schema, "")
    assert [(leaf.path, leaf.value) for leaf in leaves] == [("pier", "mill"), ("notes", "calm"), ("notes", "fog")]
    assert [leaf.path for leaf in walk_leaves(["calm"], None)] == ["$[*]"]


@pytest.mark.parametrize("name", ["find_ferries", "ferries.find_ferries"])
async def test_recorded_tasks_are_played_again_on_the_environment(name: str) -> None:
    call = RecordedCall(name, "ferries", {"pier": "mill"}, [{"ferry_id": "F-mill-7", "leaves": "09:30"}], True)
    recordings = [Recording(str(number), ("When does my ferry leave?", call)) for number in range(FEW)]
    played: list[int] = []
    evidence = await collect_evidence(
        FerriesSource(), SCORES, SETTINGS, 3, recordings, advance=lambda: played.append(1)
    )
    assert len(played) == FEW and evidence.recorded is not None
    flow = evidence.recorded.flows["ferries.list_piers", "ferries.find_ferries", "$.result[*].pier", "pier"]
    assert len(flow.tasks) == FEW
    assert evidence.count_recorded("ferries.find_ferries", "pier") == FEW


def test_a_result_that_recordings_hold_bare_is_found_at_its_declared_path() -> None:
    from trajsmith.toolgraph.evidence import mine_recordings

    tools = Ferries.describe().tools
    listed = RecordedCall("list_piers", "ferries", {}, [{"pier": "mill", "town": "millwick"}], True)
    asked = RecordedCall("find_ferries", "ferries", {"pier": "mill"}, {"result": []}, True)
    flows = mine_recordings([Recording("1", ("Go on.", listed, asked))], tools).flows
    assert [key[2] for key, one in flows.items() if one.first] == ["$.result[*].pier"]


def test_the_command_line_tries_the_links_of_an_environment(tmp_path: Path) -> None:
    garden, target = Path(__file__).parents[2] / "examples/garden/garden.py", tmp_path / "graph.json"
    watered: dict[str, Any] = {"tool": "water_plant", "arguments": {"plant_id": "P3"}, "output": None, "error": None}
    calls = tmp_path / "calls.jsonl"
    row = {"user_text": "Water the thirsty one.", "calls": [watered]}
    calls.write_bytes(b"\n".join(orjson.dumps({**row, "task_id": str(task)}) for task in range(FEW)))
    build = ["graph", "build", "--environment", str(garden), "--recorded", str(calls), "--out", str(target)]
    result = CliRunner().invoke(app, build)
    assert result.exit_code == 0, result.output
    graph = ToolGraph.load(target)
    edge = next(edge for edge in graph.edges if edge.target.endswith("water_plant"))
    assert edge.source.endswith("list_plants") and "execution" in edge.evidence
    said = next(node.evidence for node in graph.parameters if node.tool.endswith("water_plant"))
    assert any(text.startswith(f"recorded: of {FEW} calls") for text in said)
    assert any(text.startswith("execution: ") for text in said)
