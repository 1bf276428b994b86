"""Preference pairs: what is chosen and rejected stands in one situation, and its consequence was executed."""

import pytest

import trajsmith as ts
from trajsmith.export.formats import ExportItem
from trajsmith.export.preference_pairs import build_pair
from trajsmith.pipeline.record_joins import join_verdicts
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.records import FunctionCall, Message, RecordDropped, ToolCall

CONFIG = {
    "name": "pairs",
    "seed": 3,
    "environments": [{"library": "smart_home", "states": {"small": 2}}, {"library": "bank", "states": {"small": 2}}],
    "sample": {"count": 16, "length": [2, 4]},
    "ground": {"min_calls": 2},
    "write": {"shown_tools": 5},
    "play": {"candidates": 2, "faulty": 1},
    "export": {"formats": ["dpo"], "split": {"validation": 0.2}},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return ts.run(CONFIG, run=tmp_path_factory.mktemp("pairs") / "run")


def load_rows(folder):
    from datasets import load_dataset

    return [row for split in load_dataset(str(folder)).values() for row in split]


def test_pairs_part_at_the_injected_mistake(run):
    rows = load_rows(run.path / "exports/dpo")
    plays = {one.id: one for one in run.trajectories}
    verdicts = {one.trajectory_id: one for one in run.verdicts}
    assert len(rows) > 6 and len({row["kind"] for row in rows}) > 3
    for row in rows:
        wrong, right = plays[row["rejected_id"]], plays[row["trajectory_id"]]
        (fault,) = wrong.injected
        assert verdicts[right.id].accepted and not verdicts[wrong.id].accepted
        assert wrong.task_id == right.task_id == row["task_id"] and row["kind"] == fault.kind
        assert len(row["prompt"]) == fault.message and row["prompt"][-1]["role"] in ("user", "tool")
        (chosen,), (rejected,) = row["chosen"], row["rejected"]
        assert chosen["role"] == rejected["role"] == "assistant" and chosen != rejected
        said = wrong.messages[fault.message]
        assert rejected["content"] == said.content
        assert [call["function"]["arguments"] for call in rejected.get("tool_calls", ())] == [
            call.function.arguments for call in said.tool_calls or ()
        ]
        results = [message.content for message in wrong.messages[: fault.message] if message.role == "tool"]
        assert [message["content"] for message in row["prompt"] if message["role"] == "tool"] == results
        consequence = row["consequence"]
        assert consequence["rejected"]["final_state"] == wrong.final_state
        assert consequence["rejected"]["reasons"] == list(verdicts[wrong.id].reasons)
        assert len(consequence["rejected"]["calls"]) == len(said.tool_calls or ())
        assert ("calls" if "tool_calls" in chosen or "tool_calls" in rejected else "text") == row["difference"]
    assert any(row["consequence"]["chosen"]["diff"] != row["consequence"]["rejected"]["diff"] for row in rows)


def test_unpaired_rows_are_the_same_messages(run, tmp_path):
    from typer.testing import CliRunner

    from trajsmith.cli.app import app

    done = CliRunner().invoke(app, ["export", str(run.path), "--format", "kto", "--out", str(tmp_path / "kto")])
    assert done.exit_code == 0, done.output
    pairs, rows = load_rows(run.path / "exports/dpo"), load_rows(tmp_path / "kto")
    assert sorted(row["completion"][0]["content"] for row in rows if row["label"]) == sorted(
        row["chosen"][0]["content"] for row in pairs
    )
    assert sorted(row["completion"][0]["content"] for row in rows if not row["label"]) == sorted(
        row["rejected"][0]["content"] for row in pairs
    )
    assert len({row["id"] for row in rows}) == len(rows) == 2 * len(pairs)


@pytest.fixture(scope="module")
def pair(run):
    """An accepted and a rejected play of one task, as the exporter compares them."""
    plays = list(join_verdicts(RunDirectory.open(run.path)))
    task, right, verdict = next(one for one in plays if one[2].accepted and len(one[1].messages) > 6)
    state = lambda _: {}  # noqa: E731 - formats of pairs read no state
    specs = {"smart_home": None, "bank": None}
    return ExportItem(task, right, verdict, specs[right.environment], {}, "train", state)


def reject(item, messages, **changes):
    """The item with a rejected sibling that has these messages."""
    wrong = item.trajectory.model_copy(update={"messages": tuple(messages), "injected": None})
    verdict = item.verdict.model_copy(update={"accepted": False, "outcome": "partial", "reasons": ("state",)} | changes)
    from dataclasses import replace

    return replace(item, rejected=(wrong, verdict))


def find_first_call(messages):
    return next(index for index, message in enumerate(messages) if message.tool_calls)


def test_plays_of_models_part_at_the_first_other_call(pair):
    messages = list(pair.trajectory.messages)
    place = find_first_call(messages)
    other = ToolCall(id="call_x", function=FunctionCall(name="no_such_tool", arguments={"x": 1}))
    messages[place] = Message(role="assistant", content="Well.", tool_calls=(other,))
    made = build_pair(reject(pair, messages[: place + 1]))
    assert made.kind == "state" and made.difference == "calls" and len(made.prompt) == place
    assert made.rejected["tool_calls"][0]["function"]["name"] == "no_such_tool"
    assert made.chosen["content"] == pair.trajectory.messages[place].content


def test_words_before_the_difference_may_differ(pair):
    messages = list(pair.trajectory.messages)
    place = find_first_call(messages)
    messages[1] = messages[1].model_copy(update={"content": "In other words."})
    messages[place] = Message(role="assistant", content="Done!")
    made = build_pair(reject(pair, messages[: place + 1]))
    assert made.prompt[1]["content"] == "In other words." and made.rejected["content"] == "Done!"


def test_equal_calls_leave_the_text_of_the_turn_that_failed(pair):
    messages = list(pair.trajectory.messages)
    messages[-1] = Message(role="assistant", content="I have done something else.")
    turns = [one.model_copy(update={"outcome": "completed"}) for one in pair.verdict.turns]
    turns[-1] = turns[-1].model_copy(update={"outcome": "partial"})
    made = build_pair(reject(pair, messages, turns=tuple(turns)))
    assert made.difference == "text" and made.rejected["content"] == "I have done something else."
    assert made.turn == len(turns) - 1


def test_reasoning_on_one_side_only_is_left_out(pair):
    messages = list(pair.trajectory.messages)
    place = find_first_call(messages)
    messages[place] = Message(role="assistant", content="Done!", reasoning_content="Why not.")
    made = build_pair(reject(pair, messages[: place + 1]))
    assert "reasoning_content" not in made.rejected and "reasoning_content" not in made.chosen


def test_what_cannot_be_compared_is_dropped_with_its_reason(pair):
    messages = list(pair.trajectory.messages)
    with pytest.raises(RecordDropped) as dropped:
        build_pair(reject(pair, messages))
    assert dropped.value.reason == "mistake_not_located"
    place = find_first_call(messages)
    messages[place] = Message(role="user", content="Hello?")
    with pytest.raises(RecordDropped) as dropped:
        build_pair(reject(pair, messages[: place + 1]))
    assert dropped.value.reason == "not_the_agents_message"
