"""What a simulated user may not do, each by example with its own reason; what scripted users say passes."""

import pytest
from doctoring import Doctored

from trajsmith.verify.fidelity import EARLY, ENDLESS, INVENTS, LEAKS, REPEATS, WORKS, find_user_faults


@pytest.fixture(scope="module")
def retail():
    return Doctored("retail")


def reasons(place, task, trajectory):
    return [fault.says for fault in find_user_faults(task, trajectory, place.wording)]


@pytest.mark.parametrize("name", ["retail", "mobile_care", "smart_home"])
async def test_scripted_users_keep_to_the_task(name):
    place = Doctored(name)
    for task, trajectory in await place.plays(12):
        verdict = await place.verdict(task, trajectory)
        assert [check for check in verdict.checks if check.kind == "user"] == []


@pytest.mark.parametrize(
    "text",
    [
        "It is order ZX-90417.",
        "I paid £4,711.50.",
        "My address is ulf@nowhere.org.",
        "Ask my cousin Ulrich.",
        "On 30 May.",
    ],
    ids=["identifier", "amount", "address", "name", "date"],
)
async def test_a_user_invents_a_value(retail, text):
    task, trajectory = await retail.play()
    assert reasons(retail, task, retail.with_exchange(trajectory, "Tell me more, please.", text)) == [INVENTS]


async def test_what_the_agent_said_first_is_no_invention(retail):
    task, trajectory = await retail.play()
    said = retail.with_exchange(trajectory, "Is it order ZX-90417?", "Yes, ZX-90417.")
    assert reasons(retail, task, said) == []


async def test_a_user_leaks_an_internal_value(retail):
    task, trajectory = await retail.play()
    secret = retail.internal_value(task)
    said = retail.with_exchange(trajectory, "Who are you, please?", f"My number is {secret}.")
    assert reasons(retail, task, said) == [LEAKS]


@pytest.mark.parametrize(
    "text",
    [
        "Please call get_order for me.",
        '{"name": "find_it", "arguments": {}}',
        '<tool_call>{"name": "x"}</tool_call>',
        "find_order(order=3)",
    ],
    ids=["tool name", "json", "tag", "code"],
)
async def test_a_user_does_the_agents_work(retail, text):
    task, trajectory = await retail.play()
    assert WORKS in reasons(retail, task, retail.with_exchange(trajectory, "What now?", text))


async def test_a_user_repeats_a_finished_request(retail):
    task, trajectory = await retail.play()
    said = retail.with_exchange(trajectory, "That is done.", task.turns[0].query, at_end=True)
    assert reasons(retail, task, said) == [REPEATS]


async def test_to_answer_a_question_with_the_same_words_is_no_repetition(retail):
    task, trajectory = await retail.play()
    said = retail.with_exchange(trajectory, "Could you say that again?", task.turns[0].query, at_end=True)
    assert reasons(retail, task, said) == []


@pytest.mark.parametrize(
    ("last", "early"),
    [
        ("Which of your orders do you mean?", True),
        ("Let me look that up for you.", True),
        ("I'm sorry, that cannot be done.", False),
        ("It is cancelled. Is there anything else I can do?", False),
    ],
    ids=["waits for an answer", "is about to act", "cannot", "polite"],
)
async def test_a_user_ends_early(retail, last, early):
    task, trajectory = await retail.play()
    assert reasons(retail, task, retail.cut_short(trajectory, last)) == ([EARLY] if early else [])


async def test_a_user_may_give_up_after_answering_in_vain(retail):
    task, trajectory = await retail.play()
    words = ["Which one?", "The blue one.", "Which one?", "The blue one.", "Which one?"]
    assert reasons(retail, task, retail.cut_short(trajectory, *words)) == []


async def test_a_user_who_never_ends_is_an_error_and_a_play_at_its_limit_is_not_accepted(retail):
    task, trajectory = await retail.play()
    talk = trajectory
    for words in ("Good to know.", "So it is, and I am glad of it.", "Indeed."):
        talk = retail.with_exchange(talk, "That is all done.", words, at_end=True)
    limited = talk.model_copy(update={"stop_reason": "step_limit"})
    verdict = await retail.verdict(task, limited)
    assert (verdict.outcome, verdict.accepted, verdict.reasons) == ("user_error", False, (ENDLESS,))
    asked = retail.with_exchange(trajectory, "Is that all right?", "I think so.", at_end=True)
    cut = await retail.verdict(task, asked.model_copy(update={"stop_reason": "step_limit"}))
    assert (cut.outcome, cut.accepted, cut.reasons) == ("partial", False, ("stopped: step_limit",))


async def test_such_a_play_is_a_user_error_and_never_accepted(retail):
    task, trajectory = await retail.play()
    good = await retail.verdict(task, trajectory)
    assert good.accepted
    said = retail.with_exchange(trajectory, "Tell me more, please.", "It is order ZX-90417.", at_end=True)
    verdict = await retail.verdict(task, said)
    assert (verdict.outcome, verdict.accepted, verdict.reasons) == ("user_error", False, (INVENTS,))
    assert [check.detail for check in verdict.checks if check.kind == "user"] == ["ZX-90417"]
    assert verdict.rewards == {}, "the agent is not paid for what the user broke"
