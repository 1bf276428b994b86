"""`TrajsmithSpec` and `evaluate`."""

import pytest

import trajsmith as ts
from trajsmith.models import CallableModel, ChatReply
from trajsmith.records import FunctionCall, InputError, Message, ToolCall

CONFIG = {
    "name": "spec",
    "seed": 9,
    "environments": [{"library": "smart_home", "states": {"small": 2}}],
    "sample": {"count": 6, "length": [1, 2]},
    "ground": {"min_calls": 1},
    "write": {"direct": 1.0},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return ts.run(CONFIG, run=tmp_path_factory.mktemp("spec") / "run")


def play(environment: object, row: dict, trajectory: ts.Trajectory) -> str:
    """Repeat the calls of a recorded episode through the methods of TRL's environments, and return its last message."""
    environment.reset(**{name: value for name, value in row.items() if name != "environment"})
    for message in trajectory.messages:
        for call in message.tool_calls or ():
            getattr(environment, call.function.name)(**call.function.arguments)
    return trajectory.messages[-1].content


def test_the_gold_episode_earns_the_rewards_of_the_verdict(run):
    with ts.TrajsmithSpec(run, rewards=["composite", "rubric"], conversations=False) as spec:
        recorded = {trajectory.task_id: trajectory for trajectory in run.trajectories}
        direct = {task.id for task in run.tasks if len(task.turns) == 1 and task.mode == "direct"}
        assert {row["task_id"] for row in spec.train_dataset} == direct
        for row in spec.train_dataset:
            assert [message["role"] for message in row["prompt"]] == ["system", "user"]
            shown = [tool["function"]["name"] for tool in spec.tool_schemas[row["environment"]]]
            environment = spec.environment_factory[row["environment"]]()
            assert all(callable(getattr(environment, name)) for name in shown)
            completions = [[{"role": "assistant", "content": play(environment, row, recorded[row["task_id"]])}]]
            options = {"environments": [environment], "completions": completions}
            scores = {reward.__name__: reward(**options) for reward in spec.reward_funcs}
            assert scores == {"composite": [1.0], "rubric": [1.0]}


def test_an_idle_episode_earns_nothing(run):
    with ts.TrajsmithSpec(run, limit=1, rewards=["checks"], conversations=False) as spec:
        row = spec.train_dataset[0]
        environment = spec.environment_factory[row["environment"]]()
        environment.reset(task_id=row["task_id"])
        refusal = [[{"role": "assistant", "content": "I will not do that."}]]
        assert spec.reward_funcs[0](environments=[environment], completions=refusal)[0] < 1.0


def test_unknown_rewards_and_empty_splits_are_one_line(run):
    with pytest.raises(InputError, match=r"no reward named 'speed'; there are: .*composite"):
        ts.TrajsmithSpec(run, rewards=["speed"])
    with pytest.raises(InputError, match="has no tasks in split 'test'"):
        ts.TrajsmithSpec(run, split="test")


def test_evaluate_scores_a_model_that_repeats_the_recorded_dialogues(run, tmp_path):
    recorded = {trajectory.messages[1].content: trajectory for trajectory in run.trajectories}

    async def repeat(request):
        return ChatReply(message=recorded[request.messages[1].content].messages[len(request.messages)])

    score = ts.evaluate(repeat, run, split="all", out=tmp_path)[0]
    assert (score.pass1, score.tasks, score.unscored) == (1.0, len(run.tasks), 0)
    assert len((tmp_path / "episodes.jsonl").read_text().splitlines()) == len(run.tasks)


def test_evaluate_says_what_went_wrong(run):
    async def guess(request):
        call = ToolCall(id=f"call_{len(request.messages)}", function=FunctionCall(name="fly", arguments={}))
        return ChatReply(message=Message(role="assistant", tool_calls=(call,)))

    task = next(iter(run.tasks))
    (score, *_) = ts.evaluate(CallableModel("guess", guess), run, tasks=[task])
    assert score.pass1 == 0.0 and score.tasks == 1 and set(score.errors) <= {"step_limit", "unknown_tool"}


def test_evaluate_needs_tasks(run):
    with pytest.raises(InputError, match=r"has no tasks in split 'test': set export\.split"):
        ts.evaluate("models/none", run)
