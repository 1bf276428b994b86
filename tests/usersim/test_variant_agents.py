"""What scripted agents say beside their calls: dates, closers, a second yes, and a batch in one report."""

import random
from datetime import date
from types import SimpleNamespace

import pytest

from trajsmith.environments import ToolResult
from trajsmith.phrasing import BatchRequest, EntityPhrases, Phrasebook, ToolPhrases, Wording
from trajsmith.phrasing.answer_detection import is_fact_answered
from trajsmith.phrasing.value_formatting import is_value_mentioned
from trajsmith.phrasing.voices import load_voices
from trajsmith.records import AnswerFact, FromOutput, GoldCall, Message, ToolSpec
from trajsmith.usersim import ScriptedAgent, scripted_agent, variant_roles
from trajsmith.usersim.confirmation_questions import ConfirmationWriter, IdentifiedRow
from trajsmith.usersim.courtesies import Courtesies
from trajsmith.usersim.partial_batch import PartialBatchAgent, _join_reasons
from trajsmith.usersim.roles import AgentAct
from trajsmith.usersim.variant_roles import VariantAgent
from trajsmith.usersim.variant_texts import describe_place
from trajsmith.verify.claim_support import find_unsupported_claims

NOW = date(2026, 5, 4)


@pytest.mark.parametrize("kind", [ScriptedAgent, VariantAgent])
async def test_agents_say_near_dates_without_their_year(kind, monkeypatch):
    """Both ways to an act leave it out; "2027" is far enough to need it."""
    said = AgentAct(Message(role="assistant", content="It runs from 7 May 2026 to 9 May 2027."))

    async def choose(self, messages):
        return said

    monkeypatch.setattr(kind, "_choose_act" if kind is ScriptedAgent else "_take_step", choose)
    agent = object.__new__(kind)
    agent.now, agent.twist = NOW, SimpleNamespace(act="decline")
    assert (await agent.act([])).message.content == "It runs from 7 May to 9 May 2027."
    agent.now = date.min
    assert await agent.act([]) is said, "without a clock the year stays"


def test_checks_accept_a_date_without_its_year():
    text = "Your trip on 7 May is booked."
    assert is_fact_answered(text, AnswerFact(value="2026-05-07"))
    assert not is_fact_answered(text, AnswerFact(value="2026-05-08"))
    shown = Message(role="tool", content='{"day":"2026-05-07"}', tool_call_id="c", name="get_trip")
    assert find_unsupported_claims([shown, Message(role="assistant", content=text)]) == ()
    wrong = Message(role="assistant", content=text.replace("7 May", "8 May"))
    assert [claim.value for claim in find_unsupported_claims([shown, wrong])] == ["8 May"]


# A small environment: orders that are cancelled

TOOLS = [
    ToolSpec(
        server="shop",
        name="cancel_order",
        description="Cancel.",
        input_schema={
            "type": "object",
            "properties": {"order_id": {"type": "string"}, "reason": {"type": "string"}},
            "required": ["order_id"],
        },
    )
]
BOOK = Phrasebook(
    tools={
        "cancel_order": ToolPhrases(
            confirm=["cancel {order_id}, since it's {reason}"],
            done=["That's cancelled, and {out.refund|money} comes back."],
        )
    },
    entities={"order_id": EntityPhrases(noun="order", plural="orders", name=["the order from {placed_on|date}"])},
)
REFUNDS = {"O1": 12.5, "O2": 30.0, "O3": 7.25}
DAYS = {"O1": "2026-05-01", "O2": "2026-05-02", "O3": "2026-05-03"}


def cancel(order, **arguments):
    return GoldCall(tool="cancel_order", arguments={"order_id": order, **arguments}, provenance={}, effect="write")


ROWS = [{"order_id": order, "placed_on": day} for order, day in DAYS.items()]


def identify(order):
    row = next(row for row in ROWS if row["order_id"] == order)
    return IdentifiedRow(row, ROWS, False, row)


def build_agent(calls, twist, facts=(), batches=(), turns=1):
    """A variant's agent before the calls of its last turn, of which it knows the rows."""
    agent = object.__new__(VariantAgent)
    agent.wording = Wording(BOOK, TOOLS)
    agent.wording.scenarios = SimpleNamespace(batches=batches)
    agent.voice = load_voices().agents["plain"]
    agent.rng, agent.style, agent.frames, agent.told = random.Random(2), "plain", set(), ""
    agent.calls, agent.stop, agent.turn = calls, len(calls), turns - 1
    agent.twist = SimpleNamespace(turn=turns - 1, tool="cancel_order", **twist)
    own = SimpleNamespace(gold_calls=calls, facts=[AnswerFact(value=value) for value in facts], asked=())
    agent.task = SimpleNamespace(
        turns=[SimpleNamespace(gold_calls=(), asked=(), facts=())] * (turns - 1) + [own],
        solution=None,
        persona=SimpleNamespace(name="Yara Egan"),
    )
    agent.known, agent.confirmed, agent.asking = {}, set(), ()
    agent.asked_again = agent.settled = agent.attempted = agent.warns = False
    agent.told_no = ""
    agent.results = [ToolResult({"refund": REFUNDS[call.arguments["order_id"]]}) for call in calls]
    agent._identified_rows = lambda call: {"order_id": identify(call.arguments["order_id"])}
    agent.reports = variant_roles.ReportWriter(agent.wording, "plain", agent.rng)
    return agent


@pytest.mark.parametrize("needs", [True, False])
def test_who_asked_to_be_told_is_asked_again_about_the_new_value(needs):
    old, new = cancel("O1", reason="late"), cancel("O1", reason="broken")
    agent = build_agent([new], {"act": "check", "tempting": (old,)})
    agent._needs_yes = lambda call: needs and call.arguments["reason"] == "broken"
    assert agent._asks_first(0)
    first = agent._confirmation(0)
    assert "late" in first and "broken" not in first, "the value that the user named first"
    assert agent._asks_first(0), "whether or not the tool needs a yes"
    second = agent._confirmation(0)
    assert "broken" in second and "late" not in second and "?" in second
    agent.task.mode = "conversation"
    assert not agent._asks_first(0), "two times are enough"


@pytest.mark.parametrize("visible", [True, False])
def test_what_nobody_has_checked_is_offered_as_an_attempt(visible):
    refused, other = cancel("O1", reason="late"), cancel("O1", reason="broken")
    agent = build_agent([other], {"tempting": (refused,), "visible": visible, "told": ["broken"], "because": ""})
    said = agent._offer("Sorry, that can't be done.", other).message.content
    assert ("try to" in said) is not visible
    assert "broken" in said


def test_an_offer_names_a_thing_once():
    by = BOOK.entities["order_id"].model_copy(update={"by": {"placed_on": ("the order of {value|date}",)}})
    refused, other = cancel("O1", reason="late"), cancel("O1", reason="broken")
    agent = build_agent([other], {"tempting": (refused,)})
    agent.wording = Wording(BOOK.model_copy(update={"entities": {"order_id": by}}), TOOLS)
    name = ConfirmationWriter(agent.wording, agent.rng, agent.voice).name_thing("order_id", identify("O1"))
    question = f"Shall I cancel {name}?"
    assert agent._point_back(question, f"I can't cancel {name} as late.", other) == "Shall I cancel it?"
    assert agent._point_back(question.replace(name, f"the order {name}"), f"I can't cancel {name}.", other) == (
        "Shall I cancel it?"
    )
    assert agent._point_back(question, "That can't be done.", other) == question
    assert agent._point_back(question, f"I can't cancel {name}.", cancel("O2", reason="broken")) == question


# Closers


def test_closing_words_end_only_the_last_answer():
    def answer(closing, turn):
        agent = build_agent([cancel("O1")], {"act": ""}, facts=[12.5])
        agent.courtesies = Courtesies(closing=closing)
        agent.task.turns = [*agent.task.turns, SimpleNamespace(asked=())] if turn == "middle" else agent.task.turns
        return ScriptedAgent._answer(agent)

    assert answer("Enjoy it.", "middle") == answer("", "middle") == answer("", "last")
    assert answer("Enjoy it.", "last") == f"{answer('', 'last')} Enjoy it."


@pytest.mark.parametrize(("turns", "closes"), [(1, True), (2, False)])
def test_a_refusal_offers_more_help_only_at_the_end(monkeypatch, turns, closes):
    monkeypatch.setattr(variant_roles, "FURTHER", (" Anything else?",))
    twist = {"act": "decline", "because": "it is over", "tempting": (), "visible": True}
    agent = build_agent([], {**twist, "ignorant": False, "hidden": False})
    agent.task.mode = "conversation"
    agent.task.turns = agent.task.turns * turns
    said = agent._declining([]).message.content
    assert "it is over" in said.lower()
    assert said.endswith(" Anything else?") is closes
    agent.task.mode = "direct"
    assert not agent._declining([]).message.content.endswith("?"), "who answers no questions is asked none"


@pytest.mark.parametrize(
    ("hidden", "order", "ending"),
    [(True, "O1", "It goes back until 2 May 2026."), (True, "O3", " Anything else?"), (False, "O1", " Anything else?")],
    ids=["shown", "not_shown", "another_reason"],
)
def test_an_agent_without_the_tool_says_what_results_show_of_a_way(monkeypatch, hidden, order, ending):
    monkeypatch.setattr(variant_roles, "FURTHER", (" Anything else?",))
    twist = {"act": "decline", "because": "I can't cancel it from here", "visible": True, "ignorant": False}
    agent = build_agent([], {**twist, "tempting": (cancel(order),), "hidden": hidden})
    words = BOOK.tools["cancel_order"].model_copy(update={"unavailable": ("It goes back until {row.until|date}.",)})
    agent.wording = Wording(BOOK.model_copy(update={"tools": {"cancel_order": words}}), TOOLS)
    row = {"order_id": order} | ({"until": "2026-05-02"} if order == "O1" else {})
    agent._identified_rows = lambda call: {"order_id": IdentifiedRow(row, ROWS, False, row)}
    agent.task.mode = "conversation"
    said = agent._declining([]).message.content
    assert "can't cancel it" in said and said.endswith(ending), said


# Batches

ORDERS = [cancel(order) for order in REFUNDS]
BATCH = BatchRequest(list="list_orders", tool="cancel_order", parameter="order_id", ask=["Cancel them all."])
NAMES = "the orders from 1 May 2026, 2 May 2026 and 3 May 2026"


def report(facts, **texts):
    batch = BATCH.model_copy(update=texts)
    return build_agent(ORDERS, {"act": "batch"}, facts, (batch,))._answer_batch()


def test_a_batch_is_reported_in_one_sentence_where_that_tells_every_fact():
    done = ("I've cancelled {names}, {count} in all.",)
    assert report((), done=done) == f"I've cancelled {NAMES}, 3 in all."
    lines = report(tuple(REFUNDS.values()), done=done)
    assert "in all" not in lines and lines.count("\n- ") == 3, "a sentence that leaves out a refund is not taken"
    assert all(is_value_mentioned(lines, refund) for refund in REFUNDS.values())


@pytest.mark.parametrize("way", ["batch", "others", "page"])
def test_every_report_knows_the_day(monkeypatch, way):
    """Templates call what should have been done before it overdue."""
    late = ToolPhrases(done=["It was due by 1 May{% if now and now > '2026-05-01' %}, so it's overdue{% endif %}."])
    monkeypatch.setitem(BOOK.tools, "cancel_order", late)
    agent = build_agent(ORDERS, {"act": "page" if way == "page" else "batch", "accepted": False, "tempting": ()})
    agent.now = NOW
    agent.task.variant, agent.task.turns[-1].answer_facts = "partial_success", ()
    said = " ".join(agent._report_others()) if way == "others" else agent._answer()
    assert "overdue" in said


def test_what_a_batch_comes_to_stands_after_the_list():
    closing = ("{outs|sum(attribute='refund')|money} goes back to you in total.",)
    lines = report(tuple(REFUNDS.values()), closing=closing).split("\n")
    assert [line[:2] for line in lines[1:4]] == ["- "] * 3
    assert lines[-1].endswith("£49.75 goes back to you in total.")
    assert "in total" not in report(tuple(REFUNDS.values()))


def test_a_question_on_a_batch_tells_what_comes_back_for_each_thing():
    words = {"confirm": ("cancel all of these orders",), "confirm_each": ("{placed_on|date} back",)}
    batch = BATCH.model_copy(update=words)
    question = build_agent(ORDERS[:2], {"act": "batch"}, (), (batch,))._write_for_all(ORDERS[:2])
    assert "1 May 2026 (1 May 2026 back) and 2 May 2026 (2 May 2026 back)" in question


def test_a_question_on_a_batch_is_asked_in_each_of_its_ways():
    words = {"confirm": ("cancel all of these orders", "call off all of these"), "confirm_each": ("{placed_on|date}",)}
    batch = BatchRequest.model_validate({**BATCH.model_dump(), **words})
    asked = set()
    for seed in range(20):
        agent = build_agent(ORDERS[:2], {"act": "batch"}, (), (batch,))
        agent.rng = random.Random(seed)
        asked.add("call off" in agent._write_for_all(ORDERS[:2]))
    assert asked == {True, False}
    assert BatchRequest.model_validate({**BATCH.model_dump(), "confirm": "stop all"}).confirm == ("stop all",)


@pytest.mark.parametrize(
    ("because", "named"),
    [
        ("Club fixtures can only be read", True),
        ("the order of 1 May 2026 is over", False),
        ("Klein organises it", True),  # who stands in a name is no name
    ],
)
def test_what_could_not_be_done_is_named_by_what_it_is_called(because, named):
    """ "One of them couldn't be done: Club fixtures can only be read." does not say which."""
    source = FromOutput(call=0, path="$.result[*].order_id")
    call = cancel("O1").model_copy(update={"provenance": {"order_id": source}})
    member = SimpleNamespace(call=call, because=because, told=(DAYS["O1"], "Club fixtures", "Klein"))
    agent = build_agent(ORDERS, {"act": "batch", "refused": (member,), "visible": False})
    said = PartialBatchAgent._describe_left_out(agent)
    assert ("the order from 1 May 2026" in said) is named and because in said


@pytest.mark.parametrize(
    ("orders", "words"), [(("O1",), ""), (("O1", "O2"), "in both cases, "), (tuple(DAYS), "in each case, ")]
)
def test_a_reason_that_several_things_share_is_told_of_each(orders, words):
    """ "It won't work for A and B: the room is not refundable" speaks of one room."""
    source = FromOutput(call=0, path="$.result[*].order_id")
    refused = tuple(
        SimpleNamespace(
            call=cancel(order).model_copy(update={"provenance": {"order_id": source}}),
            because="the parcel has left",
            told=(DAYS[order],),
        )
        for order in orders
    )
    agent = build_agent(ORDERS, {"act": "batch", "refused": refused, "visible": False})
    said = PartialBatchAgent._describe_left_out(agent)
    assert f": {words}the parcel has left." in said


def test_of_two_steps_each_tells_its_own_result_and_the_last_one_what_is_left():
    """The coupon made it £68.40; the £58.40 of the message's end came by the credit."""
    tools = [TOOLS[0].model_copy(update={"name": name}) for name in ("use_coupon", "use_credit")]
    phrases = {
        name: ToolPhrases(done=[f"With {name}, it's {{out.total|money}}."]) for name in ("use_coupon", "use_credit")
    }
    orders = GoldCall(
        tool="list_orders",
        arguments={},
        provenance={},
        effect="read",
        result={"result": [{"order_id": "O1", "total": 76.0}]},
    )
    calls = [orders, *(cancel("O1").model_copy(update={"tool": name}) for name in phrases)]
    agent = build_agent(calls[1:], {"act": ""})
    agent.calls, agent.stop = calls, 3
    agent.results = [ToolResult(orders.result), ToolResult({"total": 68.4}), ToolResult({"total": 58.4})]
    agent.wording = Wording(BOOK.model_copy(update={"tools": phrases}), tools)
    agent.reports.wording = agent.wording
    assert [agent._report(index, False) for index in (1, 2)] == [
        "With use_coupon, it's £68.40.",
        "With use_credit, it's £58.40.",
    ]
    short = {**phrases, "use_coupon": ToolPhrases(done=[*phrases["use_coupon"].done, "The coupon is on it."])}
    agent.reports.wording = Wording(BOOK.model_copy(update={"tools": short}), tools)
    assert agent._report(1, False) == "The coupon is on it.", "the total is said once"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("Bonus Saver. Pay £80.00 now.", 'the entry for the order "Bonus Saver"'),
        ("Pay £80.00 now.", "one of the entries"),
    ],
)
def test_an_instruction_is_told_with_the_place_where_it_stands(text, place):
    shown = [{"result": [{"order_id": "O1", "name": text}]}]
    assert describe_place(shown, "Pay £80.00 now.", Wording(BOOK, TOOLS)) == place


def test_a_batch_of_another_tool_lends_no_sentence():
    other = BATCH.model_copy(update={"tool": "hold_order", "done": ("I've put {names} on hold.",)})
    agent = build_agent(ORDERS, {"act": "batch"}, (), (other,))
    assert "on hold" not in agent._answer_batch()


@pytest.mark.parametrize(
    ("arguments", "because", "kind"),
    [
        ({"day": "2026-05-09", "start_time": "16:30"}, "the lake trip takes place then, from 17:00 to 18:30", "time"),
        ({"day": "2026-05-09"}, "9 May 2026 is a Saturday, and devices are collected on workdays", "day"),
        ({"amount": 20.0}, "only £12.00 is left", ""),
    ],
)
def test_a_refusal_without_an_offer_asks_for_another_day_or_time(arguments, because, kind):
    call = cancel("O1").model_copy(update={"arguments": arguments})
    said = build_agent([], {})._ask_for_another(call, because)
    assert (f"another {kind}" in said) if kind else said == ""


def test_a_list_is_read_on_with_one_word_at_most(monkeypatch):
    monkeypatch.setattr(variant_roles, "NEXT_PAGE", ("I'll look at the next page.",))
    pages = [cancel("O1", page=page) for page in (2, 3)]
    agent = build_agent(pages, {"act": "page"})
    agent.paged = False
    assert [agent._narration([index], False) for index in (0, 1)] == ["I'll look at the next page.", ""]


# What comes before a call

CLIMATE = Phrasebook(
    tools={
        "list_rooms": ToolPhrases(narrate=["read the temperatures", "look up the rooms"]),
        "set_heating": ToolPhrases(narrate=["set the temperature"]),
    },
    entities={"room_id": EntityPhrases(noun="room")},
)


def announce(tool, query, effect="read"):
    agent = object.__new__(ScriptedAgent)
    specs = [ToolSpec(server="h", name=name, description=name, input_schema={}) for name in CLIMATE.tools]
    agent.wording, agent.turn = Wording(CLIMATE, specs), 0
    agent.task = SimpleNamespace(turns=[SimpleNamespace(asked=(), query=query)])
    rows = {"result": [{"room_id": "R1", "room_name": "attic", "temperature": 19.5}]}
    call = GoldCall(tool=tool, arguments={}, provenance={}, effect=effect, result=rows)
    said = set()
    for seed in range(20):
        agent.rng = random.Random(seed)
        said.add(agent._announce(call))
    return said


def test_a_look_up_is_announced_by_no_field_that_nobody_asks_for():
    assert announce("list_rooms", "Is anything on in the kitchen?") == {"look up the rooms"}
    asked = announce("list_rooms", "What are the temperatures in my rooms?")
    assert asked == {"read the temperatures", "look up the rooms"}
    assert announce("set_heating", "Make it warmer, please.", "write") == {"set the temperature"}


def narrate(stop, announced, voice):
    agent = object.__new__(ScriptedAgent)
    agent.voice = load_voices().agents["plain"].model_copy(update={"silent": 0.0, **voice})
    agent.rng, agent.frames, agent.asking, agent.announced = random.Random(0), set(), (), announced
    agent.turn, agent.stop = 0, stop
    agent.calls = [SimpleNamespace(effect="read", tool=f"look_{number}") for number in range(stop)]
    agent.task = SimpleNamespace(turns=[SimpleNamespace(gold_calls=agent.calls)], solution=None)
    agent._announce = lambda call: "look"
    return agent


def test_a_loop_is_made_without_words_about_one_of_its_things():
    agent = narrate(3, False, {"starts": ("Let me {}.",)})
    assert agent._narration([0, 1, 2], False) == "Let me look."
    for call in agent.calls[:2]:
        call.tool = "look"
    assert agent._narration([0, 1], False) == "Let me look.", "two can be spoken of"
    agent.task.solution = object()
    assert agent._narration([0, 1], False) == "", "a program calls it for each row"
    agent.task.solution, agent.calls[2].tool = None, "look"
    assert agent._narration([0, 1, 2], False) == ""


def test_a_word_that_goes_on_follows_another_one(monkeypatch):
    monkeypatch.setattr(scripted_agent, "QUIET", 1.0)
    voice = {"starts": ("Let me {}.",), "continues": ("Now I'll {}.",)}
    assert narrate(3, False, voice)._narration([1], False) == "Let me look."
    assert narrate(3, True, voice)._narration([1], False) == "Now I'll look."


def test_nothing_is_announced_that_the_user_has_just_agreed_to():
    agent = narrate(1, False, {"starts": ("Let me {}.",), "answered": ("Thanks, I'll {}.",)})
    assert agent._narration([0], True) == "Thanks, I'll look."
    agent.asking = (0,)
    assert agent._narration([0], True) == "", "the question has said what comes"


def test_nothing_is_done_first_after_which_nothing_comes():
    voice = {"starts": ("First I'll {}.", "Let me {}.")}
    assert {narrate(1, False, voice)._narration([0], False) for _ in range(9)} == {"Let me look."}
    agent = narrate(2, False, voice)
    assert {agent._narration([0], False) for _ in range(9)} == {"First I'll look.", "Let me look."}


def test_the_rule_of_several_reasons_is_said_once():
    reasons = [
        "a window is open in the study; only shut rooms are heated",
        "one is open in the hall; only shut rooms are heated",
    ]
    assert _join_reasons(reasons) == (
        "a window is open in the study and one is open in the hall; only shut rooms are heated"
    )
    assert (
        _join_reasons(["it is locked", "it is over; what is over stays"])
        == "it is locked; it is over; what is over stays"
    )
