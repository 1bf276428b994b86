"""From a composed program to a task: the Python text proved in the sandbox, the words, and tested checks."""

import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trajsmith.environments import Session
from trajsmith.grounding import list_needed_keys
from trajsmith.phrasing import Phrasebook, Wording, find_clock_date, format_value, get_user_voice, list_slots
from trajsmith.querygen.gold_proof import GoldProof, run_gold
from trajsmith.querygen.persona import draw_greeting, make_persona, render_query
from trajsmith.querygen.programs.composition import ComposedProgram
from trajsmith.querygen.programs.execution import DECIMALS, ProgramRun, ProgramRunner
from trajsmith.querygen.programs.grounding import load_composed
from trajsmith.querygen.programs.mutants import list_equivalent_answers, mutate_answer, mutate_program
from trajsmith.querygen.programs.operations import ProgramFailed
from trajsmith.querygen.programs.python_source import render_python
from trajsmith.querygen.programs.sentences import render_answers, render_question
from trajsmith.querygen.programs.written import WrittenProgram, load_written
from trajsmith.querygen.programs.written_execution import ProgramLimits, SourceRunner, open_sandbox
from trajsmith.querygen.programs.written_mutants import list_mutants, list_operations, mutate_source
from trajsmith.querygen.request import RequestWriter
from trajsmith.records import (
    AnswerFact,
    Check,
    CheckAudit,
    EnvironmentFault,
    EnvironmentSpec,
    GoldCall,
    GroundedChain,
    InstalledCheck,
    JsonObject,
    JsonValue,
    Persona,
    ProgramSolution,
    RecordDropped,
    RequestedInfo,
    Turn,
    UserFact,
    canonical_json,
    derive_seed,
)
from trajsmith.verify import AuditSettings, audit_task, build_checks
from trajsmith.verify.check_panel import CheckPanel
from trajsmith.verify.code_checks import run_checks
from trajsmith.verify.normalized_state import normalize_state

MOST_WRITE_MUTANTS = 3
"""Mutants of a program with writes that are executed."""
WRITTEN_MUTANTS = 3
"""Times as many mutants of a written program: some crash, and some come to the same."""
RunMutants = Callable[[int, random.Random], AsyncIterator[tuple[str, ProgramRun]]]
"""Runs so many mutants of a program, drawn by a generator; those that fail are left out."""


@dataclass(frozen=True)
class ProgramTaskParts:
    """Parts of a task that come from a program."""

    persona: Persona
    scenario: str
    turn: Turn
    solution: ProgramSolution
    proof: GoldProof
    audit: CheckAudit
    language: str = "scripted"
    prompts: dict[str, str] = field(default_factory=dict)


async def prove_python(grounded: GroundedChain, limits: ProgramLimits) -> str:
    """Run the Python text of a program in the sandbox: it must make the same calls and give the same answer.

    Returns:
        The text; of a composed program it is rendered.

    Raises:
        RecordDropped: It does not.
    """
    written = load_written(grounded)
    if written is not None:
        source, expected = written.python, written.answer
    else:
        composed = load_composed(grounded)
        source, expected = render_python(composed.program), composed.run.answer
    sandbox = open_sandbox(source, limits)
    try:
        calls, answer = await sandbox.replay([call.result for call in grounded.calls])
    except EnvironmentFault as fault:
        raise RecordDropped("program_not_repeatable", fault.message) from fault
    finally:
        sandbox.close()
    same = calls == [{"tool": call.tool, "arguments": call.arguments} for call in grounded.calls]
    if not same or answer != expected:
        raise RecordDropped("program_not_repeatable", "the Python text does something else than the operations")
    return source


@dataclass(frozen=True)
class _Program:
    """A program with its words, whoever made it."""

    question: str
    query: str
    sentences: tuple[str, ...]
    answer: JsonValue
    ordered: bool
    others: list[str]
    groups: tuple[int, ...]
    operations: tuple[str, ...]
    run_mutants: RunMutants
    language: str = "scripted"
    prompts: Mapping[str, str] = field(default_factory=dict)


async def write_program_parts(
    grounded: GroundedChain,
    spec: EnvironmentSpec,
    wording: Wording,
    state: JsonObject,
    session: Session,
    audit: AuditSettings,
    source: str,
    limits: ProgramLimits | None = None,
) -> ProgramTaskParts:
    """Write the request of a program and prove its checks.

    Args:
        grounded: The grounded program.
        spec: The environment.
        wording: How people say its values.
        state: The initial state.
        session: A session of the environment.
        audit: How the checks are tested.
        source: Python text of the program.
        limits: Limits of the sandbox in which mutants of a written program run.

    Raises:
        RecordDropped: The words lack a value, the gold run cannot be repeated, or the checks are weak.
        EnvironmentFault: The environment broke.
    """
    rng = random.Random(derive_seed(grounded.seed, "write"))
    calls = grounded.calls
    persona, scenario = make_persona(wording.phrasebook, state, [call.result for call in calls], rng)
    known = {fact.key: fact for fact in grounded.known}
    if (written := load_written(grounded)) is not None:
        runner = SourceRunner(spec, session, state, limits, 4 * len(calls) + 20)
        program = _open_written(written, calls, runner, wording.phrasebook, state, persona, known, rng)
    else:
        program = _open_composed(grounded, wording, ProgramRunner(session, state), state, persona, known, rng)
    if not program.sentences:
        raise RecordDropped("no_words", "no sentence tells the answer")
    answer = program.answer
    values: list[Any] = answer if isinstance(answer, list) else [] if answer is None else [answer]
    info = RequestedInfo(
        call=len(calls) - 1, question=program.question, facts=tuple(AnswerFact(value=value) for value in values)
    )
    asked = (info,) if values else ()
    gold = await run_gold([calls], state, session, audit.live)
    if await session.state_hash() != grounded.states[-1]:
        raise RecordDropped("gold_not_repeatable", "the same calls led to another state")
    proof = await GoldProof.of(gold, session)
    checks = list(build_checks(proof.forms, [()], spec.rules, gold.ran.calls)[0])
    if answer is not None:
        settings: JsonObject = {"value": answer, "ordered": program.ordered, "others": program.others}
        statement = f"the answer tells {format_value(answer)}" + (" and nothing else" if program.others else "")
        checks.append(InstalledCheck(says=statement, name="solution", settings=settings))
    facts = [tuple(AnswerFact(value=value) for value in values)]
    panel = CheckPanel(gold, proof.masks, [checks], facts, asked=[()])
    seed = derive_seed(grounded.seed, "audit")
    quick = audit if gold.keeps_points else AuditSettings(mutants=0, equivalents=0, masking=0)
    tested = await audit_task(panel, spec, quick, seed, proof.equal)
    if tested.weakness:
        raise RecordDropped("weak_checks", tested.weakness)
    proved = tested.checks[0]
    figures = await _test_mutants(program, calls, session, proof, proved, seed, audit.mutants)
    figures = _merge(tested.audit, figures)
    if (figures.discrimination or 0) < audit.least or figures.accepted < figures.equivalent:
        raise RecordDropped(
            "weak_checks", next(iter((*figures.refused, *figures.escaped)), "too few mutants are caught")
        )
    form = proof.form_hashes[0]
    turn = Turn(
        intent=program.question,
        query=program.query,
        known=tuple(fact.model_copy(update={"stated": True}) for fact in known.values()),
        gold_calls=calls,
        checks=(),
        state_hash=grounded.states[-1],
        form_hash=form,
        answer_facts=tuple(values[:8]),
        asked=asked,
        groups=program.groups,
    )
    turn = tested.apply_to_turns([turn])[0]
    solution = ProgramSolution(python=source, operations=program.operations, answer=answer, sentences=program.sentences)
    return ProgramTaskParts(persona, scenario, turn, solution, proof, figures, program.language, dict(program.prompts))


def _open_composed(
    grounded: GroundedChain,
    wording: Wording,
    runner: ProgramRunner,
    state: JsonObject,
    persona: Persona,
    known: dict[str, UserFact],
    rng: random.Random,
) -> _Program:
    """Find the words of a composed program.

    Raises:
        RecordDropped: A phrase lacks a value.
    """
    composed = load_composed(grounded)
    table = wording.phrasebook.tables[composed.program.table]
    question = render_question(composed.program, table, composed.words, composed.write, rng)
    query = _write_query(composed, wording, state, persona, known, question, rng)

    async def run_mutants(limit: int, rng: random.Random) -> AsyncIterator[tuple[str, ProgramRun]]:
        mutants = list(mutate_program(composed.program, composed.run))
        for kind, program, fixed in rng.sample(mutants, min(len(mutants), limit)):
            try:
                yield kind, await runner.run(program, 4 * len(composed.run.calls) + 20, fixed)
            except ProgramFailed:
                continue

    return _Program(
        question=question,
        query=query,
        sentences=render_answers(composed.program, table, composed.words, composed.write, composed.run),
        answer=composed.run.answer,
        ordered=composed.program.answer.how == "ordered",
        others=_list_other_labels(composed),
        groups=composed.groups,
        operations=composed.program.operations,
        run_mutants=run_mutants,
    )


def _open_written(
    written: WrittenProgram,
    calls: Sequence[GoldCall],
    runner: SourceRunner,
    phrasebook: Phrasebook,
    state: JsonObject,
    persona: Persona,
    known: dict[str, UserFact],
    rng: random.Random,
) -> _Program:
    """Take the words of a program that a model wrote."""
    greeting = draw_greeting(persona, state, rng, phrasebook)
    query = render_query(greeting, written.question, persona, known.values(), find_clock_date(state), rng)

    async def run_mutants(limit: int, rng: random.Random) -> AsyncIterator[tuple[str, ProgramRun]]:
        mutants = list_mutants(written.python)
        for number, kind in rng.sample(mutants, min(len(mutants), WRITTEN_MUTANTS * limit)):
            try:
                yield kind, await runner.run(mutate_source(written.python, number, kind))
            except RecordDropped:
                continue  # it crashes, or a call of it is refused: no answer comes of it

    tools, writes = {call.tool for call in calls if call.effect == "read"}, any(c.effect == "write" for c in calls)
    return _Program(
        question=written.question,
        query=query,
        sentences=written.sentences,
        answer=written.answer,
        ordered=written.ordered,
        others=list(written.others),
        groups=written.groups,
        operations=list_operations(written.python, len(tools), writes),
        run_mutants=run_mutants,
        language=written.model,
        prompts=written.prompts,
    )


def _write_query(
    composed: ComposedProgram,
    wording: Wording,
    state: JsonObject,
    persona: Persona,
    known: dict[str, UserFact],
    question: str,
    rng: random.Random,
) -> str:
    """Write the message: a greeting, who the user is, and the question."""
    opening, table = composed.program.opening, wording.phrasebook.tables[composed.program.table]
    slots = list_slots(table.whole) | list_slots(table.how_many)
    needed = [
        key for call in opening for key in list_needed_keys(call) if known[key].slot.partition("|")[0] not in slots
    ]
    initial = canonical_json(state).decode()
    writer = RequestWriter(wording, opening, known, initial, rng, voice=get_user_voice(persona.style))
    sentences = writer.tell_facts(range(len(opening)), needed)
    text = " ".join([*sentences, question])
    greeting = draw_greeting(persona, state, rng, wording.phrasebook)
    return render_query(greeting, text, persona, known.values(), find_clock_date(state), rng)


def _list_other_labels(composed: ComposedProgram) -> list[str]:
    """List the labels of rows that are not meant, where the answer names rows."""
    program, run = composed.program, composed.run
    if program.answer.how not in ("labels", "ordered", "largest", "smallest"):
        return []
    meant = {str(each) for each in (run.answer if isinstance(run.answer, list) else [run.answer])}
    labels = composed.labels or [str(row.get(program.answer.label)) for row in run.listed]
    return [label for label in dict.fromkeys(labels) if label not in meant]


async def _test_mutants(
    program: _Program,
    calls: Sequence[GoldCall],
    session: Session,
    proof: GoldProof,
    checks: tuple[Check, ...],
    seed: int,
    limit: int,
) -> CheckAudit:
    """Run wrong programs and tell wrong answers: each must fail a check; equivalent answers must pass all."""
    rng = random.Random(derive_seed(seed, "program mutants"))
    executed: dict[str, int] = {}
    caught: dict[str, int] = {}
    escaped, refused = list[str](), list[str]()
    final, gold_calls = proof.gold.ran.states[-1], proof.gold.ran.calls

    async def passes(state: JsonObject, text: str) -> bool:
        form = proof.forms[-1] if state is final else normalize_state(proof.gold.initial, state, proof.masks)
        outcomes = await run_checks(checks, form, (proof.gold.initial, state), text, gold_calls, None)
        return all(outcome.passed is not False for outcome in outcomes)

    async def note(kind: str, says: str, state: JsonObject, text: str) -> None:
        executed[kind] = executed.get(kind, 0) + 1
        wrong = not await passes(state, text)
        caught[kind] = caught.get(kind, 0) + wrong
        if not wrong:
            escaped.append(f"{kind}: {says}")

    gold_writes = _list_writes(calls)
    if limit:
        async for kind, ran in program.run_mutants(max(limit, MOST_WRITE_MUTANTS), rng):
            writes = _list_writes(ran.calls)
            same_writes = writes == gold_writes
            if same_writes and _is_same_answer(ran.answer, program.answer):
                continue
            state = final if same_writes else await session.snapshot() if writes else proof.gold.initial
            answers = ran.answer if isinstance(ran.answer, list) else [ran.answer]
            text = ", ".join(format_value(value) for value in answers if value is not None)
            await note(kind, str(ran.answer), state, text)
    if program.answer is not None and limit:
        wrong = list(mutate_answer(program.answer, program.others, program.ordered, rng))
        for kind, text in rng.sample(wrong, min(len(wrong), 2 * limit)):
            await note(kind, text, final, text)
    equal = list_equivalent_answers(program.answer, program.ordered, program.sentences, rng)
    for text in equal:
        if not await passes(final, text):
            refused.append(f"the answer {text!r}")
    return CheckAudit(
        made=executed, caught=caught, escaped=tuple(escaped[:5]), equivalent=len(equal),
        accepted=len(equal) - len(refused), refused=tuple(refused[:5]),
    )  # fmt: skip


def _list_writes(calls: Sequence[GoldCall]) -> list[bytes]:
    return sorted(canonical_json([call.tool, call.arguments]) for call in calls if call.effect == "write")


def _is_same_answer(one: JsonValue, other: JsonValue) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return round(one, DECIMALS) == round(other, DECIMALS)
    if isinstance(one, list) and isinstance(other, list):
        return sorted(map(str, one)) == sorted(map(str, other)) and one == other
    return bool(one == other)


def _merge(one: CheckAudit, other: CheckAudit) -> CheckAudit:
    """Join the figures of two audits of the same checks."""
    return one.model_copy(
        update={
            "made": {**one.made, **other.made},
            "caught": {**one.caught, **other.caught},
            "escaped": (*one.escaped, *other.escaped)[:5],
            "equivalent": one.equivalent + other.equivalent,
            "accepted": one.accepted + other.accepted,
            "refused": (*one.refused, *other.refused)[:5],
        }
    )
