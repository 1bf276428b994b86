"""The graph of a run: links are tried by execution by default, the same for one seed, and not at all if so set."""

from pathlib import Path

import pytest

from trajsmith.environments.sources import EnvironmentSettings
from trajsmith.pipeline import run_context
from trajsmith.pipeline.config import RunConfig
from trajsmith.pipeline.run_context import RunContext
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.records import UserCache
from trajsmith.toolgraph import ExecutionSettings, GraphSettings, ToolGraph

BANK = EnvironmentSettings(library="bank", states={"small": 2})


async def graph_of(
    path: Path, execution: ExecutionSettings, entry: EnvironmentSettings = BANK, seed: int = 0
) -> ToolGraph:
    graph = GraphSettings(execution=execution)
    config = RunConfig(name="t", run=path, seed=seed, environments=(entry,), graph=graph)
    run = RunDirectory.create(path, dump_settings(config))
    with run.lock():
        world = await RunContext.open(config, run)
        await world.prepare_graph()
        first = run.file("graph.json").read_bytes()
        await world.prepare_graph()
        assert run.file("graph.json").read_bytes() == first
        return world.graph


async def test_a_run_tries_its_links(tmp_path: Path) -> None:
    graph = await graph_of(tmp_path / "a", ExecutionSettings())
    assert sum("execution" in edge.evidence for edge in graph.edges) >= 10
    assert await graph_of(tmp_path / "b", ExecutionSettings()) == graph


async def test_no_calls_leave_the_graph_to_the_schemas(tmp_path: Path) -> None:
    graph = await graph_of(tmp_path / "a", ExecutionSettings(calls=0))
    assert graph.evidence == ()
    assert {edge.evidence for edge in graph.edges} == {("schema",)}


@pytest.fixture
def tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Give the runs of a test a cache of their own; one entry for each time that links are tried."""
    tried: list[int] = []
    execute = run_context.execute_all_links

    async def count(*arguments):
        tried.append(1)
        return await execute(*arguments)

    monkeypatch.setenv("TRAJSMITH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(run_context, "_GRAPHS", UserCache("graphs"))
    monkeypatch.setattr(run_context, "execute_all_links", count)
    return tried


async def test_the_same_links_are_not_tried_again_in_the_next_run(tmp_path: Path, tried: list[int]) -> None:
    calls = ExecutionSettings(calls=60)
    graph = await graph_of(tmp_path / "a", calls)
    assert await graph_of(tmp_path / "b", calls) == graph
    assert len(tried) == 1
    assert (tmp_path / "a" / "graph.json").read_bytes() == (tmp_path / "b" / "graph.json").read_bytes()
    await graph_of(tmp_path / "c", calls, seed=1)
    await graph_of(tmp_path / "d", ExecutionSettings(calls=61))
    await graph_of(tmp_path / "e", calls, EnvironmentSettings(library="bank", states={"small": 1}))
    assert len(tried) == 4


async def test_links_of_code_of_others_are_tried_in_each_run(tmp_path: Path, tried: list[int]) -> None:
    file = Path(__file__).parents[2] / "examples" / "garden" / "garden.py"
    entry, calls = EnvironmentSettings(python=str(file), states={"small": 1}), ExecutionSettings(calls=20)
    assert await graph_of(tmp_path / "a", calls, entry) == await graph_of(tmp_path / "b", calls, entry)
    assert len(tried) == 2
