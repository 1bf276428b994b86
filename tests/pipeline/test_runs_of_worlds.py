"""Runs on linked worlds: values cross from one environment into another, and a broken link is a counted reason."""

from pathlib import Path

from trajsmith.environments.composite import compose_tool_name
from trajsmith.grounding import iterate_leaves, resolve_reference
from trajsmith.pipeline.engine import summarize_stage
from trajsmith.pipeline.run_directory import TASKS, VERDICTS, RunDirectory
from trajsmith.records import FromOutput, Task, Verdict, read_records
from trajsmith.toolgraph import ToolGraph

BROKEN = """
name: broken
description: The name of a person cannot be a balance.
environments: [bank, calendar]
links:
  - {from: calendar.owner, to: bank.accounts, values: {name: balance}, rows: 1}
scenarios:
  - id: remind
    motives: ["I forget things."]
    steps:
      - tool: bank.list_standing_orders
      - tool: calendar.add_task
        same_as: {due_date: list_standing_orders.next_on}
"""
CONFIG = """
name: linked
seed: 5
run: {run}
environments: [{{linked: {world}, states: {{small: 1, medium: 1}}}}]
sample: {{count: 6, scenarios: 1.0, length: [2, 12]}}
play: {{candidates: 1}}
engine: {{workers: 1}}
"""


def start(folder: Path, trajsmith, world: str) -> tuple[RunDirectory, int]:
    config = folder / "config.yaml"
    config.write_text(CONFIG.format(run=folder / "run", world=world))
    code = trajsmith("run", config).code
    return RunDirectory(folder / "run"), code


def test_a_value_of_one_environment_is_an_argument_in_another(tmp_path, trajsmith):
    run, code = start(tmp_path, trajsmith, "trips")
    tasks = list(read_records(run.file(TASKS), Task))
    assert code == 0
    assert len(tasks) >= 4
    assert all(verdict.accepted and verdict.replay_match for verdict in read_records(run.file(VERDICTS), Verdict))
    for task in tasks:
        crossing = [
            (value, source, task.gold_calls[source.call])
            for call in task.gold_calls
            for _, source, value in iterate_leaves(call)
            if isinstance(source, FromOutput)
            and task.gold_calls[source.call].tool.split("__")[0] != call.tool.split("__")[0]
        ]
        assert crossing, "the story needs a value of the other environment"
        assert all(resolve_reference(source, giver.result) == value for value, source, giver in crossing)


def test_stories_make_edges_between_environments(tmp_path, trajsmith):
    run, _ = start(tmp_path, trajsmith, "trips")
    graph = ToolGraph.load(run.file("graph.json"))
    book, enter = (
        f"trips.{compose_tool_name(*place)}" for place in (("travel", "book_trip"), ("calendar", "create_event"))
    )
    edges = {(edge.source, edge.target): edge for edge in graph.edges}
    assert {link.input for link in edges[book, enter].links} >= {"day", "start_time"}
    assert "declared" in edges[book, enter].evidence
    assert {tool.server for tool in graph.tools} == {"trips"}


def test_chains_on_a_state_with_a_broken_link_are_dropped_with_the_reason(tmp_path, trajsmith):
    (tmp_path / "world.yaml").write_text(BROKEN)
    run, code = start(tmp_path, trajsmith, "world.yaml")
    assert code == 1
    assert summarize_stage(run, "ground").dropped == {"broken_link": 6}
