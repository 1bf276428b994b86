"""`trajsmith env gen` with models behind a real server: from wrong drafts to trajectories, stopped and killed."""

import json
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from running_server import RunningServer

from trajsmith.cli import app
from trajsmith.envgen.generate import GenerationResult
from trajsmith.envgen.sources.domains import build_domain_source
from trajsmith.pipeline.environment_generation import (
    GenConfig,
    GenerationInputs,
    _store_inputs,
    _store_sources,
    load_gen_config,
    load_run_inputs,
)
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.records import InputError
from trajsmith.records.journal import StepJournal

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
EXPERT = HERE / "expert" / "expert.py"
CONFIG = {
    "name": "expert",
    "roles": {"designer": "expert", "programmer": "expert", "tester": "expert", "checker": "expert"},
    "synthesis": {"trial_rounds": 1, "check_starts": 1, "themes_at_once": 1},
}


def command(*arguments):
    """With -P, which keeps the working folder off the path: what is installed must be enough."""
    return [sys.executable, "-P", "-m", "trajsmith", *map(str, arguments)]


def trajsmith(*arguments):
    return subprocess.run(command(*arguments), cwd=ROOT, capture_output=True, text=True, check=False, timeout=280)


def write_config(folder, url, **more):
    model = {"model": "expert", "base_url": url, "price": {"prompt": 2.5, "completion": 15.0}}
    file = folder / "gen.yaml"
    file.write_text(yaml.safe_dump({**CONFIG, "run": str(folder / "run"), "models": {"expert": model}, **more}))
    return file


def lines(path):
    """Records of a journal; what stands after the last end of line is still being written."""
    whole = path.read_bytes().split(b"\n")[:-1] if path.is_file() else []
    return [json.loads(line)["record"] for line in whole]


@pytest.fixture
def here(monkeypatch, capsys):
    """A command in this process, which needs no second start of Python."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["trajsmith", *map(str, arguments)])
        monkeypatch.chdir(ROOT)
        code = 0
        try:
            app.main()
        except SystemExit as stop:
            code = stop.code or 0
        said = capsys.readouterr()
        return SimpleNamespace(code=code, out=said.out, err=said.err)

    return call


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """One environment, made by a run that meets the end of its budget, is killed, and goes on."""
    folder = tmp_path_factory.mktemp("gen")
    with RunningServer(script=str(EXPERT), model="expert") as server:
        config = write_config(folder, server.url)
        told = {"folder": folder}
        source = ("--from-domain", "score lending")
        told["broke"] = trajsmith("env", "gen", *source, "--config", config, "--set", "budget.max_tokens=9000")
        told["killed"] = kill_after(
            command("env", "gen", *source, "--config", config), folder / "run" / "drafts.jsonl", 5
        )
        told["answered"] = server.stats()["answered"]
        told["done"] = trajsmith("resume", folder / "run")
        told["stats"] = server.stats()
        told["again"] = trajsmith("env", "gen", "--run", folder / "run")
        told["after"] = server.stats()
    return told


def kill_after(started, file, count):
    """Kill a command when a record file has so many lines; its exit code."""
    process = subprocess.Popen(started, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and len(lines(file)) < count:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    return process.wait()


def test_the_budget_stops_it_and_says_how_to_go_on(story):
    assert story["broke"].returncode == 1
    assert re.search(r"budget is used up: .* trajsmith resume \S+ --set budget.max_tokens=", story["broke"].stderr)


def test_a_killed_run_goes_on_and_pays_nothing_twice(story):
    assert story["killed"] == -signal.SIGKILL and story["answered"] > 5
    assert story["done"].returncode == 0, story["done"].stderr
    assert story["stats"]["answered_twice"] == 0
    paid = [json.loads(line) for line in (story["folder"] / "run" / "usage.jsonl").read_bytes().splitlines()]
    assert len(paid) == story["stats"]["requests"] and len({one["record"] for one in paid}) == 1
    assert (story["again"].returncode, story["after"]["requests"]) == (0, story["stats"]["requests"])


def test_wrong_drafts_become_an_accepted_environment_in_four_repairs(story):
    run = story["folder"] / "run"
    (outcome,) = lines(run / "outcomes.jsonl")
    assert (outcome["accepted"], outcome["rounds"], outcome["check_score"]) == (True, 4, 1.0)
    exams = lines(run / "examinations.jsonl")
    kinds = [Counter(one["kind"] for one in exam["complaints"]) for exam in exams]
    assert kinds == [{"load": 1}, {"chance": 1, "test": 2, "rule": 1}, {"test": 1}, {}, {}, {}]
    decided = [decision["wrong"] for draft in lines(run / "drafts.jsonl") for decision in draft["decisions"]]
    assert decided.count("test") == 1, "one test was wrong, and was mended instead of the code"
    assert "uuid4" in lines(run / "drafts.jsonl")[0]["code"]
    assert outcome["dropped"] == ["suggest_score: the checker approves 0.00 of its calls"]
    assert [exam["rules_bound"] for exam in exams] == [0, 7, 8, 8, 8, 8]


def test_the_funnel_and_the_cost_are_told(story):
    said = story["done"].stdout
    assert "sources 1 > proposed 1 > designed 1 > drafted 1 > examined 1 > checked 1 > accepted 1" in said
    summary = json.loads((story["folder"] / "run" / "summary.json").read_text())
    assert summary["repairs"] == {"score_library": 4} and summary["tokens_per_accepted"] == summary["tokens"] > 10_000
    stages = {stage["stage"]: stage["requests"] for stage in summary["stages"]}
    assert (stages["repair"], stages["test"], stages["try"]) == (4, 1, 2)
    assert summary["cost_by_theme"] == {"score lending": pytest.approx(summary["cost"], abs=2e-6)}  # rounded apart


def test_an_accepted_environment_says_where_it_comes_from(story):
    folder = story["folder"] / "run" / "environments" / "score_library"
    made = json.loads((folder / "provenance.json").read_text())
    kept = GenerationResult.model_validate_json((folder / "made.json").read_bytes())
    assert (kept.accepted, kept.score, kept.tests, kept.left_out) == (True, 1.0, "23 passed", 1)
    assert made["source"]["name"] == "score lending" and made["repairs"] == 4 and made["check_score"] == 1.0
    assert made["answers"]["state"]["prompt"].startswith("envgen.synthesis/state@")
    assert {"seeds", "test", "repair 1", "repair 4", "try 1", "check 1"} <= made["answers"].keys()
    assert "plays in a process each" in made["runs in"]
    became = {task["id"]: task.get("scenario") or task["no_scenario"] for task in made["tasks"]}
    assert (became["T2"], became["T7"]) == ("t2_lend_score", "t7_list_loans")
    assert became["T1"] == "nobody said why somebody comes with it"
    told = yaml.safe_load((folder / "scenarios.yaml").read_text())["scenarios"]
    assert [one["id"] for one in told] == [name for name in became.values() if re.match(r"t\d_", name)]
    assert all(test["tool"] != "suggest_score" for test in json.loads((folder / "tests.json").read_text()))
    code = (folder / "score_library.py").read_text()
    formatted = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", "120", "-"],
        input=code, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert formatted.stdout == code and "uuid" not in code and "suggest_score" not in code


def test_it_gives_accepted_trajectories(story):
    folder = story["folder"]
    environment = folder / "run" / "environments" / "score_library" / "score_library.py"
    config = folder / "scores.yaml"
    config.write_text(yaml.safe_dump({
        "name": "scores", "run": str(folder / "scores"), "environments": [{"python": str(environment)}],
        "sample": {"count": 8, "length": [3, 5]},
    }))  # fmt: skip
    done = trajsmith("run", config)
    assert done.returncode == 0, done.stderr
    summary = json.loads((folder / "scores" / "summary.json").read_text())
    assert summary["funnel"]["accepted"] >= 6
    assert sum(number > 0 for number in summary["coverage"]["score_library"].values()) >= 6
    told = [json.loads(line)["scenario"] for line in (folder / "scores" / "grounded.jsonl").read_text().splitlines()]
    assert {"t2_lend_score", "t3_renew_loan"} <= set(told), "what the environment must serve is asked for"


def test_requests_become_themes_by_the_designer_and_reach_the_tasks(tmp_path, here):
    with RunningServer(script=str(EXPERT), model="expert") as server:
        config = write_config(tmp_path, server.url)
        done = here("env", "gen", "--from-tasks", EXPERT.parent / "requests.jsonl", "--config", config)
        assert here("env", "gen", "--run", tmp_path / "run").code == 1
        assert server.stats()["answered_twice"] == 0
    assert done.code == 1 and "nothing is accepted" in done.err
    assert "6 read, 1 themes, 2 left out" in done.out and "left out: the model sees no state: 2" in done.out
    (theme,) = lines(tmp_path / "run" / "themes.jsonl")
    assert (theme["source"]["name"], len(theme["source"]["requests"])) == ("notice board", 4)
    (outcome,) = lines(tmp_path / "run" / "outcomes.jsonl")
    assert outcome["reasons"] == ["the code uses names that the sandbox forbids: line 3: imports subprocess"]
    stages = {one["stage"] for one in json.loads((tmp_path / "run" / "summary.json").read_text())["stages"]}
    assert {"stateful", "propose", "seeds"} <= stages and "test" not in stages


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_a_run_that_is_stopped_while_requests_are_read_goes_on_by_its_directory_alone(stop, tmp_path, here):
    requests = tmp_path / "requests.jsonl"
    requests.write_bytes((EXPERT.parent / "requests.jsonl").read_bytes())
    with RunningServer(script=str(EXPERT), model="expert", latency=2.0) as server:
        config = write_config(tmp_path, server.url)
        source = ("--from-tasks", requests, "--config", config)
        process = subprocess.Popen(
            command("env", "gen", *source), cwd=ROOT,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        while process.poll() is None and not (tmp_path / "run" / "unread.json").is_file():
            time.sleep(0.02)
        process.send_signal(stop)
        said = process.communicate()[1]
        server.change(latency=0.0)
        other = here("env", "gen", "--from-domain", "score lending", "--config", config)
        done = here("resume", tmp_path / "run")
        assert server.stats()["answered_twice"] == 0
    assert stop == signal.SIGKILL or said.strip().endswith(f"resume with: trajsmith resume {tmp_path / 'run'}")
    assert other.code == 2 and f"was stopped while it read {requests}: resume with" in other.err
    assert "6 read, 1 themes, 2 left out" in done.out and not (tmp_path / "run" / "unread.json").exists()
    (outcome,) = lines(tmp_path / "run" / "outcomes.jsonl")
    assert (outcome["source"], outcome["stage"]) == ("notice board", "examine")


def test_a_run_that_was_killed_while_it_kept_its_themes_knows_all_of_them(tmp_path):
    run = RunDirectory.create(tmp_path / "run", "name: x\n")
    one, other = (build_domain_source(name) for name in ("score lending", "idle chatter"))
    given = GenerationInputs(sources=(one, other))
    _store_inputs(run, given)
    _store_sources(StepJournal(run.path), [one])  # and here it is killed
    assert load_run_inputs(run.path) == given
    with pytest.raises(InputError, match="was stopped while it read 2 sources: resume with trajsmith resume"):
        _store_inputs(run, GenerationInputs(sources=(one,)))
    (run.path / "unread.json").write_text("{")
    with pytest.raises(InputError, match=r"unread.json was changed by hand"):
        load_run_inputs(run.path)


def test_a_model_that_goes_while_requests_are_read_says_how_to_go_on(tmp_path, here):
    with RunningServer(script=str(EXPERT), model="expert", faults={"server_error": 1.0}) as server:
        config = write_config(tmp_path, server.url)
        done = here(
            "env",
            "gen",
            "--from-tasks",
            EXPERT.parent / "requests.jsonl",
            "--config",
            config,
            "--set",
            "models.expert.attempts=1",
        )
        server.change(faults={})
        again = here("env", "gen", "--run", tmp_path / "run")
    assert done.code == 1 and f"resume with: trajsmith resume {tmp_path / 'run'}" in done.err
    assert "6 read, 1 themes" in again.out


def test_a_dead_endpoint_is_said_before_any_work(tmp_path, here):
    config = write_config(tmp_path, "http://127.0.0.1:9/v1")
    done = here("env", "gen", "--from-domain", "score lending", "--config", config)
    assert done.code == 2 and "cannot be reached" in done.err and "base_url" in done.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--from-domain", "score lending"], "need models: give --config"),
        (["--from-domain", "a", "--from-tasks", "b"], "give exactly one of"),
        (["--run", "nowhere"], "holds no run of env gen"),
        ([], "give exactly one of"),
        (["--from-tables", "a.csv"], "give --out"),
        (["--from-domain", "score lending", "--config", "configs/quickstart.yaml"], "configs/quickstart.yaml"),
    ],
    ids=["no model", "two sources", "no run", "nothing", "no directory", "another configuration"],
)
def test_wrong_input_is_one_line_and_exit_2(arguments, said, here):
    done = here("env", "gen", *arguments)
    assert done.code == 2 and said in done.err and done.err.count("\n") == 1


def test_the_example_configuration_is_valid():
    config = load_gen_config(ROOT / "configs" / "envgen_openai.yaml")
    assert isinstance(config, GenConfig) and config.models[config.roles.programmer.model].price.completion > 0
    assert (config.synthesis.rounds, config.synthesis.check_score) == (5, 0.9)


@pytest.mark.parametrize(
    ("change", "said"),
    [("sandbox=unsafe", "only in mode default or strict"), ("roles.tester=nobody", "no model is named 'nobody'"),
     ("synthesis.round=3", 'did you mean "rounds"')],
    ids=["unsafe", "no model", "unknown key"],
)  # fmt: skip
def test_settings_that_cannot_work_are_refused(change, said, here):
    done = here("env", "gen", "--from-domain", "a b", "--config", "configs/envgen_openai.yaml", "--set", change)
    assert done.code == 2 and said in done.err


def test_the_dry_run_shows_stages_roles_and_tokens(tmp_path, here):
    with RunningServer(script=str(EXPERT), model="expert") as server:
        config = write_config(tmp_path, server.url)
        done = here("env", "gen", "--from-domain", "score lending", "--config", config, "--dry-run")
        assert server.stats()["requests"] == 0
    assert done.code == 0, done.err
    for stage in ("propose", "seeds", "repair", "check"):
        assert re.search(rf"│ {stage} +│ (designer|programmer|checker) +│ expert", done.out), stage
    assert re.search(r"estimated: [\d,]+ tokens, cost \d", done.out) and not (tmp_path / "run").exists()
