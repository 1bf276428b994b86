"""A model decides the criteria of a rubric that execution cannot (Agent-World 3.2.1); no other ones are shown to it."""

from collections.abc import Sequence

from pydantic import BaseModel

from trajsmith.models import ChatModel, ChatRequest
from trajsmith.models.prompts import Prompts, PromptSpec
from trajsmith.models.structured import complete_structured
from trajsmith.records import EnvironmentSpec, Message, ModelFault, Task, Trajectory, Verdict, to_one_line
from trajsmith.verify.judge import render_transcript
from trajsmith.verify.rewards import RewardSettings
from trajsmith.verify.rubric_comparison import replace_rubric

RUBRIC_JUDGE = PromptSpec(
    "verify/rubric_judge",
    {
        "description": "A shop.",
        "policy": "Be kind.",
        "turns": ["Where is my order?"],
        "conversation": '{"person": "Where is my order?"}',
        "criteria": ["The agent explains the delay."],
    },
)


class RubricJudgeReply(BaseModel):
    """Reply schema of the prompt."""

    reasoning: str
    met: list[bool]


class RubricJudge:
    """Asks a model about criteria of plays in one environment."""

    def __init__(self, model: ChatModel, spec: EnvironmentSpec, prompts: Prompts) -> None:
        self.model = model
        self.spec = spec
        self.prompt = prompts.get(RUBRIC_JUDGE)

    async def decide(self, task: Task, messages: Sequence[Message], criteria: Sequence[str]) -> tuple[list[bool], str]:
        """Return for each criterion whether a conversation meets it, and the reasoning.

        Raises:
            ModelFault: The model gives no usable answer.
        """
        sent = self.prompt.messages(
            description=to_one_line(self.spec.description),
            policy=task.policy,
            turns=[to_one_line(turn.query) for turn in task.turns],
            conversation="\n".join(render_transcript(messages)),
            criteria=[to_one_line(criterion) for criterion in criteria],
        )
        request = ChatRequest(messages=sent, purpose="rubric_judge", record=task.id)
        reply = await complete_structured(self.model, request, RubricJudgeReply)
        if len(reply.met) != len(criteria):
            raise ModelFault("bad_reply", self.model.name, f"{len(reply.met)} answers to {len(criteria)} criteria")
        return reply.met, reply.reasoning

    async def review(self, task: Task, trajectory: Trajectory, verdict: Verdict, settings: RewardSettings) -> Verdict:
        """Return the verdict with the criteria decided that wait for a judge; one without an answer stays undecided."""
        waiting = [number for number, each in enumerate(verdict.rubric) if each.about == "judged"]
        if not waiting:
            return verdict
        met: list[bool | None]
        try:
            answers, detail = await self.decide(
                task, trajectory.messages, [verdict.rubric[number].says for number in waiting]
            )
            met = [*answers]
        except ModelFault as fault:
            met, detail = [None] * len(waiting), f"no answer of the judge: {fault.kind}"
        decided = dict(zip(waiting, met, strict=True))
        rubric = tuple(
            each.model_copy(update={"met": decided[number], "detail": detail, "left_out": ""})
            if number in decided
            else each
            for number, each in enumerate(verdict.rubric)
        )
        asked = verdict.model_copy(update={"prompts": {**verdict.prompts, self.prompt.name: self.prompt.version}})
        return replace_rubric(task, trajectory, asked, rubric, settings)
