"""How the scripted agent asks for a yes: once, together where that is natural, and with names for things."""

import random
from types import SimpleNamespace

import pytest

from trajsmith.environments import ToolResult
from trajsmith.environments.library import ENVIRONMENTS, get_phrases_path
from trajsmith.phrasing import EntityPhrases, Phrasebook, ToolPhrases, Wording, load_phrasebook, load_scenarios
from trajsmith.phrasing.agreement_detection import find_confirmation_requests
from trajsmith.phrasing.scenarios import BatchRequest, ScenarioBook
from trajsmith.phrasing.voices import get_agent_voice
from trajsmith.records import ConfirmationRule, FromOutput, FromUser, GoldCall, Selector, ToolSpec
from trajsmith.usersim.confirmation_questions import ConfirmationWriter, IdentifiedRow, collect_shown
from trajsmith.usersim.scripted_agent import ScriptedAgent

ACCOUNTS = [{"account_id": "A1", "name": "Bills Account"}, {"account_id": "A2", "name": "Bonus Saver"}]
TRIPS = [
    {"trip_id": "B1", "city": "Lunna", "day": "2026-05-03", "fee": 12.5},
    {"trip_id": "B2", "city": "Lunna", "day": "2026-05-09", "fee": 0.0},
]
ORDERS = [{"order_id": f"S{n}", "payee": payee} for n, payee in enumerate(("Ida", "Noor", "Umar"))]


def make_tool(name, rule, *parameters):
    schema = {"type": "object", "properties": {name: {} for name in parameters}}
    return ToolSpec(server="bank", name=name, description=f"{name}.", input_schema=schema, confirm=rule)


TOOLS = [
    make_tool("pay", ConfirmationRule(above={"amount": 200}, because="a payment is final"), "account_id", "amount"),
    make_tool("stop", ConfirmationRule(always=True, because="the customer loses it"), "order_id"),
    make_tool("cancel", ConfirmationRule(always=True), "trip_id"),
    make_tool("book", ConfirmationRule(always=True), "trip_id", "seats"),
]
BOOK = Phrasebook(
    entities={
        "account_id": EntityPhrases(noun="account", by={"name": ("my {value}", "the {value}")}),
        "order_id": EntityPhrases(noun="standing order", by={"payee": ("my order to {value}",)}, row="to {payee}"),
        "trip_id": EntityPhrases(
            noun="trip",
            name="the trip to {city} on {day|date}",
            by={"city": ("my trip to {value}",)},
            row="{city}, {day}",
        ),
    },
    tools={
        "pay": ToolPhrases(confirm=("send it", "send {amount|money} from {account_id}; it can't be taken back")),
        "stop": ToolPhrases(confirm=("stop this standing order for good",)),
        "cancel": ToolPhrases(confirm=("cancel it", "cancel {trip_id}", "cancel {trip_id} and keep {row.fee|money}")),
        "book": ToolPhrases(confirm=("book this connection", "book {seats} seats on {trip_id}", "book {seats} seats")),
    },
)


def make_call(tool, row, rows, stale=False, **arguments):
    name = next(iter(row))
    provenance = {name: FromOutput(call=0, path=f"$.result[*].{name}")}
    provenance |= {key: FromUser(known=key) for key in arguments}
    call = GoldCall(tool=tool, arguments={name: row[name], **arguments}, provenance=provenance, effect="write")
    return call, {name: IdentifiedRow(row, rows, stale, {} if stale else row)}


def ask(*calls, seed=0):
    text = ConfirmationWriter(Wording(BOOK, TOOLS), random.Random(seed), get_agent_voice("plain")).write(calls)
    assert find_confirmation_requests(text), "the check knows it as a request for a yes"
    return text


@pytest.mark.parametrize("seed", range(6))
def test_thing_and_bounded_amount_are_always_named(seed):
    text = ask(make_call("pay", ACCOUNTS[0], ACCOUNTS, amount=300.0), seed=seed)
    assert "send £300.00 from the Bills Account" in text and "It can't be taken back." in text
    assert "A1" not in text and ";" not in text


def test_a_thing_that_the_phrase_does_not_name_is_shown():
    assert "to Noor" in ask(make_call("stop", ORDERS[1], ORDERS))


def test_a_thing_is_named_in_the_question_and_not_introduced():
    for seed in range(30):
        text = ask(make_call("stop", ORDERS[1], ORDERS), seed=seed)
        assert "stop your order to Noor for good" in text
        assert "this standing order" not in text and text.count("Noor") == 1


def test_what_a_row_shows_is_said_of_that_row_alone():
    for seed in range(12):
        text = ask(make_call("cancel", TRIPS[0], TRIPS), seed=seed)
        assert "cancel the trip to Lunna on 3 May 2026 and keep £12.50" in text
        assert "£12.50" not in ask(make_call("cancel", TRIPS[0], TRIPS, stale=True), seed=seed)


def test_no_argument_is_left_out_where_a_phrase_has_them_all():
    for seed in range(12):
        assert "book 3 seats on the trip to Lunna on 9 May 2026" in ask(
            make_call("book", TRIPS[1], TRIPS, seats=3), seed=seed
        )


def test_a_name_that_two_rows_share_is_no_name():
    twins = [{**TRIPS[0]}, {**TRIPS[0], "trip_id": "B7"}]
    text = ask(make_call("stop", ORDERS[1], ORDERS), make_call("cancel", twins[1], twins))
    assert "the trip to Lunna" not in text and "that trip" in text


def test_several_things_are_asked_for_together_each_by_name():
    text = ask(*(make_call("stop", row, ORDERS) for row in ORDERS))
    assert "stop your order to Ida, your order to Noor and your order to Umar for good" in text and text.count("?") == 1
    text = ask(make_call("pay", ACCOUNTS[0], ACCOUNTS, amount=300.0), make_call("stop", ORDERS[1], ORDERS))
    assert "send £300.00 from the Bills Account and stop your order to Noor for good" in text


def test_a_reason_in_the_words_of_the_policy_is_not_said_to_the_user():
    assert "customer" not in ask(make_call("stop", ORDERS[1], ORDERS))


def test_a_question_for_many_lists_them_by_name_in_one_form():
    batch = BatchRequest(list="list", tool="stop", parameter="order_id", confirm="stop all of these orders", ask=("x",))
    wording = Wording(BOOK, TOOLS, ScenarioBook(batches=(batch,)))
    writer = ConfirmationWriter(wording, random.Random(3), get_agent_voice("plain"))
    text = writer.write_for_all([make_call("stop", row, ORDERS) for row in ORDERS])
    assert "stop all of these orders (your order to Ida, your order to Noor and your order to Umar)" in text
    assert "all of these orders" in find_confirmation_requests(text)[0]


def test_one_question_for_all_says_what_these_calls_do():
    """Two batches have the same tool: declining every invitation and answering every one with maybe."""
    cls = ENVIRONMENTS.get("calendar")
    path = get_phrases_path(cls)
    wording = Wording(load_phrasebook(path), cls.describe().tools, load_scenarios(path.with_name("scenarios.yaml")))
    wanted = {"maybe": "answer all of these invitations with maybe", "decline": "decline all of these invitations"}
    for reply, words in wanted.items():
        calls = [
            GoldCall(
                tool="answer_invitation",
                arguments={"invitation_id": name, "reply": reply},
                provenance={"reply": FromUser(known="each.reply")},
                effect="write",
            )
            for name in ("I1", "I2", "I3")
        ]
        for seed in range(6):
            writer = ConfirmationWriter(wording, random.Random(seed), get_agent_voice("plain"))
            assert words in writer.write_for_all([(call, {}) for call in calls])


def test_a_coupon_is_found_by_its_code() -> None:
    rows = [{"code": "SPRING15", "percent_off": 15}, {"code": "WELCOME10", "percent_off": 10}, {"order_id": "W1"}]
    assert collect_shown(rows, "coupon_code", "WELCOME10") == {"code": "WELCOME10", "percent_off": 10}
    assert collect_shown(rows, "sku", "WELCOME10") == {}


def build_task(calls):
    turns = (SimpleNamespace(query="", known=()),)
    return SimpleNamespace(seed=0, gold_calls=calls, turns=turns, scenario_id="", mode="conversation")


@pytest.mark.parametrize(("cancelled", "known"), [("B2", True), ("B1", False)])
def test_only_a_write_to_a_thing_outdates_what_was_shown_of_it(cancelled, known):
    """A trip's refund is still known after another trip was cancelled."""
    calls = [
        GoldCall(tool="list_trips", arguments={}, provenance={}, effect="read", result={"result": TRIPS}),
        GoldCall(tool="cancel", arguments={"trip_id": cancelled}, provenance={}, effect="write", result={"fee": 1.0}),
    ]
    first = Selector(rows="$.result", how="equals", field="day", value="2026-05-03")
    agent = ScriptedAgent(build_task(calls), Wording(BOOK, TOOLS), 0)
    agent.results = [ToolResult(call.result) for call in calls]
    next_call = GoldCall(
        tool="cancel",
        arguments={"trip_id": "B1"},
        provenance={"trip_id": FromOutput(call=0, path="$.result[*].trip_id", selectors=(first,))},
        effect="write",
    )
    row = agent._identified_rows(next_call)["trip_id"]
    assert (row.shown.get("fee") == 12.5) == known


def test_a_look_up_that_was_not_made_identifies_nothing():
    """Where the tool of a call is missing, what leads to the call is not looked up either."""
    agent = ScriptedAgent(build_task([]), Wording(BOOK, TOOLS), 0)
    source = FromOutput(call=1, path="$.result[*].trip_id")
    call = GoldCall(tool="cancel", arguments={"trip_id": "B1"}, provenance={"trip_id": source}, effect="write")
    assert agent._identified_rows(call) == {}


def test_what_no_call_changes_is_still_known_after_a_write():
    """The price of a trip is told in the next question, too; how many seats are left is not."""
    rows = [{"trip_id": "B1", "price": 20.0, "seats_left": 3}]
    calls = [
        GoldCall(tool="list_trips", arguments={}, provenance={}, effect="read", result={"result": rows}),
        GoldCall(tool="pay", arguments={"amount": 5.0}, provenance={}, effect="write", result={}),
    ]
    entity = BOOK.entities["trip_id"].model_copy(update={"lasting": ("price",)})
    book = BOOK.model_copy(update={"entities": {**BOOK.entities, "trip_id": entity}})
    agent = ScriptedAgent(build_task(calls), Wording(book, TOOLS), 0)
    agent.results = [ToolResult(call.result) for call in calls]
    assert agent._find_shown("trip_id", "B1") == {"trip_id": "B1", "price": 20.0}


@pytest.mark.parametrize("seed", range(8))
def test_instead_belongs_to_what_is_offered(seed):
    """ "Shall I book it, which is final instead?" says something else."""
    frames = ("Shall I {} instead?", "I could {}. Shall I?")
    call, rows = make_call("cancel", TRIPS[0], TRIPS)
    book = BOOK.model_copy(update={"tools": {"cancel": ToolPhrases(confirm=("cancel {trip_id}, which is final",))}})
    writer = ConfirmationWriter(Wording(book, TOOLS), random.Random(seed), get_agent_voice("plain"))
    assert "instead" not in writer.write([(call, rows)], frames=frames)


def test_a_thing_is_named_as_it_was_shown_last():
    """A trip that was moved has its new date in its name."""
    call, _ = make_call("cancel", TRIPS[0], TRIPS)
    moved = {"trip_id": "B1", "day": "2026-05-20"}
    text = ask((call, {"trip_id": IdentifiedRow(TRIPS[0], TRIPS, True, moved)}))
    assert "the trip to Lunna on 20 May 2026" in text


def test_a_reason_that_does_not_apply_is_not_said():
    """A user who wants to be asked first gets a question without the reason of a rule for other values."""
    editor = ConfirmationRule(arguments={"role": ("editor",)}, because="an editor can alter it")
    tool = ToolSpec(server="files", name="share", description="Share a file.", input_schema={}, confirm=editor)
    wording = Wording(Phrasebook(), (tool,))
    texts = {
        role: ConfirmationWriter(wording, random.Random(1), get_agent_voice("plain")).write(
            [(GoldCall(tool="share", arguments={"role": role}, provenance={}, effect="write"), {})]
        )
        for role in ("editor", "viewer")
    }
    assert "An editor can alter it." in texts["editor"] and "alter" not in texts["viewer"]


def test_a_plain_value_from_another_result_is_said_like_one_of_the_user():
    call, identified = make_call("pay", ACCOUNTS[0], ACCOUNTS, amount=300.0)
    taken = {**call.provenance, "amount": FromOutput(call=1, path="$.total")}
    text = ask((call.model_copy(update={"provenance": taken}), identified))
    assert "£300.00" in text and "that amount" not in text


def test_many_long_names_stand_below_the_question():
    """Five orders in one bracket are read by nobody."""
    rows = [{"order_id": f"S{number}", "payee": f"{name} and Sons Gardening Services", "status": "active"}
            for number, name in enumerate(("Ida", "Noor", "Umar"))]  # fmt: skip
    batch = BatchRequest(list="list", tool="stop", parameter="order_id", confirm="stop all of these orders", ask=("x",))
    wording = Wording(BOOK, TOOLS, ScenarioBook(batches=(batch,)))
    writer = ConfirmationWriter(wording, random.Random(3), get_agent_voice("plain"))
    question, *lines = writer.write_for_all([make_call("stop", row, rows) for row in rows]).split("\n")
    assert "stop all of these orders" in question and "Ida" not in question
    assert len(lines) == 3 and all(line.startswith("- ") for line in lines) and "Noor and Sons" in lines[1]
    assert find_confirmation_requests("\n".join([question, *lines]))


def test_without_words_for_a_tool_the_question_tells_its_arguments():
    writer = ConfirmationWriter(Wording(Phrasebook(), TOOLS), random.Random(1), get_agent_voice("plain"))
    text = writer.write([(make_call("pay", ACCOUNTS[0], ACCOUNTS, amount=300.0))])
    assert "pay (account A1, amount 300.0)" in text


def test_a_semicolon_of_a_value_begins_no_remark():
    call = make_call("pay", ACCOUNTS[0], ACCOUNTS, note="Buy milk; call Ida", amount=300.0)
    writer = ConfirmationWriter(Wording(Phrasebook(), TOOLS), random.Random(1), get_agent_voice("plain"))
    question = writer.write([call])
    assert "pay (account A1, note Buy milk; call Ida, amount 300.0)" in question
    assert "A payment is final." in question and find_confirmation_requests(question)
    assert writer.describe(*call) == "pay (account A1, note Buy milk; call Ida, amount 300.0)"
    told = ToolPhrases(confirm=("send {amount|money} with the words {note}; it can't be taken back",))
    book = BOOK.model_copy(update={"tools": {**BOOK.tools, "pay": told}})
    writer = ConfirmationWriter(Wording(book, TOOLS), random.Random(1), get_agent_voice("plain"))
    question = writer.write([call])
    assert "with the words Buy milk; call Ida" in question and "It can't be taken back." in question
