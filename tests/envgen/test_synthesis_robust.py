"""What goes wrong in one theme ends that theme and no other: names, tables, formatters, environments that break."""

import json
import subprocess

import pytest
from expertly import Expert, domain, loop_in, theme_of

from trajsmith.envgen.generate import formatting
from trajsmith.envgen.generate.formatting import FormattingError, fix_and_format_code
from trajsmith.envgen.synthesis import loop as loops
from trajsmith.envgen.synthesis import synthesize_environments
from trajsmith.envgen.synthesis.acceptance import AcceptedEnvironment, read_accepted
from trajsmith.envgen.synthesis.answer_schemas import Proposal, RowPick
from trajsmith.envgen.synthesis.concurrent_themes import _drop_alike_proposals
from trajsmith.envgen.synthesis.examination import _count_rows
from trajsmith.envgen.synthesis.loop import ProposalRecord, _drop_tool_trials
from trajsmith.envgen.synthesis.records import Design, Provenance, SynthesisOutcome, Theme, TrialResult
from trajsmith.envgen.synthesis.references import UnresolvedTestReference, resolve_object, resolve_pick
from trajsmith.envgen.synthesis.semantic import build_assessment
from trajsmith.records import EnvironmentFault, RunError
from trajsmith.records.journal import StepJournal
from trajsmith.records.storage import storage_boundary

WHERE = Provenance(prompt="p@1", model="m", request="r")


def proposal(name, *entities):
    return Proposal(
        unusable="", name=name, title=name.title(), domain="leisure/desk", description="A desk.",
        entities=entities or ("members", "scores"),
    )  # fmt: skip


def proposed(theme, name, *entities):
    return ProposalRecord(source=theme.source, proposal=proposal(name, *entities), provenance=WHERE)


def accepted(store, theme, name):
    """What an acceptance leaves of a theme."""
    design = Design(
        theme=theme.id, proposal=proposal(name), requirements=REQUIRED, plan=PLAN, texts=(), state_code="",
        provenance={},
    )  # fmt: skip
    store.put("designs", f"d-{theme.id}-{name}", design)
    folder = store.folder / "environments" / name
    folder.mkdir(parents=True)
    (folder / "provenance.json").write_text(json.dumps({"design": design.id}))
    (folder / "made.json").write_text("{}")
    return folder


REQUIRED = {
    "tasks": [{"id": f"T{n}", "request": "a", "outcome": "b"} for n in range(4)],
    "rules": [{"id": f"R{n}", "text": "c"} for n in range(2)],
}
TOOL = {"effect": "read", "does": "a", "parameters": (), "returns": "b", "refuses": (), "rules": (), "serves": ()}
PLAN = {"tools": [{"name": f"tool_{letter}", **TOOL} for letter in "abc"]}


def test_a_theme_of_another_start_does_not_take_the_name_of_an_accepted_one(tmp_path):
    store = StepJournal(tmp_path)
    first, second = (Theme(source=domain(name)) for name in ("score lending", "tool hire"))
    store.put("themes", first.id, first)
    accepted(store, first, "score_library")
    assert read_accepted(store) == [AcceptedEnvironment(first.id, "score lending", proposal("score_library"))]
    (found,) = _drop_alike_proposals(store, [second], [proposed(second, "score_library", "tools", "hires")])
    assert found == ("the same theme as score lending (score_library)",)


def test_what_is_accepted_comes_before_an_earlier_theme_that_was_undecided(tmp_path):
    """The first theme had no proposal when the second was accepted; now it has the same name."""
    store = StepJournal(tmp_path)
    first, second = (Theme(source=domain(name)) for name in ("tool hire", "score lending"))
    store.put("themes", second.id, second)
    accepted(store, second, "score_library")
    now = [proposed(first, "score_library", "tools", "hires"), proposed(second, "score_library")]
    assert _drop_alike_proposals(store, [first, second], now) == [
        ("the same theme as score lending (score_library)",),
        now[1],
    ]
    assert _drop_alike_proposals(store, [first, second], [now[0], None])[0] == (
        "the same theme as score lending (score_library)",
    )


def test_a_theme_that_is_made_anew_leaves_its_old_name(tmp_path):
    store = StepJournal(tmp_path)
    first, second = (Theme(source=domain(name)) for name in ("score lending", "tool hire"))
    accepted(store, first, "score_library")
    now = [proposed(first, "music_desk"), proposed(second, "score_library", "tools", "hires")]
    assert _drop_alike_proposals(store, [first, second], now) == now


async def test_an_accepted_theme_whose_folder_is_gone_is_made_again(tmp_path):
    """Its outcome says accepted; other settings have rejected it since and taken the folder away."""
    loop = loop_in(tmp_path, Expert(lambda request: "No."))
    theme = theme_of(loop, "score lending")
    outcome = SynthesisOutcome(
        theme=theme.id, source="score lending", name="score_library", accepted=True, stage="accept"
    )
    loop.store.put("outcomes", f"{theme.id}:{loop.fingerprint}", outcome)
    (found,) = await synthesize_environments(loop, [theme.source])
    assert not found.accepted and found.reasons[0].startswith("propose: bad_reply")
    folder = accepted(loop.store, theme, "score_library")
    loop.store.put("outcomes", f"{theme.id}:{loop.fingerprint}", outcome)
    assert await synthesize_environments(loop, [theme.source]) == [outcome] and folder.is_dir()


async def test_a_rejected_theme_is_not_kept_under_its_old_name(tmp_path):
    loop = loop_in(tmp_path, Expert(lambda request: "No."))
    theme = theme_of(loop, "score lending")
    folder = accepted(loop.store, theme, "score_library")
    other = accepted(loop.store, theme_of(loop, "tool hire"), "tool_hire")
    await synthesize_environments(loop, [theme.source])
    assert not folder.exists() and other.is_dir()


def test_provenance_that_was_edited_is_one_line(tmp_path):
    store = StepJournal(tmp_path)
    folder = accepted(store, Theme(source=domain("score lending")), "score_library")
    (folder / "provenance.json").write_text("{")
    with pytest.raises(RunError, match=r"provenance.json was changed by hand: take its folder away"):
        read_accepted(store)


def test_a_table_may_be_missing_or_null_in_a_state():
    assert _count_rows({"members": {"M1": {}}, "loans": None}, ["members", "loans", "holds"]) == 1
    with pytest.raises(UnresolvedTestReference, match="the state has no table loans; it has members, loans"):
        resolve_pick(RowPick(table="loans", field="loan_id"), {"members": {}, "loans": None}, [])


def test_a_reference_in_place_of_conditions_cannot_be_played():
    state = {"members": {"M1": {"name": "Ada"}}}
    where = {"$pick": {"table": "members", "field": "name"}}
    with pytest.raises(UnresolvedTestReference, match="a reference stands where names with values must stand"):
        resolve_object(where, state, [])
    with pytest.raises(UnresolvedTestReference, match="a reference stands where"):
        resolve_pick(RowPick(table="members", where=where, field="name"), state, [])


def test_ruff_that_hangs_or_breaks_says_so(monkeypatch):
    with pytest.raises(FormattingError, match="ruff format: "):
        fix_and_format_code("def broken(:\n")

    def hangs(*arguments, **settings):
        raise subprocess.TimeoutExpired("ruff", settings["timeout"])

    monkeypatch.setattr(formatting.subprocess, "run", hangs)
    with pytest.raises(FormattingError, match="ruff check did not end in 60 seconds"):
        fix_and_format_code("x = 1\n")


async def test_code_that_ruff_cannot_format_goes_back_and_then_rejects_its_theme(tmp_path, monkeypatch):
    def refuses(code):
        raise FormattingError("ruff format: it nests too deeply")

    monkeypatch.setattr("trajsmith.envgen.synthesis.prompted_generation.format_code", refuses)
    model = Expert()
    notice, prose = await synthesize_environments(
        loop_in(tmp_path, model), [domain("notice board"), domain("idle chatter")]
    )
    assert notice.reasons[0] == (
        "design: bad_reply: state: this Python cannot be formatted: ruff format: it nests too deeply."
    )
    assert model.asked.count("state") == 3 and prose.stage == "propose"


async def test_a_file_that_ruff_cannot_read_rejects_its_theme(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "trajsmith.envgen.synthesis.design_stages.assemble_module", lambda *_: fix_and_format_code("def broken(:\n")
    )
    notice, prose = await synthesize_environments(loop_in(tmp_path), [domain("notice board"), domain("idle chatter")])
    assert notice.stage == "draft" and notice.reasons[0].startswith("draft: ruff format: ")
    assert prose.reasons[0].startswith("propose: bad_reply")


async def test_a_crash_of_our_own_leaves_its_theme_undecided_and_the_others_go_on(tmp_path, monkeypatch):
    def crash(*_):
        raise KeyError("boom")

    loop = loop_in(tmp_path)
    monkeypatch.setattr(loops, "write_first_draft", crash)
    (prose,) = await synthesize_environments(loop, [domain("notice board"), domain("idle chatter")])
    assert prose.source == "idle chatter"
    assert list(loop.undecided.values()) == ["notice board: KeyError: 'boom' (a bug, please report it)"]


async def test_an_environment_that_breaks_at_the_second_look_is_a_complaint(tmp_path, monkeypatch):
    """It starts when it is loaded, and not when it is examined: evidence for the repair, not the end of the run."""
    loop = loop_in(tmp_path, rounds=1)

    async def breaks(*_):
        raise EnvironmentFault("start", "parking_permits", "no more memory")

    monkeypatch.setattr("trajsmith.envgen.synthesis.examination.run_unit_tests", breaks)
    outcome, prose = await synthesize_environments(loop, [domain("parking permits"), domain("idle chatter")])
    assert (outcome.stage, outcome.accepted, prose.accepted) == ("repair", False, False)
    assert "it does not always work: parking_permits: start: no more memory" in "\n".join(outcome.reasons)


async def test_a_full_disk_ends_the_run_with_one_line(tmp_path):
    loop = loop_in(tmp_path)
    (tmp_path / "proposals.jsonl").mkdir()
    with pytest.raises(RunError, match=r"cannot write \S+proposals.jsonl: Is a directory; fix that, then give the"):
        await synthesize_environments(loop, [domain("notice board")])
    full = r"disk full \(No space left on device\) at .*: free some space, then give the same command again"
    with pytest.raises(RunError, match=full), storage_boundary(tmp_path):
        raise OSError(28, "No space left on device")


def test_a_name_that_is_too_long_for_a_folder_goes_back_to_the_model():
    assert proposal("a" * 60).name == "a" * 60
    with pytest.raises(ValueError, match="name must be in snake case, of 60 letters at most"):
        proposal("a" * 300)


def test_nothing_is_left_of_an_examination_that_tried_only_tools_that_go():
    trial = {"tool": "get_score", "arguments": {}, "aim": "positive", "expects": "the score"}
    opinion = {"trial": 0, "verdict": "fail", "reason": "it shows another"}
    judged = [TrialResult(trial=trial, outcome="answers {}", changes="changes nothing", opinion=opinion)]
    found = build_assessment("theme_1", "draft_1", judged, {})
    assert (found.score, _drop_tool_trials(found, ["list_scores"])) == (0.0, found)
    assert _drop_tool_trials(found, ["get_score"]) is None
