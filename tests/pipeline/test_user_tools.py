"""Tools that only the user calls: in generated and imported environments, played in dialogues and proved by replay."""

import json
import sys
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet
import pytest

import trajsmith
from trajsmith.envcheck import EnvironmentReport
from trajsmith.envgen.generate import pipeline
from trajsmith.envgen.generate.from_tables import read_tables
from trajsmith.environments.blocking import EnvironmentSession
from trajsmith.records import InputError, Trajectory

FOREIGN = Path(__file__).parent / "foreign"


@pytest.fixture
def examined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the place of the environment checker, whose thousand calls take up to a minute on a busy machine."""

    async def examine(*_: Any) -> EnvironmentReport:
        return EnvironmentReport(
            environment="care", version="", source="", seed=0, score=1.0, tools=(), checks=(), findings=(), states=1,
            facts=0, calls=0, cpu_seconds=0.0,
        )  # fmt: skip

    monkeypatch.setattr(pipeline, "check_environment", examine)


def generate_care(folder: Path, user_tools: list[str]) -> pipeline.GenerationResult:
    """An environment about routers, from a table."""
    routers = [{"id": n, "name": f"Router {n}", "status": ["open", "done"][n % 2]} for n in range(1, 13)]
    (folder / "care").mkdir(exist_ok=True)
    (folder / "care" / "routers.json").write_text(json.dumps(routers))
    return pipeline.generate_environment(lambda: read_tables(folder / "care"), folder / "out", user_tools=user_tools)


@pytest.mark.parametrize(
    ("tools", "reason"),
    [
        (["fly"], "care: user tool 'fly' does not exist; there are add_router, delete_router"),
        (["get_router", "search_routers", "add_router", "update_router", "delete_router"], "all tools are the user's"),
    ],
)
def test_the_user_gets_tools_that_exist_and_not_all(tools: list[str], reason: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=reason):
        generate_care(tmp_path, tools)


def leave_out_user(trajectory: Trajectory, environment: EnvironmentSession) -> Trajectory:
    """The dialogue as it would be if the user had said that it is done, and had not done it."""
    events, spans, messages = [], [], list(trajectory.messages)
    answers = (number for number, message in enumerate(messages) if message.role == "tool")
    for span in trajectory.turns:
        for event in trajectory.events:
            if event.actor == "assistant" and span.start <= event.message < span.stop:
                result = environment.call(event.tool, **event.arguments)
                outcome = {"ok": result.ok, "error": result.error, "result_hash": result.hash}
                events.append(event.model_copy(update=outcome))
                number = next(answers)
                messages[number] = messages[number].model_copy(update={"content": result.text})
        spans.append(span.model_copy(update={"state_hash": environment.run(lambda session: session.state_hash())}))
    return trajectory.model_copy(
        update={
            "events": tuple(events), "turns": tuple(spans), "messages": tuple(messages),
            "final_state": spans[-1].state_hash,
        }
    )  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox needs Linux")
@pytest.mark.parametrize(("kind", "tool"), [("generated", "update_router"), ("imported", "update_device")])
def test_the_user_acts_and_a_dialogue_without_it_is_refused(
    kind: str, tool: str, tmp_path: Path, examined: None
) -> None:
    entry: dict[str, Any] = {"openapi": {"spec": str(FOREIGN / "desk.yaml"), "user": [tool]}}
    if kind == "generated":
        made = generate_care(tmp_path, [tool])
        assert made.accepted, made.reasons
        entry = {"python": str(made.directory / "care.py"), "states": {"small": 1}}
    config = {"name": "users", "environments": [entry], "sample": {"count": 10, "length": [2, 4]}}
    run = trajsmith.run({**config, "engine": {"workers": 1}}, run=tmp_path / "run")
    accepted = [(task, play) for task, play, verdict in run.judged if verdict.accepted]
    acted = [(task, play) for task, play in accepted if any(event.actor == "user" for event in play.events)]
    assert len(acted) >= 3
    for task, play in acted:
        assert tool not in (*task.exposed_tools, *play.tools) and task.user_tools == (tool,)
        gold = [(call.actor, call.tool) for call in task.gold_calls]
        assert ("user", tool) in gold and ("assistant", tool) not in gold
        assert [(event.actor, event.tool) for event in play.events if event.actor == "user"] == [("user", tool)]
    task, play = acted[0]
    with run.open_environment(task) as environment:
        assert environment.call(tool).error == "unknown_tool"
        assert environment.run(lambda session: session.call(tool, {}, "user")).error == "invalid_arguments"
        assert trajsmith.verify(task, play, environment).accepted
        environment.reset()
        verdict = trajsmith.verify(task, leave_out_user(play, environment), environment)
    assert verdict.replay_match and not verdict.state_match and not verdict.accepted
    assert [check for check in verdict.checks if check.kind == "state" and not check.passed]
    rows = [
        row
        for file in (tmp_path / "run" / "dataset").rglob("*.parquet")
        for row in pyarrow.parquet.read_table(file, columns=["id", "tools"]).to_pylist()
    ]
    shown = {row["id"]: [orjson.loads(each)["function"]["name"] for each in row["tools"]] for row in rows}
    assert {play.id for _, play in acted} <= shown.keys() and tool not in shown[play.id]
