"""A model adds criteria to the rubric of a task (Agent-World 3.1.1); each is tested before it counts.

A criterion on data gets a check function that is tested like those of a checklist (`trajsmith.verify.written_checks`).
One on the order of calls becomes a rule that gold must keep and that gold calls without what the rule demands must
break. One for a judge must be met by a gold dialogue and not by one in which nothing is done.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt

from trajsmith.environments import Session
from trajsmith.grounding import replays
from trajsmith.models import ChatRequest
from trajsmith.models.prompts import PromptSpec
from trajsmith.models.structured import complete_structured
from trajsmith.phrasing import needs_confirmation
from trajsmith.records import (
    Check,
    Criterion,
    FrozenModel,
    FunctionCall,
    GoldCall,
    JsonObject,
    Message,
    PolicyCheck,
    PolicyRule,
    Task,
    ToolCall,
    Turn,
    canonical_json,
)
from trajsmith.verify.check_author import ModelCheckWriter
from trajsmith.verify.check_cases import EMPTY_WORDS, alter_value, tell_facts
from trajsmith.verify.check_source import CheckFault
from trajsmith.verify.checks import MISSING, CheckedCall, find_rule_breach
from trajsmith.verify.rubric_judge import RubricJudge
from trajsmith.verify.task_checks import CheckAuthor, open_tester
from trajsmith.verify.written_checks import WrittenCheckTester, write_function

RUBRIC = PromptSpec(
    "verify/rubric",
    {
        "description": "A shop.",
        "policy": "Be kind.",
        "tools": ["cancel_order: Cancel an order."],
        "requests": ["Please cancel my order."],
        "rows": '{"orders": {"O1": {"status": "open"}}}',
        "most": 4,
    },
)


class RubricSettings(FrozenModel):
    """Rubrics of tasks."""

    written: NonNegativeInt = 0
    """Criteria that the model of `roles.checker` adds to those that are derived from the task; 0 adds none. Repairs and
    the runs on which they are tested are those of `write.checks`."""


class ProposedRule(BaseModel):
    """Order of calls that a criterion demands."""

    model_config = ConfigDict(extra="forbid")

    tools: list[str]
    after: list[str]
    same: list[str]


class ProposedCriterion(BaseModel):
    """Criterion as a model proposes it."""

    model_config = ConfigDict(extra="forbid")

    says: str = Field(min_length=1, max_length=400)
    weight: float = Field(ge=1, le=5)
    by: Literal["data", "calls", "judge"]
    rule: ProposedRule | None = None


class RubricReply(BaseModel):
    """Reply schema of the prompt."""

    model_config = ConfigDict(extra="forbid")

    criteria: list[ProposedCriterion]


class _Author:
    """Writes and tests the criteria of one task."""

    def __init__(
        self,
        task: Task,
        author: CheckAuthor,
        writer: ModelCheckWriter,
        tester: WrittenCheckTester,
        judge: RubricJudge | None,
    ) -> None:
        self.task = task
        self.author = author
        self.writer = writer
        self.tester = tester
        self.judge = judge
        self.used: dict[str, str] = {}

    async def propose(self, most: int) -> list[ProposedCriterion]:
        """Ask for criteria; those with the same words count once."""
        prompt, spec = self.author.prompts.get(RUBRIC), self.author.spec
        self.used[prompt.name] = prompt.version
        tools = [f"{tool.name}: {tool.description.strip().partition(chr(10))[0]}" for tool in spec.tools]
        messages = prompt.messages(**self.writer.shown, policy=self.task.policy, tools=tools, most=most)
        request = ChatRequest(messages=messages, purpose="rubric", record=self.task.id)
        reply = await complete_structured(self.author.model, request, RubricReply)
        known = {" ".join(each.says.split()): each for each in reversed(reply.criteria)}
        return [each.model_copy(update={"says": says}) for says, each in reversed(known.items())][:most]

    async def build(self, proposed: ProposedCriterion) -> Criterion | CheckFault:
        """Return the criterion if it stands its tests, else what is wrong with it."""
        check: Check | None = None
        if proposed.by == "data":
            check, drafts = await write_function(self.writer, proposed.says, self.tester, self.author.settings.repairs)
            if check is None:
                return drafts[-1].fault
        elif proposed.by == "calls":
            rule = self._build_rule(proposed)
            if isinstance(rule, CheckFault):
                return rule
            check = PolicyCheck(says=proposed.says, rule=rule)
        else:
            fault = await self._test_judged(proposed.says) if self.judge is not None else None
            if fault is not None:
                return fault
        return Criterion(
            says=proposed.says,
            about="judged" if check is None else "written",
            weight=proposed.weight,
            check=check,
            author=self.author.model.name,
        )

    def _build_rule(self, proposed: ProposedCriterion) -> PolicyRule | CheckFault:
        order = proposed.rule or ProposedRule(tools=[], after=[], same=[])
        known = {tool.name for tool in self.author.spec.tools}
        unknown = sorted({*order.tools, *order.after} - known)
        if unknown:
            return CheckFault("unknown_tool", f"there is no tool {unknown[0]!r}")
        rule = PolicyRule(
            says=proposed.says, tools=tuple(order.tools), after=tuple(order.after), same=tuple(order.same)
        )
        calls: list[CheckedCall] = [(call.tool, call.arguments, True) for call in self.task.gold_calls]
        breach = find_rule_breach(rule, calls)
        if breach is not None:
            return CheckFault("fails_gold", f"the gold run breaks it: {breach}")
        if not any(find_rule_breach(rule, wrong) for wrong in list_rule_mutants(rule, calls)):
            return CheckFault("catches_nothing", "no order of the calls of this task breaks it")
        return rule

    async def _test_judged(self, says: str) -> CheckFault | None:
        assert self.judge is not None
        gold, idle = list(render_gold_dialogue(self.task, self.author)), list(render_idle_dialogue(self.task))
        (met,), reasoning = await self.judge.decide(self.task, gold, [says])
        if not met:
            return CheckFault("fails_gold", "the judge finds that the gold dialogue does not meet it", reasoning)
        (met,), reasoning = await self.judge.decide(self.task, idle, [says])
        self.used[self.judge.prompt.name] = self.judge.prompt.version
        return CheckFault("catches_nothing", "a dialogue in which nothing is done meets it", reasoning) if met else None


def list_rule_mutants(rule: PolicyRule, calls: Sequence[CheckedCall]) -> Iterator[list[CheckedCall]]:
    """Yield wrong calls: without those that must come first, and with another value where it must be the same."""
    if rule.after:
        yield [call for call in calls if call[0] not in rule.after]
    about = [number for number, call in enumerate(calls) if call[0] in rule.tools]
    for name in rule.same:
        for number in about[1:]:
            tool, arguments, ok = calls[number]
            for value in alter_value(arguments.get(name), MISSING):
                yield [*calls[:number], (tool, {**arguments, name: value}, ok), *calls[number + 1 :]]


def render_gold_dialogue(task: Task, author: CheckAuthor) -> Iterator[Message]:
    """Yield the gold run of a task as a dialogue, with the questions that it needs."""
    tools = {tool.name: tool for tool in author.spec.tools}
    for number, turn in enumerate(task.turns):
        yield Message(role="user", content=turn.query)
        if task.mode == "conversation":
            for entry in turn.known:
                if not entry.stated:
                    yield Message(role="assistant", content=f"Could you tell me the {entry.label}, please?")
                    yield Message(role="user", content=entry.said)
        for place, call in enumerate(turn.gold_calls):
            yield from _render_call(call, f"call_{number}_{place}", task, call.tool in tools and needs_confirmation(
                tools[call.tool], call.arguments, [each.result for each in turn.gold_calls[:place]]
            ))  # fmt: skip
        yield Message(role="assistant", content=_render_answer(turn))


def _render_call(call: GoldCall, name: str, task: Task, asks: bool) -> Iterator[Message]:
    if asks and task.mode == "conversation":
        words = call.tool.replace("_", " ")
        arguments = canonical_json(call.arguments).decode()
        yield Message(role="assistant", content=f"I would now {words}, with {arguments}. Shall I go ahead?")
        yield Message(role="user", content="Yes, please go ahead.")
    tool_call = ToolCall(id=name, function=FunctionCall(name=call.tool, arguments=call.arguments))
    yield Message(role="assistant", tool_calls=(tool_call,))
    yield Message(role="tool", tool_call_id=name, name=call.tool, content=canonical_json(call.result).decode())


def _render_answer(turn: Turn) -> str:
    return tell_facts(turn.facts) or EMPTY_WORDS


def render_idle_dialogue(task: Task) -> Iterator[Message]:
    """Yield a dialogue in which nothing is done and nothing is told."""
    for turn in task.turns:
        yield Message(role="user", content=turn.query)
        yield Message(role="assistant", content=EMPTY_WORDS)


async def add_written_criteria(
    task: Task, author: CheckAuthor, judge: RubricJudge | None, most: int, state: JsonObject, session: Session
) -> Task:
    """Return a task whose rubric also has the criteria of a model that stood their tests.

    Those that did not are named in `rubric_dropped` with the reason. Criteria for a judge are tested where there is
    one; without one they stay, and no play gets points for them or loses any. An environment that cannot go back to an
    earlier state gives no runs to test on, so that its rubrics stay as they are.

    Args:
        task: The task with its derived rubric.
        author: Model, place and limits.
        judge: Who decides what execution cannot.
        most: Criteria at most.
        state: The initial state.
        session: A session of the environment.

    Raises:
        RecordDropped: The gold calls cannot be made again.
        ModelFault: The model could not answer.
        EnvironmentFault: The environment broke.
    """
    if not most or replays(session):
        return task
    panel, tester = await open_tester(task, author, state, session)
    writer = ModelCheckWriter(author.model, task, author.spec, panel, author.prompts)
    work = _Author(task, author, writer, tester, judge)
    criteria, dropped = list[Criterion](), list[str]()
    for proposed in await work.propose(most):
        built = await work.build(proposed)
        if isinstance(built, Criterion):
            criteria.append(built)
        else:
            dropped.append(f"{proposed.says}: {built.reason}: {built.evidence}")
    changed = task.model_copy(
        update={
            "rubric": (*task.rubric, *criteria),
            "rubric_dropped": tuple(dropped),
            "prompts": {**task.prompts, **writer.used, **work.used},
        }
    )
    return changed.model_copy(update={"id": changed.content_id()})
