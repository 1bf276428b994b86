"""`trajsmith import`: recorded dialogues are made again on an environment and judged."""

import json
import os
from pathlib import Path

import pytest

HERE = Path(__file__).parent
DATA = Path(os.environ.get("TRAJSMITH_DATA", HERE.parents[1].parent / "shared" / "data"))
STATE = {
    "now": "2026-03-01T10:00:00",
    "orders": {name: {"order_id": name, "status": "pending"} for name in ("W100", "W200", "W300", "W400")},
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "state.json").write_text(json.dumps(STATE))
    path = tmp_path / "config.yaml"
    path.write_text(
        f"name: recorded\nenvironments:\n  - python: {HERE / 'foreign' / 'counter.py'}\n"
        f"    state_files: [{tmp_path / 'state.json'}]\n"
    )
    return path


def shown(order: str, status: str) -> str:
    return json.dumps({"order_id": order, "status": status})


def simulation(number: int, calls, *, says: str = "Done, it is cancelled.", match: bool = True, task=None):
    order = f"W{number}00"
    messages = [{"role": "user", "content": f"Please cancel {order}."}]
    for at, (tool, given, output, broke) in enumerate(calls):
        messages.append({"role": "assistant", "tool_calls": [{"id": f"c{at}", "name": tool, "arguments": given}]})
        messages.append({"role": "tool", "id": f"c{at}", "content": output, "error": broke})
    messages.append({"role": "assistant", "content": says})
    reward = {"reward": float(match), "db_check": {"db_match": match}}
    return {"id": f"s{number}", "task_id": task or str(number), "messages": messages, "reward_info": reward}


def tau2_file(path: Path, simulations) -> Path:
    tasks = [
        {
            "id": str(n),
            "user_scenario": {"instructions": {"reason_for_call": f"cancel W{n}00"}},
            "evaluation_criteria": {
                "actions": [{"name": "cancel_order", "arguments": {"order_id": f"W{n}00"}}],
                "communicate_info": ["cancelled"],
            },
        }
        for n in range(1, 5)
    ]
    path.write_text(json.dumps({"info": {}, "tasks": tasks, "simulations": simulations}))
    return path


def cancel(n: int):
    return ("cancel_order", {"order_id": f"W{n}00"}, shown(f"W{n}00", "cancelled"), False)


def rows(path: Path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_verdicts_agree_with_recorded_ones_and_differences_are_seen(trajsmith, config: Path, tmp_path: Path) -> None:
    file = tau2_file(
        tmp_path / "sims.json",
        [
            simulation(1, [cancel(1)]),
            simulation(2, [("cancel_order", {"order_id": "W900"}, "Error: no", True)], match=False),
            simulation(3, [("get_order", {"order_id": "W300"}, shown("W300", "lost"), False), cancel(3)]),
            simulation(4, [cancel(4)], says="Bye."),
        ],
    )
    run = tmp_path / "run"
    result = trajsmith("import", file, "--run", run, "--config", config)
    assert result.code == 0, result.err
    assert "4 of 4 equal" in result.out
    assert "get_order: gives something else than recorded in 1 dialogues" in result.out
    verdicts = rows(run / "verdicts.jsonl")
    assert [(one["state_match"], one["accepted"], one.get("reasons", [])) for one in verdicts] == [
        (True, True, []),
        (False, False, ["check failed: state", "the final state is not the gold state"]),
        (True, False, ["recorded results differ"]),
        (True, False, ["check failed: answer"]),
    ]
    assert trajsmith("replay", run).code == 0
    again = trajsmith("import", file, "--run", run)
    assert again.code == 0
    assert rows(run / "verdicts.jsonl") == verdicts, "a file that is there is not taken twice"


def test_a_second_file_is_added(trajsmith, config: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    first = tau2_file(tmp_path / "one.json", [simulation(1, [cancel(1)])])
    assert trajsmith("import", first, "--run", run, "--config", config).code == 0
    plain = tmp_path / "two.jsonl"
    messages = [
        {"role": "user", "content": "Where is W200?"},
        {
            "role": "assistant",
            "tool_calls": [{"id": "a", "function": {"name": "shop.get_order", "arguments": '{"order_id": "W200"}'}}],
        },
        {"role": "tool", "tool_call_id": "a", "content": shown("W200", "pending")},
        {"role": "assistant", "content": "It is pending."},
    ]
    plain.write_text("\n".join([json.dumps({"messages": messages}), json.dumps({"messages": [{"role": "ghost"}]})]))
    result = trajsmith("import", plain, "--run", run)
    assert result.code == 0, result.err
    assert "dropped (read): unknown_role: 1" in result.out
    outcomes = [(one["outcome"], one["accepted"], one["replay_match"]) for one in rows(run / "verdicts.jsonl")]
    assert outcomes == [("completed", True, True), ("undecided", False, True)]
    (_, called) = rows(run / "trajectories.jsonl")
    assert [(event["tool"], event["agrees"]) for event in called["events"]] == [("get_order", True)]
    assert trajsmith("resume", run).code == 0
    assert len(rows(run / "verdicts.jsonl")) == 2


def test_dialogues_that_end_with_a_stop_message_are_exported_without_it(trajsmith, config, tmp_path: Path) -> None:
    stopping = simulation(1, [cancel(1)])
    stopping["messages"].append({"role": "user", "content": "Thanks! ###STOP###"})
    run = tmp_path / "run"
    assert trajsmith("import", tau2_file(tmp_path / "s.json", [stopping]), "--run", run, "--config", config).code == 0
    exported = trajsmith("export", run)
    assert exported.code == 0, exported.err
    assert trajsmith("export", run, "--format", "openai", "--format", "sharegpt").code == 0
    for folder in ("openai", "sharegpt"):
        text = "".join(path.read_text() for path in (run / "exports" / folder).rglob("*.jsonl"))
        assert "it is cancelled" in text
        assert "STOP" not in text


@pytest.fixture
def imported(trajsmith, config, tmp_path: Path) -> Path:
    run = tmp_path / "run"
    file = tau2_file(tmp_path / "sims.json", [simulation(1, [cancel(1)]), simulation(4, [cancel(4)], says="Bye.")])
    assert trajsmith("import", file, "--run", run, "--config", config).code == 0
    return run


def read_files(run: Path) -> dict[str, bytes]:
    return {str(path.relative_to(run)): path.read_bytes() for path in run.rglob("*") if path.is_file()}


@pytest.mark.parametrize("configured", [False, True])
def test_an_import_without_a_readable_file_makes_no_other_run(trajsmith, config, tmp_path: Path, configured) -> None:
    run, wrong = tmp_path / "run", tmp_path / "wrong.json"
    wrong.write_text('{"a": 1}')
    assert trajsmith("import", wrong, "--run", run, "--config", config).code == 2
    resumed = trajsmith("resume", run)
    assert resumed.code == 2 and "start `trajsmith import` again" in " ".join(resumed.err.split())
    file = tau2_file(tmp_path / "sims.json", [simulation(1, [cancel(1)])])
    options = ("--config", config) if configured else ()
    assert trajsmith("import", file, "--run", run, *options).code == 0
    assert trajsmith("resume", run).code == 0


@pytest.mark.parametrize("command", ["sample", "ground", "tasks", "vary", "play"])
def test_imports_have_no_stage_but_verify(trajsmith, imported: Path, command: str) -> None:
    before = read_files(imported)
    result = trajsmith(command, "--run", imported)
    assert result.code == 2 and "holds recorded dialogues" in " ".join(result.err.split())
    assert read_files(imported) == before


@pytest.mark.parametrize("setting", ["ground.tries=3", "play.max_steps=29", "sample.count=9"])
def test_settings_that_make_dialogues_do_not_change_imports(trajsmith, imported: Path, setting: str) -> None:
    before = read_files(imported)
    result = trajsmith("resume", imported, "--set", setting, "--yes")
    assert result.code == 2 and "holds recorded dialogues" in " ".join(result.err.split())
    assert read_files(imported) == before


def test_settings_of_verify_judge_imports_again(trajsmith, imported: Path) -> None:
    assert trajsmith("verify", "--run", imported).code == 0
    before = read_files(imported)
    assert trajsmith("resume", imported, "--set", "verify.prune=false", "--yes").code == 0
    after = read_files(imported)
    assert all(after[name] == before[name] for name in ("tasks.jsonl", "trajectories.jsonl", "ledger/task.jsonl"))


def recorded_without_gold(path: Path) -> Path:
    """Three dialogues whose tasks have no gold actions: rewards 1, 0.5 and none; the third shows another result."""
    found = [simulation(n, [cancel(n)]) for n in range(1, 5)]
    found[1]["reward_info"] = {"reward": 0.5}
    found[2]["reward_info"] = None
    found[3] = simulation(4, [("get_order", {"order_id": "W400"}, shown("W400", "lost"), False)])
    file = tau2_file(path, found)
    value = json.loads(file.read_text())
    for task in value["tasks"]:
        task["evaluation_criteria"] = None
    file.write_text(json.dumps(value))
    return file


NO_REWARD = "recorded reward missing or too low"


@pytest.mark.parametrize(
    ("rule", "reasons"),
    [
        ([], ["no gold actions"] * 4),
        (["--without-gold", "replay"], ["", "", "", "recorded results differ"]),
        (["--without-gold", "reward"], ["", NO_REWARD, NO_REWARD, "recorded results differ"]),
        (["--without-gold", "reward", "--min-reward", "0.5"], ["", "", NO_REWARD, "recorded results differ"]),
        (["--set", "verify.imported.without_gold=replay"], ["", "", "", "recorded results differ"]),
    ],
    ids=["default", "replay", "reward", "lower-reward", "setting"],
)
def test_the_user_chooses_which_dialogues_without_gold_are_accepted(trajsmith, config, tmp_path, rule, reasons) -> None:
    run = tmp_path / "run"
    result = trajsmith("import", recorded_without_gold(tmp_path / "s.json"), "--run", run, "--config", config, *rule)
    assert result.code == 0, result.err
    verdicts = rows(run / "verdicts.jsonl")
    assert [", ".join(one.get("reasons", [])) for one in verdicts] == reasons
    assert [one["accepted"] for one in verdicts] == [not reason for reason in reasons]
    assert {one["outcome"] for one in verdicts} == {"undecided"}
    assert trajsmith("export", run).code == (0 if "" in reasons else 1)


def test_accepted_dialogues_that_no_format_takes_are_told_apart_from_rejected_ones(trajsmith, config, tmp_path) -> None:
    cut_off = simulation(1, [cancel(1)])
    cut_off["messages"].pop()
    file = tau2_file(tmp_path / "s.json", [cut_off])
    value = json.loads(file.read_text())
    value["tasks"][0]["evaluation_criteria"] = None
    file.write_text(json.dumps(value))
    run = tmp_path / "run"
    assert trajsmith("import", file, "--run", run, "--config", config, "--without-gold", "replay").code == 0
    exported = trajsmith("export", run)
    assert exported.code == 1
    assert "none of 1 accepted trajectories could be exported (last_message_not_assistant: 1)" in exported.err


def test_a_rule_that_is_none_is_refused(trajsmith, config, tmp_path: Path) -> None:
    file = recorded_without_gold(tmp_path / "s.json")
    result = trajsmith("import", file, "--run", tmp_path / "run", "--config", config, "--without-gold", "maybe")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "verify.imported.without_gold" in result.err


def test_unknown_tools_and_wrong_arguments_are_the_agents(trajsmith, config: Path, tmp_path: Path) -> None:
    calls = [("fly", {}, "Error: unknown", True), ("cancel_order", {"nr": 1}, "Error: nr", True)]
    file = tau2_file(tmp_path / "sims.json", [simulation(1, calls, match=False)])
    run = tmp_path / "run"
    assert trajsmith("import", file, "--run", run, "--config", config).code == 0
    (trajectory,) = rows(run / "trajectories.jsonl")
    assert [event["error"] for event in trajectory["events"]] == ["unknown_tool", "invalid_arguments"]
    (verdict,) = rows(run / "verdicts.jsonl")
    assert verdict["outcome"] in ("agent_error", "partial")
    assert verdict["state_match"] is False


def test_initial_actions_of_tau2_need_not_be_tools(trajsmith, tmp_path: Path) -> None:
    """Domain telecom starts every task so: who the user is, is set by a method that is no tool."""
    config = tmp_path / "lending.yaml"
    checkout = HERE.parent / "environments" / "tau2" / "checkout"
    config.write_text(f"name: lending\nenvironments:\n  - tau2: {{domain: lending, path: {checkout}}}\n")
    start = [
        {"env_type": "user", "func_name": "move_in", "arguments": {"member_id": "M2"}},
        {"env_type": "assistant", "func_name": "smudge", "arguments": {"text": "smudged"}},
    ]
    lend = {"name": "lend", "arguments": {"member_id": "M2", "book_ids": ["B2"]}}
    task = {
        "id": "1",
        "user_scenario": {"instructions": "M2 wants B2"},
        "initial_state": {"initialization_actions": start},
        "evaluation_criteria": {"actions": [lend]},
    }
    messages = [
        {"role": "user", "content": "I am M2 and want B2."},
        {"role": "assistant", "tool_calls": [{"id": "c", **lend}]},
        {"role": "tool", "id": "c", "content": "slip1: B3, B2"},
        {"role": "assistant", "content": "Here is B2."},
    ]
    simulations = [{"id": "s1", "task_id": "1", "messages": messages, "reward_info": {"db_check": {"db_match": True}}}]
    file = tmp_path / "sims.json"
    file.write_text(json.dumps({"info": {}, "tasks": [task], "simulations": simulations}))
    result = trajsmith("import", file, "--run", tmp_path / "run", "--config", config)
    assert result.code == 0, result.err
    assert "1 of 1 equal" in result.out
    (verdict,) = rows(tmp_path / "run" / "verdicts.jsonl")
    assert verdict["accepted"], verdict
    assert trajsmith("replay", tmp_path / "run").code == 0


def test_tasks_that_do_not_belong_are_noticed_not_scored(trajsmith, config: Path, tmp_path: Path) -> None:
    shifted = [simulation(n, [cancel(n)], task=str(n % 4 + 1)) for n in range(1, 5)]
    run = tmp_path / "run"
    result = trajsmith("import", tau2_file(tmp_path / "s.json", shifted), "--run", run, "--config", config)
    assert result.code == 0, result.err
    assert "dropped (read): task_does_not_belong: 4" in result.out
    assert rows(run / "verdicts.jsonl") == []


def test_wrong_input_is_one_line(trajsmith, config: Path, tmp_path: Path) -> None:
    file = tau2_file(tmp_path / "sims.json", [])
    missing = trajsmith("import", file, "--run", tmp_path / "new")
    assert (missing.code, missing.err.count("\n")) == (2, 1)
    assert "--config FILE" in missing.err
    nothing = trajsmith("import", tmp_path / "none.json", "--run", tmp_path / "r1", "--config", config)
    assert (nothing.code, "cannot be read" in nothing.err) == (2, True)
    named = trajsmith("import", file, "--run", tmp_path / "r2", "--config", config, "--environment", "bank")
    assert (named.code, "there is counter" in named.err) == (2, True)
    (tmp_path / "bad.json").write_text(json.dumps({"now": "x"}))
    bad = tmp_path / "bad.yaml"
    bad.write_text(config.read_text().replace("state.json", "bad.json"))
    state = trajsmith("import", file, "--run", tmp_path / "r3", "--config", bad)
    assert state.code != 0
    assert "no state of" in state.err


@pytest.mark.skipif(not (DATA / "trajectories").is_dir(), reason="the recorded tau2-bench dialogues are not here")
def test_recorded_verdicts_of_tau2_airline(trajsmith, tmp_path: Path) -> None:
    config = tmp_path / "airline.yaml"
    root = HERE.parents[1]
    config.write_text(
        f"name: airline\nenvironments:\n  - python: {root / 'benchmarks' / 'airline.py'}\n"
        f"    state_files: [{DATA / 'sets' / 'tau2_airline' / 'db.json'}]\n"
    )
    file = DATA / "trajectories" / "tau2_gpt-4.1_airline.json"
    result = trajsmith("import", file, "--run", tmp_path / "run", "--config", config)
    assert result.code == 0, result.err
    assert "20 of 20 equal" in result.out
