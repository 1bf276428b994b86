"""Conduct of confirmation, by example: what is missing, what is needless, and what looks like either and is not."""

import json

import pytest
from doctoring import Doctored

from trajsmith.phrasing.agreement_detection import find_confirmation_requests
from trajsmith.records import (
    CallEvent,
    ConfirmationRule,
    EnvironmentSpec,
    FunctionCall,
    GoldCall,
    Message,
    Persona,
    Perturbation,
    Task,
    ToolAnnotations,
    ToolCall,
    ToolSpec,
    Trajectory,
    Turn,
    TurnSpan,
    UserFact,
)
from trajsmith.verify import VerifySettings, find_confirmation_faults, verify_trajectory
from trajsmith.verify.action_descriptions import CallContext, get_action_matcher
from trajsmith.verify.batch_checks import CONDUCT
from trajsmith.verify.confirmation import MISSING, NEEDLESS, REPORTED


def make_tool(name, description, confirm, actor="assistant", **parameters):
    schema = {"type": "object", "properties": {name: {"type": kind} for name, kind in parameters.items()}}
    return ToolSpec(
        server="shop", name=name, description=description, input_schema=schema, confirm=confirm, actor=actor,
        annotations=ToolAnnotations(read_only_hint=name.startswith("list")),
    )  # fmt: skip


NEVER = ConfirmationRule()
SPEC = EnvironmentSpec(
    name="shop", version="1", description="A shop.", source="test",
    tools=(
        make_tool("list_orders", "List orders.", None),
        make_tool("cancel_order", "Cancel an order and refund it.", ConfirmationRule(always=True), order_id="string"),
        make_tool("pay_invoice", "Pay an invoice.", ConfirmationRule(above={"amount": 200}), payee_id="string",
                  amount="number"),
        make_tool("change_address", "Change the shipping address of an order.", NEVER, order_id="string",
                  city="string"),
        make_tool("reset_phone", "Reset the phone.", ConfirmationRule(always=True), "user"),
    ),
)  # fmt: skip
ORDERS = {
    "result": [
        {"order_id": "W1", "item": "Blue Kettle", "total": 34.5, "status": "pending"},
        {"order_id": "W2", "item": "Oak Desk", "total": 240.0, "status": "pending"},
    ]
}
LOOK = ("list_orders", {})
CANCEL = ("cancel_order", {"order_id": "W1"})
PAY = ("pay_invoice", {"payee_id": "P1", "amount": 300.0})
MOVE = ("change_address", {"order_id": "W1", "city": "Leeds"})


def make_dialogue(*steps, mode="conversation", gold=(CANCEL,), twist=None, known=()):
    """A task and a play of it: user and agent in turn, a text or calls with their results."""
    messages = [Message(role="system", content="Be kind.")]
    events, start, role = [], 1, "user"
    for step in steps:
        if isinstance(step, str):
            messages.append(Message(role=role, content=step))
            role = "assistant" if role == "user" else "user"
            continue
        actor, ok = step[2] if len(step) > 2 else "assistant", len(step) < 4
        name, arguments = step[:2]
        where = len(messages)
        if actor == "assistant":
            called = ToolCall(id=f"c{where}", function=FunctionCall(name=name, arguments=arguments))
            messages.append(Message(role="assistant", content="", tool_calls=(called,)))
            content = json.dumps(ORDERS if name == "list_orders" else {"ok": ok})
            messages.append(Message(role="tool", content=content, tool_call_id=f"c{where}", name=name))
            role = "assistant"
        events.append(
            CallEvent(
                actor=actor, tool=name, arguments=arguments, ok=ok, error=None if ok else "refused", result_hash="h",
                message=where,
            )
        )  # fmt: skip
    calls = tuple(GoldCall(tool=name, arguments=arguments, provenance={}, effect="write") for name, arguments in gold)
    turn = Turn(intent="x", query=steps[0], known=tuple(known), gold_calls=calls, checks=(), state_hash="s")
    task = Task(
        grounded_id="g", environments=("shop",), initial_state="i", persona=Persona(name="Ida", role="u", style="s"),
        scenario="", policy="", exposed_tools=tuple(tool.name for tool in SPEC.tools), mode=mode, difficulty=0.1,
        language="scripted", turns=(turn,), seed=1, twist=twist,
    )  # fmt: skip
    trajectory = Trajectory(
        task_id=task.id, environment="shop", candidate=0, messages=tuple(messages), tools=task.exposed_tools,
        events=tuple(events), turns=(TurnSpan(start=start, stop=len(messages), state_hash="s"),), initial_state="i",
        final_state="s", diff=(), models={}, stop_reason="user_stop",
    )  # fmt: skip
    return task, trajectory


def find_faults(*steps, **settings):
    return find_confirmation_faults(*make_dialogue(*steps, **settings), SPEC)


WISH = "Please cancel the kettle order."
DONE = "It is cancelled."


@pytest.mark.parametrize(
    ("steps", "detail"),
    [
        pytest.param((WISH, LOOK, CANCEL, DONE), "the user was not asked", id="not_asked"),
        pytest.param(
            (WISH, LOOK, "Shall I cancel the Blue Kettle for £34.50?", "No, wait.", CANCEL, DONE),
            "the user said no", id="no",
        ),
        pytest.param(
            (WISH, LOOK, "Shall I cancel the Blue Kettle?", "What does it cost?", CANCEL, DONE),
            "no yes came", id="no_answer",
        ),
        pytest.param(
            (WISH, LOOK, "Shall I pay the invoice?", "Yes, please.", CANCEL, DONE),
            "the question was about something else", id="other_action",
        ),
        pytest.param(
            (WISH, LOOK, "Shall I cancel the order for the Oak Desk?", "Yes, please.", CANCEL, DONE),
            "the question was about something else", id="other_thing",
        ),
        pytest.param(
            (WISH, LOOK, "Which order do you mean?", "Yes, the Blue Kettle.", CANCEL, DONE),
            "the user was not asked", id="another_kind_of_question",
        ),
        pytest.param(
            ("Yes, cancel the kettle.", LOOK, CANCEL, "Shall I cancel the Blue Kettle?", "Yes.", DONE),
            "the user was not asked", id="asked_afterwards",
        ),
        pytest.param(
            (WISH, LOOK, "I'll pay the invoice. You'd have to cancel the order yourself. Are you happy with that?",
             "Yes.", CANCEL, DONE),
            "the question was about something else", id="in_a_remark_only",
        ),
        pytest.param(
            (WISH, LOOK, "The order can't be cancelled any more. I'll pay the invoice. Are you happy with that?",
             "Yes.", CANCEL, DONE),
            "the question was about something else", id="told_before_the_proposal",
        ),
        pytest.param(
            ("Pay P1 £300.", "Shall I pay the invoice of £30.00?", "Yes.", PAY, "Paid."),
            "the question was about something else", id="other_amount",
        ),
    ],
)  # fmt: skip
def test_a_missing_yes(steps, detail):
    report = find_faults(*steps)
    assert [fault.detail for fault in report.missing] == [detail]
    assert report.share_confirmed == 0 and not report.needless


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param((WISH, LOOK, "Shall I cancel the Blue Kettle?", "Yes, please.", CANCEL, DONE), id="yes"),
        pytest.param(
            (WISH, LOOK, "I'm going to cancel order W1 and refund £34.50. Is that okay?", "Sounds good.", CANCEL, DONE),
            id="natural_words",
        ),
        pytest.param(
            (WISH, LOOK, "The cancellation of the Blue Kettle can't be undone. Do you confirm (yes/no)?", "yes", CANCEL,
             DONE),
            id="recorded_style",
        ),
        pytest.param(
            (WISH, LOOK, "This is the plan:\n- **Cancel** order W1\n- **Refund:** $34.50\n\nShall I proceed?", "Yes!",
             CANCEL, DONE),
            id="a_summary_and_a_plain_question",
        ),
        pytest.param(
            (WISH, LOOK, "I'll cancel the order. You'd have to pay for another address. Are you happy with that?",
             "Yes.", CANCEL, DONE),
            id="a_remark_before_a_plain_question",
        ),
        pytest.param(
            (WISH, LOOK, "Changes of the address end today. Shall I cancel it?", "Yes.", CANCEL, DONE),
            id="another_action_in_the_sentence_before",
        ),
        pytest.param((WISH + " Just go ahead without asking.", LOOK, CANCEL, DONE), id="permitted_in_advance"),
        pytest.param(("I confirm that you may cancel order W1.", CANCEL, DONE), id="consent_with_the_request"),
        pytest.param(
            (WISH, LOOK, "Shall I cancel the Blue Kettle?", "No.", "Shall I cancel the Blue Kettle after all?", "Yes.",
             CANCEL, DONE),
            id="the_last_answer_counts",
        ),
        pytest.param(
            ("Pay P1 £500.", "Shall I pay the invoice of £500.00?", "Actually, make it £300.00 instead.", PAY, "Paid."),
            id="corrected",
        ),
        pytest.param(
            ("Cancel W1 and pay P1 £300.", "Shall I cancel order W1, and pay the invoice of £300.00?", "Yes.", CANCEL,
             PAY, "Done."),
            id="two_in_one_question",
        ),
        pytest.param(
            (WISH, LOOK, "Shall I cancel the Blue Kettle?", "Yes.", (*CANCEL, "assistant", "refused"), CANCEL, DONE),
            id="a_second_try",
        ),
    ],
)  # fmt: skip
def test_a_yes(steps):
    report = find_faults(*steps)
    assert report.missing == () and report.needless == () and report.share_confirmed == 1


def test_one_yes_is_not_for_a_second_thing():
    other = ("cancel_order", {"order_id": "W2"})
    faults = find_faults(WISH, LOOK, "Shall I cancel the Blue Kettle?", "Yes.", CANCEL, other, DONE).missing
    assert [(fault.event, fault.detail) for fault in faults] == [(2, "the question was about something else")]
    both = "Shall I cancel the Blue Kettle and the Oak Desk?"
    assert find_faults(WISH, LOOK, both, "Yes.", CANCEL, other, DONE).missing == ()


def test_one_yes_is_not_for_another_action():
    question = "Shall I cancel order W1 for the Blue Kettle?"
    refund = ("pay_invoice", {"payee_id": "W1", "amount": 300.0})
    faults = find_faults("Cancel W1 and pay W1 £300.", LOOK, question, "Yes.", CANCEL, refund, "Done.").missing
    assert [fault.tool for fault in faults] == ["pay_invoice"]


def test_what_needs_no_yes_and_was_not_asked_for_is_no_fault():
    report = find_faults("Pay P1 £100.", ("pay_invoice", {"payee_id": "P1", "amount": 100.0}), "Paid.", gold=(PAY,))
    assert report.declared == {} and report.share_confirmed is None and report.build_outcomes() == []


MOVES = "Please send the kettle order W1 to Leeds."
ASK = "Shall I change the address of the Blue Kettle?"


def test_a_needless_question():
    report = find_faults(MOVES, LOOK, ASK, "Yes.", MOVE, "Done.", gold=(MOVE,))
    assert [(fault.tool, fault.event) for fault in report.needless] == [("change_address", 1)] and not report.missing
    small = ("pay_invoice", {"payee_id": "P1", "amount": 100.0})
    report = find_faults("Pay P1 £100.", "Shall I pay the invoice of £100.00?", "Yes.", small, "Paid.", gold=(small,))
    assert [fault.tool for fault in report.needless] == ["pay_invoice"], "below the bound nobody asks"


@pytest.mark.parametrize(
    ("steps", "settings"),
    [
        pytest.param((f"{MOVES} Check with me first.", LOOK, ASK, "Yes.", MOVE, "Done."), {}, id="wished_for"),
        pytest.param(
            ("Please send the kettle order somewhere else.", LOOK, "Shall I change the address to Leeds?", "Yes.", MOVE,
             "Done."),
            {}, id="settles_a_value",
        ),
        pytest.param(
            ("Please send my order to Leeds.", LOOK, ASK, "Yes.", MOVE, "Done."), {}, id="settles_which_thing",
        ),
        pytest.param(
            ("Is the kettle on its way?", LOOK, "Not yet. Would you like me to change its address?", "Yes, W1 to Leeds",
             MOVE, "Done."),
            {"gold": ()}, id="an_offer",
        ),
        pytest.param(
            (MOVES, LOOK, (*CANCEL, "assistant", "refused"), ASK, "Yes.", MOVE, "Done."), {}, id="after_a_refusal",
        ),
        pytest.param((MOVES, LOOK, "Shall I say it?", "Yes.", MOVE, "Done."), {}, id="about_something_else"),
        pytest.param(
            ("Cancel the desk, W2, and send the kettle, W1, to Leeds.", LOOK,
             "Shall I cancel the Oak Desk and change the address of the Blue Kettle?", "Yes.",
             ("cancel_order", {"order_id": "W2"}), MOVE, "Done."),
            {}, id="together_with_one_that_needs_it",
        ),
    ],
)  # fmt: skip
def test_a_question_that_is_not_needless(steps, settings):
    known = [] if "somewhere else" in steps[0] else [
        UserFact(key="k", label="city", value="Leeds", said="Leeds", slot="city", how="value", stated=True)
    ]  # fmt: skip
    report = find_faults(*steps, **{"gold": (MOVE,), "known": known, **settings})
    assert report.needless == ()


def test_a_user_who_asked_in_a_variant_is_asked():
    twist = Perturbation(base="b", turn=0, act="check", tool="change_address", proof="p")
    report = find_faults(MOVES, LOOK, ASK, "Yes.", MOVE, "Done.", gold=(MOVE,), twist=twist)
    assert report.needless == ()


def test_in_direct_mode_no_yes_is_needed_and_asking_is_wrong():
    assert find_faults(WISH, LOOK, CANCEL, DONE, mode="direct").build_outcomes() == []
    report = find_faults(WISH, LOOK, "Shall I cancel the Blue Kettle?", mode="direct")
    assert [(fault.tool, fault.event) for fault in report.needless] == [("cancel_order", None)]


def test_calls_of_the_user_need_no_yes():
    assert find_faults("Hi.", "Please reset it.", ("reset_phone", {}, "user"), "I did.", "Good.").declared == {}


# The verdict


@pytest.fixture(scope="module")
def bank():
    return Doctored("bank")


async def find_confirmed_play(place):
    """A play with a yes that is needed, and the message that asks for it."""
    for task, trajectory in await place.plays(12):
        report = find_confirmation_faults(task, trajectory, place.spec, place.wording)
        if report.declared:
            asked = next(
                index
                for index, message in enumerate(trajectory.messages)
                if message.role == "assistant" and not message.tool_calls
                and find_confirmation_requests(message.content)
            )  # fmt: skip
            return task, trajectory, asked
    raise AssertionError("no play has a yes")


def take_out(trajectory, asked):
    """The same play without a question and its answer."""

    def shift(index):
        return index - 2 if index > asked else index

    return trajectory.model_copy(
        update={
            "messages": (*trajectory.messages[:asked], *trajectory.messages[asked + 2 :]),
            "events": tuple(e.model_copy(update={"message": shift(e.message)}) for e in trajectory.events),
            "turns": tuple(
                t.model_copy(update={"start": shift(t.start), "stop": shift(t.stop)}) for t in trajectory.turns
            ),
        }
    )


async def judge(place, task, trajectory, **settings):
    return await verify_trajectory(
        task, trajectory, place.state, place.session(), VerifySettings(**settings), wording=place.wording
    )


@pytest.mark.parametrize("name", ["bank", "retail", "travel", "mobile_care"])
async def test_scripted_agents_ask_exactly_when_the_rules_say_so(name):
    place = Doctored(name)
    misread = asked = 0
    for task, trajectory in await place.plays(12):
        report = find_confirmation_faults(task, trajectory, place.spec, place.wording)
        assert report.missing == () and report.needless == ()
        asked += sum(report.declared.values())
        misread += len(find_confirmation_faults(task, trajectory, place.spec).missing)
    assert misread <= max(1, 0.05 * asked), "without phrases, nearly all are understood, too"


async def test_a_skipped_yes_is_rejected_with_its_reason(bank):
    task, trajectory, asked = await find_confirmed_play(bank)
    good = await judge(bank, task, trajectory)
    assert good.accepted and any(check.says == MISSING and check.passed for check in good.checks)
    skipped = await judge(bank, task, take_out(trajectory, asked))
    assert not skipped.accepted and skipped.reasons == (f"check failed: {CONDUCT}: {MISSING}",)
    assert skipped.rewards["checks"] < good.rewards["checks"]


async def test_settings_can_only_report_it(bank):
    task, trajectory, asked = await find_confirmed_play(bank)
    verdict = await judge(bank, task, take_out(trajectory, asked), confirmation="report")
    assert verdict.accepted and verdict.rewards["checks"] == 1
    assert [check.says for check in verdict.checks if check.kind == REPORTED] == [MISSING]


async def test_a_needless_question_is_rejected_with_its_own_reason(bank):
    rules = {tool.name: tool.model_copy(update={"confirm": NEVER}) for tool in bank.spec.tools}
    task, trajectory, _ = await find_confirmed_play(bank)
    place = Doctored("bank")
    place.spec = bank.spec.model_copy(update={"tools": tuple(rules.values()), "id": "env_without_rules"})
    verdict = await judge(place, task, trajectory)
    assert not verdict.accepted and verdict.reasons == (f"check failed: {CONDUCT}: {NEEDLESS}",)


def test_words_of_a_name_say_nothing_of_the_action():
    shown = {"result": [{"order_id": "W1", "item": "address label printer", "status": "pending"}]}
    call = CallContext(SPEC.tools[1], {"order_id": "W1"}, [shown])
    other = CallContext(SPEC.tools[3], {"order_id": "W1", "city": "Oslo"}, [shown])
    matcher = get_action_matcher(SPEC, None)
    question = "Shall I cancel the order of the address label printer?"
    assert matcher.describes([question], question, call) and not matcher.describes([question], question, other)
