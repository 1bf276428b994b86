"""The command line as a user sees it: what it prints, what it leaves behind, and its exit codes."""

import gc
import shutil
import subprocess
import sys
from collections import Counter
from types import SimpleNamespace

import orjson
import pytest
from typer.main import get_command

from trajsmith.cli import app
from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.vary_plan import VaryPlan
from trajsmith.querygen.vary import VARIANTS, VarySettings
from trajsmith.records import garbage_collection

CONFIG = """
name: tiny
seed: 1
run: {run}
environments:
  - {{library: bank, states: {{small: 1}}}}
sample: {{count: 5, length: [3, 4]}}
"""
ROOT_COMMAND = get_command(app.app)
COMMANDS = [
    (),
    *((name,) for name in ROOT_COMMAND.commands),
    *((group, name) for group in ("env", "graph") for name in ROOT_COMMAND.commands[group].commands),
]


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(CONFIG.format(run=tmp_path / "run"))
    return path


@pytest.fixture
def made(config, trajsmith, tmp_path):
    """A finished run."""
    assert trajsmith("run", config).code == 0
    return tmp_path / "run"


@pytest.mark.parametrize("command", ["resume", "report", "export", "sample", "verify", "tasks"])
def test_a_run_of_the_hub_is_not_written(trajsmith, command):
    result = trajsmith(command, "hub:me/rows")
    assert result.code == 2
    assert "hub:me/rows can be read only, and this needs a run directory of your own" in result.err


def content(run):
    files = [*run.glob("*.jsonl"), *run.glob("ledger/*.jsonl"), *run.glob("states/*"), run / "graph.json"]
    return {file.name: (file.read_bytes(), file.stat().st_ino) for file in files}


def exported(run):
    import datasets

    return datasets.load_dataset(
        "parquet", data_dir=str(run / "dataset"), split="train", cache_dir=str(run.parent / "cache")
    ).to_list()


# Help


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command) or "trajsmith")
def test_every_command_explains_itself(trajsmith, command):
    said = trajsmith(*command, "--help")
    assert said.code == 0
    assert "Usage:" in said.out
    assert len(said.out.split()) > 12


def test_the_console_script_is_there():
    done = subprocess.run([sys.executable, "-m", "trajsmith", "env", "list", "--names"], capture_output=True)
    assert done.returncode == 0
    assert done.stdout.decode().split() == list(ENVIRONMENTS.names())
    assert done.stderr == b""


def test_an_unknown_command_is_wrong_input(trajsmith):
    said = trajsmith("rum")
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("error: ")
    assert len(said.err.splitlines()) == 1


# run


def test_a_dry_run_writes_nothing(trajsmith, config, tmp_path):
    said = trajsmith("run", config, "--dry-run")
    assert said.code == 0
    assert "bank" in said.out
    assert "5 chains" in said.out
    assert sorted(tmp_path.iterdir()) == [config]


def test_a_dry_run_beside_a_finished_run_shows_the_plan_and_changes_nothing(trajsmith, config, made):
    before = content(made)
    said = trajsmith("run", config, "--dry-run", "--set", "sample.count=9")
    assert said.code == 0 and "9 chains" in said.out
    assert content(made) == before
    again = trajsmith("run", config, "--set", "sample.count=9")
    assert f"(sample.count 5 -> 9): trajsmith resume {made} --set sample.count=9 changes it, --fresh" in again.err


def test_a_dry_run_finds_a_directory_that_cannot_be_made(trajsmith, config, tmp_path):
    said = trajsmith("run", config, "--dry-run", "--run", config / "run")
    assert said.code == 2
    assert f"cannot be a run directory: {config} is a file" in said.err
    assert sorted(tmp_path.iterdir()) == [config]


@pytest.mark.parametrize(
    ("command", "blocked"),
    [(["report", "--all"], "gallery"), (["export"], "summary.json"), (["export", "--format", "openai"], "exports")],
    ids=["report", "export", "another format"],
)
def test_a_write_that_fails_outside_of_a_run_names_the_same_command(trajsmith, made, command, blocked):
    if blocked == "summary.json":
        (made / blocked).unlink()
        (made / blocked / "inside").mkdir(parents=True)
    else:
        shutil.rmtree(made / blocked, ignore_errors=True)
        (made / blocked).write_text("")
    said = trajsmith(*command[:1], made, *command[1:])
    assert said.code == 1
    assert "; fix that, then give the same command again" in said.err
    assert "resume" not in said.err.splitlines()[-1]


def test_a_dry_run_fits_80_columns(trajsmith, tmp_path, monkeypatch):
    monkeypatch.setattr(app.out, "width", 80)
    path = tmp_path / "all.yaml"
    path.write_text(
        "name: all\nenvironments: [{library: bank}, {library: travel}]\nsample: {count: 5, length: [9, 11]}\n"
    )
    said = trajsmith("run", path, "--dry-run")
    assert said.code == 0, said.err
    assert len(said.out.splitlines()) < 20
    assert "a chain of bank: " in said.out and "more" in said.out
    assert all(len(line) <= 80 for line in said.out.splitlines())


@pytest.mark.parametrize("dry", [False, True], ids=["run", "dry run"])
def test_a_benchmark_file_that_is_not_there_is_known_before_any_work(trajsmith, config, tmp_path, dry):
    missing = tmp_path / "bfcl.json"
    said = trajsmith("run", config, "--set", f"decontaminate=[{missing}]", *["--dry-run"] * dry)
    assert (said.code, said.out) == (2, "")
    assert f"decontaminate: {missing}: there is no such file" in said.err
    assert not (tmp_path / "run").exists()


def test_the_plan_of_variants_knows_its_length(trajsmith, config, tmp_path):
    said = trajsmith("run", config, "--set", "vary.rates={tool_failure: 0.5, changed_mind: 0.5}")
    assert said.code == 0, said.err
    run = RunDirectory.open(tmp_path / "run")
    world = SimpleNamespace(run=run, config=load_config(run.config_path))
    plan = VaryPlan(world)
    assert len(plan) == len(list(plan)) > 5


def test_a_task_has_at_most_two_variants_in_a_run(trajsmith, config, tmp_path):
    """Every variant is wanted of every task: each gets two, not always the same, and the same on every pass."""
    assert trajsmith("run", config).code == 0
    rates = dict.fromkeys(VARIANTS.names(), 1.0)
    world = SimpleNamespace(
        run=RunDirectory.open(tmp_path / "run"), config=SimpleNamespace(vary=VarySettings(rates=rates))
    )
    plan = VaryPlan(world)
    kept, names = Counter(task.id for _, (task, _) in plan), {name for _, (_, name) in plan if name}
    assert set(kept.values()) == {3} and len(plan) == 3 * len(kept) == len(list(plan))
    assert len(names) > 2
    assert [key for key, _ in plan] == [key for key, _ in VaryPlan(world)]


def test_run_says_what_it_made_and_where(trajsmith, config, tmp_path):
    said = trajsmith("run", config)
    assert said.code == 0
    summary = orjson.loads((tmp_path / "run" / "summary.json").read_bytes())
    assert f"tiny: {summary['funnel']['accepted']} accepted trajectories" in said.out
    for stage in ("sample", "ground", "write", "play", "verify", "export"):
        assert stage in said.out
    assert str(tmp_path / "run" / "dataset") in said.out
    assert (tmp_path / "run" / "report.html").is_file()
    assert (tmp_path / "run" / "dataset" / "README.md").is_file()


def test_run_refuses_a_directory_with_a_run_and_leaves_it_alone(trajsmith, config, made):
    before = content(made)
    said = trajsmith("run", config)
    assert (said.code, said.out) == (2, "")
    assert f"trajsmith resume {made}" in said.err
    assert "--fresh" in said.err
    assert content(made) == before


def test_fresh_throws_the_old_run_away(trajsmith, config, made):
    before = content(made)
    assert trajsmith("run", config, "--fresh", "--set", "seed=2").code == 0
    assert content(made).keys() >= {"tasks.jsonl"}
    assert content(made)["tasks.jsonl"][0] != before["tasks.jsonl"][0]
    assert b"seed: 2\n" in (made / "config.yaml").read_bytes()


def test_fresh_takes_no_folder_that_is_no_run(trajsmith, config, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("years of work")
    said = trajsmith("run", config, "--fresh")
    assert said.code == 2
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["thesis.tex"]


def test_set_and_run_override_the_file(trajsmith, config, tmp_path):
    other = tmp_path / "other"
    assert trajsmith("run", config, "--run", other, "--set", "sample.count=2", "--set", "name=mine").code == 0
    assert not (tmp_path / "run").exists()
    summary = orjson.loads((other / "summary.json").read_bytes())
    assert (summary["name"], summary["funnel"]["sampled"]) == ("mine", 2)


# resume, export, report, replay


def test_resuming_a_finished_run_changes_nothing(trajsmith, made):
    before, rows = content(made), exported(made)
    said = trajsmith("resume", made)
    assert said.code == 0
    assert content(made) == before
    assert exported(made) == rows


def test_stages_can_be_run_one_by_one(trajsmith, config, made, tmp_path):
    steps = tmp_path / "steps"
    assert trajsmith("run", config, "--run", steps).code == 0
    for file in [*steps.glob("*.jsonl"), *steps.glob("ledger/*")]:
        file.unlink()
    outputs = {"sample": "chains", "ground": "grounded", "tasks": "tasks", "play": "trajectories", "verify": "verdicts"}
    done = []
    for command, file in outputs.items():
        said = trajsmith(command, steps)
        assert said.code == 0, said.err
        done.append(f"{file}.jsonl")
        assert sorted(path.name for path in steps.glob("*.jsonl")) == sorted(done)
    assert {name: data for name, (data, _) in content(steps).items()} == {
        name: data for name, (data, _) in content(made).items()
    }


@pytest.mark.parametrize("command", ["export", "report"])
def test_what_was_exported_can_be_written_again(trajsmith, made, command):
    before, rows = content(made), exported(made)
    page = (made / "report.html").read_bytes()
    (made / "report.html").unlink()
    (made / "summary.json").unlink()
    said = trajsmith(command, made)
    assert said.code == 0
    assert (str(made / "report.html") in said.out) and (made / "summary.json").is_file()
    assert abs(len((made / "report.html").read_bytes()) - len(page)) < 100  # wall times differ
    assert content(made) == before
    assert exported(made) == rows


@pytest.mark.parametrize(
    "command", [["report"], ["report", "--all"], ["audit"], ["export"], ["filter", "--out", "OUT"]], ids=" ".join
)
def test_a_run_that_was_killed_while_it_verified_is_called_unfinished(trajsmith, made, tmp_path, command):
    played = len((made / "trajectories.jsonl").read_bytes().splitlines())
    assert played > 2
    for file in (made / "verdicts.jsonl", made / "ledger" / "verify.jsonl"):
        file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:2]))
    (made / "summary.json").unlink()
    name, *options = [str(tmp_path / "out") if word == "OUT" else word for word in command]
    said = trajsmith(name, made, *options)
    assert said.code == 0, said.err
    notes = [line for line in said.err.splitlines() if line.startswith("note: ")]
    said = f"{made} is not finished (2 of {played} dialogues are verified): `trajsmith resume {made}` goes on with it"
    assert notes == [f"note: {said}"]
    again = trajsmith(name, made, *options)
    assert notes[0] in again.err, "a report that was written does not finish the run"
    assert trajsmith("resume", made).code == 0
    assert "not finished" not in trajsmith(name, made, *options).err


@pytest.mark.parametrize("command", ["resume", "export", "report", "replay", "play"])
def test_a_folder_without_a_run_is_wrong_input(trajsmith, tmp_path, command):
    said = trajsmith(command, tmp_path / "nowhere")
    assert (said.code, said.out) == (2, "")
    assert "no run here" in said.err
    assert not (tmp_path / "nowhere").exists()


def test_replay_of_one_trajectory(trajsmith, made):
    name = orjson.loads((made / "trajectories.jsonl").read_bytes().splitlines()[2])["id"]
    said = trajsmith("replay", made, "--id", name)
    assert said.code == 0
    assert said.out == "1 of 1 trajectories replayed to equal state hashes (100.0 %)\n"


@pytest.mark.parametrize("command", ["resume", "export", "replay", "verify"])
def test_the_run_can_be_named_as_an_option(trajsmith, made, command):
    said = trajsmith(command, "--run", made)
    assert (said.code, said.err.count("error")) == (0, 0)


@pytest.mark.parametrize("twice", [False, True], ids=["not at all", "twice"])
def test_a_run_is_named_once(trajsmith, made, twice):
    said = trajsmith("verify", *([made, "--run", made] if twice else []))
    assert said.code == 2
    assert "name one run directory" in said.err


def test_replay_says_when_an_environment_changed(trajsmith, made):
    file = made / "environments" / "bank.json"
    spec = orjson.loads(file.read_bytes())
    file.write_bytes(orjson.dumps({**spec, "version": "of last week"}))
    said = trajsmith("replay", made)
    assert "the code or schemas of bank changed" in said.out


def test_replay_of_an_unknown_trajectory_is_wrong_input(trajsmith, made):
    said = trajsmith("replay", made, "--id", "traj_none")
    assert said.code == 2
    assert "traj_none" in said.err.splitlines()[-1]


# env


def test_env_list_shows_every_environment(trajsmith):
    said = trajsmith("env", "list")
    assert "holiday_budget" in said.out.splitlines()[-1]
    assert said.code == 0
    for name in ENVIRONMENTS.names():
        assert name in said.out
        assert ENVIRONMENTS.get(name).describe().domain in said.out


@pytest.mark.parametrize("name", ENVIRONMENTS.names())
def test_env_show_names_every_tool(trajsmith, name):
    said = trajsmith("env", "show", name)
    assert said.code == 0
    for tool in ENVIRONMENTS.get(name).describe().tools:
        assert tool.name in said.out


def test_env_show_of_an_unknown_environment_lists_the_known_ones(trajsmith):
    said = trajsmith("env", "show", "bnak")
    assert said.code == 2
    assert "bnak" in said.err
    assert "bank" in said.err.replace("bnak", "")


# graph


@pytest.fixture
def graph(trajsmith, tmp_path):
    said = trajsmith("graph", "build", "--library", "bank", "--library", "retail", "--out", tmp_path / "graph.json")
    assert (said.code, said.out) == (0, "")
    assert str(tmp_path / "graph.json") in said.err
    return tmp_path / "graph.json"


def names(graph):
    return {f"{tool['server']}.{tool['name']}": tool for tool in orjson.loads(graph.read_bytes())["tools"]}


def test_graph_edges_are_json_lines(trajsmith, graph):
    said = trajsmith("graph", "edges", graph)
    assert (said.code, said.err) == (0, "")
    edges = [orjson.loads(line) for line in said.out.splitlines()]
    assert len(edges) > 20
    for edge in edges:
        assert edge.keys() == {"source", "target", "weight", "score", "parameters", "evidence"}
        assert {edge["source"], edge["target"]} <= names(graph).keys()
        assert edge["weight"] in {1, 2, 3}
        assert 0 <= edge["score"] <= 1
        assert edge["evidence"]
        for link in edge["parameters"]:
            assert link.keys() == {"output", "input"}
            assert link["output"].startswith("$.")
            assert (
                link["input"].split("[")[0].split(".")[0] in names(graph)[edge["target"]]["inputSchema"]["properties"]
            )
    assert len({(edge["source"], edge["target"]) for edge in edges}) == len(edges)


def test_graph_params_cover_every_parameter_once(trajsmith, graph):
    said = trajsmith("graph", "params", graph)
    assert (said.code, said.err) == (0, "")
    lines = [orjson.loads(line) for line in said.out.splitlines()]
    for line in lines:
        assert line.keys() == {"tool", "parameter", "kind", "evidence"}
        assert line["kind"] in {"internal", "external", "other"}
        assert line["evidence"]
    told = [(line["tool"], line["parameter"]) for line in lines]
    assert len(set(told)) == len(told)
    top = {
        (name, key)
        for name, tool in names(graph).items()
        for key, schema in tool["inputSchema"].get("properties", {}).items()
        if schema.get("type") in {"string", "integer", "number", "boolean"}
    }
    assert top <= set(told)


def test_graph_of_a_file_of_tools_is_that_of_the_library(trajsmith, graph, tmp_path):
    tools = [tool for name in ("bank", "retail") for tool in ENVIRONMENTS.get(name).describe().tools]
    file = tmp_path / "tools.jsonl"
    file.write_text("".join(tool.model_dump_json(exclude_none=True) + "\n" for tool in tools))
    assert trajsmith("graph", "build", "--tools", file, "--out", tmp_path / "again.json").code == 0
    assert (tmp_path / "again.json").read_bytes() == graph.read_bytes()


def test_graph_show_can_be_narrowed_to_a_tool(trajsmith, graph):
    tool = sorted(names(graph))[0]
    everything, one = trajsmith("graph", "show", graph), trajsmith("graph", "show", graph, "--tool", tool)
    assert (everything.code, one.code) == (0, 0)
    assert len(one.out.splitlines()) < len(everything.out.splitlines())
    assert tool in one.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["graph", "build", "--out", "x.json"], "--tools"),
        (["graph", "edges", "nowhere.json"], "nowhere.json"),
        (["graph", "show", "{graph}", "--tool", "bank.nothing"], "bank.nothing"),
    ],
    ids=["build of nothing", "no graph file", "no such tool"],
)
def test_graph_faults_are_one_line(trajsmith, graph, arguments, said):
    found = trajsmith(*(argument.format(graph=graph) for argument in arguments))
    assert (found.code, found.out) == (2, "")
    assert said in found.err
    assert len(found.err.splitlines()) == 1


@pytest.mark.parametrize("command", [(), ("env",), ("graph",)], ids=["trajsmith", "env", "graph"])
def test_a_command_without_arguments_prints_its_help_and_no_error(trajsmith, command):
    said = trajsmith(*command)
    assert (said.code, said.err) == (2, "")
    assert "Usage: " in said.out


def test_the_program_looks_for_cycles_less_often_from_its_start(monkeypatch):
    thresholds = []
    monkeypatch.setattr(app, "app", lambda standalone_mode: thresholds.append(gc.get_threshold()))
    before = gc.get_threshold()
    try:
        gc.set_threshold(700, 10, 10)
        app.main()
    finally:
        gc.set_threshold(*before)
    assert thresholds == [(garbage_collection.YOUNG, garbage_collection.MIDDLE, garbage_collection.OLD)]
