"""Dialogues are found by words, tools and verdicts, as a plain look at every one of them finds them."""

from pathlib import Path
from typing import Any

import pytest

from trajsmith.api.runs import run
from trajsmith.pipeline.dialogue_search import DialogueQuery, find_dialogues
from trajsmith.pipeline.record_joins import JudgedTrajectory, join_verdicts
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.records import InputError

CONFIG = {
    "name": "found",
    "seed": 3,
    "environments": [{"library": "bank", "states": {"small": 1}}, {"library": "retail", "states": {"small": 1}}],
    "sample": {"count": 24, "length": [2, 3]},
    "vary": {"rates": {"missing_function": 1.0}},
    "engine": {"workers": 1},
    "play": {"candidates": 2, "faulty": 1},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return run(CONFIG, run=tmp_path_factory.mktemp("runs") / "found").directory


def said(found: JudgedTrajectory) -> str:
    return "\n".join(m.content or "" for m in found.trajectory.messages if m.role in ("user", "assistant")).lower()


def called(found: JudgedTrajectory) -> set[str]:
    return {call.function.name for m in found.trajectory.messages for call in m.tool_calls or ()}


def list_ids(made: RunDirectory, **query: Any) -> list[str]:
    return [play.id for _, play, _ in find_dialogues(made.path, DialogueQuery(**query))]


def test_each_condition_finds_what_a_look_at_all_finds(made: RunDirectory) -> None:
    every = list(join_verdicts(made))
    tool = next(iter(called(every[0])))
    reason = next(one.verdict.reasons[0] for one in every if one.verdict.reasons)
    cases: list[tuple[dict[str, Any], Any]] = [
        ({}, lambda one: True),
        ({"texts": ("THE ",)}, lambda one: "the " in said(one)),
        ({"texts": ("the ", "you")}, lambda one: "the " in said(one) and "you" in said(one)),
        ({"texts": ("£",)}, lambda one: "£" in said(one)),
        ({"texts": ('"',)}, lambda one: '"' in said(one)),
        ({"environment": "retail"}, lambda one: one.trajectory.environment == "retail"),
        ({"tools": (tool,)}, lambda one: tool in called(one)),
        ({"outcome": "accepted"}, lambda one: one.verdict.accepted),
        ({"outcome": "rejected"}, lambda one: not one.verdict.accepted),
        ({"outcome": "agent_error"}, lambda one: one.verdict.outcome == "agent_error"),
        ({"variant": "missing_function"}, lambda one: one.task.variant == "missing_function"),
        ({"reason": reason.upper()[:20]}, lambda one: any(reason[:20] in text for text in one.verdict.reasons)),
    ]
    for query, holds in cases:
        wanted = [one.trajectory.id for one in every if holds(one)]
        assert list_ids(made, **query) == wanted, query
        assert wanted or query.get("texts") in (('"',), ("£",)), f"nothing to find for {query}"
    assert list_ids(made, environment="retail", outcome="rejected", texts=("the ",)) == [
        one.trajectory.id
        for one in every
        if one.trajectory.environment == "retail" and not one.verdict.accepted and "the " in said(one)
    ]


def test_words_of_results_and_policies_are_not_what_was_said(made: RunDirectory) -> None:
    every = list(join_verdicts(made))
    assert any("customer_id" in (m.content or "") for one in every for m in one.trajectory.messages)
    assert list_ids(made, texts=("customer_id",)) == []


def test_a_run_without_verdicts_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("name: early\n")
    with pytest.raises(InputError, match="trajsmith resume"):
        next(find_dialogues(tmp_path, DialogueQuery()))


def test_the_command_prints_a_table_or_writes_pages(made: RunDirectory, tmp_path: Path, trajsmith: Any) -> None:
    done = trajsmith("find", made.path, "--outcome", "rejected", "--limit", "2")
    assert done.code == 0, done.err
    assert done.out.count("traj_") == 2 and "stopped after 2" in done.out
    wrong = trajsmith("find", made.path, "--outcome", "wrnog")
    assert wrong.code == 2 and "no outcome 'wrnog'; there are accepted, rejected, completed" in wrong.err
    done = trajsmith("find", made.path, "the", "--environment", "bank", "--pages", tmp_path / "pages")
    assert done.code == 0, done.err
    pages = list((tmp_path / "pages").glob("bank-*.html"))
    assert pages and "traj_" in pages[0].read_text("utf-8")
    assert not list((tmp_path / "pages").glob("retail-*.html"))
    again = trajsmith("find", made.path, "the", "--pages", tmp_path / "pages")
    assert (again.code, again.err) == (2, f"error: {tmp_path / 'pages'} is there already: name a new folder\n")
    nothing = trajsmith("find", made.path, "zebra crossing", "--pages", tmp_path / "none")
    assert (nothing.code, nothing.err) == (1, "error: no dialogue has all of that\n")
    assert not (tmp_path / "none").exists()
