"""Ways to ask for one goal: of the scenario, narrow questions, and the whole result; the fullest templates first."""

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from trajsmith.phrasing import Question, ScenarioStep, Wording, get_language, list_slots
from trajsmith.querygen.questions import AskableQuestion, list_askable_questions
from trajsmith.records import FromUser, GoldCall

ASKS = 0.45
"""Probability that a wish is said by a verb phrase in a frame of the user's voice, where there are sentences, too."""
FULL = 0.97
"""Probability that a wish is said in a sentence that names all that has not been said, where there is one."""


@dataclass(frozen=True)
class GoalPhrases:
    """Templates of one way to ask for a goal, and the question that they ask."""

    ask: Sequence[str]
    say: Sequence[str]
    question: AskableQuestion | None = None


class GoalWordings:
    """Lists the ways in which one goal can be asked for, and ranks their templates.

    Args:
        wording: Words and tools of the environment.
        calls: All calls of the task.
        rng: Source of randomness.
        questions: Share of reads that are asked for by a narrow question, where the phrasebook has some.
        initial: Text of the initial state.
    """

    def __init__(
        self, wording: Wording, calls: Sequence[GoldCall], rng: random.Random, questions: float, initial: str = ""
    ) -> None:
        self.wording = wording
        self.calls = calls
        self.rng = rng
        self.questions = questions
        self.initial = initial

    def list_own(self, goal: int, held: set[str], step: ScenarioStep) -> Iterator[GoalPhrases]:
        """Yield the ways in which a scenario asks for a goal, best first."""
        step = self._prefer_told(goal, held, step)
        question = step.question
        if question is not None and not (question.ask or question.say):
            question = question.model_copy(update={"ask": step.ask, "say": step.say})
        yield from self._list_questions(goal, [question] if question else [], held, step)
        if step.ask or step.say:
            yield GoalPhrases(step.ask, step.say)

    def _prefer_told(self, goal: int, held: set[str], step: ScenarioStep) -> ScenarioStep:
        """Return a step without the texts that leave out a choice which the story has made: "cancel the order. It's
        because I found it cheaper." says in two sentences what another of its texts says in one."""
        call = self.calls[goal]
        parameters = self.wording.tools[call.tool].parameters
        chosen = {
            name
            for name, source in call.provenance.items()
            if isinstance(source, FromUser)
            and source.known not in held
            and step.fixes(name)
            and "enum" in parameters.get(name, {})
        }
        updates = {}
        for kind in ("ask", "say"):
            full = tuple(text for text in getattr(step, kind) if chosen <= list_slots(text))
            if full:
                updates[kind] = full
            elif any(chosen <= list_slots(text) for text in (*step.ask, *step.say)):
                updates[kind] = ()
        return step.model_copy(update=updates) if chosen and updates else step

    def list_general(self, goal: int, held: set[str]) -> Iterator[GoalPhrases]:
        """Yield the phrasebook's ways to ask for a goal, best first: a narrow question, the whole result."""
        phrases = self.wording.tool(self.calls[goal].tool)
        if phrases.questions and self.rng.random() < self.questions:
            yield from self._list_questions(goal, phrases.questions, held)
        yield GoalPhrases(phrases.ask, phrases.say)

    def _list_questions(
        self, goal: int, questions: Sequence[Question], held: set[str], step: ScenarioStep | None = None
    ) -> Iterator[GoalPhrases]:
        call, where = self.calls[goal], step.where if step is not None else {}
        reads = questions if call.effect == "read" else []
        for askable in list_askable_questions(
            reads, goal, call.result, self.wording, self.rng, where, self.calls, self.initial
        ):
            if askable.row is None or askable.row.fact.key not in held:
                yield GoalPhrases(askable.question.ask, askable.question.say, askable)

    def rank_texts(
        self, phrases: GoalPhrases, named: frozenset[str], open_slots: Collection[str], left_open: set[str]
    ) -> list[tuple[str, list[str]]]:
        """Return `ask` and `say` with those templates that leave least to be said in sentences of their own, the fuller
        first; now and then with all of them.

        Args:
            named: Slots that a template must have.
            open_slots: Slots of what has not been said.
            left_open: Slots of things that are not to be said.
        """
        full = self.rng.random() < FULL
        ranked = []
        for kind in self._order_kinds(phrases.ask, phrases.say):
            texts = [text for text in (phrases.say if kind == "say" else phrases.ask) if named <= list_slots(text)]
            texts = [text for text in texts if self.may_leave_open(list_slots(text), left_open)]
            left = [len({*open_slots} - list_slots(text)) for text in texts]
            least = min(left, default=0)
            if full:
                texts = [text for text, count in zip(texts, left, strict=True) if count == least]
            ranked.append((least if full else 0, kind, texts))
        return [(kind, texts) for _, kind, texts in sorted(ranked, key=lambda entry: entry[0])]

    def may_leave_open(self, slots: Collection[str], left_open: Collection[str]) -> bool:
        """Return whether people would leave open which things are meant in a sentence with these slots: they say
        nothing of them, or "cancel one of my trips"; nobody orders "one of the products" or pays "one of my payees".
        """
        own = all(get_language().grammar.is_own(self.wording.entity(slot).own) for slot in slots)
        return set(slots).isdisjoint(left_open) or (len(slots) == 1 and own)

    def _order_kinds(self, ask: Sequence[str], say: Sequence[str]) -> list[str]:
        kinds = ["ask"] * bool(ask) + ["say"] * bool(say)
        return kinds if len(kinds) < 2 or self.rng.random() < ASKS else kinds[::-1]
