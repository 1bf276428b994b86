"""A plug-in with one thing of every kind is installed, listed, and used by a run, an export, GRPO and an evaluation."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ENTRIES = {
    "environments": {"garden": "garden_plugin.garden:Garden"},
    "adapters": {"orchard": "garden_plugin.orchard"},
    "providers": {"parrot": "garden_plugin.parrot"},
    "rewards": {"brevity": "garden_plugin.brevity:brevity"},
    "checks": {"few_calls": "garden_plugin.few_calls"},
    "formats": {"speakers": "garden_plugin.speakers"},
    "variants": {"other_words": "garden_plugin.other_words"},
    "samplers": {"shallow": "garden_plugin.shallow"},
    "roles": {"gardener": "garden_plugin.gardener"},
    "engines": {"noted": "garden_plugin.noted"},
    "sandbox_providers": {"plain": "garden_plugin.plain"},
    "benchmarks": {"watering": "garden_plugin.watering"},
}
RUN = """
name: plugged
seed: 5
run: {run}
environments:
  - {{library: garden, states: {{small: 1}}}}
  - {{orchard: {{trees: [Apple, Pear, Plum]}}, states: {{small: 1}}, sandbox: {{provider: plain}}}}
sample: {{count: 8, length: [2, 2], method: shallow}}
ground: {{min_calls: 1}}
vary: {{rates: {{other_words: 1.0}}}}
roles: {{user: {{played_by: gardener}}}}
verify: {{checks: {{few_calls: {{most: {most}}}}}, rewards: {{names: [brevity, checks]}}}}
export: {{formats: [speakers]}}
engine: {{kind: noted}}
"""
EVAL = """
model: mine
models: {{mine: {{provider: parrot, model: "All done."}}}}
benchmark: watering
limit: 1
out: {out}
"""


def install(site: Path, name: str, entries: dict[str, dict[str, str]]) -> None:
    """Put the metadata of a distribution where pip would put it."""
    info = site / f"{name.replace('-', '_')}-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    groups = ("\n".join([f"[trajsmith.{kind}]", *(f"{one} = {at}" for one, at in things.items())])
              for kind, things in entries.items())  # fmt: skip
    (info / "entry_points.txt").write_text("\n".join(groups))


def python(*arguments: object, site: Path, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": paths, "COLUMNS": "200", **environment},
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(HERE / "garden_plugin", folder / "garden_plugin")
    install(folder, "garden-plugin", ENTRIES)
    return folder


@pytest.fixture(scope="module")
def run(site, tmp_path_factory):
    """A run made with the plug-in's environment, adapter, sampler, variant, role, check, reward, format and engine."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "run.yaml").write_text(RUN.format(run=folder / "run", most=9))
    python("-m", "trajsmith", "run", folder / "run.yaml", site=site)
    return folder / "run"


def read_records(run: Path, name: str) -> list[dict]:
    return [json.loads(line) for line in (run / f"{name}.jsonl").read_text("utf-8").splitlines()]


def test_all_are_listed_with_their_distribution(site):
    lines = python("-m", "trajsmith", "plugins", site=site).stdout.splitlines()
    for kind, entries in ENTRIES.items():
        for name, module in entries.items():
            assert [kind, name, "garden-plugin", "1.2", module.partition(":")[0]] in [line.split() for line in lines]
    assert ["rewards", "composite", "trajsmith", "trajsmith.verify.rewards.composite"] in [x.split() for x in lines]


def test_a_run_is_made_of_the_plugged_in_parts(run):
    chains, trajectories, verdicts = (read_records(run, name) for name in ("chains", "trajectories", "verdicts"))
    assert {chain["environment"] for chain in chains} == {"garden", "orchard"}
    assert {chain["sampler"]["method"] for chain in chains} == {"shallow"}
    assert {trajectory["models"]["user"] for trajectory in trajectories} == {"gardener"}
    assert "other_words" in {task["variant"] for task in read_records(run, "varied")}
    accepted = [verdict for verdict in verdicts if verdict["accepted"]]
    assert accepted and all(set(verdict["rewards"]) == {"brevity", "checks"} for verdict in accepted)
    assert all("few_calls" in {check["kind"] for check in verdict["checks"]} for verdict in accepted)
    assert (run / "stages.txt").read_text().split() == ["sample", "ground", "write", "vary", "play", "verify"]
    rows = (run / "exports/speakers").rglob("*.jsonl")
    assert any(json.loads(line)["speakers"][0] == "system" for file in rows for line in file.open())


def test_a_check_that_fails_rejects_the_trajectory(site, run, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    done = python(
        "-m", "trajsmith", "resume", copy, "--yes", "--set", "verify.checks.few_calls.most=0", site=site, code=1
    )
    assert "check failed: few_calls: 16" in done.stderr


def test_a_reward_is_one_of_grpo(site, run):
    done = python("-c", GRPO, run, site=site)
    calls, scores = json.loads(done.stdout)
    assert scores == {"brevity": [pytest.approx(1 / (1 + calls), abs=1e-4), None]} and calls > 0


GRPO = """
import json, sys
from pathlib import Path
from trajsmith.pipeline.record_joins import join_verdicts
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.train_grpo import GrpoConfig
from trajsmith.train_grpo.episodes import EpisodeResult
from trajsmith.train_grpo.reward_functions import EpisodeReward

config = GrpoConfig(model="m", run=sys.argv[1], out="o", episode_tokens=9, reward="brevity")
score = EpisodeReward(config.reward, lambda: None)
known = join_verdicts(RunDirectory.open(Path(sys.argv[1])))
task, trajectory, verdict = next(one for one in known if one[2].accepted)
episodes = [EpisodeResult(task, trajectory, verdict, 0.0), EpisodeResult(task, None, None, 0.0)]
scores = {score.__name__: score(completions=[[], []], episodes=episodes)}
print(json.dumps([len(trajectory.events), scores]))
"""


def test_a_benchmark_is_played_by_a_model_of_an_installed_provider(site, run, tmp_path):
    (tmp_path / "eval.yaml").write_text(EVAL.format(out=tmp_path / "out"))
    python("-m", "trajsmith", "eval", tmp_path / "eval.yaml", site=site, WATERING_RUN=str(run))
    episodes = read_records(tmp_path / "out", "episodes")
    assert {episode["environment"] for episode in episodes} == {"garden", "orchard"}
    assert {episode["error"] for episode in episodes} == {"no_call"}


UNKNOWN = [
    (
        "sample.method=shalow",
        "sample.method: no sampler named 'shalow' (did you mean \"shallow\"?); there are: coverage, env",
    ),
    ("engine.kind=slurm", "engine.kind: no engine named 'slurm'; there are: local, noted, ray"),
    ("verify.rewards.names=[brief]", "verify.rewards.names.0: no reward named 'brief'; there are: brevity, checks"),
    ("verify.checks={none: {}}", "no check named 'none'; there are: answer, code, few_calls, policy"),
    ("verify.checks={state: {}}", "state is a kind of check that tasks hold"),
    ("roles.user.played_by=farmer", "no role named 'farmer'; there are: gardener, model, scripted"),
    ("roles.judge={played_by: gardener}", "roles.judge: played_by is for user and agent"),
    ("environments=[{orchid: x}]", 'environments.0.orchid: unknown key; did you mean "orchard"?'),
    ("environments=[{orchard: {tree: x}}]", 'environments.0.orchard.tree: unknown key; did you mean "trees"?'),
]
LOAD = """
import json, sys
from pathlib import Path
from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.stages import check_roles
from trajsmith.records import InputError

for change in json.loads(sys.argv[2]):
    try:
        check_roles(load_config(Path(sys.argv[1]), [change]))
    except InputError as error:
        print(error)
"""


def test_an_unknown_name_is_one_line_that_lists_what_is_installed(site, tmp_path):
    (tmp_path / "run.yaml").write_text(RUN.format(run=tmp_path / "run", most=9))
    changes = json.dumps([change for change, _ in UNKNOWN])
    lines = python("-c", LOAD, tmp_path / "run.yaml", changes, site=site).stdout.splitlines()
    missing = [expected for (_, expected), line in zip(UNKNOWN, lines, strict=True) if expected not in line]
    assert missing == [], lines


def test_a_broken_plug_in_is_named_and_breaks_nothing_else(site, tmp_path):
    install(tmp_path, "broken-plugin", {
        "rewards": {"gone": "no_such_module:reward", "checks": "garden_plugin.brevity:brevity"},
        "adapters": {"torn": "no_such_module"},
    })  # fmt: skip
    site = os.pathsep.join([str(tmp_path), str(site)])
    done = python("-m", "trajsmith", "plugins", site=site, code=1)
    faults = [line for line in done.stdout.splitlines() if line.startswith("not usable:")]
    assert faults == [
        "not usable: adapter 'torn' of no_such_module (broken-plugin 1.2) cannot be loaded: "
        "ModuleNotFoundError: No module named 'no_such_module'",
        "not usable: two rewards are named 'checks', remove one: "
        "trajsmith.verify.rewards.checks (trajsmith) and garden_plugin.brevity (broken-plugin 1.2)",
        "not usable: reward 'gone' of no_such_module (broken-plugin 1.2) cannot be loaded: "
        "ModuleNotFoundError: No module named 'no_such_module'",
    ]
    text = RUN.format(run=tmp_path / "run", most=9)
    (tmp_path / "run.yaml").write_text(text)
    done = python("-m", "trajsmith", "run", tmp_path / "run.yaml", site=site, code=2)
    assert not (tmp_path / "run").exists()
    assert "two rewards are named 'checks'" in done.stderr.splitlines()[-1]
    (tmp_path / "run.yaml").write_text(text.replace("[brevity, checks]", "[brevity]"))
    python("-m", "trajsmith", "run", tmp_path / "run.yaml", "--fresh", site=site)
    assert read_records(tmp_path / "run", "verdicts")[0]["rewards"].keys() == {"brevity"}
