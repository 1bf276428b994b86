"""Models in the configuration of a run: who plays what, what it is thought to cost, what a change makes stale."""

import asyncio
import io
import shutil

import orjson
import pytest
from running_server import RunningServer

from trajsmith.models import ChatRequest, ModelSettings
from trajsmith.pipeline.config import RunConfig, load_config
from trajsmith.pipeline.config_changes import (
    FIRST,
    FIXED,
    OF_ROLES,
    SPEAKING,
    STAGES,
    apply_change,
    find_stale_stages,
    plan_change,
)
from trajsmith.pipeline.engine import PipelineStage, attempt_work
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.run_summary import describe_language
from trajsmith.pipeline.runner import _opened, check_ready, find_roles, run_pipeline
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.records import InputError, Message, ModelFault, Task

TINY = """\
name: tiny
seed: 1
environments:
  - {library: bank, states: {small: 1}}
sample: {count: 5, length: [3, 4]}
"""
MODELS = """\
models:
  big: {model: test-model, base_url: "URL", temperature: 0.5, price: {prompt: 1, cached: 0.1, completion: 4}}
  small: {model: test-model, base_url: "URL"}
roles:
  agent: big
  user: {model: small, temperature: 0.9}
"""
NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "line.yaml"
    path.write_text(TINY + MODELS.replace("URL", NOWHERE))
    return path


@pytest.fixture
def spoken(config, language_server):
    """A configuration whose server is there."""
    config.write_text(TINY + MODELS.replace("URL", language_server.url))
    return config


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run in scripted language, with models configured but silent."""
    folder = tmp_path_factory.mktemp("finished")
    text = TINY + MODELS.replace("URL", NOWHERE).split("roles:")[0]
    (folder / "line.yaml").write_text(text)
    run = RunDirectory.create(folder / "run", dump_settings(load_config(folder / "line.yaml")))
    asyncio.run(run_pipeline(run))
    return run.path


@pytest.fixture
def copied(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    return RunDirectory.open(tmp_path / "run")


# The configuration


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("roles.agent=huge", "roles.agent: no model is named 'huge'; choose one of: scripted, big, small"),
        ("roles.agnet=big", 'roles.agnet: unknown key; did you mean "agent"?'),
        (
            "models.bigg.base_url=http://localhost:1/v1",
            'models.bigg.model: this key is required: "bigg" is a new entry; did you mean "big"?',
        ),
        ("roles.user.temperature=-1", "roles.user.temperature"),
        ("models.big.provider=azure", "models.big.provider"),
        ("models.big.key=sk-canary", "models.big.key: unknown key"),
        ("models.big.key_env=sk-canary", "key_env must name an environment variable"),
        ("models.big.base_url=localhost", "models.big.base_url"),
        ("models.big.concurrency=0", "models.big.concurrency"),
        ("budget.max_cost=-1", "budget.max_cost"),
    ],
    ids=lambda value: value.split("=")[0] if "=" in value else "",
)
def test_wrong_settings_of_models_are_one_line(trajsmith, config, tmp_path, override, said):
    found = trajsmith("run", config, "--run", tmp_path / "run", "--set", override)
    assert (found.code, found.out) == (2, "")
    assert said in found.err
    assert len(found.err.splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_a_role_may_be_a_name_or_more(config):
    roles = load_config(config).roles
    assert (roles.agent.model, roles.user.model, roles.user.temperature, roles.judge.model) == (
        "big", "small", 0.9, "scripted",
    )  # fmt: skip
    assert describe_language(load_config(config)) == "scripted, test-model"


def test_settings_with_models_are_read_back_as_they_were(config, tmp_path):
    (tmp_path / "again.yaml").write_text(dump_settings(load_config(config)))
    assert load_config(tmp_path / "again.yaml") == load_config(config)


@pytest.mark.parametrize("command", [(), ("--dry-run",)], ids=["run", "dry run"])
def test_a_server_that_is_not_there_is_known_before_any_work(trajsmith, config, tmp_path, command):
    found = trajsmith("run", config, "--run", tmp_path / "run", *command)
    assert found.code == 2
    assert ("estimated:" in found.out) if command else not found.out
    assert "error: models.small" in found.err
    assert "cannot be reached" in found.err
    assert not (tmp_path / "run").exists()


def test_preflight_can_be_left_out(config):
    overrides = ["models.big.preflight=false", "models.small.preflight=false"]
    assert asyncio.run(check_ready(load_config(config, overrides))) == ["user", "agent"]


def test_only_the_models_of_a_stage_are_looked_at():
    assert find_roles(("sample",)) == ["classify", "refine"]
    assert find_roles(("ground",)) == ["proposer"]
    assert find_roles(("write",)) == ["writer", "checker"]
    assert find_roles(("play", "verify")) == ["user", "agent", "judge"]


def test_a_dry_run_tells_roles_tokens_and_cost(trajsmith, spoken, tmp_path):
    found = trajsmith("run", spoken, "--dry-run", "--set", "budget.max_cost=3")
    assert found.code == 0, found.err
    rows = {line.split("│")[1].strip(): line for line in found.out.splitlines() if "│" in line}
    assert "test-model" in rows["agent"]
    assert "scripted" in rows["writer"]
    assert "an estimate" in found.out
    assert "max_cost 3.0" in found.out
    assert not (tmp_path / "run").exists()


# Models at work


async def test_a_world_gives_talkers_by_role(spoken, tmp_path):
    config = load_config(spoken)
    run = RunDirectory.create(tmp_path / "run", dump_settings(config))
    with run.lock():
        async with _opened(config, run, ("play",)) as world:
            assert world.role_model("writer") is None
            assert world.role_model("agent").name == "test-model"
            hello = ChatRequest(messages=(Message(role="user", content="hello"),))
            assert (await world.role_model("user").complete(hello)).message.content == "You said: hello"
    assert [row["purpose"] for row in map(orjson.loads, run.file("usage.jsonl").read_bytes().splitlines())] == [
        "preflight", "user",
    ]  # fmt: skip


async def test_a_scripted_world_opens_no_model(copied):
    with copied.lock():
        async with _opened(load_config(copied.config_path), copied, ("play",)) as world:
            assert world.role_model("agent") is None
    assert not copied.file("usage.jsonl").exists()
    assert not copied.file("cache").exists()


@pytest.mark.parametrize("limit", ["max_cost", "max_tokens"])
def test_a_budget_of_zero_is_known_before_any_work(trajsmith, language_server, spoken, tmp_path, limit):
    before = language_server.stats()["requests"]
    found = trajsmith("run", spoken, "--run", tmp_path / "run", "--set", f"budget.{limit}=0")
    assert (found.code, found.out) == (2, "")
    assert f"budget.{limit} is 0 and models play user, agent: raise it" in found.err
    assert language_server.stats()["requests"] == before and not (tmp_path / "run").exists()


async def test_a_server_without_tools_is_named_before_any_stage(spoken, tmp_path):
    with RunningServer(refuses=["tools"]) as server:
        config = load_config(spoken, [f"models.big.base_url={server.url}"])
        run = RunDirectory.create(tmp_path / "run", dump_settings(config))
        with run.lock(), pytest.raises(InputError, match=r"models\.big.*takes no tools"):
            async with _opened(config, run, ("play",)):
                raise AssertionError("it must not come to this")


def test_what_was_spent_stands_in_summary_card_and_report(trajsmith, copied):
    tokens = {"prompt_tokens": 900, "cached_tokens": 400, "completion_tokens": 100, "reasoning_tokens": 7, "cost": 0.5}
    rows = [{"record": "r", "purpose": purpose, "model": "m", **tokens} for purpose in ("agent", "writer.goal")]
    copied.file("usage.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    assert trajsmith("export", copied.path).code == 0
    summary = orjson.loads(copied.file("summary.json").read_bytes())
    accepted = summary["funnel"]["accepted"]
    assert summary["usage"]["requests"] == 2
    assert summary["usage_by_role"]["writer"]["cached_tokens"] == 400
    assert summary["tokens_per_accepted"] == pytest.approx(2000 / accepted, abs=0.1)
    assert summary["cost_per_accepted"] == pytest.approx(1.0 / accepted, abs=1e-6)
    card = copied.file("dataset/README.md").read_text()
    assert "| writer | 1 | 900 | 400 | 100 | 7 | 0.5000 |" in card
    assert "tokens per accepted" in copied.file("report.html").read_text()


async def test_a_reply_that_cannot_be_used_is_kept_with_the_drop():
    async def work(item):
        raise ModelFault("bad_reply", "m", "no JSON in it", "I would rather not.")

    outcome = await attempt_work(
        PipelineStage("write", work, "tasks.jsonl", Task), "ground_1", None, asyncio.Semaphore(1)
    )
    assert outcome.reason == "model_fault:bad_reply"
    assert outcome.detail == "m: bad_reply: no JSON in it; the reply was: I would rather not."


def test_fresh_keeps_the_answers_and_forgets_the_bill(tmp_path):
    run = RunDirectory.create(tmp_path / "run", TINY)
    run.file("cache").mkdir()
    run.file("cache/answers.sqlite").write_bytes(b"kept")
    run.file("usage.jsonl").write_bytes(b"{}\n")
    RunDirectory.create(tmp_path / "run", TINY, fresh=True)
    assert run.file("cache/answers.sqlite").read_bytes() == b"kept"
    assert not run.file("usage.jsonl").exists()


# Changes on resume


@pytest.mark.parametrize(
    ("overrides", "first"),
    [
        (["roles.writer=big"], "write"),
        (["roles.user=big"], "play"),
        (["roles.user.temperature=0.2"], "play"),
        (["roles.agent=small"], "play"),
        (["roles.judge=big"], "verify"),
        (["models.big.temperature=0.6"], "play"),
        (["models.big.tools=compact"], "play"),
        (["models.small.temperature=0.6"], None),
        (["models.big.concurrency=3", "models.big.timeout=9"], None),
        (["models.big.base_url=http://elsewhere/v1"], None),
        (["models.new={model: x}"], None),
        (["budget.max_cost=3"], None),
        (["prompts=my/prompts"], "play"),
        (["engine.concurrency=3"], None),
        (["export.gallery=3"], None),
        (["sample.count=6"], "sample"),
        (["graph.most_edges=3"], "graph"),
        (["play.candidates=2", "roles.writer=big"], "write"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_change_makes_stale_what_depends_on_it(config, overrides, first):
    if overrides == ["graph.most_edges=3"]:
        overrides = ["graph.embedding=some/model"]
    stale = find_stale_stages(load_config(config), load_config(config, overrides))
    assert stale == (STAGES[STAGES.index(first) :] if first else ())


@pytest.mark.parametrize("override", ["seed=2", "name=other", "environments=[{library: retail}]", "run=elsewhere"])
def test_a_change_that_makes_another_run_is_refused(config, override):
    with pytest.raises(InputError, match="cannot change when a run is resumed"):
        find_stale_stages(load_config(config), load_config(config, [override]))


def test_every_setting_of_a_model_is_known_to_speak_or_not():
    silent = {
        "base_url", "key_env", "concurrency", "requests_per_minute", "tokens_per_minute", "timeout", "attempts",
        "deadline", "first_wait", "longest_wait", "outage_after", "price", "structured", "preflight", "engine",
        "batch", "batch_quiet", "batch_poll", "replicas", "hedge_after",
    }  # fmt: skip
    assert SPEAKING | silent == set(ModelSettings.model_fields)


def test_every_setting_of_a_run_is_known_to_touch_something_or_nothing():
    assert {*FIRST, *FIXED, *OF_ROLES} == set(RunConfig.model_fields)


def size(run):
    return {path.name: path.read_bytes() for path in [*run.path.glob("*.jsonl"), *run.path.glob("ledger/*.jsonl")]}


def test_only_what_is_stale_is_thrown_away(copied):
    before = size(copied)
    apply_change(copied, plan_change(copied, ["play.max_steps=29"]))
    gone = {"trajectories.jsonl", "play.jsonl", "verdicts.jsonl", "verify.jsonl"}
    assert size(copied) == {name: data for name, data in before.items() if name not in gone}
    assert b"max_steps: 29" in copied.config_path.read_bytes()


def test_resume_redoes_what_is_stale_after_yes(trajsmith, copied):
    before = size(copied)
    found = trajsmith("resume", copied.path, "--set", "play.max_steps=29", "--yes")
    assert found.code == 0, found.err
    assert "play dialogues: started" in found.err
    assert "write tasks: started" not in found.err
    assert size(copied) == before  # scripted dialogues are the same again


def test_resume_without_a_terminal_says_to_say_yes(trajsmith, copied, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    before = size(copied)
    found = trajsmith("resume", copied.path, "--set", "play.max_steps=29")
    assert (found.code, found.out) == (2, "")
    assert "this change does these stages again: play, verify; pass --yes" in found.err
    assert size(copied) == before
    assert b"max_steps: 29" not in copied.config_path.read_bytes()


@pytest.mark.parametrize(("answer", "changed"), [("y\n", True), ("n\n", False)], ids=["yes", "no"])
def test_resume_asks_on_a_terminal(trajsmith, copied, monkeypatch, answer, changed):
    terminal = io.StringIO(answer)
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stdin", terminal)
    found = trajsmith("resume", copied.path, "--set", "play.max_steps=29")
    assert found.code == (0 if changed else 2), found.err
    assert (b"max_steps: 29" in copied.config_path.read_bytes()) is changed


def test_resume_with_a_change_that_makes_nothing_stale_just_goes_on(trajsmith, copied):
    before = size(copied)
    assert trajsmith("resume", copied.path, "--set", "budget.max_cost=3").code == 0
    assert size(copied) == before
    assert b"max_cost: 3" in copied.config_path.read_bytes()
