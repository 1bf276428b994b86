"""A model as judge, only where execution cannot decide (AWM 3.3): with the evidence of execution before it.

Whatever execution did decide stays decided: a wrong state is never talked right. To know what the judge's word is
worth, a share of the plays that execution decided is shown to it, too, and the agreement is reported.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import BaseModel, Field

from trajsmith.models import ChatModel, ChatRequest
from trajsmith.models.prompts import Prompts, PromptSpec
from trajsmith.models.structured import complete_structured
from trajsmith.phrasing import TextValues, format_value, is_value_mentioned
from trajsmith.records import (
    EnvironmentSpec,
    FrozenModel,
    JsonValue,
    JudgeOpinion,
    Message,
    ModelFault,
    Outcome,
    Task,
    Trajectory,
    UserFact,
    Verdict,
    canonical_json,
    derive_seed,
    dump_json_line,
    to_one_line,
    truncate_text,
)

MAX_RESULT_LENGTH = 600
MAX_CHANGES_LENGTH = 3000
"""Characters shown of a tool result, and of the state diff."""

JUDGE = PromptSpec(
    "verify/judge",
    {
        "description": "A shop.",
        "policy": "Be kind.",
        "mode": "direct",
        "turns": ["Where is my order?"],
        "checks": ["passed: nothing changes"],
        "changes": "none",
        "conversation": '{"person": "Where is my order?"}',
        "questions": ["Is the answer complete?"],
    },
)

_OUTCOME_WORDS = {True: "passed", False: "failed", None: "could not tell"}
_OUTCOMES: dict[str, Outcome] = {
    "completed": "completed",
    "partially_completed": "partial",
    "agent_error": "agent_error",
    "environment_error": "environment_error",
}


class JudgeSettings(FrozenModel):
    """When a judge is asked, where there is one."""

    compare: float = Field(0.1, ge=0, le=1)
    """Share of the plays that execution decided which the judge sees all the same, to measure the agreement."""


class JudgeReply(BaseModel):
    """Reply schema of the judge prompt."""

    reasoning: str
    answers: list[bool]
    outcome: Literal["completed", "partially_completed", "agent_error", "environment_error"]


class Judge:
    """Asks a model about plays of one environment."""

    def __init__(self, model: ChatModel, spec: EnvironmentSpec, settings: JudgeSettings, prompts: Prompts) -> None:
        self.model = model
        self.spec = spec
        self.settings = settings
        self.prompt = prompts.get(JUDGE)

    async def review(self, task: Task, trajectory: Trajectory, verdict: Verdict) -> Verdict:
        """Return the verdict with the judge's opinion, or unchanged if there is nothing to ask.

        A judge that gives no usable answer leaves the play `undecided` where its word was needed.
        """
        questions = tuple(find_open_questions(task, trajectory, verdict))
        if not questions and not self._compares(verdict):
            return verdict
        opinion = await self._opinion(task, trajectory, verdict, questions)
        changes: dict[str, JsonValue] = {"judge": opinion, "prompts": {self.prompt.name: self.prompt.version}}
        if questions:
            changes["outcome"] = opinion.outcome
            changes["accepted"] = opinion.outcome == "completed"
            changes["reasons"] = () if opinion.outcome == "completed" else (f"judge: {opinion.outcome}",)
        return Verdict.model_validate({**verdict.model_dump(exclude={"id"}), **changes})

    def _compares(self, verdict: Verdict) -> bool:
        decided = verdict.outcome in ("completed", "partial", "agent_error")
        return decided and derive_seed(verdict.trajectory_id, "judge") / (1 << 63) < self.settings.compare

    async def _opinion(
        self, task: Task, trajectory: Trajectory, verdict: Verdict, questions: tuple[str, ...]
    ) -> JudgeOpinion:
        request = ChatRequest(
            messages=self.messages(task, trajectory, verdict, questions), purpose="judge", record=trajectory.id
        )
        outcome: Outcome = "undecided"
        try:
            ruling = await complete_structured(self.model, request, JudgeReply)
            outcome, reasoning = _resolve_outcome(ruling, questions), ruling.reasoning
        except ModelFault as fault:
            reasoning = f"no answer: {fault.kind}"
        name, decisive = self.model.name, bool(questions)
        return JudgeOpinion(model=name, outcome=outcome, questions=questions, decisive=decisive, reasoning=reasoning)

    def messages(
        self, task: Task, trajectory: Trajectory, verdict: Verdict, questions: Sequence[str]
    ) -> tuple[Message, ...]:
        """Return the messages that are sent to the judge."""
        changes = canonical_json(trajectory.diff).decode() if trajectory.diff else "none"
        return self.prompt.messages(
            description=to_one_line(self.spec.description),
            policy=task.policy,
            mode=task.mode,
            turns=[to_one_line(turn.query) for turn in task.turns],
            checks=[to_one_line(f"{_OUTCOME_WORDS[check.passed]}: {check.says}") for check in verdict.checks],
            changes=truncate_text(changes, MAX_CHANGES_LENGTH),
            conversation="\n".join(render_transcript(trajectory.messages)),
            questions=[to_one_line(question) for question in questions],
        )


def find_open_questions(task: Task, trajectory: Trajectory, verdict: Verdict) -> Iterator[str]:
    """Yield the questions that execution leaves open about a trajectory; none where it decided."""
    failed = [check for check in verdict.checks if not check.passed]
    answers_only = failed and all(check.kind == "answer" for check in failed)
    if verdict.state_match and trajectory.stop_reason == "user_stop" and answers_only:
        yield from (f"Do the assistant's words tell this, however they put it: {check.says}?" for check in failed)
    if verdict.outcome != "completed":
        return
    for number, turn in enumerate(task.turns, 1):
        if not turn.answer_facts and all(call.effect == "read" for call in turn.gold_calls):
            yield f"Does the assistant answer request {number} completely, from what the tools returned?"
    user_text = "\n".join(message.content for message in trajectory.messages if message.role == "user")
    for number, turn in enumerate(task.turns, 1):
        for entry in turn.known:
            stated = entry.stated or is_fact_in_text(entry, user_text)
            if not stated and task.mode == "conversation":
                missing_fact = f"the {entry.label} ({format_value(entry.value)}), and the assistant did not ask"
                yield f"Request {number} left open {missing_fact}: was there good reason to take it for granted?"


def is_fact_in_text(entry: UserFact, text: str) -> bool:
    """Return True if a text of the user tells a fact, in the words planned for it or in another usual form."""
    return (
        entry.said.lower() in text.lower()
        or is_value_mentioned(text, entry.value)
        or TextValues(text).count_matches(entry.value) > 0
    )


def _resolve_outcome(ruling: JudgeReply, questions: Sequence[str]) -> Outcome:
    """The outcome, or `undecided` where answers and outcome contradict each other or answers are missing."""
    whole = len(ruling.answers) == len(questions)
    contradicts = ruling.outcome == "completed" and not all(ruling.answers)
    return _OUTCOMES[ruling.outcome] if whole and not contradicts else "undecided"


def render_transcript(messages: Sequence[Message]) -> Iterator[str]:
    """Yield the conversation as JSON, an object a line; the system prompt is left out, its rules stand apart.

    No text can end its line and pretend to be another speaker, a question or a rule. Tool results are cut.
    """
    for message in messages:
        if message.role == "user":
            yield _line(person=message.content)
        elif message.role == "tool":
            yield _line(result_of=message.name or "", is_=truncate_text(message.content, MAX_RESULT_LENGTH))
        elif message.role == "assistant":
            if message.content:
                yield _line(assistant=message.content)
            for call in message.tool_calls or ():
                yield _line(assistant_calls=call.function.name, arguments=call.function.arguments)


def _line(**fields: JsonValue) -> str:
    return dump_json_line({name.rstrip("_"): value for name, value in fields.items()})
