"""Runs and states on which a written check is tested: initial, gold, equivalents, mutants, and gold with one change
taken back or altered.

A mutant is a whole run, in which one goal of several may be wrong, so that most right checks pass most of them. Whether
one check tells a right value from a wrong one shows in the gold state itself, with one of its changes taken back or
given another value.

Answers are sentences in the spellings of people: a check that knows "1500" only would refuse "£1,500.00".
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from trajsmith.environments import diff, escape_pointer
from trajsmith.grounding import is_identifier
from trajsmith.phrasing import (
    drop_near_years,
    find_clock_date,
    get_language,
    join_words,
    parse_datetime,
    render_fact,
    shift_date,
)
from trajsmith.records import AnswerFact, EnvironmentSpec, JsonObject, JsonValue
from trajsmith.verify.check_panel import CheckPanel
from trajsmith.verify.checks import MISSING, cut_at_list, resolve_pointer
from trajsmith.verify.equivalents import EquivalentRunBuilder
from trajsmith.verify.money_units import has_money
from trajsmith.verify.mutants import RunMutator, is_change_undone
from trajsmith.verify.reported_facts import collect_reported_facts

CaseKind = Literal["initial", "gold", "equivalent", "mutant", "reverted", "altered", "answer"]
MOST_UNITS = 40
"""Changes of the gold run that are taken back and altered, at most."""
MOST_FIELDS = 6
"""Fields of a new object that are altered, at most."""
EMPTY_WORDS = "That's done. Everything is as you wanted."
"""Answer that tells no value."""
_SENTENCE = "I have looked into it for you: {}. Is there anything else?"
_NUMBERED = frozenset({"id", "number", "no", "code", "year", "pin", "phone", "digits"})
"""Words in the names of fields whose numbers are written without commas."""
TRIES = 4
"""Mutants that are tried for each that is wanted."""


@dataclass(frozen=True)
class TestedCase:
    """Arguments of a written check, and what they stand for."""

    kind: CaseKind
    says: str
    initial: JsonObject
    final: JsonObject
    answer: str
    unit: str = ""
    """Of `reverted` and `altered`: the change of gold that it is about."""
    strict: bool = False
    """Of `altered`: a check that looks at the unit must fail this case; else it must fail one of them."""
    fails_derived: bool = False
    """Of `mutant`: it fails a check of the panel, for comparison."""


@dataclass(frozen=True)
class GoldChange:
    """One change of the gold run."""

    path: str
    """RFC 6901; that of the whole list for a change within one."""
    before: Any
    """Value in the initial state; `MISSING` if there was none."""
    after: Any
    """Value in the gold state; `MISSING` if it was removed."""
    generated: bool
    """The environment gave the value out, so that another one may be right, too."""


async def build_cases(
    panel: CheckPanel, spec: EnvironmentSpec, mutants: int, equivalents: int, seed: int
) -> list[TestedCase]:
    """Build the cases of one task.

    Args:
        panel: The gold run with what it reports.
        spec: The environment.
        mutants: Wrong runs that are executed.
        equivalents: Runs as good as gold that are executed.
        seed: Which ones.

    Raises:
        EnvironmentFault: The environment broke.
    """
    gold = panel.gold
    initial, final, answer = gold.initial, gold.ran.states[-1], tell_facts(panel.says[-1])
    cases = [
        TestedCase("gold", "the right run", initial, final, answer),
        TestedCase("initial", "nothing is done and nothing is told", initial, initial, ""),
    ]
    builder = EquivalentRunBuilder(gold, spec, panel.masks, seed)
    for run in [*await builder.build(equivalents), *await builder.swapped()]:
        reported = collect_reported_facts(panel.facts, panel.sources, run.ran, {})
        cases.append(TestedCase("equivalent", run.says, run.initial, run.ran.states[-1], tell_facts(reported[-1])))
    for says, spelled in spell_answers(panel.says[-1], initial):
        cases.append(TestedCase("equivalent", says, initial, final, spelled))
    for change in list_gold_changes(panel)[:MOST_UNITS]:
        cases += _build_change_cases(change, initial, final, answer)
    cases += _build_answer_cases(panel, initial, final)
    return [*cases, *await _build_mutant_cases(panel, spec, mutants, seed)]


def tell_facts(facts: Sequence[AnswerFact]) -> str:
    """Return the sentence that tells facts; nothing for none."""
    return _SENTENCE.format(join_words(render_fact(fact) for fact in facts)) if facts else ""


def spell_answers(facts: Sequence[AnswerFact], initial: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield other sentences that tell the same facts, each with its spelling in words.

    Args:
        facts: What is told.
        initial: State that holds the clock: people leave out the year of a date near it.
    """
    usual = tell_facts(facts)
    spoken = drop_near_years(_tell(facts, _spell_as_spoken), find_clock_date(initial))
    written = _tell(facts, _spell_as_written)
    if spoken != usual:
        yield "amounts as £1,500.00, dates without their year", spoken
    if written not in (usual, spoken):
        yield "numbers as 1500.00, dates as 2026-03-09", written


def _tell(facts: Sequence[AnswerFact], spell: Callable[[AnswerFact], str | None]) -> str:
    return _SENTENCE.format(join_words(spell(fact) or render_fact(fact) for fact in facts)) if facts else ""


def _spell_as_spoken(fact: AnswerFact) -> str | None:
    """Return an amount with its sign if its field holds money, and a large number that counts with its commas."""
    value = fact.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if is_identifier(fact.label) or not _NUMBERED.isdisjoint(fact.label.lower().replace("_", " ").split()):
        return None
    grammar = get_language().grammar
    if isinstance(value, float) and has_money(fact.label):
        return grammar.format_money(value)
    return grammar.format_number(f"{value:,}" if isinstance(value, int) else f"{value:,.10g}")


def _spell_as_written(fact: AnswerFact) -> str | None:
    if isinstance(fact.value, float):
        return get_language().grammar.format_number(f"{fact.value:.2f}")
    return str(fact.value).replace("T", " ") if parse_datetime(fact.value) is not None else None


def list_gold_changes(panel: CheckPanel) -> list[GoldChange]:
    """List what the gold run changed, without counters and clock; changes within a list count as one of the list."""
    initial, final, form = panel.gold.initial, panel.gold.ran.states[-1], panel.forms[-1]
    ignored = {f"/{name}" for name in (panel.masks.counters, panel.masks.clock) if name}
    changes: dict[str, GoldChange] = {}
    for operation in diff(initial, final):
        path = cut_at_list(str(operation["path"]), final)
        if any(path == prefix or path.startswith(f"{prefix}/") for prefix in ignored):
            continue
        before, after = resolve_pointer(initial, path), resolve_pointer(final, path)
        generated = path in form.generated_values
        changes.setdefault(path, GoldChange(path, before, after, generated))
    return list(changes.values())


def _build_change_cases(
    change: GoldChange, initial: JsonObject, final: JsonObject, answer: str
) -> Iterator[TestedCase]:
    reverted = replace_at(final, change.path, change.before)
    yield TestedCase("reverted", f"{change.path} is as before", initial, reverted, answer, change.path)
    if change.after is MISSING or change.generated:
        return
    whole = isinstance(change.after, dict | list)
    for path, value in _alter(change, final):
        says = f"{path} is {value!r}"
        altered = replace_at(final, path, value)
        yield TestedCase("altered", says, initial, altered, answer, change.path, strict=not whole)


def _alter(change: GoldChange, final: JsonObject) -> Iterator[tuple[str, JsonValue]]:
    """Yield other values of a change: of a new object or a list one for each of its first fields."""
    if not isinstance(change.after, dict | list):
        yield from ((change.path, value) for value in alter_value(change.after, change.before))
        return
    old = {repr(value) for _, value in _iter_scalars(change.before, "")}
    fields = [
        (path, value) for path, value in _iter_scalars(change.after, change.path)
        if not (isinstance(change.after, list) and repr(value) in old)
    ]  # fmt: skip
    for path, value in fields[:MOST_FIELDS]:
        for other in list(alter_value(value, MISSING))[:1]:
            yield path, other


def alter_value(value: Any, before: Any) -> Iterator[JsonValue]:
    """Yield other values of the same kind that are neither the value nor the one before it."""
    moment = parse_datetime(value) if isinstance(value, str) else None
    options: list[JsonValue]
    if isinstance(value, bool):
        options = [not value]
    elif isinstance(value, int | float):
        options = [value + 1, value - 1]
    elif moment is not None:
        others = (shift_date(moment, days) for days in (1, -1))
        options = [other.isoformat() for other in others if other is not None]
    elif isinstance(value, str):
        options = ["something else"]
    elif value is None and before is not None and before is not MISSING:
        options = list(alter_value(before, MISSING))
    else:
        options = []
    yield from (option for option in options if option not in (value, before))


def _iter_scalars(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _iter_scalars(inner, f"{path}/{escape_pointer(name)}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _iter_scalars(inner, f"{path}/{index}")
    elif value is not None and value is not MISSING:
        yield path, value


def replace_at(document: JsonObject, path: str, value: Any) -> JsonObject:
    """Return a copy of a document with another value at a path (RFC 6901); `MISSING` removes what stands there."""
    changed = copy.deepcopy(document)
    parent, _, raw = path.rpartition("/")
    node, key = resolve_pointer(changed, parent), raw.replace("~1", "/").replace("~0", "~")
    if isinstance(node, list):
        node[int(key)] = value
    elif value is MISSING:
        node.pop(key, None)
    else:
        node[key] = copy.deepcopy(value)
    return changed


def _build_answer_cases(panel: CheckPanel, initial: JsonObject, final: JsonObject) -> Iterator[TestedCase]:
    """Yield answers that lack what was asked for, or tell other values; all with the gold state."""
    facts = panel.says[-1]
    if not facts:
        return
    yield TestedCase("answer", "nothing is told", initial, final, EMPTY_WORDS)
    for number, fact in enumerate(facts):
        for value in alter_value(fact.value, MISSING):
            others = [fact.model_copy(update={"value": value}) if n == number else one for n, one in enumerate(facts)]
            yield TestedCase(
                "answer", f"{value!r} is told, not {fact.value!r}", initial, final, tell_facts(others), str(number)
            )


async def _build_mutant_cases(panel: CheckPanel, spec: EnvironmentSpec, wanted: int, seed: int) -> list[TestedCase]:
    gold = panel.gold
    telling = {source[0] for row in panel.sources for source in row if source is not None}
    cases: list[TestedCase] = []
    for tries, mutant in enumerate(RunMutator(gold, spec, panel.facts, telling, seed).all()):
        if len(cases) >= wanted or tries >= TRIES * wanted:
            break
        ran = gold.ran if mutant.kind == "answer" else await gold.branch(mutant.start, mutant.steps, mutant.must)
        undone = mutant.kind == "undone"
        if ran is None or (undone and not is_change_undone(gold.ran, ran, gold.initial)):
            continue
        reported = collect_reported_facts(panel.facts, panel.sources, ran, mutant.answers)
        if not panel.is_gold(ran, reported):
            says = f"{mutant.kind}: {mutant.says}"
            answer = tell_facts(reported[-1]) or EMPTY_WORDS
            fails = bool(await panel.failures(ran, reported))
            cases.append(TestedCase("mutant", says, gold.initial, ran.states[-1], answer, fails_derived=fails))
    return cases
