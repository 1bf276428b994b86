"""The judge: asked only where execution cannot decide, with the evidence, and abstaining when it cannot tell."""

import json

import pytest
from doctoring import Doctored

from trajsmith.models.prompts import load_builtin_prompts
from trajsmith.models.serialization import parse_reply
from trajsmith.phrasing.agreement_detection import find_confirmation_requests
from trajsmith.records import CheckOutcome, Message, ModelFault, Verdict
from trajsmith.verify import Judge, JudgeSettings, find_open_questions


@pytest.fixture(scope="module")
def retail():
    return Doctored("retail")


class Bench:
    """A model that rules as it is told."""

    name = "bench"

    def __init__(self, outcome="completed", answers=None, fault=None):
        self.outcome, self.answers, self.fault = outcome, answers, fault
        self.requests = []

    async def complete(self, request):
        self.requests.append(request)
        if self.fault:
            raise self.fault
        asked = request.messages[-1].content.partition("Questions:\n")[2].count("\n") + 1
        answers = [self.outcome == "completed"] * asked if self.answers is None else self.answers
        ruling = {"reasoning": "As it stands.", "answers": answers, "outcome": self.outcome}
        message = {"role": "assistant", "content": json.dumps(ruling)}
        return parse_reply(json.dumps({"choices": [{"message": message}]}).encode())

    async def close(self):
        """Nothing to close."""


def judge(place, model, compare=0.0):
    return Judge(model, place.spec, JudgeSettings(compare=compare), load_builtin_prompts())


async def in_other_words(place):
    """A play that did everything, and told it in words that no check knows."""
    for task, trajectory in await place.plays(10):
        facts = [fact for turn in task.turns for fact in turn.answer_facts]
        if not facts:
            continue
        messages = [
            message.model_copy(update={"content": "It is all settled as you wished."})
            if message.role == "assistant" and not message.tool_calls and "?" not in message.content
            else message
            for message in trajectory.messages
        ]
        doctored = trajectory.model_copy(update={"messages": tuple(messages)})
        verdict = await place.verdict(task, doctored)
        if verdict.state_match and {c.kind for c in verdict.checks if not c.passed} == {"answer"}:
            return task, doctored, verdict
    raise AssertionError("no such play")


async def test_what_execution_decided_is_not_asked(retail):
    task, trajectory = await retail.play()
    verdict = await retail.verdict(task, trajectory)
    assert list(find_open_questions(task, trajectory, verdict)) == []
    model = Bench("agent_error")
    assert await judge(retail, model).review(task, trajectory, verdict) == verdict
    assert model.requests == []


async def test_a_wrong_state_is_never_talked_right(retail):
    task, trajectory = await retail.play()
    verdict = await retail.verdict(task, trajectory)
    wrong = CheckOutcome(says="the order is cancelled", kind="state", passed=False)
    spoilt = verdict.model_copy(update={"outcome": "partial", "state_match": False, "checks": (wrong,)})
    model = Bench("completed")
    assert await judge(retail, model).review(task, trajectory, spoilt) == spoilt
    assert model.requests == []


@pytest.mark.parametrize(
    ("ruling", "outcome", "reasons"),
    [
        ("completed", "completed", ()),
        ("partially_completed", "partial", ("judge: partial",)),
        ("agent_error", "agent_error", ("judge: agent_error",)),
        ("environment_error", "environment_error", ("judge: environment_error",)),
    ],
)
async def test_words_that_no_check_knows_are_left_to_the_judge(retail, ruling, outcome, reasons):
    task, trajectory, verdict = await in_other_words(retail)
    decided = await judge(retail, Bench(ruling)).review(task, trajectory, verdict)
    assert (decided.outcome, decided.accepted, decided.reasons) == (outcome, outcome == "completed", reasons)
    assert decided.judge.decisive
    assert list(decided.prompts) == ["verify/judge"]
    assert decided.id != verdict.id


async def test_the_evidence_of_execution_is_in_the_prompt(retail):
    task, trajectory, verdict = await in_other_words(retail)
    model = Bench()
    await judge(retail, model).review(task, trajectory, verdict)
    system, case = (message.content for message in model.requests[0].messages)
    assert all(f"> {line}" in system for line in task.policy.strip().splitlines())
    assert all(check.says in case for check in verdict.checks)
    assert all(str(operation["path"]) in case for operation in trajectory.diff[:1])
    assert "failed: the answer tells" in case
    assert "1. Do the assistant's words tell this" in case
    assert trajectory.messages[1].content in case


@pytest.mark.parametrize(
    "model",
    [
        Bench(fault=ModelFault("server", "bench", "down")),
        Bench(answers=[]),
        Bench(answers=[False] * 40),
    ],
    ids=["no answer", "answers missing", "contradicts itself"],
)
async def test_a_judge_that_cannot_tell_leaves_it_undecided(retail, model):
    task, trajectory, verdict = await in_other_words(retail)
    decided = await judge(retail, model).review(task, trajectory, verdict)
    assert (decided.outcome, decided.accepted, decided.reasons) == ("undecided", False, ("judge: undecided",))


async def test_an_undecided_verdict_is_read_back_as_it_was(retail):
    task, trajectory = await retail.play()
    silent = trajectory.model_copy(update={"stop_reason": "model_fault", "fault": "timeout"})
    verdict = await retail.verdict(task, silent)
    assert (verdict.outcome, verdict.state_match) == ("undecided", None)
    assert Verdict.from_line(verdict.to_line()) == verdict


async def test_to_compare_changes_nothing_but_is_kept(retail):
    task, trajectory = await retail.play()
    verdict = await retail.verdict(task, trajectory)
    compared = await judge(retail, Bench("agent_error", answers=[]), compare=1.0).review(task, trajectory, verdict)
    assert (compared.outcome, compared.accepted, compared.reasons) == ("completed", True, ())
    assert (compared.judge.decisive, compared.judge.outcome) == (False, "agent_error")


async def test_a_guess_is_asked_about(retail):
    """The agent hit the right thing without asking which one was meant."""
    for played in await retail.plays(25):
        task, trajectory = played
        held = [entry for turn in task.turns for entry in turn.known if not entry.stated]
        if held:
            break
    openings = {span.start for span in trajectory.turns}
    messages = tuple(
        Message(role="user", content="Well.")
        if message.role == "user"
        and index not in openings
        and not find_confirmation_requests(trajectory.messages[index - 1].content)
        else message
        for index, message in enumerate(trajectory.messages)
    )
    guessed = trajectory.model_copy(update={"messages": messages})
    verdict = await retail.verdict(task, guessed)
    assert any("did not ask" in question for question in find_open_questions(task, guessed, verdict))
