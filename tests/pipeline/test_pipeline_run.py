"""The whole line on the bundled environments: the same seed gives the same bytes, and what comes out is true."""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import orjson
import pytest

from trajsmith.grounding import iterate_leaves
from trajsmith.pipeline.journal import count_ledger
from trajsmith.pipeline.progress import NullProgress
from trajsmith.pipeline.record_joins import join_verdicts
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.run_replay import replay_run
from trajsmith.records import SEARCH_TOOLS, EnvironmentSpec, FromOutput, Summary, Task, Trajectory, Verdict
from trajsmith.records.journal import read_records
from trajsmith.toolgraph import ToolGraph
from trajsmith.verify.pruning import prune_trajectory

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "configs" / "quickstart.yaml"
BUNDLED = ("bank", "calendar", "file_store", "helpdesk", "mobile_care", "retail", "smart_home", "travel")
"""Environments of the quick start."""
DIALOGUES = 104
SMALL = """
name: small
environments:
  - {library: helpdesk, states: {small: 1}}
  - {library: mobile_care, states: {small: 1}}
sample: {count: 12, length: [4, 7]}
"""


def begin(*arguments, hash_seed="random"):
    command = [sys.executable, "-m", "trajsmith", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, env={**os.environ, "PYTHONHASHSEED": hash_seed}, **pipes)


def end(process, code=0):
    out, err = process.communicate()
    assert process.returncode == code, err
    return SimpleNamespace(out=out, err=err)


def records(path):
    files = [*path.glob("*.jsonl"), *path.glob("ledger/*.jsonl"), *path.glob("states/*"), *path.glob("environments/*")]
    return {str(file.relative_to(path)): file.read_bytes() for file in [*files, path / "graph.json"]}


# Chains across environments


def test_chains_across_environments_are_played_and_replayed_as_any_other(trajsmith, tmp_path):
    (tmp_path / "across.yaml").write_text(SMALL.replace("length: [4, 7]", "length: [4, 7], servers: 2"))
    for name in ("one", "two"):
        assert trajsmith("run", tmp_path / "across.yaml", "--run", tmp_path / name).code == 0
    assert records(tmp_path / "one") == records(tmp_path / "two")
    tasks = list(read_records(tmp_path / "one" / "tasks.jsonl", Task))
    across = [task for task in tasks if task.environments == ("helpdesk+mobile_care",)]
    assert 2 <= len(across) < len(tasks)
    for task in across:
        names = {call.tool.split("__")[0] for turn in task.turns for call in turn.gold_calls}
        assert names == {"helpdesk", "mobile_care"}
        assert "## helpdesk" in task.policy and "## mobile_care" in task.policy
    summary = Summary(**orjson.loads((tmp_path / "one" / "summary.json").read_bytes()))
    assert summary.funnel["accepted"] >= 10
    assert summary.environments["helpdesk+mobile_care"] >= len(across) - 2
    assert summary.coverage.keys() == {"helpdesk", "mobile_care"}
    assert all("__" not in tool for found in summary.coverage.values() for tool in found)
    assert trajsmith("replay", tmp_path / "one").code == 0
    assert trajsmith("export", tmp_path / "one", "--format", "openai", "--out", tmp_path / "openai").code == 0
    lines = [line for path in (tmp_path / "openai").rglob("*.jsonl") for line in path.read_text().splitlines()]
    assert len(lines) == summary.funnel["accepted"] and any('"helpdesk__' in line for line in lines)


def test_tools_of_no_environment_are_left_out_of_the_coverage_of_chains_across_environments(trajsmith, tmp_path):
    (tmp_path / "across.yaml").write_text(SMALL.replace("length: [4, 7]", "length: [4, 7], servers: 2"))
    done = trajsmith("run", tmp_path / "across.yaml", "--run", tmp_path / "run", "--set", "write.tools.search=1")
    assert done.code == 0, done.err
    summary = Summary(**orjson.loads((tmp_path / "run" / "summary.json").read_bytes()))
    assert summary.environments["helpdesk+mobile_care"] > 0
    assert summary.coverage.keys() == {"helpdesk", "mobile_care"}
    assert not any("search_tools" in found for found in summary.coverage.values())
    assert all(sum(found.values()) > 0 for found in summary.coverage.values())


# One seed, one result


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Three small runs, in directories of their own: seed 5 twice, seed 6 once."""
    config = tmp_path_factory.mktemp("config") / "small.yaml"
    config.write_text(SMALL)
    paths = [tmp_path_factory.mktemp(name) / "run" for name in ("first", "again_elsewhere", "other")]
    for wave in (0, 1), (2,):  # not more processes at a time than there are cores
        started = [
            begin("run", config, "--run", paths[n], "--set", f"seed={(5, 5, 6)[n]}", hash_seed=str(n)) for n in wave
        ]
        for process in started:
            end(process)
    return paths


def test_one_seed_gives_the_same_bytes_in_any_process_and_place(small):
    first, again, _ = small
    assert len(records(first)["trajectories.jsonl"].splitlines()) > 0
    assert records(first) == records(again)


@pytest.mark.parametrize("name", ["chains.jsonl", "grounded.jsonl", "tasks.jsonl", "trajectories.jsonl"])
def test_another_seed_gives_other_records(small, name):
    first, _, other = small
    mine, theirs = ({orjson.loads(line)["id"] for line in (path / name).open("rb")} for path in (first, other))
    assert mine.isdisjoint(theirs)


def test_replay_in_another_process_is_exact(small):
    said = end(begin("replay", small[0], hash_seed="99"))
    number = len((small[0] / "trajectories.jsonl").read_bytes().splitlines())
    assert f"{number} of {number} trajectories replayed to equal state hashes (100.0 %)" in said.out


def other_hash(record):
    record["final_state"] = "0" * 32


def other_turn_hash(record):
    record["turns"][0]["state_hash"] = "0" * 32


def other_result(record):
    record["events"][-1]["result_hash"] = "0" * 16


def other_refusal(record):
    record["events"][0]["ok"] = False


def other_start(record):
    record["initial_state"] = "0" * 32


@pytest.fixture
def tampered(small, tmp_path):
    """A copy of a run in which one trajectory is changed by a function; gives its path and the id."""

    def make(tamper):
        copy = tmp_path / "run"
        shutil.copytree(small[0], copy)
        lines = (copy / "trajectories.jsonl").read_bytes().splitlines()
        record = orjson.loads(lines[3])
        tamper(record)
        record = orjson.loads(Trajectory(**{**record, "id": ""}).to_line())  # with the id of what stands there now
        lines[3] = orjson.dumps(record)
        (copy / "trajectories.jsonl").write_bytes(b"\n".join(lines) + b"\n")
        return copy, record["id"], len(lines)

    return make


@pytest.mark.parametrize(
    ("tamper", "why"),
    [
        (other_hash, "the final state hash differs"),
        (other_turn_hash, "the state after turn 1 differs"),
        (other_result, "returns something else"),
        (other_refusal, "is accepted now"),
        (other_start, "the initial state differs"),
    ],
)
async def test_replay_tells_what_was_tampered_with(tampered, tamper, why):
    path, name, number = tampered(tamper)
    found = await replay_run(RunDirectory.open(path), [], NullProgress())
    assert (found.equal, found.undecided) == (number - 1, [])
    ((odd, reason),) = found.different
    assert odd == name
    assert why in reason


def test_a_failed_replay_is_a_failed_command(tampered):
    path, name, number = tampered(other_hash)
    said = end(begin("replay", path), code=1)
    assert said.out.startswith(f"{name}: ")
    assert f"{number - 1} of {number} trajectories replayed" in said.out
    assert said.err.splitlines()[-1] == "error: 1 differ, 0 could not be decided"


# What the line makes


@pytest.fixture(scope="session")
def line(tmp_path_factory):
    """A run over the environments of the quick start, made once."""
    path = tmp_path_factory.mktemp("line") / "run"
    end(begin("run", QUICKSTART, "--run", path, "--set", f"sample.count={DIALOGUES}"))
    run = RunDirectory.open(path)
    specs = {name: EnvironmentSpec(**run.read_json(f"environments/{name}.json")) for name in BUNDLED}
    played = list(join_verdicts(run))
    return SimpleNamespace(
        path=path,
        run=run,
        specs=specs,
        played=played,
        accepted=[(task, trajectory) for task, trajectory, verdict in played if verdict.accepted],
        summary=Summary(**run.read_json("summary.json")),
        internal={
            (node.tool, node.parameter)
            for node in ToolGraph.load(run.file("graph.json")).parameters
            if node.kind == "internal"
        },
    )


def turns(task, trajectory):
    """(turn, its messages) of a trajectory."""
    return [
        (turn, trajectory.messages[span.start : span.stop])
        for turn, span in zip(task.turns, trajectory.turns, strict=True)
    ]


def users(messages):
    return [message for message in messages if message.role == "user"]


def tells(text, value):
    return re.search(rf"(?<![\w-]){re.escape(str(value))}(?![\w-])", text) is not None


def test_the_line_is_long_enough_to_judge(line):
    tasks = line.summary.funnel.get("varied", line.summary.funnel["written"])
    assert tasks >= 0.9 * DIALOGUES and len(line.played) == 2 * tasks
    assert len(line.accepted) >= 0.95 * tasks, line.summary.rejected
    assert {trajectory.environment for _, trajectory in line.accepted} == set(BUNDLED)


def test_every_dialogue_starts_with_the_user_and_ends_with_the_agent(line):
    for _, trajectory in line.accepted:
        roles = [message.role for message in trajectory.messages]
        assert roles[:2] == ["system", "user"], trajectory.id
        assert roles[-1] == "assistant", trajectory.id
        assert not trajectory.messages[-1].tool_calls, trajectory.id
        assert all(message.content.strip() for message in trajectory.messages if not message.tool_calls), trajectory.id


def test_tool_messages_answer_the_calls_before_them(line):
    for _, trajectory in line.accepted:
        waiting, seen = [], set()
        for message in trajectory.messages:
            if message.role == "tool":
                assert waiting.pop(0) == (message.tool_call_id, message.name), trajectory.id
                continue
            assert waiting == [], trajectory.id
            waiting = [(call.id, call.function.name) for call in message.tool_calls or ()]
            assert seen.isdisjoint(name for name, _ in waiting), trajectory.id
            seen |= {name for name, _ in waiting}
        assert waiting == [], trajectory.id


def test_the_agent_calls_only_what_it_is_shown_with_valid_arguments(line):
    for task, trajectory in line.accepted:
        schemas = {
            tool.name: tool.input_schema for tool in task.find_shown_specs(line.specs[trajectory.environment].tools)
        }
        for message in trajectory.messages:
            for call in message.tool_calls or ():
                assert call.function.name in trajectory.tools, trajectory.id
                schema = schemas[call.function.name]
                jsonschema.validate(call.function.arguments, schema, jsonschema.Draft202012Validator)


def test_the_agent_is_never_shown_the_tools_of_the_user(line):
    of_users = [event for _, trajectory in line.accepted for event in trajectory.events if event.actor == "user"]
    assert of_users, "no dialogue used a tool of the user"
    theirs = {tool.name for spec in line.specs.values() for tool in spec.tools if tool.actor == "user"}
    assert theirs.isdisjoint(name for _, trajectory in line.accepted for name in trajectory.tools)


def test_an_agent_is_shown_tools_of_its_environment_and_of_others_only_as_distractors(line):
    """Beside other tools it has all of its own; with few, those that it needs."""
    few, beside = 0, 0
    for task, trajectory in line.accepted:
        if task.variant in ("missing_function", "late_function") or task.search is not None:
            continue
        own = {tool.name for tool in line.specs[trajectory.environment].tools if tool.actor == "assistant"}
        foreign = set(trajectory.tools) - own
        assert foreign == {tool.name for tool in task.distractors}, trajectory.id
        assert not foreign or own <= set(trajectory.tools), trajectory.id
        assert {call.tool for call in task.gold_calls if call.actor == "assistant"} <= set(trajectory.tools)
        few += not own <= set(trajectory.tools)
        beside += bool(foreign)
    assert few and beside


def test_users_name_no_tools(line):
    for _, trajectory in line.accepted:
        tools = [tool.name for tool in line.specs[trajectory.environment].tools if "_" in tool.name]
        for message in users(trajectory.messages):
            assert [name for name in tools if tells(message.content, name)] == [], trajectory.id


def test_users_tell_no_id_that_nobody_told_them(line):
    """An id that a call takes from an earlier result is the system's; a user has it from the agent, from their own
    device, or from what they know."""
    for task, trajectory in line.accepted:
        ids = {
            str(value)
            for call in task.gold_calls
            for path, source, value in iterate_leaves(call)
            if isinstance(source, FromOutput)
            and (f"{trajectory.environment}.{call.tool}", re.sub(r"\[\d+\]", "[*]", path)) in line.internal
        }
        heard = " ".join(f"{known.value} {known.said}" for turn in task.turns for known in turn.known)
        heard += " ".join(str(call.result) for call in task.gold_calls if call.actor == "user")
        for message in trajectory.messages:
            if message.role == "user":
                leaked = [value for value in ids if tells(message.content, value) and value not in heard]
                assert leaked == [], f"{trajectory.id}: {message.content}"
            elif message.role == "assistant":
                heard += f" {message.content}"


def test_dialogues_do_not_open_with_the_same_words(line):
    openings = Counter(users(trajectory.messages)[0].content for _, trajectory in line.accepted)
    assert [text for text, number in openings.items() if number > 2] == []


def test_a_direct_user_says_everything_at_once(line):
    direct = [(task, trajectory) for task, trajectory in line.accepted if task.mode == "direct"]
    assert direct
    for task, trajectory in direct:
        for turn, messages in turns(task, trajectory):
            if all(call.actor == "assistant" for call in turn.gold_calls):
                assert len(users(messages)) == 1, trajectory.id


def test_in_conversations_the_agent_asks_for_what_is_missing(line):
    asked = [
        turn
        for task, trajectory in line.accepted
        if task.mode == "conversation"
        for turn, messages in turns(task, trajectory)
        if any(not known.stated for known in turn.known) and len(users(messages)) > 1
    ]
    assert len(asked) >= 0.05 * len(line.accepted), "11 % in larger runs, less two standard deviations of this one"


def test_dialogues_are_long_enough(line):
    """Stories tell each wish in a message of its own, so what a whole dialogue needs is counted, not calls per turn."""
    counted = [len(trajectory.turns) for _, trajectory in line.accepted]
    calls = sum(len(trajectory.events) for _, trajectory in line.accepted)
    base = [trajectory for task, trajectory in line.accepted if task.variant == "base"]  # variants end with their turn
    needed = [
        [sum(span.start <= event.message < span.stop for event in trajectory.events) for span in trajectory.turns]
        for trajectory in base
    ]
    assert sum(map(len, needed)) / len(base) >= 3
    assert sum(map(sum, needed)) / len(base) >= 4.75
    assert all(min(calls_of_turns) >= 1 for calls_of_turns in needed)
    assert sum(max(calls_of_turns) > 1 for calls_of_turns in needed) >= 0.8 * len(base), "one call answers each message"
    assert sum(number > 1 for calls_of_turns in needed for number in calls_of_turns) >= sum(map(len, needed)) / 3
    assert line.summary.mean_turns == pytest.approx(sum(counted) / len(counted), abs=0.001)
    assert line.summary.mean_calls_per_turn == pytest.approx(calls / sum(counted), abs=0.001)


def test_most_tools_are_used(line):
    every = {(name, tool.name) for name, spec in line.specs.items() for tool in spec.tools}
    calls = {(trajectory.environment, event.tool) for _, trajectory in line.accepted for event in trajectory.events}
    used = {(name, tool) for name, tool in calls if tool != SEARCH_TOOLS}
    assert used <= every and used < calls
    assert len(used) >= 0.8 * len(every), f"never used: {sorted(every - used)}"
    covered = {
        (name, tool) for name, tools in line.summary.coverage.items() for tool, number in tools.items() if number
    }
    assert covered == used


def test_accepted_dialogues_reach_the_gold_state(line):
    for task, trajectory in line.accepted:
        assert trajectory.final_state == task.turns[-1].state_hash, trajectory.id
        assert [span.state_hash for span in trajectory.turns] == [turn.state_hash for turn in task.turns], trajectory.id


def test_every_record_has_the_id_of_its_content(line):
    files = {"tasks.jsonl": Task, "trajectories.jsonl": Trajectory, "verdicts.jsonl": Verdict}
    for name, model in files.items():
        found = list(read_records(line.run.file(name), model))
        assert [record.id for record in found] == [record.content_id() for record in found]
        assert len({record.id for record in found}) == len(found)


def test_the_funnel_says_what_is_in_the_files(line):
    files = ["chains", "grounded", "tasks", "varied", "trajectories", "verdicts"]
    lines = [len((line.path / f"{name}.jsonl").read_bytes().splitlines()) for name in files]
    assert list(line.summary.funnel.items()) == [
        *zip(["sampled", "grounded", "written", "varied", "played", "verified"], lines, strict=True),
        ("accepted", len(line.accepted)),
        ("exported", line.summary.stages[-1].written),
    ]
    assert line.summary.funnel["sampled"] == DIALOGUES
    assert sum(line.summary.environments.values()) == len(line.accepted)
    rejected = Counter(reason for _, _, verdict in line.played for reason in verdict.reasons)
    assert line.summary.rejected == rejected


def test_nothing_is_dropped_without_a_reason(line):
    for stage in line.summary.stages:
        each = 2 if stage.name in ("play", "verify") and stage.written == 2 * stage.read else 1
        assert each * stage.read == stage.written + sum(stage.dropped.values()), stage.name
        if stage.name != "export":
            read, written, dropped, _ = count_ledger(line.run, stage.name)
            assert (stage.read, stage.written, stage.dropped) == (read, written, dropped)


def test_the_dataset_is_the_accepted_trajectories(line, tmp_path):
    import datasets

    rows = datasets.load_dataset(str(line.path / "dataset"), split="train", cache_dir=str(tmp_path)).to_list()
    assert len(rows) == line.summary.funnel["exported"] == len(line.accepted)
    pruned = {trajectory.id: verdict.pruned for _, trajectory, verdict in line.played}
    for row, (task, trajectory) in zip(rows, line.accepted, strict=True):
        assert (row["id"], row["task_id"]) == (trajectory.id, task.id)
        shown = prune_trajectory(trajectory, pruned[trajectory.id]).messages
        kept = [message.model_dump(mode="json", exclude_none=True) for message in shown]
        assert row["messages"] == kept
        tools = task.find_shown_specs(line.specs[trajectory.environment].tools)
        assert row["tools"] == [tool.as_function() for tool in tools]
        assert [tool.name for tool in tools] == list(trajectory.tools)
        assert (row["final_state"], row["mode"]) == (trajectory.final_state, task.mode)


def test_users_say_who_they_are_once(line):
    """A look-up by what the user says of themselves may be needed again; the agent has the value by then."""
    told = 0
    for task, trajectory in line.accepted:
        tools = {tool.name: tool for tool in line.specs[trajectory.environment].tools}
        identities = {
            str(value)
            for call in task.gold_calls
            for name, value in call.arguments.items()
            if re.fullmatch(r"find_(customer|traveller|employee|account)(_by_\w+)?", call.tool)
            and name in tools[call.tool].required
        }
        for value in identities:
            said = [message.content for message in users(trajectory.messages) if tells(message.content, value)]
            assert len(said) <= 1, f"{trajectory.id}: {said}"
            told += len(said)
    assert told >= 0.2 * len(line.accepted)
