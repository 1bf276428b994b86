"""`trajsmith env grow` of what models made: a real server, wrong drafts, a kill, trajectories, refusals."""

import asyncio
import json
import shutil
import signal

import pytest
import yaml
from expertly import expert, score_library
from running_server import RunningServer
from test_growth_cli import run as here
from test_synthesis_run import EXPERT, command, kill_after, lines, trajsmith, write_config

from trajsmith.envgen.growth.model_extension import GrowthPlan, find_extension_fault, find_growth_fault
from trajsmith.envgen.growth.model_growth import GrowthResult
from trajsmith.envgen.growth.model_parent import ModelParent
from trajsmith.envgen.growth.regression import EnvironmentSize, count_references, find_incompatible_tools
from trajsmith.envgen.growth.rounds import describe_attempt, find_worse, name_child
from trajsmith.envgen.synthesis.answer_schemas import Repair
from trajsmith.envgen.synthesis.records import Complaint, Theme
from trajsmith.envgen.synthesis.repair_stage import find_repair_fault
from trajsmith.records import InputError

ROOMS, HIRE = ("--wish", "rehearsal rooms"), ("--wish", "instrument hire")


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of an environment that models made."""
    return asyncio.run(score_library(tmp_path_factory.mktemp("made")))


@pytest.fixture(scope="module")
def parent(folder):
    return ModelParent(folder)


@pytest.fixture(scope="module")
def story(folder, tmp_path_factory):
    """One growth that is killed and goes on, and a hopeless one; both behind a real server."""
    scrap = tmp_path_factory.mktemp("grow")
    told = {"before": files_of(folder), "scrap": scrap}
    with RunningServer(script=str(EXPERT), model="expert") as server:
        config = write_config(scrap, server.url)
        work = folder.parent / "work" / "score_library_g2"
        grow = ("env", "grow", folder, "--config", config)
        told["killed"] = kill_after(command(*grow, *ROOMS), work / "drafts.jsonl", 2)
        told["answered"] = server.stats()["answered"]
        told["done"] = trajsmith("resume", work)
        told["stats"] = server.stats()
        told["again"] = trajsmith("env", "grow", folder, "--run", work)
        told["after"] = server.stats()
        rounds = ("--set", "synthesis.rounds=2")
        told["hopeless"] = trajsmith(*grow, *HIRE, *rounds, "--out", scrap / "hire")
    return told | {"work": work, "child": folder.with_name("score_library_g2")}


def test_a_killed_growth_goes_on_and_pays_nothing_twice(story):
    assert story["killed"] == -signal.SIGKILL and story["answered"] >= 3
    assert story["done"].returncode == 0, story["done"].stderr
    assert story["stats"]["answered_twice"] == 0 and story["stats"]["requests"] == 8
    assert (story["again"].returncode, story["after"]["requests"]) == (0, 8)


def test_a_draft_that_breaks_earlier_tests_is_mended_until_they_pass(story):
    exams = lines(story["work"] / "examinations.jsonl")
    first, second, last = ([one for one in exam["complaints"] if one["kind"] in ("earlier", "task")] for exam in exams)
    assert {one["test"] for one in first} >= {"lends_a_free_copy", "renews_no_third_time"}
    assert any(one["what"].startswith("lend_score is not called as before: it demands booking_id") for one in first)
    assert [one["what"].partition(":")[0] for one in second] == ["a state of score_library is not valid any more"]
    assert "members.M501.ensemble: Field required" in second[0]["what"]
    assert not last and [exam["score"] for exam in exams] == sorted(exam["score"] for exam in exams)
    assert [exam["tests_passed"] for exam in exams] == [25, 32, 32]


def test_a_child_is_larger_and_says_where_it_comes_from(story, folder, parent):
    child = story["child"]
    grown = GrowthResult.model_validate_json((child / "grown.json").read_bytes())
    assert (grown.parent, grown.generation, grown.parent_digest) == ("score_library", 2, parent.digest)
    assert grown.before == EnvironmentSize(entities=4, references=4, tools=11, rules=8)
    assert grown.after == EnvironmentSize(entities=6, references=6, tools=16, rules=12)
    assert {"table rooms", "tool book_room: Books a room for a member."} <= set(grown.added)
    assert grown.earlier_tests == "23 passed, from its own states and from those of score_library"
    made = json.loads((child / "made.json").read_text())
    assert (made["directory"], made["accepted"], made["tools"]) == (str(child), True, 16)
    names = [test["name"] for test in json.loads((child / "tests.json").read_text())]
    assert names[:23] == [test.name for test in parent.tests] and "books_no_room_twice" in names
    answers = json.loads((child / "provenance.json").read_text())["answers"]
    assert {"propose", "enlarge", "extend", "repair 2"} <= answers.keys()
    assert files_of(folder) == story["before"], "the parent stays as it is"


def test_a_child_can_grow_again(story):
    child = ModelParent(story["child"])
    assert (child.child, child.generation, len(child.plan), len(child.tests)) == ("score_library_g3", 2, 16, 32)


def test_a_hopeless_growth_is_rejected_with_its_reasons(story):
    done = story["hopeless"]
    assert done.returncode == 1 and "score_library stays as it is" in done.stderr
    assert "rejected: score_library_g2: 2 repairs were not enough" in done.stdout
    assert "the earlier test lends_a_free_copy fails, from a state of score_library as it was" in done.stdout
    assert "funnel: sources 1 > proposed 1 > designed 1 > drafted 1 > examined 0" in done.stdout
    head = next(line for line in done.stdout.splitlines() if "theme" in line and "outcome" in line)
    assert "check" in head.split() and "semantic" in head.split()
    assert [path.name for path in (story["scrap"] / "hire").iterdir()] == ["work"]
    exams = lines(story["scrap"] / "hire" / "work" / "score_library_g2" / "examinations.jsonl")
    assert {(exam["tests_passed"], exam["tests"]) for exam in exams} == {(25, 25)}, (
        "from states of its own it passes all: what it breaks is seen from the parent's"
    )


def test_a_child_gives_accepted_trajectories(story):
    scrap = story["scrap"]
    config = scrap / "child.yaml"
    config.write_text(yaml.safe_dump({
        "name": "child", "run": str(scrap / "child"), "sample": {"count": 8, "length": [3, 5]},
        "environments": [{"python": str(story["child"] / "score_library_g2.py")}],
    }))  # fmt: skip
    done = trajsmith("run", config)
    assert done.returncode == 0, done.stderr
    summary = json.loads((scrap / "child" / "summary.json").read_text())
    used = {tool for tool, number in summary["coverage"]["score_library_g2"].items() if number}
    assert summary["funnel"]["accepted"] >= 6 and used & {"book_room", "find_free_rooms", "list_bookings", "list_rooms"}


def growth(**change):
    """The expert's growth, changed."""
    told = json.loads((expert.HERE / "rehearsal_rooms" / "enlarge.md").read_text())
    return GrowthPlan.model_validate(told | change)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ""),
        ({"impossible": "it is complete"}, ""),
        ({"tools": []}, "add at least one tool"),
        ({"entities": ["loans"]}, "loans is there already"),
        ({"keeps": [{"tool": "sell_score", "rules": ["R9"]}]}, "there is no tool sell_score yet"),
        ({"texts": [{"name": "WORKS", "values": list("abcdef")}]}, "there is a list WORKS already"),
        ({"rules": [{"id": "R1", "text": "x"}]}, "two tasks or two rules have one id"),
        ({"rules": [{"id": "R9", "text": "x"}, {"id": "R20", "text": "x"}]}, "no tool keeps R20"),
        ({"tasks": [{"id": "T20", "request": "x", "outcome": "y"}]}, "no tool serves T20"),
    ],
    ids=["good", "impossible", "no tools", "old table", "no tool", "old words", "old rule", "unkept", "unserved"],
)
def test_what_is_added_fits_what_is_there(change, said, parent):
    fault = find_growth_fault(growth(**change), parent, "score_library_g2", 20)
    assert said in fault if said else not fault


def test_more_tools_than_there_is_room_for_go_back(parent):
    assert find_growth_fault(growth(), parent, "score_library_g2", 12) == "there are 16 tools; 12 is the most."


def test_the_file_of_a_child_has_all_of_both(parent, story):
    design = ModelParent(story["child"]).design
    code = (story["child"] / "score_library_g2.py").read_text()
    assert not find_extension_fault(code, design)
    assert "bookings are missing" in find_extension_fault(
        code.replace("    bookings: dict", "    booked: dict"), design
    )
    assert "return_loan" in find_extension_fault(code.replace("def return_loan", "def _return_loan"), design)
    assert find_extension_fault(parent.code, parent.design.model_copy(update={"proposal": design.proposal}))
    named = find_extension_fault(code.replace('name = "score_library_g2"', 'name = "score_library"'), design)
    assert named == 'the class must say name = "score_library_g2".'


def test_an_earlier_test_is_never_found_wrong():
    complaint = Complaint(id="E1", kind="earlier", test="lends_a_free_copy", what="it fails")
    found = Repair.model_validate({"decisions": [{"complaint": "E1", "wrong": "test", "why": "x"}], "tests": []})
    fault = find_repair_fault(found, None, [complaint], [], frozenset({"lends_a_free_copy"}))
    assert fault == "test lends_a_free_copy is an earlier one and holds as it stands: the code is wrong, so mend that."


async def test_calls_that_are_not_understood_as_before_are_named(folder, parent, tmp_path):
    from trajsmith.environments.sources import EnvironmentSettings, open_source

    old = parent.code
    new = old.replace("def pay_fees(", "def _pay_fees(").replace(
        "def return_loan(self, loan_id: str)", "def return_loan(self, loan: str, loan_id: str | None = None)"
    )
    new = new.replace("    renewals: int\n\n\nclass HoldRow", "    times: int\n\n\nclass HoldRow").replace(
        "                renewals=loan.renewals,\n", "                times=loan.renewals,\n"
    )
    new = new.replace(
        '            loan_id: Loan number, for example "L12".', "            loan_id: x.\n            loan: y."
    )
    specs = []
    for name, code in (("old", old), ("new", new)):
        (tmp_path / f"{name}.py").write_text(code.replace('@tool(effect="write")\n    def _pay', "def _pay"))
        source = open_source(EnvironmentSettings(python=str(tmp_path / f"{name}.py")))
        specs.append(await source.spec())
        source.close()
    told = dict(find_incompatible_tools(*specs))
    assert told["pay_fees"] == "pay_fees is gone, which earlier tasks call"
    assert told["return_loan"].startswith("return_loan is not called as before: it demands loan;")
    assert "it does not give renewals" in told["list_loans"]
    assert set(told) == {"pay_fees", "return_loan", "list_loans"} and not find_incompatible_tools(specs[0], specs[0])


def test_references_are_fields_that_hold_keys_of_other_tables():
    state = {"members": {"M1": {"member_id": "M1"}}, "loans": {"L1": {"loan_id": "L1", "member_id": "M1"}}, "notes": {}}
    assert count_references(state) == 1


@pytest.mark.parametrize("gone", ["tests.json", "made.json", "design.json"])
def test_a_folder_without_its_records_is_no_parent(gone, folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "score_library")
    (copy / gone).unlink()
    with pytest.raises(InputError, match=f"no {gone}: only an environment that models made can grow"):
        ModelParent(copy)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "made by models, and grows by them: give --config, such as configs/envgen_openai.yaml"),
        (["--config", "CONFIG", "--name", "Bad Name"], "give a name in snake case"),
        (["--config", "CONFIG", "--name", "score_library"], "give a name that is not the parent's"),
        (["--config", "CONFIG", "--set", "synthesis.most_tools=11"], "--set synthesis.most_tools=19"),
        (["--config", "CONFIG", "--name", "taken"], "is not what this would make: choose another --out or --name"),
    ],
    ids=["no config", "name", "own name", "no room", "taken"],
)
def test_wrong_words_about_a_parent_are_one_line(monkeypatch, capsys, words, message, folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "score_library")
    (tmp_path / "taken").mkdir()
    config = write_config(tmp_path, "http://127.0.0.1:9/v1")
    words = [str(config) if word == "CONFIG" else word for word in words]
    code, _, err = here(monkeypatch, capsys, "env", "grow", str(copy), *words)
    assert code == 2 and message in err and len(err.strip().splitlines()) == 1


def test_a_parent_that_does_not_start_is_said_before_a_model_is_asked(monkeypatch, capsys, folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "score_library")
    with (copy / "score_library.py").open("a") as file:
        file.write('raise ValueError("broken by hand")\n')
    with RunningServer(script=str(EXPERT), model="expert") as server:
        config = write_config(tmp_path, server.url)
        code, _, err = here(monkeypatch, capsys, "env", "grow", str(copy), "--config", str(config), *ROOMS)
        assert server.stats()["requests"] == 0
    assert code == 2 and "ValueError: broken by hand" in err


def test_the_dry_run_shows_the_stages_of_growth_and_asks_nothing(monkeypatch, capsys, folder, tmp_path):
    with RunningServer(script=str(EXPERT), model="expert") as server:
        config = write_config(tmp_path, server.url)
        out = ("--out", str(tmp_path / "out"), "--dry-run")
        code, said, err = here(monkeypatch, capsys, "env", "grow", str(folder), "--config", str(config), *out)
        assert server.stats()["requests"] == 0
    assert code == 0, err
    assert "enlarge" in said and "extend" in said and "propose" not in said and "estimated: " in said
    assert not (tmp_path / "out").exists()


def test_another_parent_name_or_wish_is_another_theme(parent):
    themes = {Theme(source=parent.source(*one)).id for one in (("a", ""), ("b", ""), ("a", "rooms"))}
    assert len(themes) == 3 and Theme(source=parent.source("a", "")).id in themes


@pytest.fixture(scope="module")
def rounds(story, tmp_path_factory):
    """Two rounds on what has grown once: one that is accepted, and one that proposes again what is there."""
    scrap = tmp_path_factory.mktemp("rounds")
    with RunningServer(script=str(EXPERT), model="expert") as server:
        config = write_config(scrap, server.url)
        grow = ("env", "grow", story["child"], "--config", config, "--out", scrap, "--rounds", 2)
        notices = ("--wish", "member notices") * 2
        told = {"scrap": scrap, "done": trajsmith(*grow, *notices)}
        before = server.stats()["answered"]
        told["again"] = trajsmith(*grow, *notices)
        told["asked_again"] = server.stats()["answered"] - before
    return told


def test_rounds_grow_upon_each_other_and_a_bad_one_is_undone(rounds):
    done, scrap = rounds["done"], rounds["scrap"]
    assert done.returncode == 0, done.stderr[-2000:]
    first, second = json.loads((scrap / "score_library_g2.rounds.json").read_text())
    assert (first["parent"], first["name"], first["accepted"]) == ("score_library_g2", "score_library_g3", True)
    assert (first["entities"], first["tools"], first["rules"], first["score"]) == (7, 19, 14, 1.0)
    assert (second["parent"], second["name"], second["reason"]) == ("score_library_g3", "score_library_g4", "rejected")
    assert first["tokens"] > 0 and first["cost"] > 0 and second["tokens"] > 0
    assert "1 of 2 rounds accepted, " in done.stdout and "score_library_g3.py" in done.stdout
    assert not (scrap / "score_library_g4").exists()
    grown = GrowthResult.model_validate_json((scrap / "score_library_g3" / "grown.json").read_bytes())
    assert (grown.parent, grown.generation) == ("score_library_g2", 3)
    assert len(json.loads((scrap / "score_library_g3" / "tests.json").read_text())) == 37, "all earlier tests are held"


def test_a_grown_environment_is_published_without_paths_of_this_machine(rounds, tmp_path):
    from trajsmith.export.environment_publication import record_environments, write_publication

    recorded = record_environments([rounds["scrap"] / "score_library_g3"])
    (entry,) = write_publication(recorded, tmp_path / "out", "scores").environments
    assert (entry.tools, entry.tests, entry.models, entry.licence) == (19, "37 passed", ("expert",), "")
    files = [file for file in (tmp_path / "out").rglob("*") if file.is_file()]
    assert len(files) > 8 and not [file for file in files if str(rounds["scrap"]) in file.read_text()]


def test_rounds_that_are_done_ask_no_model_again(rounds):
    assert rounds["again"].returncode == 0
    assert rounds["asked_again"] <= 4, "each start asks once whether the model is there"


def test_a_child_that_is_worse_is_undone(rounds, story, folder):
    parent = ModelParent(folder)
    grown = GrowthResult.model_validate_json((story["child"] / "grown.json").read_bytes())
    assert find_worse(parent, grown) == find_worse(parent, grown.model_copy(update={"score": 0.985})) == ""
    worse = find_worse(parent, grown.model_copy(update={"score": 0.93}))
    assert worse == "the environment checker gives 0.93, and 1.00 for score_library"
    assert name_child(parent, 1) == "score_library_g2" and name_child(parent, 2) == "score_library_r2_g2"
    assert name_child(ModelParent(rounds["scrap"] / "score_library_g3"), 3) == "score_library_r3_g4"
    assert describe_attempt(story["work"], parent).startswith("rooms, bookings, list_rooms")
    assert describe_attempt(rounds["scrap"], parent) == "", "there was no design"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rounds", "2", "--name", "x"], "--rounds goes without --name"),
        (["--rounds", "2", "--dry-run"], "--rounds goes without --name"),
        (["--wish", "a", "--wish", "b"], "several --wish go with --rounds"),
        (["--rounds", "2"], "give --config"),
        (
            ["--rounds", "2", "--config", "gen.yaml", "--wish", "a", "--wish", "b", "--wish", "c"],
            "3 --wish for 2 rounds",
        ),
    ],
    ids=["name", "dry-run", "wishes", "config", "more-wishes"],
)
def test_wrong_options_of_rounds_are_one_line(folder, options, message):
    from typer.testing import CliRunner

    from trajsmith.cli.app import app

    done = CliRunner().invoke(app, ["env", "grow", str(folder), *options])
    assert isinstance(done.exception, InputError) and message in str(done.exception)
