"""The graph of a run: links are tried by execution by default, the same for one seed, and not at all if so set."""

from pathlib import Path

from trajsmith.environments.sources import EnvironmentSettings
from trajsmith.pipeline.config import RunConfig
from trajsmith.pipeline.run_context import RunContext
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.toolgraph import ExecutionSettings, GraphSettings, ToolGraph


async def graph_of(path: Path, execution: ExecutionSettings) -> ToolGraph:
    entry = EnvironmentSettings(library="bank", states={"small": 2})
    config = RunConfig(name="t", run=path, environments=(entry,), graph=GraphSettings(execution=execution))
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
