"""Results of several models and benchmarks as one table, and as files that BFCL's own evaluation reads."""

import asyncio
import csv
import json
import subprocess

import pytest
from test_bench import BFCL, needs_bfcl
from typer.testing import CliRunner

from trajsmith.cli.app import app
from trajsmith.evals.bench import PLAYS, BenchPlay, score_plays
from trajsmith.evals.leaderboard import build_leaderboard, read_bench_results
from trajsmith.evals.suites import UNAVAILABLE, CallRecord, SuitePlay
from trajsmith.evals.suites.bfcl import Bfcl
from trajsmith.records import InputError


def write_folder(folder, model, outcomes, suite="bfcl", version="1", steps=(), **more):
    """Write the results of a benchmark: category to the outcomes of its tasks."""
    plays = [
        BenchPlay(task=f"{category}_{n}", category=category, passed=passed, play=SuitePlay(steps=steps))
        for category, passes in outcomes.items()
        for n, passed in enumerate(passes)
    ]
    folder.mkdir()
    (folder / PLAYS).write_text("".join(play.model_dump_json() + "\n" for play in plays))
    scores = [score.model_dump(mode="json") for score in score_plays(plays)]
    question = {"suite": suite, "version": version, "model": model}
    (folder / "results.json").write_text(json.dumps(question | more | {"scores": scores}))
    return folder


def invoke(*arguments):
    return CliRunner().invoke(
        app, ["leaderboard", *map(str, arguments)], standalone_mode=False, catch_exceptions=False
    )  # fmt: skip


def test_models_are_ordered_by_what_all_of_them_played_and_other_settings_are_other_columns(tmp_path):
    folders = [
        write_folder(tmp_path / "a", "small", {"one": [True, False, False], "two": [True]}),
        write_folder(tmp_path / "b", "large", {"one": [True, True, None]}),
        write_folder(tmp_path / "c", "large", {"one": [False]}, version="2"),
        write_folder(tmp_path / "d", "small", {"air": [True]}, suite="tau2", user="x", judge="none"),
    ]
    board = build_leaderboard([read_bench_results(folder) for folder in folders])
    assert list(board.rows) == ["large", "small"] and board.shared == ("bfcl 1: one",)
    assert board.columns == ("bfcl 1: one", "bfcl 1: two", "bfcl 2: one", "tau2 1, user x, judge none: air")
    cell = board.rows["large"]["bfcl 1: one"]
    assert (cell.plays, cell.unscored, cell.pass1) == (3, 1, 1.0)
    for name in ("t.md", "t.csv", "t.json"):
        invoke(*folders, "--out", tmp_path / name)
    assert (tmp_path / "t.md").read_text().splitlines()[0].startswith("| model | bfcl 1: one |")
    assert len(list(csv.DictReader((tmp_path / "t.csv").open()))) == 5
    assert json.loads((tmp_path / "t.json").read_text())["shared"] == ["bfcl 1: one"]


def test_wrong_input_of_the_table_is_one_line(tmp_path):
    bfcl = write_folder(tmp_path / "a", "m", {"one": [True]})
    twin = write_folder(tmp_path / "b", "m", {"one": [True]})
    tau2 = write_folder(tmp_path / "c", "m", {"air": [True]}, suite="tau2")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "results.json").write_text('{"scores": []}')
    numbered = ((((CallRecord(name="f", arguments={"0": 1})),),),)
    bare = write_folder(tmp_path / "e", "m", {"one": [True]}, steps=numbered)
    for arguments, text in [
        ([tmp_path / "none"], "cannot be read: No such file"),
        ([tmp_path / "d"], "is no result of trajsmith bench"),
        ([bfcl, twin], "m has two results for bfcl 1: one"),
        ([bfcl, "--out", tmp_path / "t.xlsx"], "written as .md, .csv or .json, not as '.xlsx'"),
        ([tau2, "--bfcl", tmp_path / "x"], "none of these folders holds results of bfcl"),
        ([bare, "--bfcl", tmp_path / "x"], "one_0: f has arguments without names"),
    ]:
        with pytest.raises(InputError, match=text):
            invoke(*arguments)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("name", UNAVAILABLE)
def test_a_benchmark_that_cannot_be_played_says_why(tmp_path, name):
    with pytest.raises(InputError, match=f"{name} cannot be played: .*; there are: bfcl, tau2"):
        CliRunner().invoke(
            app, ["bench", name, "--model", "gold", "--out", str(tmp_path)],
            standalone_mode=False, catch_exceptions=False,
        )  # fmt: skip


def test_benchmarks_are_listed_without_other_arguments():
    result = CliRunner().invoke(app, ["bench", "--list"])
    assert result.exit_code == 0
    assert all(name in result.output for name in ("bfcl", "tau2", *UNAVAILABLE))


THEIRS = """
import json, sys, types
from pathlib import Path
from unittest.mock import MagicMock
configuration = types.ModuleType("bfcl_eval.constants.model_config")
configuration.MODEL_CONFIG_MAPPING = {"m": types.SimpleNamespace(underscore_to_dot=True)}
sys.modules[configuration.__name__] = configuration
for name in ("pandas", "tree_sitter", "tree_sitter_java", "tree_sitter_javascript"):  # summary, other languages
    sys.modules[name] = MagicMock()
from bfcl_eval.eval_checker import eval_runner
from bfcl_eval.model_handler.utils import convert_to_function_call
from bfcl_eval.utils import get_directory_structure_by_category, get_file_name_by_category, load_file
from bfcl_eval.utils import load_dataset_entry, load_ground_truth_entry

class Handler:  # as their handlers of native calls decode
    def decode_ast(self, result, language, has_tool_call_tag):
        return [{name: json.loads(text) for name, text in call.items()} for call in result]
    def decode_execute(self, result, has_tool_call_tag):
        return convert_to_function_call(result)

out = Path(sys.argv[1])
found = {}
runners = {"simple_python": eval_runner.ast_file_runner, "multi_turn_base": eval_runner.multi_turn_runner}
for category, runner in runners.items():
    folder = out / "m" / get_directory_structure_by_category(category)
    file = folder / get_file_name_by_category(category, is_result_file=True)
    rows = {row["id"]: row for row in load_file(file)}
    tests = [test for test in load_dataset_entry(category) if test["id"] in rows]
    gold = [row for row in load_ground_truth_entry(category) if row["id"] in rows]
    arguments = [Handler(), [rows[test["id"]] for test in tests], tests, gold]
    names = [category, "m"] if runner is eval_runner.ast_file_runner else ["m", category]
    found[category] = runner(*arguments, *names, out / "score")
print(json.dumps(found))
"""


async def play_bfcl():
    """Play gold on two of three tasks, and nothing on the third."""
    suite, plays = Bfcl(), []
    await suite.open(BFCL, None)
    for category in ("simple_python", "multi_turn_base"):
        tasks = [task for task in await suite.load_tasks(category) if _is_named(task)][:12]
        for place, task in enumerate(tasks):
            steps = task.gold if place % 3 else tuple(() for _ in task.turns)
            error = await suite.check(task, f"{place}", steps)
            play = SuitePlay(steps=steps)
            plays.append(BenchPlay(task=task.id, category=category, passed=not error, error=error, play=play))
    await suite.close()
    return plays


@needs_bfcl
def test_bfcl_itself_scores_the_exported_files_as_we_did(tmp_path):
    plays = asyncio.run(play_bfcl())
    folder = write_folder(tmp_path / "a", "m", {"x": [True]})
    (folder / PLAYS).write_text("".join(play.model_dump_json() + "\n" for play in plays))
    invoke(folder, "--bfcl", tmp_path / "files")
    command = [str(BFCL / "bin" / "python"), "-c", THEIRS, str(tmp_path / "files")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ours = {score.category: [score.pass1, score.tasks] for score in score_plays(plays)[1:]}
    theirs = {
        name: [round(share, 4), number] for name, (share, number) in json.loads(done.stdout.splitlines()[-1]).items()
    }
    assert theirs == ours and 0 < ours["multi_turn_base"][0] < 1


def _is_named(task):
    calls = [call for turn in task.gold for step in turn for call in step]
    return not any(name.isdigit() for call in calls for name in call.arguments)
