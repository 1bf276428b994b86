"""From recordings to an environment: read, infer, write, replay, examine; accepted or rejected with the reasons."""

import asyncio
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import orjson

from trajsmith.envcheck import CheckPlan, EnvironmentReport
from trajsmith.envgen.generate.formatting import fix_and_format_code, run_tests
from trajsmith.envgen.generate.identifiers import to_identifier
from trajsmith.envgen.generate.pipeline import (
    CHECK_SECONDS,
    StageJournal,
    examine_code,
    find_rejection_reasons,
    refuse_foreign_directory,
)
from trajsmith.envgen.traces.code import RenderedClone, render_clone
from trajsmith.envgen.traces.conformance import Conformance, ReplayedCall, measure_conformance
from trajsmith.envgen.traces.infer import SURE, Clone, infer_clone
from trajsmith.envgen.traces.reading import read_recording
from trajsmith.envgen.traces.recordings import CallRecording, RecordedDialogue
from trajsmith.envgen.traces.tables import collect_dialogue_rows
from trajsmith.records import FrozenModel, InputError, JsonObject, canonical_json, hash_bytes

FIDELITY = 0.8
"""Share of the recording's own calls that a clone must give for it to be accepted."""
MOST_TEST_BYTES = 4_000_000
"""Size of the recorded calls that lie beside an environment as its tests."""
TEST_CODE = '''"""Tests of {name}.py: recorded calls give recorded results. Run them with pytest in this folder."""

import asyncio
import json
from pathlib import Path

from trajsmith.envgen.traces.conformance import replay_stored_dialogues

HERE = Path(__file__).parent
DIALOGUES = [json.loads(line) for line in (HERE / "recorded.jsonl").read_text(encoding="utf-8").splitlines()]


def test_recorded_calls_give_recorded_results() -> None:
    assert sum(call["equal"] for one in DIALOGUES for call in one["calls"]) > 0
    misses = asyncio.run(replay_stored_dialogues(HERE / "{name}.py", DIALOGUES))
    assert not misses, misses[:3]
'''


class ClonedTool(FrozenModel):
    """A tool as it was inferred, and how sure that is."""

    tool: str
    """Name in the recording."""
    name: str
    """Name in the environment."""
    arguments: dict[str, str]
    """Name in the environment of each recorded argument."""
    calls: int
    effect: str
    inferred: bool
    """False if it answers recorded calls only."""
    share: float
    """Share of its successful recorded calls that its program explains."""
    held_out: float | None
    """The same on dialogues that a program was not made of; None if there are too few."""
    refusals: int
    notes: tuple[str, ...]


class TableReport(FrozenModel):
    """A table that was inferred."""

    table: str
    keys: tuple[str, ...]
    rows: int
    contradictions: int
    """Values on which dialogues disagree about the initial state; the most frequent one is taken."""


class CloneReport(FrozenModel):
    """`blueprint.json` of a clone."""

    name: str
    title: str
    source: tuple[str, ...]
    digest: str
    dialogues: int
    calls: int
    equal: int
    """Recorded calls that the clone gives, each dialogue from its own initial rows."""
    supplied: int
    """Calls whose results are such rows."""
    tables: tuple[TableReport, ...]
    tools: tuple[ClonedTool, ...]
    left_out: tuple[tuple[str, str], ...]


class CloneResult(FrozenModel):
    """Result of making a clone of recordings."""

    name: str
    accepted: bool
    directory: Path
    score: float | None
    tests: str
    report: CloneReport
    failed_tasks: int
    """Dialogues whose recorded agent failed, in `failed_tasks.jsonl`."""
    reasons: tuple[str, ...] = ()
    seconds: float = 0.0


def generate_clone(
    files: Sequence[Path], out: Path, name: str | None = None, seed: int = 0, check_seconds: float = 3 * CHECK_SECONDS
) -> CloneResult:
    """Make an environment of recordings and accept or reject it.

    Args:
        files: Recordings, of any format that `trajsmith import` reads, or HAR.
        out: Accepted environments get a folder in it; rejected ones one in `rejected` in it.
        name: The environment's name, in place of one after the first file.
        check_seconds: Wall-clock limit of the examination.

    Raises:
        InputError: No call with a result can be read, or the name is none.
        RunError: The environment checker had no time; what is done stays done.
    """
    started = time.perf_counter()
    name = _choose_name(name, files)
    refuse_foreign_directory(out / name)
    recording = read_recording(files)
    content = [[(c.tool, c.arguments, c.result, c.failed) for c in one.calls] for one in recording.dialogues]
    digest = hash_bytes(canonical_json(content))
    clone = infer_clone(recording)
    title = f"Clone of {len(recording.dialogues)} recorded dialogues"
    rendered = render_clone(clone, name, title, f"{len(files)} files ({digest[:12]}).")
    work = out / "work" / name
    ledger = StageJournal(work, hash_bytes(canonical_json([rendered.code, digest, seed])))
    ledger.run("code", lambda: _write_code(work, name, rendered))
    ledger.run("conformance", lambda: _measure(work, name, clone, rendered))
    conformance = _read_outcomes(work)
    report = build_report(clone, rendered, conformance, name, title, files, digest)
    (work / "blueprint.json").write_bytes(report.model_dump_json(indent=1).encode())
    failed = write_failed_tasks(work, recording)
    tests = ledger.run("tests", lambda: run_tests(work, f"test_{name}.py", log=work / "tests.txt"))
    ledger.run("checker", lambda: examine_code(work, name, CheckPlan(seed=seed, seconds=check_seconds)))
    check = EnvironmentReport.model_validate_json((work / "check.json").read_bytes())
    reasons = (*find_rejection_reasons(check, tests), *_find_fidelity_reasons(report))
    directory = (out / "rejected" / name) if reasons else out / name
    for old in (out / name, out / "rejected" / name):
        if old.exists():
            shutil.rmtree(old)
    directory.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(work, directory, ignore=shutil.ignore_patterns("__pycache__", "no_settings.ini"))
    result = CloneResult(
        name=name, accepted=not reasons, directory=directory, score=check.score, tests=tests, report=report,
        failed_tasks=failed, reasons=reasons, seconds=round(time.perf_counter() - started, 1),
    )  # fmt: skip
    (directory / "made.json").write_bytes(result.model_dump_json(indent=1, exclude={"report"}).encode())
    return result


def _choose_name(name: str | None, files: Sequence[Path]) -> str:
    if not files:
        raise InputError("give recordings: files with calls and results")
    wished = name if name is not None else f"{files[0].name.split('.')[0]}_clone"
    chosen = to_identifier(wished, "clone")
    if name is not None and chosen != name:
        raise InputError(f"--name {name!r}: give a name in snake case, for example {chosen}")
    return chosen


def _write_code(work: Path, name: str, rendered: RenderedClone) -> str:
    code = fix_and_format_code(rendered.code)
    (work / f"{name}.py").write_text(code, encoding="utf-8")
    (work / f"test_{name}.py").write_text(TEST_CODE.format(name=name), encoding="utf-8")
    return f"{len(code.splitlines())} lines"


def _measure(work: Path, name: str, clone: Clone, rendered: RenderedClone) -> str:
    """Replay the recording on the clone; store the outcomes, and the calls that it gives as tests."""
    conformance = asyncio.run(measure_conformance(work / f"{name}.py", clone, rendered.names, clone.recording, True))
    lines = [orjson.dumps(vars(one)) for one in conformance.outcomes]
    (work / "outcomes.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    equal = {(one.dialogue, one.place) for one in conformance.outcomes if one.equal}
    stored, size = list[bytes](), 0
    for dialogue in clone.recording.dialogues:
        line = orjson.dumps(store_dialogue(dialogue, clone, rendered, equal), option=orjson.OPT_NON_STR_KEYS)
        size += len(line)
        if size > MOST_TEST_BYTES:
            break
        stored.append(line)
    (work / "recorded.jsonl").write_bytes(b"\n".join(stored) + b"\n")
    calls, good = conformance.count()
    return f"{good} of {calls}"


def store_dialogue(
    dialogue: RecordedDialogue, clone: Clone, rendered: RenderedClone, equal: set[tuple[str, int]]
) -> JsonObject:
    """Return a dialogue as a test: its initial rows, and its calls, of which some must give what was recorded."""
    rows, _ = collect_dialogue_rows(dialogue.calls, clone.schema)
    return {
        "name": dialogue.name,
        "rows": {table: by_key for table, by_key in rows.items() if by_key},
        "calls": [
            {
                "tool": rendered.names[call.tool].tool,
                "arguments": {rendered.names[call.tool].arguments.get(n, n): v for n, v in call.arguments.items()},
                "result": call.result,
                "failed": call.failed,
                "equal": (dialogue.name, place) in equal,
            }
            for place, call in enumerate(dialogue.calls)
        ],
    }


def _read_outcomes(work: Path) -> Conformance:
    lines = (work / "outcomes.jsonl").read_bytes().splitlines()
    return Conformance([ReplayedCall(**orjson.loads(line)) for line in lines if line])


def build_report(
    clone: Clone,
    rendered: RenderedClone,
    conformance: Conformance,
    name: str,
    title: str,
    files: Sequence[Path],
    digest: str,
) -> CloneReport:
    """Return what was inferred, tool by tool and table by table."""
    calls, equal = conformance.count()
    suppliers = [len(collect_dialogue_rows(one.calls, clone.schema)[1]) for one in clone.recording.dialogues]
    tools = tuple(
        ClonedTool(
            tool=program.name, name=rendered.names[program.name].tool,
            arguments=rendered.names[program.name].arguments, calls=program.calls,
            effect="write" if program.writes else "read", inferred=program.result is not None,
            share=round(program.share, 3), held_out=None if program.held_out is None else round(program.held_out, 3),
            refusals=len(program.refusals), notes=tuple(program.notes),
        )
        for program in clone.programs.values()
    )  # fmt: skip
    tables = tuple(
        TableReport(
            table=t.name, keys=t.keys, rows=len(clone.rows[t.name]), contradictions=clone.contradictions[t.name]
        )
        for t in clone.schema.tables.values()
    )
    return CloneReport(
        name=name, title=title, source=tuple(file.name for file in files), digest=digest,
        dialogues=len(clone.recording.dialogues), calls=calls, equal=equal, supplied=sum(suppliers),
        tables=tables, tools=tools, left_out=tuple(clone.recording.left_out),
    )  # fmt: skip


def write_failed_tasks(work: Path, recording: CallRecording) -> int:
    """Write the dialogues whose recorded agent failed, in a form that `trajsmith import` reads."""
    failed = [one for one in recording.dialogues if one.reward is not None and one.reward < 1 and one.messages]
    rows = [
        orjson.dumps({"id": one.name, "task_id": one.task, "reward": one.reward, "messages": one.messages})
        for one in failed
    ]
    (work / "failed_tasks.jsonl").write_bytes(b"".join(row + b"\n" for row in rows))
    return len(rows)


def _find_fidelity_reasons(report: CloneReport) -> tuple[str, ...]:
    """Return why a clone is no clone; empty if it gives its own recording."""
    share = report.equal / max(1, report.calls)
    reasons = []
    if share < FIDELITY:
        reasons.append(f"it gives {report.equal} of {report.calls} recorded results, less than {FIDELITY:.0%}")
    if not any(tool.inferred for tool in report.tools):
        reasons.append(f"no tool has a program that explains more than {SURE:.0%} of its calls: record more calls")
    return tuple(reasons)


def describe_tool(tool: ClonedTool) -> str:
    """Return a line about a tool."""
    sure = "recorded calls only" if not tool.inferred else f"{tool.share:.0%} of its calls explained"
    held = "" if tool.held_out is None else f", {tool.held_out:.0%} of calls held out"
    return f"{tool.name}: {tool.calls} calls, {sure}{held}, {tool.refusals} refusals"
