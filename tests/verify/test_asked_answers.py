"""Answers to what was asked: the words that count, wrong answers, and questions that are left open."""

import pytest

from trajsmith.records import (
    AnswerFact,
    FunctionCall,
    GoldCall,
    Message,
    Persona,
    RequestedInfo,
    Selector,
    Task,
    ToolCall,
    Trajectory,
    Turn,
    TurnSpan,
    canonical_json,
)
from trajsmith.verify import find_unanswered_questions
from trajsmith.verify.answer_mutants import ANSWER_KINDS, AnswerMutator
from trajsmith.verify.answer_text import select_answer_text
from trajsmith.verify.checks import derive_checks, run_check

ORDERS = {
    "result": [
        {"order_id": "O1", "payee": "theatre", "amount": 12, "next_on": "2026-03-05", "visits": 5},
        {"order_id": "O2", "payee": "gym", "amount": 30, "next_on": "2026-03-09", "visits": 7},
    ]
}
OLD = {"order_id": "O1", "payee": "theatre", "amount": 12, "next_on": "2026-02-05", "visits": 5}
ASKED = RequestedInfo(
    call=1,
    question="When does the order to the theatre go out next?",
    fields=("next_on",),
    row=Selector(rows="$.result", how="equals", field="payee", value="theatre"),
    known="k",
    answer=("It goes out on {row.next_on|date}.", "The next date is {row.next_on|date}."),
    facts=(AnswerFact(value="2026-03-05", call=1, place=("result", "0", "next_on"), label="next date"),),
)
RIGHT = "It goes out on 5 March 2026."


def make_task(asked=(ASKED,), query="When does the order to the theatre go out next?"):
    call = GoldCall(tool="list_orders", arguments={}, provenance={}, effect="read", result=ORDERS)
    turn = Turn(
        intent="x", query=query, known=(), gold_calls=(call,), checks=(), state_hash="s", asked=asked,
        answer_facts=tuple(fact.value for info in asked for fact in info.facts),
    )  # fmt: skip
    return Task(
        grounded_id="g", environments=("bank",), initial_state="s", persona=Persona(name="A", role="r", style="s"),
        scenario="", policy="", exposed_tools=(), mode="conversation", difficulty=0, language="scripted",
        turns=(turn,), seed=1,
    )  # fmt: skip


def play(task, answer, result=ORDERS):
    call = ToolCall(id="c", function=FunctionCall(name="list_orders", arguments={}))
    messages = (
        Message(role="user", content=task.turns[0].query),
        Message(role="assistant", content="I'll look at 5 March 2026.", tool_calls=(call,)),
        Message(role="tool", content=canonical_json(result).decode(), tool_call_id="c", name="list_orders"),
        Message(role="assistant", content=answer),
    )
    return Trajectory(
        task_id=task.id, environment="bank", candidate=0, messages=messages, tools=(), events=(),
        turns=(TurnSpan(start=0, stop=4, state_hash="s"),), initial_state="s", final_state="s", diff=(), models={},
        stop_reason="user_stop",
    )  # fmt: skip


def test_the_right_answer_leaves_nothing_open():
    task = make_task()
    assert find_unanswered_questions(task, play(task, RIGHT)) == []


@pytest.mark.parametrize(
    "answer",
    ["I've checked your standing orders.", "It is £12.00 for the theatre.", "It goes out on 9 March 2026."],
    ids=["nothing", "another-field", "another-row"],
)
def test_an_answer_to_something_else_leaves_the_question_open(answer):
    task = make_task()
    (left,) = find_unanswered_questions(task, play(task, answer))
    assert (left.turn, left.question, left.missing) == (0, ASKED.question, ("5 March 2026",))


def test_a_question_that_no_record_covers_is_looked_up_by_the_fields_that_it_names():
    task = make_task((), "Is a window open in the kitchen?")
    result = {"room": "kitchen", "temperature": 19, "window_open": False}
    (left,) = find_unanswered_questions(task, play(task, "The kitchen is at 19 degrees.", result))
    assert left.missing == ("window open",)
    assert find_unanswered_questions(task, play(task, "No window is open in the kitchen.", result)) == []


def test_a_field_by_which_something_is_called_is_not_asked_for():
    task = make_task((), "What does the guide updated on 20 May 2026 say?")
    result = {"updated_on": "2026-05-20", "steps": ["switch it off"]}
    assert find_unanswered_questions(task, play(task, "It says: switch it off.", result)) == []


def test_every_kind_of_wrong_answer_is_made_and_caught_by_the_check():
    (facts,) = [list(ASKED.facts)]
    checks = derive_checks({}, {}, {}, facts, 0)
    assert all(run_check(check, {}, {}, RIGHT, ()).passed for check in checks)
    mutants = list(AnswerMutator([[ASKED]], [facts], {0: OLD, 1: ORDERS}, seed=3).all())
    assert {mutant.kind for mutant in mutants} == set(ANSWER_KINDS)
    for mutant in mutants:
        assert any(run_check(check, {}, {}, mutant.text, ()).passed is False for check in checks), mutant.says


def test_answers_that_compare_with_the_clock_become_wrong_ones_as_well():
    answer = ("It{% if now and row.next_on < now %} went{% else %} goes{% endif %} out on {row.next_on|date}.",)
    asked = ASKED.model_copy(update={"answer": answer})
    mutants = AnswerMutator([[asked]], [list(ASKED.facts)], {1: ORDERS}, seed=3).all()
    assert "It goes out on 9 March 2026." in {mutant.text for mutant in mutants if mutant.kind == "another_row"}


def test_a_number_of_another_field_is_caught_although_it_stands_in_a_date():
    visits = AnswerFact(value=5, call=1, place=("result", "0", "visits"), label="visits")
    (*_, check) = derive_checks({}, {}, {}, [visits], 0)
    assert run_check(check, {}, {}, RIGHT, ()).passed is False
    assert run_check(check, {}, {}, "You have been there 5 times.", ()).passed is True


def test_the_same_value_of_another_row_is_no_mistake():
    same = {"result": [ORDERS["result"][0], {**ORDERS["result"][1], "next_on": "2026-03-05"}]}
    mutants = AnswerMutator([[ASKED]], [list(ASKED.facts)], {1: same}, seed=3).all()
    assert "another_row" not in {mutant.kind for mutant in mutants}


def test_words_before_the_result_and_questions_for_a_yes_are_no_answer():
    call = ToolCall(id="c", function=FunctionCall(name="set", arguments={}))
    messages = [
        Message(role="user", content="Please set it to 21 degrees."),
        Message(role="assistant", content="Shall I set it to 21 degrees?"),
        Message(role="user", content="Yes."),
        Message(role="assistant", content="I'll set it to 21 degrees.", tool_calls=(call,)),
        Message(role="tool", content="{}", tool_call_id="c", name="set"),
        Message(role="assistant", content="That's done. Should I set it to 22 instead?"),
    ]
    assert select_answer_text(messages) == "That's done."


def test_what_was_told_between_two_calls_counts():
    call = ToolCall(id="c", function=FunctionCall(name="pay", arguments={}))
    messages = [
        Message(role="tool", content="{}", tool_call_id="a", name="balance"),
        Message(role="assistant", content="Your balance is £5. Now I'll send the money.", tool_calls=(call,)),
        Message(role="tool", content="{}", tool_call_id="c", name="pay"),
        Message(role="assistant", content="It's sent."),
    ]
    assert select_answer_text(messages) == "Your balance is £5.\nIt's sent."


def test_a_choice_that_the_agent_offers_is_not_told():
    said = ("Which one: the active card or the blocked card?", "It ends in 2735.")
    messages = [Message(role="tool", content="{}", tool_call_id="1")]
    messages += [Message(role="assistant", content=text) for text in said]
    assert select_answer_text(messages) == "It ends in 2735."
