"""Environments that a plan wants are made by models, a run with the plan uses them, and the arena does both."""

import json
from pathlib import Path

import pytest
import yaml
from running_server import RunningServer

from trajsmith.envgen.synthesis.records import SynthesisOutcome
from trajsmith.pipeline.arena import Arena, list_steps, prepare_arena
from trajsmith.pipeline.arena_config import ArenaConfig
from trajsmith.pipeline.environment_generation import build_wish_sources, fill_plan_files
from trajsmith.pipeline.progress import NullProgress
from trajsmith.pipeline.yaml_settings import load_settings
from trajsmith.records import Chain
from trajsmith.records.journal import read_records
from trajsmith.toolgraph import SamplingPlan

EXPERT = Path(__file__).parents[1] / "envgen" / "expert" / "expert.py"
GENERATION = {
    "name": "expert",
    "roles": {"designer": "expert", "programmer": "expert", "tester": "expert", "checker": "expert"},
    "synthesis": {"trial_rounds": 1, "check_starts": 1, "themes_at_once": 1},
}
PLAN = {
    "name": "why",
    "targets": [{"dimension": "environment", "name": "score_lending", "share": 1}],
    "environments": [{"like": "score_lending", "wish": "Another service of the kind of score_lending."}],
}


@pytest.fixture
def arena(tmp_path):
    """An arena whose first diagnosis wants an environment, and the server of the models that make it."""
    with RunningServer(script=str(EXPERT), model="expert") as server:
        model = {"expert": {"model": "expert", "base_url": server.url}}
        files = {
            "gen.yaml": {**GENERATION, "run": str(tmp_path / "gen"), "models": model},
            "data.yaml": {"name": "data", "environments": [{"library": "bank", "states": {"small": 2}}]},
            "arena.yaml": {
                "name": "tiny",
                "out": str(tmp_path / "out"),
                "model": "start",
                "data": "data.yaml",
                "environments": "gen.yaml",
                "trainer": {"kind": "command", "settings": {"command": ["true"]}},
            },
            "plan.yaml": PLAN,
        }
        for name, content in files.items():
            (tmp_path / name).write_text(yaml.safe_dump(content))
        config = load_settings(tmp_path / "arena.yaml", ArenaConfig)
        assert "round-1/environments" in list_steps(config)
        built = Arena(config, prepare_arena(config), NullProgress())
        diagnosis = config.out / "round-1" / "diagnosis"
        diagnosis.mkdir(parents=True)
        (diagnosis / "plan.yaml").write_text(yaml.safe_dump(PLAN))
        yield built


def test_the_arena_has_environments_made_and_draws_chains_of_them(arena):
    assert arena._read_plan(1).list_open_wishes() == ("environments like score_lending",)
    arena._make_environments(1)
    folder = arena.config.out / "round-1" / "environments"
    result = json.loads((folder / "step.json").read_bytes())["result"]
    plan = arena._read_plan(1)
    (name,) = result["accepted"]
    assert plan.list_open_wishes() == () and [file.stem for file in plan.environments[0].files] == [name]
    before = (folder / "step.json").stat().st_mtime_ns
    arena._make_environments(1)
    assert (folder / "step.json").stat().st_mtime_ns == before, "made once"

    changes = {"sample.count": 8, "sample.length": [2, 3], "plan": plan.model_dump(mode="json")}
    run = arena._make_run(folder.parent / "synthesis", changes)
    chains = list(read_records(run.path / "chains.jsonl", Chain))
    assert {chain.environment for chain in chains} == {"bank", name}


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (PLAN | {"environments": []}, "the plan wants none: no environment is weak as a whole"),
        (
            PLAN | {"environments": [{"like": "bank", "files": ["b.py"]}]},
            "the plan has all that it wants",
        ),
        (PLAN | {"environments": [{"likes": "bank"}]}, "likes"),
    ],
    ids=["none", "all made", "unknown key"],
)
def test_a_plan_that_wants_nothing_is_one_line(plan, said, tmp_path, trajsmith):
    file = tmp_path / "plan.yaml"
    file.write_text(yaml.safe_dump(plan))
    done = trajsmith("env", "gen", "--from-plan", file, "--config", "configs/envgen_openai.yaml")
    assert done.code == 2 and said in done.err and done.err.count("\n") == 1


def test_files_of_accepted_environments_are_filled_into_the_plan_that_the_run_keeps(tmp_path):
    assert fill_plan_files(tmp_path, []) is None, "a run without a plan"
    plan = PLAN | {"environments": [*PLAN["environments"], {"like": "tea_shop"}]}
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))

    def outcome(source, accepted):
        return SynthesisOutcome(theme="t", source=source, name="made", accepted=accepted, stage="accept")

    assert fill_plan_files(tmp_path, [outcome("score lending", False)]) is None
    file = fill_plan_files(tmp_path, [outcome("score lending", True), outcome("tea shop", False)])
    filled = load_settings(file, SamplingPlan)
    assert filled.environments[0].files == (tmp_path / "environments" / "made" / "made.py",)
    assert filled.list_open_wishes() == ("environments like tea_shop",)
    assert [source.name for source in build_wish_sources(filled)] == ["tea shop"]
