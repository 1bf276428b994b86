"""English for solution programs: the rows that are meant, the question, and the answer."""

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from trajsmith.phrasing import capitalize_first, format_money, format_value, join_words, pick_text
from trajsmith.phrasing.table_phrases import MeasurePhrases, TablePhrases, WritePhrases
from trajsmith.querygen.programs.execution import ProgramRun
from trajsmith.querygen.programs.operations import Aggregate, Branch, SolutionProgram, TakeRows
from trajsmith.records import FrozenModel, JsonValue

_RELATIVE = ("that ", "whose ", "which ", "where ", "on which", "from which", "for which")
_START = re.compile(r"(?:^| (?:and )?)(?=that |whose |which |where |(?:on|from|for) which )")
_PREDICATES = re.compile(r"that ((?:are|have|were|cost|include|lie|wait|do|go|brought|took) .*)")
_SPEAKER = re.compile(r"\"[^\"]*\"|\b(?:I've|I'm|I was|I am|I|my|me)\b(?!\.)")
_SPOKEN_TO = {
    "I've": "you've",
    "I'm": "you're",
    "I was": "you were",
    "I am": "you are",
    "I": "you",
    "my": "your",
    "me": "you",
}
_PLURALS = {"is": "are", "has": "have", "costs": "cost", "uses": "use"}
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


class ProgramWords(FrozenModel):
    """Words that a program's composition chose."""

    whole: str
    """All rows of the table."""
    how_many: str
    """Opening of a question for their number."""
    rows: str
    """The rows that are meant: "my orders that have been shipped"."""
    clauses: str = ""
    """The part of it that singles them out."""
    measure: MeasurePhrases | None = None
    spoken_values: dict[str, str] = {}
    """Fixed argument to how the user says it."""


def format_measure(value: Any, measure: MeasurePhrases | None) -> str:
    """Format a number in the form of its measure: "£12.50", "3 GB"."""
    if measure is not None and measure.form == "money":
        return format_money(value)
    return f"{format_value(value)} {measure.unit}" if measure is not None and measure.unit else format_value(value)


def format_bound(value: Any, measure: MeasurePhrases | None) -> str:
    """Format a round number as people give one: "£460"."""
    return format_measure(value, measure).removesuffix(".00")


def spell_number(number: int) -> str:
    """Spell a small whole number in words."""
    return _NUMBERS[number] if number < len(_NUMBERS) else str(number)


def join_clauses(clauses: Sequence[str]) -> str:
    """Join clauses behind a noun: those with a preposition first, then relative ones with "and" between them."""
    relative = [clause for clause in clauses if clause.startswith(_RELATIVE)]
    plain = [clause for clause in clauses if not clause.startswith(_RELATIVE)]
    return "".join(f" {part}" for part in (*plain, " and ".join(relative)) if part)


def find_predicate(clauses: str) -> str:
    """Return joined clauses as a predicate of a plural: " that are paid" as "are paid"; empty if one is none."""
    plain, *relative = _START.split(f" {clauses.strip()}")
    plain = plain.strip()
    predicates = [f"have {plain[5:]}" if plain.startswith("with ") else f"are {plain}"] if plain else []
    for clause in relative:
        match = _PREDICATES.fullmatch(clause)
        if match is None:
            return ""
        predicates.append(match[1])
    return " and ".join(predicates)


def address_user(text: str) -> str:
    """Return a user's words as the agent says them: "my orders" as "your orders"; quotations stay as they are."""
    return _SPEAKER.sub(lambda match: _SPOKEN_TO.get(match[0], match[0]), text)


def describe_extreme(measure: MeasurePhrases | None, highest: bool) -> str:
    """Return what is said of the row with the highest or lowest value, as predicate of one row."""
    if measure is None:
        return ""
    own = measure.most if highest else measure.least
    return own or f"has the {measure.extremes[0 if highest else 1]} {measure.noun}"


def make_plural(predicate: str) -> str:
    """Return a predicate of one thing as that of several: "costs the most" as "cost the most"."""
    verb, _, rest = predicate.partition(" ")
    return f"{_PLURALS.get(verb, verb)} {rest}"


def render_question(
    program: SolutionProgram, table: TablePhrases, words: ProgramWords, write: WritePhrases | None, rng: random.Random
) -> str:
    """Render what the user asks for, without who they are.

    Raises:
        ValueError: A phrase of the table lacks a value.
    """
    if program.branch is not None and write is not None:
        return _ask_branch(program.branch, words, write, rng)
    if write is not None:
        asked = _fill(rng.choice(write.ask), {"rows": words.rows, **words.spoken_values}, rng)
        frame = rng.choice(("Please {}.", "Could you {}?", "I'd like you to {}."))
        text = capitalize_first(frame.format(asked))
        if program.answer.how == "done":
            return text
        noun = words.measure.noun if words.measure is not None else "amount"
        follow = (f"What is the combined {noun}?", f"And tell me the combined {noun}, please.")
        return f"{text} {rng.choice(follow)}"
    return _ask_answer(program, program.answer, table, words, rng)


def _ask_branch(branch: Branch, words: ProgramWords, write: WritePhrases, rng: random.Random) -> str:
    side = "more" if branch.above else "less"
    bound = format_bound(branch.value, words.measure)
    asked = _fill(rng.choice(write.ask), {"rows": "all of them", **words.spoken_values}, rng)
    noun = words.measure.noun if words.measure is not None else "amount"
    options = (
        f"Please add up the {noun} of {words.rows}. If it comes to {side} than {bound}, {asked}; if not, leave them as "
        f"they are. Either way, tell me the combined {noun}.",
        f"What is the combined {noun} of {words.rows}? If it is {side} than {bound}, please {asked}. Otherwise don't "
        "change anything.",
    )
    return rng.choice(options)


def _ask_answer(
    program: SolutionProgram, answer: Aggregate, table: TablePhrases, words: ProgramWords, rng: random.Random
) -> str:
    measure, rows = words.measure, words.rows
    noun = measure.noun if measure is not None else ""
    unit = f" in {measure.unit}" if measure is not None and measure.unit else ""
    span = f" {measure.span}" if measure is not None and measure.span else ""
    high, low = measure.extremes if measure is not None else ("", "")
    of_rows = f"{measure.of if measure is not None else 'of'} {rows}{span}"
    predicate = find_predicate(words.clauses)
    options: dict[str, tuple[str, ...]] = {
        "count": (f"How many of {words.whole} {predicate}?" if predicate else f"{words.how_many}{words.clauses}?",),
        "sum": (
            f"What is the combined {noun} {of_rows}?",
            f"Please add up the {noun} {of_rows} for me.",
        ),
        "mean": (
            f"What is the average {noun} {of_rows}, to two decimal places?",
            f"Please work out the average {noun} {of_rows}{unit}, rounded to two decimal places.",
        ),
        "largest": (f"Which of {rows} {describe_extreme(measure, True)}{span}?",),
        "smallest": (f"Which of {rows} {describe_extreme(measure, False)}{span}?",),
        "labels": (
            f"Please give me the {table.labels} of {rows}.",
            f"What are the {table.labels} of {rows}?",
            f"I need a list of {rows}. The {table.labels} will do.",
        ),
        "share": (
            f"What percentage of {words.whole} {predicate}? One decimal place is enough.",
            f"What percentage of {words.whole} {predicate}, to one decimal place?",
        ),
        "difference": (
            f"How far apart are the {high} and the {low} {noun} among {rows}{span}?",
            f"What is the difference between the {high} and the {low} {noun} {of_rows}?",
        ),
    }
    if answer.how == "ordered":
        step = next(step for step in program.steps if isinstance(step, TakeRows))
        extreme = describe_extreme(measure, step.descending)
        count, plural = spell_number(step.count), make_plural(extreme)
        first = f"starting with the one that {extreme}"
        return rng.choice(
            (
                f"Which {count} of {rows} {plural}{span}? Give me their {table.labels}, {first}.",
                f"Please name the {count} of {rows} that {plural}{span}, {first}.",
            )
        )
    return rng.choice(options[answer.how])


def render_answers(
    program: SolutionProgram, table: TablePhrases, words: ProgramWords, write: WritePhrases | None, run: ProgramRun
) -> tuple[str, ...]:
    """Render sentences that tell the answer of a run, any of which will do."""
    if write is not None:
        return _answer_write(program, table, words, write, run)
    return tuple(_answer_plain(program.answer, table, words, run.answer, run))


def _answer_write(
    program: SolutionProgram, table: TablePhrases, words: ProgramWords, write: WritePhrases, run: ProgramRun
) -> tuple[str, ...]:
    names = join_words(format_value(row.get(table.label)) for row in run.rows)
    noun = words.measure.noun if words.measure is not None else ""
    statement = (
        [f"The combined {noun} is {format_measure(run.answer, words.measure)}."] if program.answer.how != "done" else []
    )
    if not run.taken:
        return tuple(
            f"{statement[0]} {end}" for end in ("So I've left everything as it is.", "I haven't changed anything.")
        )
    done = [
        pick_text([text], {"names": names, "count": len(run.rows), **words.spoken_values}, random.Random(0))
        for text in write.done
    ]
    if program.branch is not None:
        return tuple(f"{statement[0]} {text}" for text in done if text)
    return tuple(" ".join([text, *statement]) for text in done if text)


def _answer_plain(
    answer: Aggregate, table: TablePhrases, words: ProgramWords, value: JsonValue, run: ProgramRun
) -> list[str]:
    measure = words.measure
    noun = measure.noun if measure is not None else ""
    span = f" {measure.span}" if measure is not None and measure.span else ""
    if answer.how in ("labels", "ordered"):
        labels = [format_value(label) for label in value if label is not None] if isinstance(value, list) else []
        names = join_words(labels)
        if len(labels) == 1:
            return [f"Only one: {names}."]
        return (
            [f"They are {names}.", f"Here they are: {names}."]
            if answer.how == "labels"
            else [f"In that order: {names}."]
        )
    if answer.how in ("largest", "smallest"):
        extreme = describe_extreme(measure, answer.how == "largest")
        row = next(row for row in run.rows if row.get(answer.label) == value)
        own = format_measure(row[answer.field], measure)
        name = _name_row(row, table)
        plain = [f"That is {name}, at {own}."]
        return plain if name.startswith("the ") else [f"{name} {extreme}{span}: {own}.", *plain]
    statement, predicate = format_measure(value, measure), find_predicate(words.clauses)
    high, low = measure.extremes if measure is not None else ("", "")
    of_rows = f"{measure.of if measure is not None else 'of'} {address_user(words.rows)}{span}"
    of_whole = f"of {address_user(f'{words.whole} {predicate}')}." if predicate and value != 1 else ""
    texts = {
        "count": [f"{statement} {of_whole}"]
        if of_whole
        else [f"There {'is' if value == 1 else 'are'} {statement}.", f"I count {statement}."],
        "sum": [f"The combined {noun} {of_rows} is {statement}.", f"Altogether, it comes to {statement}."],
        "mean": [f"The average {noun} {of_rows} is {_show_two_decimals(statement)}."],
        "share": [f"{value:.1f}% {of_whole}" if of_whole else f"That is {value:.1f}% of them."],
    }
    if answer.how == "difference":
        ends = sorted(run.rows, key=lambda row: float(row[answer.field]))
        values = [row[answer.field] for row in ends]
        least, most = (
            format_measure(row[answer.field], measure)
            + (f", for {_name_row(row, table)}" if values.count(row[answer.field]) == 1 else "")
            for row in (ends[0], ends[-1])
        )
        statement = re.sub(r"(?<=\d) percent$", " percentage points", statement)
        return [
            f"The {high} {noun} is {most}, and the {low} {least}, so they are {statement} apart.",
            f"They are {statement} apart: the {low} is {least}, and the {high} {most}.",
        ]
    return texts[answer.how]


def _show_two_decimals(statement: str) -> str:
    """Give the last number of a statement the two decimal places that were asked for."""
    return re.sub(r"(\d)(\.\d{1,2})?(?=\D*$)", lambda number: number[1] + (number[2] or ".").ljust(3, "0"), statement)


def _name_row(row: Mapping[str, Any], table: TablePhrases) -> str:
    """Return how a row is told alone: `the main phone`, `Wei Fischer`, `plan.txt`."""
    name = pick_text([table.alone], dict(row), random.Random(0)) if table.alone else None
    name = name or format_value(row.get(table.label))
    return f"the {name}" if name[:1].islower() and "." not in name else name


def _fill(template: str, values: Mapping[str, str], rng: random.Random) -> str:
    text = pick_text([template], dict(values), rng)
    if text is None:
        raise ValueError(f"the phrase {template!r} lacks a value")
    return text
