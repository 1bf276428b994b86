"""The plan of a large run is its pilot, multiplied and shared by cores, nodes or nobody."""

from pathlib import Path
from typing import Any

import pytest

from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.scale_plan import START_SECONDS, plan_scale
from trajsmith.records import InputError, StageSummary, Summary

CONFIG = "name: pilot\nseed: 1\nenvironments: [{library: bank}]\nengine: {workers: 1}\n"
SPEAKING = "models: {m: {provider: openai, model: x}}\nroles: {agent: {model: m}}\n"
SECONDS = {"sample": 1.0, "ground": 10.0, "play": 40.0, "export": 2.0}
BUSY = 5
"""Wall seconds of the pilot for each CPU second, on a machine that does other things."""
STATE = 300
"""Bytes of a state."""


@pytest.fixture
def make_pilot(tmp_path: Path) -> Any:
    def make(config: str = CONFIG, accepted: int = 100, measured: bool = True) -> RunDirectory:
        run = RunDirectory.create(tmp_path / "pilot", config)
        stages = tuple(
            StageSummary(name=name, read=1, written=1, seconds=BUSY * cpu, cpu_seconds=cpu if measured else None)
            for name, cpu in SECONDS.items()
        )
        summary = Summary(
            name="pilot", seed=1, language="x", stages=stages, funnel={"sampled": 200, "accepted": accepted}
        )
        run.write_json("summary.json", summary.model_dump(mode="json"))
        run.write_text("verdicts.jsonl", "x" * 1000)
        run.write_text("chains.jsonl", f'{{"state":"{"a" * 64}"}}\n')
        run.write_text("tasks.jsonl", "".join(f'{{"initial_state":"{letter * 64}"}}\n' for letter in "ab"))
        for letter in "abc":
            run.write_text(f"states/{letter * 64}.json", "x" * STATE)
        (run.path / "gallery").mkdir()
        run.write_text("gallery/index.html", "x" * 100_000)
        return run

    return make


def test_stages_are_shared_by_what_can_share_them(make_pilot: Any) -> None:
    planned = plan_scale(make_pilot(), 1000, nodes=5, cores=2)
    walls = {stage.name: stage.wall_seconds for stage in planned.stages}
    assert walls == {"sample": 10.0, "ground": 10.0, "play": 40.0, "export": 10.0}
    assert planned.wall_seconds == 70.0 + START_SECONDS
    assert (planned.chains, planned.bottleneck.name) == (2000, "play")
    assert planned.records == {"sampled": 2000, "accepted": 1000}


def test_storage_grows_by_what_is_made_for_each_record(make_pilot: Any) -> None:
    pilot = make_pilot()
    planned = [plan_scale(pilot, 100 * factor, nodes=1, cores=1).stored_bytes for factor in (1, 2, 3)]
    records = 1000 + sum((pilot.path / name).stat().st_size for name in ("chains.jsonl", "tasks.jsonl"))
    assert planned[1] - planned[0] == planned[2] - planned[1] == records + STATE, "state b is of a variant"
    everything = sum(file.stat().st_size for file in pilot.path.rglob("*") if file.is_file())
    assert planned[0] == everything - 100_000, "pages are not counted"


def test_a_pilot_without_cpu_times_is_planned_by_wall_times(make_pilot: Any) -> None:
    planned = plan_scale(make_pilot(measured=False), 1000, nodes=5, cores=2)
    assert planned.stages[1].core_seconds == 10 * BUSY * SECONDS["ground"]


@pytest.mark.parametrize("entry", ["{mcp: {name: x, url: 'http://localhost:1/mcp'}}", "{mcp: {name: x, command: [y]}}"])
def test_stages_that_wait_for_servers_take_their_wall_times(make_pilot: Any, entry: str) -> None:
    planned = plan_scale(make_pilot(CONFIG.replace("{library: bank}", entry)), 1000, nodes=5, cores=2)
    stages = {stage.name: stage for stage in planned.stages}
    assert (stages["play"].core_seconds, stages["play"].wall_seconds) == (400.0, 40.0 * BUSY)
    assert stages["export"].wall_seconds == 10.0


def test_stages_of_models_are_shared_by_nodes_only(make_pilot: Any) -> None:
    planned = plan_scale(make_pilot(CONFIG + SPEAKING), 1000, nodes=5, cores=2)
    walls = {stage.name: stage.wall_seconds for stage in planned.stages}
    assert (walls["ground"], walls["play"]) == (10.0, 80.0 * BUSY), "a model makes the play wait"
    assert {stage.name: stage.parallel for stage in planned.stages} == {
        "sample": 1,
        "ground": 10,
        "play": 5,
        "export": 2,
    }


@pytest.mark.parametrize(
    ("config", "accepted", "message"),
    [
        pytest.param(CONFIG.replace("workers: 1", "workers: 4"), 100, "engine.workers=4", id="several_processes"),
        pytest.param(CONFIG, 0, "accepted no trajectory", id="nothing_accepted"),
    ],
)
def test_a_pilot_that_measures_nothing_is_refused(make_pilot: Any, config: str, accepted: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan_scale(make_pilot(config, accepted), 1000, 1, 1)


def test_a_pilot_that_drew_no_chains_is_refused(make_pilot: Any) -> None:
    pilot = make_pilot()
    summary = pilot.read_json("summary.json")
    pilot.write_json("summary.json", summary | {"funnel": {"repaired": 9, "accepted": 9}})
    with pytest.raises(InputError, match="drew no chains"):
        plan_scale(pilot, 1000, 1, 1)


def test_the_command_names_the_bottleneck(make_pilot: Any, trajsmith: Any) -> None:
    pilot = make_pilot()
    done = trajsmith("plan", pilot.path, "--count", "1000000", "--nodes", "50", "--cores", "16")
    assert done.code == 0 and "bottleneck: sample" in done.out, "one process draws a million chains"
    (pilot.path / "summary.json").unlink()
    assert "not finished" in trajsmith("plan", pilot.path, "--count", "5").err
