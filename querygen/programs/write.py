"""From a composed program to a task: the Python text proved in the sandbox, the words, and tested checks."""

import random
from dataclasses import dataclass
from typing import Any

from trajsmith.environments import Session
from trajsmith.environments.sandbox.settings import SandboxSettings
from trajsmith.environments.sandbox.solutions import SolutionSandbox
from trajsmith.grounding import list_needed_keys
from trajsmith.phrasing import Wording, find_clock_date, format_value, get_user_voice, list_slots
from trajsmith.querygen.gold_proof import GoldProof, run_gold
from trajsmith.querygen.persona import draw_greeting, make_persona, render_query
from trajsmith.querygen.programs.composition import ComposedProgram
from trajsmith.querygen.programs.execution import DECIMALS, ProgramRunner
from trajsmith.querygen.programs.grounding import load_composed
from trajsmith.querygen.programs.mutants import list_equivalent_answers, mutate_answer, mutate_program
from trajsmith.querygen.programs.operations import ProgramFailed
from trajsmith.querygen.programs.python_source import render_python
from trajsmith.querygen.programs.sentences import render_answers, render_question
from trajsmith.querygen.request import RequestWriter
from trajsmith.records import (
    AnswerFact,
    Check,
    CheckAudit,
    EnvironmentFault,
    EnvironmentSpec,
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


@dataclass(frozen=True)
class ProgramTaskParts:
    """Parts of a task that come from a program."""

    persona: Persona
    scenario: str
    turn: Turn
    solution: ProgramSolution
    proof: GoldProof
    audit: CheckAudit


async def prove_python(composed: ComposedProgram, limits: SandboxSettings) -> str:
    """Render a program as Python and run it in the sandbox: it must make the same calls and give the same answer.

    Raises:
        RecordDropped: It does not.
    """
    source, run = render_python(composed.program), composed.run
    sandbox = SolutionSandbox(source, limits)
    try:
        calls, answer = await sandbox.replay([call.result for call in run.calls])
    except EnvironmentFault as fault:
        raise RecordDropped("program_not_repeatable", fault.message) from fault
    finally:
        sandbox.close()
    same = calls == [{"tool": call.tool, "arguments": call.arguments} for call in run.calls]
    if not same or answer != run.answer:
        raise RecordDropped("program_not_repeatable", "the Python text does something else than the operations")
    return source


async def write_program_parts(
    grounded: GroundedChain,
    spec: EnvironmentSpec,
    wording: Wording,
    state: JsonObject,
    session: Session,
    audit: AuditSettings,
    source: str,
) -> ProgramTaskParts:
    """Write the request of a program and prove its checks.

    Raises:
        RecordDropped: The words lack a value, the gold run cannot be repeated, or the checks are weak.
        EnvironmentFault: The environment broke.
    """
    composed = load_composed(grounded)
    table = wording.phrasebook.tables[composed.program.table]
    rng = random.Random(derive_seed(grounded.seed, "write"))
    calls = grounded.calls
    persona, scenario = make_persona(wording.phrasebook, state, [call.result for call in calls], rng)
    known = {fact.key: fact for fact in grounded.known}
    question = render_question(composed.program, table, composed.words, composed.write, rng)
    query = _write_query(composed, wording, state, persona, known, question, rng)
    sentences = render_answers(composed.program, table, composed.words, composed.write, composed.run)
    if not sentences:
        raise RecordDropped("no_words", "no sentence tells the answer")
    answer = composed.run.answer
    values: list[Any] = answer if isinstance(answer, list) else [] if answer is None else [answer]
    info = RequestedInfo(
        call=len(calls) - 1, question=question, facts=tuple(AnswerFact(value=value) for value in values)
    )
    asked = (info,) if values else ()
    gold = await run_gold([calls], state, session, audit.live)
    if await session.state_hash() != grounded.states[-1]:
        raise RecordDropped("gold_not_repeatable", "the same calls led to another state")
    proof = await GoldProof.of(gold, session)
    checks = list(build_checks(proof.forms, [()], spec.rules, gold.ran.calls)[0])
    others = _list_other_labels(composed)
    if answer is not None:
        settings: JsonObject = {"value": answer, "ordered": composed.program.answer.how == "ordered", "others": others}
        statement = f"the answer tells {format_value(answer)}" + (" and nothing else" if others else "")
        checks.append(InstalledCheck(says=statement, name="solution", settings=settings))
    facts = [tuple(AnswerFact(value=value) for value in values)]
    panel = CheckPanel(gold, proof.masks, [checks], facts, asked=[()])
    seed = derive_seed(grounded.seed, "audit")
    quick = audit if gold.keeps_points else AuditSettings(mutants=0, equivalents=0, masking=0)
    tested = await audit_task(panel, spec, quick, seed, proof.equal)
    if tested.weakness:
        raise RecordDropped("weak_checks", tested.weakness)
    proved = tested.checks[0]
    figures = await _test_mutants(
        composed, ProgramRunner(session, state), proof, proved, others, sentences, seed, audit.mutants
    )
    figures = _merge(tested.audit, figures)
    if (figures.discrimination or 0) < audit.least or figures.accepted < figures.equivalent:
        raise RecordDropped(
            "weak_checks", next(iter((*figures.refused, *figures.escaped)), "too few mutants are caught")
        )
    form = proof.form_hashes[0]
    turn = Turn(
        intent=question,
        query=query,
        known=tuple(fact.model_copy(update={"stated": True}) for fact in known.values()),
        gold_calls=calls,
        checks=(),
        state_hash=grounded.states[-1],
        form_hash=form,
        answer_facts=tuple(values[:8]),
        asked=asked,
        groups=composed.groups,
    )
    turn = tested.apply_to_turns([turn])[0]
    solution = ProgramSolution(
        python=source, operations=composed.program.operations, answer=answer, sentences=sentences
    )
    return ProgramTaskParts(persona, scenario, turn, solution, proof, figures)


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
    labels = [str(row.get(program.answer.label)) for row in run.listed]
    return [label for label in dict.fromkeys(labels) if label not in meant]


async def _test_mutants(
    composed: ComposedProgram,
    runner: ProgramRunner,
    proof: GoldProof,
    checks: tuple[Check, ...],
    others: list[str],
    sentences: tuple[str, ...],
    seed: int,
    limit: int,
) -> CheckAudit:
    """Run wrong programs and tell wrong answers: each must fail a check; equivalent answers must pass all."""
    rng = random.Random(derive_seed(seed, "program mutants"))
    executed: dict[str, int] = {}
    caught: dict[str, int] = {}
    escaped, refused = list[str](), list[str]()
    gold, final, calls = composed.run, proof.gold.ran.states[-1], proof.gold.ran.calls

    async def passes(state: JsonObject, text: str) -> bool:
        form = proof.forms[-1] if state is final else normalize_state(proof.gold.initial, state, proof.masks)
        outcomes = await run_checks(checks, form, (proof.gold.initial, state), text, calls, None)
        return all(outcome.passed is not False for outcome in outcomes)

    async def note(kind: str, says: str, state: JsonObject, text: str) -> None:
        executed[kind] = executed.get(kind, 0) + 1
        wrong = not await passes(state, text)
        caught[kind] = caught.get(kind, 0) + wrong
        if not wrong:
            escaped.append(f"{kind}: {says}")

    mutants = list(mutate_program(composed.program, gold))
    for kind, program, fixed in rng.sample(mutants, min(len(mutants), max(limit, MOST_WRITE_MUTANTS))) if limit else ():
        try:
            ran = await runner.run(program, 4 * len(gold.calls) + 20, fixed)
        except ProgramFailed:
            continue
        written = [canonical_json([call.tool, call.arguments]) for call in ran.calls if call.effect == "write"]
        same_writes = sorted(written) == sorted(
            canonical_json([call.tool, call.arguments]) for call in gold.calls if call.effect == "write"
        )
        if same_writes and _is_same_answer(ran.answer, gold.answer):
            continue
        state = final if same_writes else await runner.session.snapshot() if written else proof.gold.initial
        answers = ran.answer if isinstance(ran.answer, list) else [ran.answer]
        await note(
            kind, str(ran.answer), state, ", ".join(format_value(value) for value in answers if value is not None)
        )
    if gold.answer is not None and limit:
        wrong = list(mutate_answer(gold.answer, others, composed.program.answer.how == "ordered", rng))
        for kind, text in rng.sample(wrong, min(len(wrong), 2 * limit)):
            await note(kind, text, final, text)
    equal = list_equivalent_answers(gold.answer, composed.program.answer.how == "ordered", sentences, rng)
    for text in equal:
        if not await passes(final, text):
            refused.append(f"the answer {text!r}")
    return CheckAudit(
        made=executed, caught=caught, escaped=tuple(escaped[:5]), equivalent=len(equal),
        accepted=len(equal) - len(refused), refused=tuple(refused[:5]),
    )  # fmt: skip


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
