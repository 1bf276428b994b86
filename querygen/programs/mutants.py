"""Mutants of programs and of answers: what must fail, and equivalent answers, which must pass."""

import random
from collections.abc import Iterator, Sequence

from trajsmith.phrasing import format_money, format_value, join_words
from trajsmith.querygen.programs.execution import ProgramRun
from trajsmith.querygen.programs.operations import KeepRows, SolutionProgram, TakeRows
from trajsmith.records import JsonValue

_FLIPPED = {"sum": "mean", "mean": "sum", "largest": "smallest", "smallest": "largest", "difference": "sum"}
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def mutate_program(program: SolutionProgram, run: ProgramRun) -> Iterator[tuple[str, SolutionProgram, tuple[str, ...]]]:
    """Yield wrong programs: their kind, the program, and the rows to write to where only those are wrong."""
    for number, step in enumerate(program.steps):
        rest = (*program.steps[:number], *program.steps[number + 1 :])
        if isinstance(step, TakeRows):
            other = step.model_copy(update={"descending": not step.descending})
            yield (
                "program_order",
                _replace(program, steps=(*program.steps[:number], other, *program.steps[number + 1 :])),
                (),
            )
        elif step.kind in ("keep", "join"):
            yield "program_filter", _replace(program, steps=rest), ()
        if isinstance(step, KeepRows) and step.how != "equals":
            steps = (*program.steps[:number], _flip_bound(step), *program.steps[number + 1 :])
            yield "program_bound", _replace(program, steps=steps), ()
    for number in range(len(program.rows.parents)):
        rest_parents = (*program.rows.parents[:number], *program.rows.parents[number + 1 :])
        rows = program.rows.model_copy(update={"parents": rest_parents})
        yield "program_filter", _replace(program, rows=rows), ()
        if program.rows.parents[number].how != "equals":
            flipped = _flip_bound(program.rows.parents[number])
            parents = (*program.rows.parents[:number], flipped, *program.rows.parents[number + 1 :])
            rows = program.rows.model_copy(update={"parents": parents})
            yield "program_bound", _replace(program, rows=rows), ()
    if program.answer.how in _FLIPPED:
        answer = program.answer.model_copy(update={"how": _FLIPPED[program.answer.how]})
        yield "program_aggregate", _replace(program, answer=answer), ()
    if program.branch is not None:
        branch = program.branch.model_copy(update={"above": not program.branch.above})
        yield "program_branch", _replace(program, branch=branch), ()
    if program.rows.page:
        yield "program_page", _replace(program, rows=program.rows.model_copy(update={"page": ""})), ()
    if program.write is not None and run.taken:
        keys = [str(row[program.write.field]) for row in run.rows]
        yield "program_skipped_row", program, tuple(keys[:-1])
        others = [str(row[program.write.field]) for row in run.listed if str(row[program.write.field]) not in keys]
        if others:
            yield "program_other_row", program, (*keys[:-1], others[0])
            yield "program_added_row", program, (*keys, others[0])


def _flip_bound(step: KeepRows) -> KeepRows:
    return step.model_copy(update={"how": "below" if step.how == "above" else "above"})


def _replace(program: SolutionProgram, **changed: object) -> SolutionProgram:
    return program.model_copy(update=changed)


def mutate_answer(
    answer: JsonValue, others: Sequence[str], ordered: bool, rng: random.Random
) -> Iterator[tuple[str, str]]:
    """Yield wrong answers: their kind and their text."""
    yield "answer_nothing", "I've looked that up for you, and it's all there."
    if isinstance(answer, bool) or answer is None:
        return
    if isinstance(answer, int | float):
        for wrong in {answer + 1, answer - 1, round(answer * 1.1 + 1, 2), round(answer * 10, 2)} - {answer}:
            yield "answer_number", f"It is {format_value(wrong)}."
        return
    labels = [str(each) for each in answer] if isinstance(answer, list) else [str(answer)]
    if len(labels) > 1:
        yield "answer_missing", f"They are {join_words(labels[:-1])}."
        if ordered:
            yield "answer_order", f"They are {join_words(labels[::-1])}."
    if others:
        yield "answer_added", f"They are {join_words([*labels, rng.choice(list(others))])}."
        yield "answer_other", f"They are {join_words([*labels[:-1], rng.choice(list(others))])}."


def list_equivalent_answers(
    answer: JsonValue, ordered: bool, sentences: Sequence[str], rng: random.Random
) -> list[str]:
    """List texts that tell a right answer in other forms: numbers, money, words, lists, JSON, another order."""
    texts = list(sentences)
    if isinstance(answer, bool) or answer is None:
        return texts
    if isinstance(answer, int | float):
        texts += [f"{answer}", f"The result: {answer:,}.", f'{{"answer": {answer}}}', f"{format_money(answer)} in all."]
        texts += [f"It's {answer:.2f}.", f"= {answer:,.2f}"]
        if isinstance(answer, int) and 0 <= answer < len(_NUMBERS):
            texts += [f"There are {_NUMBERS[answer]}.", f"{_NUMBERS[answer].capitalize()} of them."]
        return texts
    labels = [str(each) for each in answer] if isinstance(answer, list) else [str(answer)]
    spelled = labels if ordered else rng.sample(labels, len(labels))
    texts += [
        ", ".join(spelled),
        "\n".join(f"- {label}" for label in spelled),
        f'{{"answer": {spelled!r}}}',
        join_words(spelled).lower(),
    ]
    texts += ["\n".join(f"{number}. **{label}**" for number, label in enumerate(spelled, 1))]
    return texts
