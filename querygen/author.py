"""Models find the words of a task: persona, requests, refinements. EnvFactory 3.4.

Calls and values are fixed before any sentence is written, so two or three short requests do for a whole task: persona
and scenario, then decomposition and articulation of all turns, then the refinements of all turns.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from pydantic import BaseModel, Field

from trajsmith.models import ChatModel, ChatRequest
from trajsmith.models.prompts import Prompt, Prompts, PromptSpec
from trajsmith.models.structured import complete_structured
from trajsmith.phrasing import derive_request_phrase, humanize
from trajsmith.querygen.duplicates import EarlierRequests
from trajsmith.querygen.plan import QueryRefineSettings, TaskPlan, TurnPlan, refine_plan
from trajsmith.querygen.query_gates import DraftFault, QueryGates
from trajsmith.records import (
    EnvironmentSpec,
    FrozenModel,
    JsonObject,
    JsonValue,
    Message,
    Persona,
    RecordDropped,
    to_one_line,
)

_log = logging.getLogger(__name__)

Answer = TypeVar("Answer", bound=BaseModel)

PERSONA = PromptSpec(
    "querygen/persona",
    {
        "description": "A shop.",
        "name": "Ann",
        "role": "customer",
        "story": "A parcel is late.",
        "wishes": ["Where is my order?"],
        "rounds": 1,
    },
)
WRITE = PromptSpec(
    "querygen/write",
    {
        "description": "A shop.",
        "name": "Ann",
        "role": "customer",
        "style": "briskly",
        "scenario": "A parcel is late.",
        "motive": "My parcel has not come.",
        "clock": "2026-03-03 09:00",
        "mode": "direct",
        "turns": [
            {
                "meaning": "Where is my order?",
                "steps": ["find a customer"],
                "story": ["track parcel"],
                "say": [{"label": "email", "said": "a@b.org"}],
                "hold": ["order date"],
                "ask": ["Where is my order?"],
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
                "ask": ["Where is my order?"],
                "also": "show the account",
            }
        ],
    },
)


class PersonaReply(BaseModel):
    """Reply schema of the persona prompt."""

    role: str = Field(min_length=1, max_length=120)
    style: str = Field(min_length=1, max_length=120)
    scenario: str = Field(min_length=1, max_length=600)


class DraftTurn(BaseModel):
    """One turn of a draft: thought of first, then said."""

    subgoals: list[str]
    query: str


class DraftReply(BaseModel):
    """Reply schema of the write prompt."""

    turns: list[DraftTurn]


class RefinedTurn(BaseModel):
    """One turn after its edits."""

    query: str


class RefineReply(BaseModel):
    """Reply schema of the refine prompt."""

    turns: list[RefinedTurn]


@dataclass(frozen=True)
class TaskWording:
    """Queries of a task and the plan that they belong to: refinements change the plan."""

    plan: TaskPlan
    queries: tuple[str, ...]
    language: str = "scripted"
    prompts: dict[str, str] = field(default_factory=dict)


class AuthorSettings(FrozenModel):
    """Settings of a model author; the scripted language ignores them."""

    persona: bool = True
    """Invent persona and scenario, too; else they are the scripted ones."""
    refine: QueryRefineSettings = QueryRefineSettings()
    """Refinements of what was written."""
    rounds: int = Field(3, ge=1, le=10)
    """Drafts that may fail before the task is dropped."""
    duplicate: float = Field(0.8, ge=0.3, le=0.95)
    """Jaccard similarity from which a request counts as one that was written before."""


@dataclass
class ModelTaskAuthor:
    """Writes one task.

    Attributes:
        ticket: The task's place in the order of `earlier`.
    """

    model: ChatModel

    spec: EnvironmentSpec
    gates: QueryGates
    prompts: Prompts
    settings: AuthorSettings
    earlier: EarlierRequests
    ticket: int
    used: dict[str, str] = field(default_factory=dict)
    """Prompts sent so far."""

    async def write(self, plan: TaskPlan, shown: Mapping[int, tuple[JsonValue, ...]]) -> TaskWording:
        """Words for a plan.

        Args:
            shown: Calls between whose results can be asked for as well.

        Raises:
            RecordDropped: No draft passed the gates in the rounds that there are; the detail holds the last one.
            ModelFault: A model could not answer.
        """
        if self.settings.persona:
            plan = await self._persona(plan)
        final = refine_plan(plan, self.settings.refine, shown)
        last = all(not turn.edits for turn in final.turns)
        queries = await self._draft(plan, last)
        if not last:
            queries = await self._refine(final, queries)
        return TaskWording(final, queries, self.model.name, dict(self.used))

    def keep(self, name: str, queries: Sequence[str]) -> None:
        """Record the queries of a finished task: later ones must differ from it."""
        self.earlier.add(name, " ".join(queries))

    async def _persona(self, plan: TaskPlan) -> TaskPlan:
        messages = self._messages(
            PERSONA,
            description=self.spec.description,
            name=plan.persona.name,
            role=plan.persona.role,
            story=plan.story.describe(plan.persona.name) if plan.story else "",
            wishes=[turn.meaning for turn in plan.turns],
            rounds=len(plan.turns),
        )

        async def check(reply: PersonaReply) -> list[DraftFault]:
            return self.gates.scenario(f"{reply.role}. {reply.style}. {reply.scenario}", plan)

        reply = await self._ask("persona", plan, messages, PersonaReply, check)
        persona = Persona(name=plan.persona.name, role=reply.role, style=reply.style)
        scenario = plan.scenario if plan.story else " ".join(reply.scenario.split())
        return replace(plan, persona=persona, scenario=scenario)

    async def _draft(self, plan: TaskPlan, last: bool) -> tuple[str, ...]:
        persona = plan.persona
        messages = self._messages(
            WRITE,
            description=self.spec.description,
            name=persona.name,
            role=persona.role,
            style=persona.style,
            scenario=plan.scenario,
            motive=plan.story.motive if plan.story else "",
            clock=plan.clock,
            mode=plan.mode,
            turns=[self._case(plan, turn) for turn in plan.turns],
        )

        async def check(draft: DraftReply) -> list[DraftFault]:
            return await self._faults(plan, [turn.query for turn in draft.turns], (), last)

        draft = await self._ask("write", plan, messages, DraftReply, check)
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

        async def check(reply: RefineReply) -> list[DraftFault]:
            return await self._faults(plan, [turn.query for turn in reply.turns], drafts, True)

        reply = await self._ask("refine", plan, messages, RefineReply, check)
        return tuple(_one_paragraph(turn.query) for turn in reply.turns)

    def _case(self, plan: TaskPlan, turn: TurnPlan) -> JsonObject:
        calls = plan.grounded.calls[turn.start : turn.stop]
        return {
            "meaning": turn.meaning,
            "steps": [derive_request_phrase(self.gates.wording.tools[call.tool]) for call in calls],
            "story": [humanize(step.name) for step in turn.steps if step is not None],
            "say": [self._fact(plan, key) for key in turn.fresh],
            "hold": [self.gates.wording.name_of(plan.known[key]) for key in turn.held],
            "ask": [info.question for info in turn.asked if info.narrow],
        }

    def _edit(self, plan: TaskPlan, turn: TurnPlan, draft: str) -> JsonObject:
        opened = plan.known[turn.opened] if turn.opened else None
        return {
            "query": draft,
            "edits": [edit.replace("_", " ") for edit in turn.edits],
            "keep": [self._fact(plan, key) for key in turn.fresh],
            "open": f"{self.gates.wording.name_of(opened)} ({opened.said})" if opened else "",
            "ask": [info.question for info in turn.asked if info.narrow],
            "also": "" if turn.expansion is None else self._wish(plan, turn.expansion),
        }

    def _fact(self, plan: TaskPlan, key: str) -> dict[str, str]:
        return {"label": self.gates.wording.name_of(plan.known[key]), "said": plan.known[key].said}

    def _wish(self, plan: TaskPlan, call: int) -> str:
        return derive_request_phrase(self.gates.wording.tools[plan.grounded.calls[call].tool])

    async def _faults(
        self, plan: TaskPlan, queries: Sequence[str], drafts: Sequence[str], last: bool
    ) -> list[DraftFault]:
        """Faults of all turns; of the last version also whether it is new, which has to wait for its turn."""
        if len(queries) != len(plan.turns):
            says = f"it has {len(queries)} turns and must have {len(plan.turns)}"
            return [DraftFault("query_wrong_number_of_turns", str(len(queries)), says)]
        all_faults = []
        for number, query in enumerate(queries):
            faults = self.gates.query(query, plan, number)
            faults += self._edit_faults(plan, number, query, drafts[number]) if drafts else []
            all_faults += [replace(fault, says=f"turn {number + 1}: {fault.says}") for fault in faults]
        if not all_faults:
            misread = self.gates.references(queries, plan)
            all_faults += [replace(fault, says=f"turn {number + 1}: {fault.says}") for number, fault in misread]
        if not all_faults and last:
            await self.earlier.turn(self.ticket)
            twin = self.earlier.find(" ".join(queries))
            if twin is not None:
                says = "it is almost word for word what was written before: choose other words and another order"
                all_faults.append(DraftFault("query_near_duplicate", twin, says))
        return all_faults

    def _edit_faults(self, plan: TaskPlan, number: int, query: str, draft: str) -> list[DraftFault]:
        """Return the faults of the edits that can be detected."""
        turn = plan.turns[number]
        faults = []
        if "action_compression" in turn.edits and turn.expansion is None and len(query) > len(draft) + 20:
            says = "action compression made it longer"
            faults.append(DraftFault("query_not_compressed", query[:120], says))
        if turn.expansion is not None:
            wish = self._wish(plan, turn.expansion)
            if not {word for word in wish.lower().split() if len(word) > 3} & set(
                query.lower().replace("?", " ").split()
            ):
                faults.append(
                    DraftFault("query_skips_the_added_wish", wish, f'it does not ask for this as well: "{wish}"')
                )
        return faults

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
        check: Callable[[Answer], Awaitable[list[DraftFault]]],
    ) -> Answer:
        """Ask until the gates pass; every round shows the model its draft and what is wrong with it."""
        for number in range(1, self.settings.rounds + 1):
            request = ChatRequest(messages=messages, purpose=purpose, record=plan.grounded.id)
            answer = await complete_structured(self.model, request, schema)
            faults = await check(answer)
            reasons = ", ".join(dict.fromkeys(fault.reason for fault in faults)) or "passed"
            _log.info("%s of %s, draft %d: %s", purpose, plan.grounded.id, number, reasons)
            if not faults:
                return answer
            wrong = "\n".join(f"- {to_one_line(fault.says)}" for fault in faults)
            draft = answer.model_dump_json()
            again = f"This cannot be used yet:\n{wrong}\nGive the whole answer again, corrected."
            messages = (*messages, Message(role="assistant", content=draft), Message(role="user", content=again))
        raise RecordDropped(faults[0].reason, f"{purpose}: {faults[0].detail}; last draft: {draft}")


def _one_paragraph(text: str) -> str:
    return " ".join(text.split())
