"""`trajsmith env gen --from-traces`: from files to a folder with an environment that passes tests and checker."""

import json
from pathlib import Path

import pytest
from recorded_shop import record_shop
from typer.testing import CliRunner

from trajsmith.cli.app import app
from trajsmith.envgen.traces import CloneReport, generate_clone
from trajsmith.records import InputError, RecordDropped
from trajsmith.verify.traces import read_dialogues


def write_chats(file: Path, dialogues: int = 40) -> Path:
    """Write recorded dialogues as chats; every third has a reward of 0."""
    rows = []
    for recorded in record_shop(dialogues).dialogues:
        messages = [{"role": "user", "content": f"I need help with {recorded.name}."}]
        for number, call in enumerate(recorded.calls):
            function = {"name": call.tool, "arguments": json.dumps(call.arguments)}
            made = [{"id": f"c{number}", "type": "function", "function": function}]
            content = call.result if call.failed else json.dumps(call.result)
            messages.append({"role": "assistant", "content": None, "tool_calls": made})
            messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": content})
        messages.append({"role": "assistant", "content": "Done."})
        info = {"task": {"actions": [], "instruction": ""}}
        rows.append({"task_id": recorded.task, "traj": messages, "reward": recorded.reward, "info": info})
    file.write_text(json.dumps(rows))
    return file


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clone")
    return generate_clone([write_chats(folder / "chats.json")], folder / "made", "shop_clone", check_seconds=600)


def test_the_clone_is_accepted_and_reports_how_sure_it_is(clone):
    assert clone.accepted, clone.reasons
    assert clone.score >= 0.9
    report = CloneReport.model_validate_json((clone.directory / "blueprint.json").read_bytes())
    assert report.equal == report.calls > 250
    assert {tool.name for tool in report.tools if tool.inferred} == {
        "cancel_order", "get_customer", "get_order", "list_products", "place_order",
    }  # fmt: skip
    assert [tool.effect for tool in report.tools] == ["write", "read", "read", "read", "write"]


def test_failed_dialogues_are_written_for_import(clone):
    file = clone.directory / "failed_tasks.jsonl"
    dialogues = [one for _, one in read_dialogues(file)]
    assert len(dialogues) == clone.failed_tasks == 14
    assert not any(isinstance(one, RecordDropped) for one in dialogues)
    assert dialogues[0].calls[0].tool == "get_customer"
    assert dialogues[0].calls[0].output


def test_a_second_run_repeats_no_stage(clone):
    before = (clone.directory.parent / "work" / "shop_clone" / "stages.jsonl").read_bytes()
    again = generate_clone(
        [clone.directory.parents[1] / "chats.json"], clone.directory.parent, "shop_clone", check_seconds=600
    )
    assert again.accepted
    assert (clone.directory.parent / "work" / "shop_clone" / "stages.jsonl").read_bytes() == before


def test_a_clone_without_a_program_is_rejected(tmp_path):
    rows = [{"messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "tool_calls": [{"id": "1", "name": "ask_oracle", "arguments": {"q": str(n)}}]},
        {"role": "tool", "tool_call_id": "1", "content": f"{'abc'[n % 3]}-{n * 7919 % 31}"},
    ]} for n in range(6)]  # fmt: skip
    file = tmp_path / "a.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    done = CliRunner().invoke(app, ["env", "gen", "--from-traces", str(file), "--out", str(tmp_path / "made")])
    assert done.exit_code == 1
    assert "no tool has a program" in str(done.output) + str(done.exception)
    assert (tmp_path / "made" / "rejected" / "a_clone" / "a_clone.py").is_file()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--from-traces", "a.json", "--from-tables", "b.csv", "--out", "x"], "give exactly one of"),
        (["--from-traces", "a.json"], "give --out"),
        (["--from-traces", "a.json", "--out", "x", "--user-tool", "y"], "--user-tool goes without --from-traces"),
        (["--from-traces", "a.json", "--out", "x", "--name", "No Name"], "give a name in snake case"),
        (["--from-traces", "missing.json", "--out", "x"], "cannot be read"),
    ],
)
def test_wrong_options_are_one_line(options, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["env", "gen", *options])
    assert isinstance(done.exception, InputError)
    assert says in str(done.exception)
    assert "\n" not in str(done.exception)
