"""Models find the words of a task: persona, requests, refinements. EnvFactory 3.4.

Calls and values are fixed before any sentence is written, so two or three short requests do for a whole task: persona
and scenario, then decomposition and articulation of all turns, then the refinements of all turns.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from pydantic import BaseModel, Field

from chatmodel.model import ChatModel, ChatRequest
from chatmodel.prompts import Prompt, Prompts, PromptSpec
from chatmodel.structured import ask
from chatmodel.wording import as_request
from querygen.duplicates import Earlier
from querygen.gates import Fault, Gates
from querygen.plan import RefineSettings, TaskPlan, TurnPlan, refined
from trajectory import Dropped, EnvironmentSpec, Frozen, JsonObject, JsonValue, Message, Persona

Answer = TypeVar("Answer", bound=BaseModel)

PERSONA = PromptSpec(
    "querygen/persona",
    {"description": "A shop.", "name": "Ann", "role": "customer", "wishes": ["Where is my order?"], "rounds": 1},
)
WRITE = PromptSpec(
    "querygen/write",
    {
        "description": "A shop.",
        "name": "Ann",
        "role": "customer",
        "style": "briskly",
        "scenario": "A parcel is late.",
        "clock": "2026-03-03 09:00",
        "mode": "direct",
        "turns": [
            {
                "meaning": "Where is my order?",
                "steps": ["find a customer"],
                "say": [{"label": "email", "said": "a@b.org"}],
                "hold": ["order date"],
            }
        ],
    },
)
REFINE = PromptSpec(
    "querygen/refine",
    {
        "description": "A shop.",
        "name": "Ann",
        "style": "briskly",
        "turns": [
            {
                "query": "Where is my order?",
                "edits": ["ambiguity"],
                "keep": [{"label": "email", "said": "a@b.org"}],
                "open": "order date",
                "also": "show the account",
            }
        ],
    },
)


class PersonaReply(BaseModel):
    """What the persona prompt asks for."""

    role: str = Field(min_length=1, max_length=120)
    style: str = Field(min_length=1, max_length=120)
    scenario: str = Field(min_length=1, max_length=600)


class DraftTurn(BaseModel):
    """One turn of a draft: thought of first, then said."""

    subgoals: list[str]
    query: str


class Draft(BaseModel):
    """What the write prompt asks for."""

    turns: list[DraftTurn]


class RefinedTurn(BaseModel):
    """One turn after its edits."""

    query: str


class Refined(BaseModel):
    """What the refine prompt asks for."""

    turns: list[RefinedTurn]


@dataclass(frozen=True)
class Words:
    """The words of a task, and the plan that they belong to: refinements change who says what when."""

    plan: TaskPlan
    queries: tuple[str, ...]
    language: str = "scripted"
    prompts: dict[str, str] = field(default_factory=dict)


class AuthorSettings(Frozen):
    """How a model writes; the scripted language takes no notice of it."""

    persona: bool = True
    """Invent persona and scenario, too; else they are the scripted ones."""
    refine: RefineSettings = RefineSettings()
    """Refinements of what was written."""
    rounds: int = Field(3, ge=1, le=10)
    """Drafts that may fail before the task is dropped."""
    duplicate: float = Field(0.8, ge=0.3, le=0.95)
    """Jaccard similarity from which a request counts as one that was written before."""


@dataclass
class Author:
    """Writes one task.

    Attributes:
        ticket: The task's place in the order of `earlier`.
    """

    model: ChatModel

    spec: EnvironmentSpec
    gates: Gates
    prompts: Prompts
    settings: AuthorSettings
    earlier: Earlier
    ticket: int
    used: dict[str, str] = field(default_factory=dict)
    """Prompts sent so far."""

    async def write(self, plan: TaskPlan, shown: Mapping[int, tuple[JsonValue, ...]]) -> Words:
        """Words for a plan.

        Args:
            shown: Calls between whose results can be asked for as well.

        Raises:
            Dropped: No draft passed the gates in the rounds that there are; the detail holds the last one.
            ModelFault: A model could not answer.
        """
        if self.settings.persona:
            plan = await self._persona(plan)
        final = refined(plan, self.settings.refine, shown)
        last = all(not turn.edits for turn in final.turns)
        queries = await self._draft(plan, last)
        if not last:
            queries = await self._refine(final, queries)
        return Words(final, queries, self.model.name, dict(self.used))

    def keep(self, name: str, queries: Sequence[str]) -> None:
        """The task is made: later ones must differ from it."""
        self.earlier.add(name, " ".join(queries))

    async def _persona(self, plan: TaskPlan) -> TaskPlan:
        messages = self._messages(
            PERSONA,
            description=self.spec.description,
            name=plan.persona.name,
            role=plan.persona.role,
            wishes=[turn.meaning for turn in plan.turns],
            rounds=len(plan.turns),
        )

        async def check(reply: PersonaReply) -> list[Fault]:
            return self.gates.scenario(f"{reply.role}. {reply.style}. {reply.scenario}", plan)

        reply = await self._ask("persona", plan, messages, PersonaReply, check)
        persona = Persona(name=plan.persona.name, role=reply.role, style=reply.style)
        return replace(plan, persona=persona, scenario=" ".join(reply.scenario.split()))

    async def _draft(self, plan: TaskPlan, last: bool) -> tuple[str, ...]:
        persona = plan.persona
        messages = self._messages(
            WRITE,
            description=self.spec.description,
            name=persona.name,
            role=persona.role,
            style=persona.style,
            scenario=plan.scenario,
            clock=plan.clock,
            mode=plan.mode,
            turns=[self._case(plan, turn) for turn in plan.turns],
        )

        async def check(draft: Draft) -> list[Fault]:
            return await self._faults(plan, [turn.query for turn in draft.turns], (), last)

        draft = await self._ask("write", plan, messages, Draft, check)
        return tuple(_one_paragraph(turn.query) for turn in draft.turns)

    async def _refine(self, plan: TaskPlan, drafts: Sequence[str]) -> tuple[str, ...]:
        turns = [self._edit(plan, turn, draft) for turn, draft in zip(plan.turns, drafts, strict=True)]
        messages = self._messages(
            REFINE,
            description=self.spec.description,
            name=plan.persona.name,
            style=plan.persona.style,
            turns=turns,
        )

        async def check(reply: Refined) -> list[Fault]:
            return await self._faults(plan, [turn.query for turn in reply.turns], drafts, True)

        reply = await self._ask("refine", plan, messages, Refined, check)
        return tuple(_one_paragraph(turn.query) for turn in reply.turns)

    def _case(self, plan: TaskPlan, turn: TurnPlan) -> JsonObject:
        calls = plan.grounded.calls[turn.start : turn.stop]
        return {
            "meaning": turn.meaning,
            "steps": [as_request(self.gates.wording.tools[call.tool]) for call in calls],
            "say": [self._fact(plan, key) for key in turn.fresh],
            "hold": [self.gates.wording.name_of(plan.known[key]) for key in turn.held],
        }

    def _edit(self, plan: TaskPlan, turn: TurnPlan, draft: str) -> JsonObject:
        opened = plan.known[turn.opened] if turn.opened else None
        return {
            "query": draft,
            "edits": [edit.replace("_", " ") for edit in turn.edits],
            "keep": [self._fact(plan, key) for key in turn.fresh],
            "open": f"{self.gates.wording.name_of(opened)} ({opened.said})" if opened else "",
            "also": "" if turn.expansion is None else self._wish(plan, turn.expansion),
        }

    def _fact(self, plan: TaskPlan, key: str) -> dict[str, str]:
        return {"label": self.gates.wording.name_of(plan.known[key]), "said": plan.known[key].said}

    def _wish(self, plan: TaskPlan, call: int) -> str:
        return as_request(self.gates.wording.tools[plan.grounded.calls[call].tool])

    async def _faults(self, plan: TaskPlan, queries: Sequence[str], drafts: Sequence[str], last: bool) -> list[Fault]:
        """Faults of all turns; of the last version also whether it is new, which has to wait for its turn."""
        if len(queries) != len(plan.turns):
            says = f"it has {len(queries)} turns and must have {len(plan.turns)}"
            return [Fault("query_wrong_number_of_turns", str(len(queries)), says)]
        found = []
        for number, query in enumerate(queries):
            faults = self.gates.query(query, plan, number)
            faults += self._edit_faults(plan, number, query, drafts[number]) if drafts else []
            found += [replace(fault, says=f"turn {number + 1}: {fault.says}") for fault in faults]
        if not found and last:
            await self.earlier.turn(self.ticket)
            twin = self.earlier.find(" ".join(queries))
            if twin is not None:
                says = "it is almost word for word what was written before: choose other words and another order"
                found.append(Fault("query_near_duplicate", twin, says))
        return found

    def _edit_faults(self, plan: TaskPlan, number: int, query: str, draft: str) -> list[Fault]:
        """Whether the edits were made, as far as that can be seen."""
        turn = plan.turns[number]
        found = []
        if "action_compression" in turn.edits and turn.expansion is None and len(query) > len(draft) + 20:
            says = "action compression made it longer"
            found.append(Fault("query_not_compressed", query[:120], says))
        if turn.expansion is not None:
            wish = self._wish(plan, turn.expansion)
            if not {word for word in wish.lower().split() if len(word) > 3} & set(
                query.lower().replace("?", " ").split()
            ):
                found.append(Fault("query_skips_the_added_wish", wish, f'it does not ask for this as well: "{wish}"'))
        return found

    def _messages(self, spec: PromptSpec, **values: JsonValue) -> tuple[Message, ...]:
        prompt: Prompt = self.prompts.get(spec)
        self.used[prompt.name] = prompt.version
        return prompt.messages(**values)

    async def _ask(
        self,
        purpose: str,
        plan: TaskPlan,
        messages: tuple[Message, ...],
        schema: type[Answer],
        check: Callable[[Answer], Awaitable[list[Fault]]],
    ) -> Answer:
        """Ask until the gates pass; every round shows the model its draft and what is wrong with it."""
        for _ in range(self.settings.rounds):
            request = ChatRequest(messages=messages, purpose=purpose, record=plan.grounded.id)
            answer = await ask(self.model, request, schema)
            faults = await check(answer)
            if not faults:
                return answer
            wrong = "\n".join(f"- {fault.says}" for fault in faults)
            draft = answer.model_dump_json()
            again = f"This cannot be used yet:\n{wrong}\nGive the whole answer again, corrected."
            messages = (*messages, Message(role="assistant", content=draft), Message(role="user", content=again))
        raise Dropped(faults[0].reason, f"{purpose}: {faults[0].detail}; last draft: {draft}")


def _one_paragraph(text: str) -> str:
    return " ".join(text.split())
