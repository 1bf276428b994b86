"""`trajsmith repair`: failed plays are cut at the first wrong step and continued rightly, and only that is learnt."""

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from pathlib import Path

import pytest

from trajsmith import load_run, resume, run
from trajsmith.evals.episodes import Episode
from trajsmith.evals.transcripts import EPISODES, TRANSCRIPTS, build_transcript, store_tasks
from trajsmith.export import FORMATS, FormatSettings, build_row
from trajsmith.export.formats import ExportItem
from trajsmith.pipeline import repairs
from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.config_changes import apply_change, plan_change
from trajsmith.pipeline.record_joins import join_verdicts
from trajsmith.pipeline.repairs import FailedPlay, FailedPlays, PlayRepair, RepairKind, open_repairs
from trajsmith.pipeline.run_context import RunContext
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.stages import RoleFactory
from trajsmith.records import InputError, JsonObject, RecordDropped, RunError, Task, Trajectory, Verdict
from trajsmith.usersim import FaultSettings

NONE = dict.fromkeys(FaultSettings.model_fields, 0.0)
REPAIRED: dict[str, set[str]] = {
    "wrong_entity": {"cut", "recover"},
    "skipped_confirmation": {"cut"},
    "needless_confirmation": {"cut"},
    "premature_answer": {"cut"},
    "needless_write": {"cut", "recover"},
    "invented_value": {"cut", "recover"},
    "missed_error": {"cut", "recover"},
    "wrong_report": {"cut"},
}
"""Kinds of mistakes that fail plays, with the repairs that they may get."""
EXACT = {"skipped_confirmation", "needless_confirmation", "premature_answer", "wrong_report"}
"""Mistakes that are wrong from the message on with which they are made."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run of whose plays half are played by the faulty agent."""
    made = tmp_path_factory.mktemp("repairs")
    run(
        {
            "name": "mistakes",
            "seed": 11,
            "run": str(made / "run"),
            "environments": [
                {"library": name, "states": {"small": 2}} for name in ("bank", "file_store", "smart_home")
            ],
            "sample": {"count": 24, "scenarios": 1.0},
            "write": {"withhold": 0.5, "tools": {"search": 0.3}},
            "vary": {"rates": {"batch_request": 0.5}},
            "play": {"candidates": 2, "faulty": 1},
        }
    )
    return made


@pytest.fixture(scope="module")
def repaired(folder):
    return resume(open_repairs(folder / "run", folder / "repaired").path)


async def play_faulty(context: RunContext, task: Task, kind: str) -> FailedPlay | None:
    """Play a task with one kind of mistake; None if the play passes."""
    settings = context.config.play.model_copy(update={"faults": FaultSettings(**(NONE | {kind: 1.0}))})
    context.config = context.config.model_copy(update={"play": settings})
    cast = RoleFactory(context)
    trajectory = await cast.play(task, 1)
    verdict = await cast.verify(task, trajectory)
    return FailedPlay(task, trajectory, verdict) if trajectory.injected and not verdict.accepted else None


async def make_repairs(folder, kind: str) -> list[tuple[FailedPlay, Trajectory, Verdict]]:
    """Repair the plays with one kind of mistake, and verify what comes of it anew."""
    source = RunDirectory.open(folder / "run")
    context = await RunContext.reopen(load_config(source.config_path), source)
    made = []
    try:
        for task in load_run(folder / "run").tasks:
            play = await play_faulty(context, task, kind)
            if play is not None:
                try:
                    trajectory = await PlayRepair(context, play).make("any")
                except RecordDropped as dropped:
                    assert dropped.reason == "wrong_from_the_start" and play.trajectory.injected[0].message == 2
                    continue
                made.append((play, trajectory, await RoleFactory(context).verify(task, trajectory)))
    finally:
        context.code_checks.close()
    return made


@pytest.mark.parametrize("kind", REPAIRED)
def test_plays_with_each_mistake_are_repaired(folder, kind):
    made = asyncio.run(make_repairs(folder, kind))
    assert len(made) >= 2
    for play, trajectory, verdict in made:
        repair, failed = trajectory.repair, play.trajectory
        assert verdict.accepted and verdict.replay_match and not verdict.pruned
        assert repair is not None and repair.of == failed.id and repair.mistake == kind
        assert repair.kind in REPAIRED[kind] and repair.beyond
        assert trajectory.messages[: repair.message] == failed.messages[: repair.message]
        assert trajectory.messages[repair.message] != failed.messages[repair.message]
        assert trajectory.id == trajectory.content_id() and trajectory.injected is None
        assert failed.injected is not None
        if kind in EXACT:
            assert repair.message == failed.injected[0].message


def test_harm_that_one_call_undoes_is_undone(tmp_path):
    run(
        {
            "name": "homes",
            "seed": 2,
            "run": str(tmp_path / "run"),
            "environments": [{"library": "smart_home", "states": {"small": 2}}],
            "sample": {"count": 12, "scenarios": 1.0},
            "play": {"candidates": 2, "faulty": 1},
        }
    )
    made = asyncio.run(make_repairs(tmp_path, "needless_write"))
    undone = [(play, each) for play, each, _ in made if "'undo'" in str(each.messages[each.repair.message].tool_calls)]
    assert 0 < len(undone) < len(made)
    for play, trajectory in undone:
        wrong = play.trajectory.injected[0].message
        events = [each for each in trajectory.events if wrong <= each.message <= trajectory.repair.message]
        assert trajectory.repair.kind == "recover" and trajectory.repair.message > wrong
        assert [bool(each.effect) for each in events] == [True, True]
        assert trajectory.messages[trajectory.repair.message].content


@pytest.mark.parametrize("kind", ["cut", "recover"])
def test_one_kind_of_repair_can_be_asked_for(folder, kind: RepairKind):
    source = RunDirectory.open(folder / "run")

    async def repair_all() -> list[Trajectory | RecordDropped]:
        context = await RunContext.reopen(load_config(source.config_path), source)
        made: list[Trajectory | RecordDropped] = []
        for judged in join_verdicts(source):
            if not judged.verdict.accepted and judged.verdict.outcome != "completed":
                try:
                    made.append(await PlayRepair(context, FailedPlay(*judged)).make(kind))
                except RecordDropped as dropped:
                    made.append(dropped)
        context.code_checks.close()
        return made

    made = asyncio.run(repair_all())
    dropped = [each for each in made if isinstance(each, RecordDropped)]
    assert {each.repair.kind for each in made if isinstance(each, Trajectory) and each.repair} == {kind}
    assert {each.reason for each in dropped} <= {"harm_stays" if kind == "recover" else "wrong_from_the_start"}
    assert all(each.detail for each in dropped) and (dropped or kind == "cut")


def test_a_run_of_repairs_is_a_run(repaired, folder):
    failed = dict(FailedPlays(RunDirectory.open(folder / "repaired")))
    rejected = [verdict for verdict in load_run(folder / "run").verdicts if verdict.outcome != "completed"]
    summary = repaired.summary
    assert summary.funnel["failed"] == len(failed) == len(rejected)
    assert summary.funnel["accepted"] == sum(sum(kinds.values()) for kinds in summary.repairs.values())
    assert summary.funnel["accepted"] >= 0.9 * len(failed) > 5
    assert all(verdict.accepted and verdict.step_labels for verdict in repaired.verdicts)
    assert {each.repair.of for each in repaired.trajectories} <= failed.keys()
    assert "Repairs per mistake" in (folder / "repaired" / "report.html").read_text()


def test_the_command_shows_what_was_repaired_and_goes_on(trajsmith, folder, repaired):
    again = trajsmith("repair", folder / "run", "--out", folder / "repaired")
    assert again.code == 0, again.err
    assert f"{repaired.summary.funnel['accepted']} of {repaired.summary.funnel['failed']} failed plays" in again.out
    assert all(mistake in again.out for mistake in repaired.summary.repairs)
    replayed = trajsmith("replay", folder / "repaired")
    assert replayed.code == 0 and "100.0 %" in replayed.out
    resumed = trajsmith("resume", folder / "repaired")
    assert resumed.code == 0 and "failed plays repaired" in resumed.out
    only = trajsmith("repair", folder / "run", "--out", folder / "recovered", "--kind", "recover")
    assert only.code == 0 and "not repaired: harm_stays" in only.out


@pytest.fixture
def copied(repaired, folder, tmp_path) -> RunDirectory:
    """A copy of the finished run of repairs."""
    return RunDirectory.open(shutil.copytree(folder / "repaired", tmp_path / "copied"))


def read_journals(run: RunDirectory) -> dict[str, bytes]:
    return {str(path.relative_to(run.path)): path.read_bytes() for path in run.path.rglob("*.jsonl")}


@pytest.mark.parametrize("setting", ["write.withhold=0.2", "ground.tries=3", "sample.count=9"])
def test_settings_of_the_copied_tasks_cannot_change(copied, trajsmith, setting):
    before, config = read_journals(copied), copied.config_path.read_bytes()
    result = trajsmith("resume", copied.path, "--set", setting, "--yes")
    assert result.code == 2 and "holds repairs of plays whose tasks were copied" in " ".join(result.err.split())
    assert (read_journals(copied), copied.config_path.read_bytes()) == (before, config)


@pytest.mark.parametrize("setting", ["play.max_steps=29", "verify.step_labels=false"])
def test_other_settings_make_repairs_again(copied, trajsmith, setting):
    before = read_journals(copied)
    change = plan_change(copied, [setting])
    assert change.stale == ("repair", "verify")
    apply_change(copied, change)
    gone = {"trajectories.jsonl", "verdicts.jsonl", "ledger/repair.jsonl", "ledger/verify.jsonl"}
    assert read_journals(copied) == {name: data for name, data in before.items() if name not in gone}
    resumed = trajsmith("resume", copied.path)
    assert resumed.code == 0, resumed.err
    assert copied.file("trajectories.jsonl").read_bytes() == before["trajectories.jsonl"]


def test_settings_of_the_export_change_no_repair(copied):
    assert plan_change(copied, ["export.gallery=3"]).stale == ()


def test_repairs_are_not_played_again(copied, trajsmith):
    before = read_journals(copied)
    for command in ("sample", "ground", "tasks", "vary", "play"):
        result = trajsmith(command, "--run", copied.path)
        assert result.code == 2 and "its stages are repair and verify" in " ".join(result.err.split()), command
    assert read_journals(copied) == before
    assert trajsmith("verify", "--run", copied.path).code == 0


def test_wrong_input_is_one_line(trajsmith, folder, repaired, tmp_path):
    source, out = folder / "run", tmp_path / "out"
    cases = [
        ((source, "--out", out, "--kind", "mend"), "there are any, cut, recover"),
        ((source, "--out", folder / "repaired", "--kind", "cut"), "holds repairs of other plays or of another kind"),
        ((source, "--out", source), "holds a run of another configuration"),
        ((source, "--out", out, "--run", source), "--run is for evaluations"),
        ((folder / "repaired", "--out", out), "has no rejected play to repair"),
        ((tmp_path / "none", "--out", out), "no run here"),
    ]
    for arguments, text in cases:
        result = trajsmith("repair", *arguments)
        assert result.code == 2 and text in " ".join(result.err.split()), result.err
        assert len(result.err.strip().splitlines()) == 1 or "trajsmith" in result.err
        assert not out.exists()


def test_failed_episodes_of_an_evaluation_are_repaired(trajsmith, folder, repaired, tmp_path):
    judged = [each for each in join_verdicts(RunDirectory.open(folder / "run")) if each.verdict.outcome != "completed"]
    evaluation, out = tmp_path / "evaluation", tmp_path / "out"
    store_tasks(evaluation, [each.task for each in judged])
    lines = []
    for each in reversed(judged):
        episode = Episode(
            task_id=each.task.id, sample=each.trajectory.candidate, environment=each.trajectory.environment,
            variant=each.task.variant, turns=1, tokens=0, checks=0.0, calls=0, passed=False,
            trajectory_id=each.trajectory.id,
        )  # fmt: skip
        lines.append(build_transcript(episode, each.trajectory, each.verdict))
    (evaluation / TRANSCRIPTS).write_bytes(b"".join(lines))
    (evaluation / EPISODES).touch()
    missing = trajsmith("repair", evaluation, "--out", out)
    assert missing.code == 2 and "name the run whose tasks it played with --run" in " ".join(missing.err.split())
    done = trajsmith("repair", evaluation, "--run", folder / "run", "--out", out)
    assert done.code == 0, done.err
    assert [each.repair for each in load_run(out).trajectories] == [each.repair for each in repaired.trajectories]


def test_plays_that_are_nobodys_mistake_are_counted(folder):
    source = RunDirectory.open(folder / "run")
    judged = next(each for each in join_verdicts(source) if each.verdict.outcome == "partial")

    async def repair(play: FailedPlay) -> None:
        context = await RunContext.reopen(load_config(source.config_path), source)
        await PlayRepair(context, play).make("any")

    broken = judged.verdict.model_copy(update={"outcome": "environment_error"})
    with pytest.raises(RecordDropped, match="not_the_agents_fault"):
        asyncio.run(repair(FailedPlay(judged.task, judged.trajectory, broken)))
    imported = judged.task.model_copy(update={"variant": "imported"})
    with pytest.raises(RecordDropped, match="imported_task"):
        asyncio.run(repair(FailedPlay(imported, judged.trajectory, judged.verdict)))
    impossible = judged.task.model_copy(
        update={
            "turns": tuple(turn.model_copy(update={"state_hash": "0", "form_hash": "0"}) for turn in judged.task.turns)
        }
    )
    with pytest.raises(RecordDropped, match=r"no_right_play: .*the final state is not the gold state"):
        asyncio.run(repair(FailedPlay(impossible, judged.trajectory, judged.verdict)))


def test_another_agents_play_is_followed(folder):
    """Right plays with the words of another agent go on rightly from any step."""
    source = RunDirectory.open(folder / "run")

    async def go_on() -> list[bool]:
        context = await RunContext.reopen(load_config(source.config_path), source)
        accepted = []
        for number, (task, trajectory, verdict) in enumerate(join_verdicts(source)):
            if verdict.accepted:
                strange = trajectory.model_copy(update={"candidate": 7})
                repair = PlayRepair(context, FailedPlay(task, strange, verdict))
                continuation = await repair.continue_from(1 + number % (len(repair.steps) - 1))
                accepted.append(continuation.verdict.accepted)
        context.code_checks.close()
        return accepted

    accepted = asyncio.run(go_on())
    assert len(accepted) > 10 and all(accepted)


def build_item(repaired) -> tuple[JsonObject, ExportItem]:
    """Return the row of the repair with the most kept messages, and its export item."""
    task, trajectory, verdict = max(join_verdicts(repaired.directory), key=lambda each: each.trajectory.repair.message)
    spec = repaired.specs[trajectory.environment]
    row = build_row(task, trajectory, verdict, spec)
    return row, ExportItem(task, trajectory, verdict, spec, row, split="train", state=lambda _: {})


def list_learnt(name: str, item: ExportItem) -> list[JsonObject]:
    """Return the messages of the assistant that the rows of a format teach."""
    rows = list(FORMATS.get(name).rows(item, FormatSettings()))
    return [each for row in rows for each in row["completion"] if each["role"] == "assistant"]


@pytest.mark.parametrize("name", ["prompt_completion", "per_turn", "per_step"])
def test_formats_teach_the_correction_only(repaired, name):
    row, item = build_item(repaired)
    start = row["learnt_from"]
    assert row["repair"]["of"] and start == item.trajectory.repair.message > 2
    assert list_learnt(name, item) == [each for each in row["messages"][start:] if each["role"] == "assistant"]


def test_openai_weighs_the_context_with_nothing_and_others_refuse_it(repaired):
    row, item = build_item(repaired)
    (line,) = FORMATS.get("openai").rows(item, FormatSettings())
    weights = [each.get("weight", 1) for each in line["messages"] if each["role"] == "assistant"]
    kept = sum(each["role"] == "assistant" for each in row["messages"][: row["learnt_from"]])
    assert weights == [0] * kept + [1] * (len(weights) - kept)
    for name in ("sharegpt", "verl_sft"):
        with pytest.raises(RecordDropped, match="learnt_in_part"):
            list(FORMATS.get(name).rows(item, FormatSettings()))


def test_readers_are_told_that_rows_are_learnt_in_part(repaired, folder):
    cards = {name: (folder / name / "dataset" / "README.md").read_text() for name in ("run", "repaired")}
    assert {name: "**not to be learnt whole**" in card for name, card in cards.items()} == {
        "run": False,
        "repaired": True,
    }
    assert all("learnt_from" in FORMATS.get(name).about for name in ("trl", "json_text"))


@pytest.mark.train
@pytest.mark.parametrize("unit", ["whole", "per_turn", "per_step"])
def test_nothing_before_the_cut_is_in_the_loss(repaired, folder, unit):
    for needed in ("torch", "transformers", "trl"):
        pytest.importorskip(needed, reason=f"{needed} is missing: pip install -e '.[train]'")
    from trajsmith.export.history import find_unlearnt_messages
    from trajsmith.export.loss_mask import MaskPreview
    from trajsmith.train_sft import HistorySettings, ScratchSettings, SftConfig
    from trajsmith.train_sft.training import prepare_training, read_rows

    config = SftConfig(
        scratch=ScratchSettings(hidden=32, layers=1, heads=2, vocabulary=600), dataset=folder / "repaired",
        out=folder / "model", max_length=20000, history=HistorySettings(unit=unit),
    )  # fmt: skip
    tokenizer, plan, _ = prepare_training(config)
    rows = read_rows(folder / "repaired")
    assert plan.labels and not plan.refused
    corrections = [
        [each for each in row["messages"][row["learnt_from"] :] if each["role"] == "assistant"] for row in rows
    ]
    calls = sum(len(each.get("tool_calls") or ()) for messages in corrections for each in messages)
    learnt = ["".join(tokenizer.decode([label for label in row.labels if label != -100])) for row in plan.labelled]
    assert sum(text.count("<tool_call>") for text in learnt) == calls
    if unit != "whole":
        return
    preview = MaskPreview(tokenizer, 20000)
    for row, text in zip(rows, learnt, strict=True):
        start = row["learnt_from"]
        context = find_unlearnt_messages(row, mask_steps=False)
        masked = preview.inspect_row({"messages": row["messages"], "tools": row["tools"]}, row["id"], context)
        head = preview._ids(row["messages"][:start], row["tools"], generation=True)
        assert context and not any(masked.mask[: len(head)]) and masked.mask[len(head)]
        assert "".join(piece.text for piece in masked.pieces if piece.loss) == text


@pytest.mark.train
def test_a_training_takes_repairs_beside_other_rows(repaired, folder):
    for needed in ("torch", "transformers", "trl"):
        pytest.importorskip(needed, reason=f"{needed} is missing: pip install -e '.[train]'")
    from trajsmith.train_sft import DatasetShare, ScratchSettings, SftConfig
    from trajsmith.train_sft.training import train

    trainer = {"max_steps": 1, "per_device_train_batch_size": 2, "disable_tqdm": True, "dataloader_pin_memory": False}
    config = SftConfig(
        scratch=ScratchSettings(hidden=32, layers=1, heads=2, vocabulary=600), out=folder / "mixed", max_length=20000,
        datasets=(DatasetShare(dataset=folder / "run"), DatasetShare(dataset=folder / "repaired")), trainer=trainer,
    )  # fmt: skip
    plan = train(config)
    assert plan.labels and plan.masked_messages > 0 and (folder / "mixed" / "model.safetensors").is_file()


def cut_copying(monkeypatch: pytest.MonkeyPatch, source: Path, out: Path) -> None:
    """Start repairs, and stop after three failed plays are copied."""

    def read_some(run: RunDirectory) -> Iterator[FailedPlay]:
        yield from islice(read_all(run), 3)
        raise KeyboardInterrupt

    read_all = repairs._read_failed_plays
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(repairs, "_read_failed_plays", read_some)
        open_repairs(source, out)


def test_a_start_that_was_cut_is_begun_again(folder, repaired, tmp_path, monkeypatch, trajsmith):
    out = tmp_path / "out"
    cut_copying(monkeypatch, folder / "run", out)
    assert not (out / "repairs.json").exists() and (out / "tasks.jsonl").is_file()
    resumed = trajsmith("resume", out)
    assert resumed.code == 2 and "start `trajsmith repair` again" in " ".join(resumed.err.split())
    open_repairs(folder / "run", out, "cut")
    for name in ("tasks.jsonl", "failed/trajectories.jsonl", "failed/verdicts.jsonl"):
        assert (out / name).read_bytes() == (folder / "repaired" / name).read_bytes()
    assert list(tmp_path.iterdir()) == [out]


def test_a_start_that_was_cut_before_copying_makes_no_other_run(folder, repaired, tmp_path, monkeypatch, trajsmith):
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    out = tmp_path / "out"
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(repairs, "_copy_plays", stop)
        open_repairs(folder / "run", out)
    resumed = trajsmith("resume", out)
    assert resumed.code == 2 and "start `trajsmith repair` again" in " ".join(resumed.err.split())
    open_repairs(folder / "run", out)
    assert (out / "tasks.jsonl").read_bytes() == (folder / "repaired" / "tasks.jsonl").read_bytes()


def test_a_start_removes_nothing_of_others(folder, tmp_path, monkeypatch):
    source, out = folder / "run", tmp_path / "out"
    (tmp_path / "out.starting").mkdir()
    (tmp_path / "out.starting" / "mine").touch()
    RunDirectory.create(out, "seed: 1\n")
    (out / "cache").mkdir(exist_ok=True)
    (out / "cache" / "answer").touch()
    with RunDirectory.open(out).lock(), pytest.raises(RunError, match="is being written by process"):
        open_repairs(source, out)
    open_repairs(source, out)
    assert (out / "cache" / "answer").is_file() and (tmp_path / "out.starting" / "mine").is_file()
    cut_copying(monkeypatch, source, tmp_path / "cut")
    (tmp_path / "cut" / "notes.txt").touch()
    with pytest.raises(InputError):
        open_repairs(source, tmp_path / "cut")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    assert len(FailedPlays(open_repairs(source, tmp_path / "link"))) > 5


@pytest.mark.parametrize("when", ["create", "copy"])
def test_of_two_starts_one_copies(folder, repaired, tmp_path, monkeypatch, when):
    """A second start is made between the checks of the first and the lock under which it creates or copies."""
    source, out, locked = folder / "run", tmp_path / "out", RunDirectory._locked
    left = ["create", "copy"].index(when)

    def start_before(run: RunDirectory) -> AbstractContextManager[None]:
        nonlocal left
        left -= 1
        if left == -1:
            open_repairs(source, out)
        return locked(run)

    monkeypatch.setattr(RunDirectory, "_locked", start_before)
    with pytest.raises(InputError, match="already holds a run") if when == "create" else nullcontext():
        open_repairs(source, out)
    for name in ("tasks.jsonl", "failed/trajectories.jsonl", "failed/verdicts.jsonl"):
        assert (out / name).read_bytes() == (folder / "repaired" / name).read_bytes()


def test_a_source_without_verdicts_leaves_nothing(folder, tmp_path):
    source = shutil.copytree(folder / "run", tmp_path / "source")
    (source / "verdicts.jsonl").unlink()
    with pytest.raises(InputError, match="has no verdicts yet"):
        open_repairs(source, tmp_path / "out")
    assert list(tmp_path.iterdir()) == [source]


def test_a_run_whose_repairs_come_to_nothing_says_so(folder, tmp_path):
    run_of_repairs = open_repairs(folder / "run", tmp_path / "out")
    verdicts = [play.verdict for _, play in FailedPlays(run_of_repairs)]
    lines = [each.model_copy(update={"outcome": "undecided", "id": ""}).to_line() for each in verdicts]
    (tmp_path / "out" / "failed" / "verdicts.jsonl").write_bytes(b"".join(lines))
    with pytest.raises(RunError, match="no trajectory was accepted"):
        resume(tmp_path / "out")
