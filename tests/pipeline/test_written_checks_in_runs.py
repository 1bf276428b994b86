"""A run whose checks a model writes: tasks keep those that stood their tests, and say why others were dropped."""

import asyncio

import orjson

from trajsmith.models import CallableModel, ChatReply
from trajsmith.pipeline.config import resolve_config
from trajsmith.pipeline.run_directory import TASKS, VERDICTS, RunDirectory
from trajsmith.pipeline.runner import run_pipeline
from trajsmith.pipeline.stages import RoleFactory
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.records import CodeCheck, Message, Task, Verdict
from trajsmith.records.journal import read_records

FROZEN = """
CLOSED = ("frozen", "blocked")

def check(initial_state, final_state, answer):
    old = initial_state.get("cards", {})
    cards = final_state.get("cards", {}).items()
    return any(card["status"] in CLOSED and old[key]["status"] == "active" for key, card in cards)
"""


async def answer(request):
    """List two items; write a function that is right where a card is frozen, and one that is always true."""
    if request.purpose == "checklist":
        reply = {"items": ["The card is frozen.", "All is well."]}
    elif "Condition: The card is frozen." in request.messages[-1].content:
        reply = {"source": FROZEN}
    else:
        reply = {"source": "def check(initial_state, final_state, answer):\n    return True\n"}
    return ChatReply(message=Message(role="assistant", content=orjson.dumps(reply).decode()))


def test_tasks_keep_the_written_checks_that_stood_their_tests(tmp_path, monkeypatch):
    monkeypatch.setattr(RoleFactory, "checker", CallableModel("checker", answer))
    config = resolve_config(
        {
            "name": "checked", "seed": 5, "run": str(tmp_path / "run"), "sample": {"count": 8},
            "environments": [{"library": "bank", "states": {"small": 2}}],
            "sources": {"chains": 0.0, "state_first": 1.0}, "engine": {"workers": 1},
            "write": {"checks": {"repairs": 0, "mutants": 3, "equivalents": 1}, "direct": 1.0},
        }
    )  # fmt: skip
    run = RunDirectory.create(config.run, dump_settings(config))
    asyncio.run(run_pipeline(run))
    tasks = list(read_records(run.file(TASKS), Task))
    assert tasks and all(task.prompts.keys() == {"verify/checklist", "verify/check_function"} for task in tasks)
    assert all(any(text.startswith("All is well.: catches_nothing") for text in task.audit.dropped) for task in tasks)
    written = {
        task.id: [check.says for check in task.turns[-1].checks if isinstance(check, CodeCheck)] for task in tasks
    }
    frozen = {task.id for task in tasks if task.gold_calls[-1].tool == "freeze_card"}
    assert frozen and {name for name, says in written.items() if says == ["The card is frozen."]} == frozen
    assert {name for name, says in written.items() if not says} == {task.id for task in tasks} - frozen
    verdicts = list(read_records(run.file(VERDICTS), Verdict))
    assert all(verdict.accepted for verdict in verdicts)
    assert sum(check.kind == "code" and check.passed is True for v in verdicts for check in v.checks) == len(frozen)
