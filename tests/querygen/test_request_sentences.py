"""Sentences of a request: where a thing is looked up, what is linked, what points back, what may be left out."""

import random
from datetime import date

import pytest

from trajsmith.phrasing import (
    EntityPhrases,
    ParameterPhrases,
    Phrasebook,
    ScenarioStep,
    ToolPhrases,
    Wording,
    get_language,
)
from trajsmith.phrasing.voices import load_voices
from trajsmith.querygen.entity_references import _leave_out_name
from trajsmith.querygen.goal_wordings import GoalWordings
from trajsmith.querygen.persona import render_query
from trajsmith.querygen.query_gates import find_wordless_values
from trajsmith.querygen.questions import pick_question_text
from trajsmith.querygen.reference_drafts import ReadDrafts
from trajsmith.querygen.request import RequestWriter, _join_sentences, _list_naming_keys, _part_reason
from trajsmith.records import FromOutput, FromUser, GoldCall, Persona, Selector, ToolSpec, UserFact
from trajsmith.verify import ReferenceCheck

ROOMS = {"result": [{"room_id": "R1", "room_name": "hallway"}, {"room_id": "R2", "room_name": "attic"}]}
LAMPS = {"result": [{"device_id": "D1", "kind": "lamp"}, {"device_id": "D2", "kind": "blind"}]}
BOOK = Phrasebook(
    tools={
        "dim": ToolPhrases(ask=["dim {device_id} to {percent} percent", "dim {device_id}"]),
        "rename": ToolPhrases(say=["My name for {device_id} is {label} from now on."]),
        "read": ToolPhrases(say=["How long has {device_id} been on?"]),
    },
    parameters={"percent": ParameterPhrases(tell=["{value} percent, please."])},
    entities={
        "room_id": EntityPhrases(noun="room", by={"room_name": ["the {value}"]}),
        "device_id": EntityPhrases(
            noun="device", by={"kind": ["the {value}"]}, within={"room_id": ["{phrase} in {owner}"]}
        ),
    },
)


def tool(name: str, *parameters: str) -> ToolSpec:
    schema = {"type": "object", "properties": {key: {"type": "string"} for key in parameters}}
    return ToolSpec(
        server="home", name=name, description=f"{name}.", input_schema=schema | {"required": sorted(parameters)}
    )


TOOLS = [tool("list_rooms"), tool("list_devices", "room_id"), tool("dim", "device_id", "percent"),
         tool("rename", "device_id", "label"), tool("read", "device_id")]  # fmt: skip


def pick(call: int, name: str, field: str, value: str) -> FromOutput:
    selector = Selector(rows="$.result", how="equals", field=field, value=value)
    return FromOutput(call=call, path=f"$.result[*].{name}", selectors=(selector,))


ROOM, LAMP = pick(0, "room_id", "room_name", "hallway"), pick(1, "device_id", "kind", "lamp")
KNOWN = {
    fact.key: fact
    for fact in (
        UserFact(key="pick.0.$.result.room_name.equals=hallway", label="room name", value="hallway",
                 said="the hallway", slot="room_id|room_name", how="equals"),
        UserFact(key="pick.1.$.result.kind.equals=lamp", label="kind", value="lamp", said="the lamp",
                 slot="device_id|kind", how="equals"),
        UserFact(key="dim.percent", label="percent", value=40, said="40", slot="percent"),
        UserFact(key="rename.label", label="label", value="Bibi", said="Bibi", slot="label"),
    )
}  # fmt: skip


def call(tool: str, effect: str, result: object, **sources: object) -> GoldCall:
    values = {"room_id": "R1", "device_id": "D1", "percent": 40, "label": "Bibi"}
    return GoldCall(
        tool=tool, arguments={name: values[name] for name in sources}, provenance=sources, effect=effect, result=result
    )


CALLS = [
    call("list_rooms", "read", ROOMS),
    call("list_devices", "read", LAMPS, room_id=ROOM),
    call("dim", "write", {"device_id": "D1"}, device_id=LAMP, percent=FromUser(known="dim.percent")),
    call("rename", "write", {"device_id": "D1"}, device_id=LAMP, label=FromUser(known="rename.label")),
    call("read", "read", {"device_id": "D1", "hours": 3}, device_id=LAMP),
]


def build_writer(seed: int, calls: list[GoldCall] = CALLS) -> RequestWriter:
    return RequestWriter(
        Wording(BOOK, TOOLS), calls, KNOWN, '{"R1": 1, "R2": 2, "D1": 1, "D2": 2}', random.Random(seed)
    )


@pytest.mark.parametrize("seed", range(6))
def test_the_thing_is_said_with_what_it_is_looked_up_in(seed: int) -> None:
    request = build_writer(seed).write(0, 3, [2], withhold=False)
    assert "the lamp in the hallway" in request.text
    assert request.text.count("hallway") == 1, "and not once more in a sentence of its own"
    assert {"pick.0.$.result.room_name.equals=hallway", "dim.percent"} <= request.stated


@pytest.mark.parametrize(("tool", "is_said"), [("list_devices", True), ("list_plants", False)])
def test_what_it_is_looked_up_in_is_told_by_the_look_up(tool: str, is_said: bool) -> None:
    device = BOOK.entities["device_id"].model_copy(update={"within": {f"{tool}.room_id": ["{phrase} in {owner}"]}})
    book = BOOK.model_copy(update={"entities": {**BOOK.entities, "device_id": device}})
    writer = RequestWriter(Wording(book, TOOLS), CALLS, KNOWN, '{"R1": 1, "R2": 2, "D1": 1}', random.Random(0))
    text = writer.write(0, 3, [2], withhold=False).text
    assert ("the lamp in the hallway" in text) is is_said


def test_a_name_that_identifies_is_said_with_its_noun_also_where_something_belongs_to_it() -> None:
    phrases = BOOK.parameters | {"list_devices.room_id": ParameterPhrases(mention=['the room "{value}"'])}
    book = BOOK.model_copy(update={"parameters": phrases})
    calls = [CALLS[0], CALLS[1].model_copy(update={"provenance": {"room_id": FromUser(known="room")}}), *CALLS[2:]]
    known = KNOWN | {"room": UserFact(key="room", label="room", value="R1", said="R1", slot="room_id")}
    writer = RequestWriter(Wording(book, TOOLS), calls, known, '{"R1": 1, "R2": 2, "D1": 1}', random.Random(0))
    request = writer.write(0, 3, [2], withhold=False)
    assert 'the lamp in the room "R1"' in request.text and "room" in request.stated


@pytest.mark.parametrize("seed", range(6))
def test_a_further_sentence_is_linked_to_the_one_before(seed: int) -> None:
    text = build_writer(seed).write(0, 5, [2, 4], withhold=False).text
    links = [link.removesuffix("{}").strip() for link in load_voices().users["plain"].links]
    question = text[text.index("ow long has") - 1 :]
    assert question.startswith("how")
    assert text.removesuffix(question).strip().endswith(tuple(links))


def test_a_thing_of_before_is_called_in_more_than_one_way() -> None:
    texts = set()
    for seed in range(40):
        writer = build_writer(seed)
        writer.write(0, 3, [2], withhold=False)
        text = writer.write(3, 4, [3], withhold=False).text
        texts.add(text.removeprefix("My name for ").removesuffix(" is Bibi from now on."))
    assert texts == {"it", "that device"}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("cancel {order_id}", "cancel it"),
        ("check the price of {order_id}", "check the price of that order"),
        ("{order_id} has to go", "that order has to go"),
        ("find out {order_id}'s status", "find out that order's status"),
        ("put {order_id} with {order_id}", "put that order with that order"),
        ("call off {order_id}, please", "call it off, please"),
        ("take {order_id} back", "take it back"),
    ],
)
def test_a_pronoun_stands_only_after_a_verb(template: str, text: str) -> None:
    picked = pick_question_text([template], {"order_id": "it"}, None, random.Random(0), {"order_id": "that order"})
    assert picked == (template, text)


def test_only_what_people_decide_is_left_out() -> None:
    left_out = set()
    for seed in range(30):
        writer = build_writer(seed)
        left_out |= {"dim.percent"} - writer.write(0, 3, [2], withhold=True).stated
        left_out |= {"rename.label"} - writer.write(3, 4, [3], withhold=True).stated
    assert left_out == {"dim.percent"}, "a name is what the wish is about"


def test_the_reasons_of_a_step_stand_before_it() -> None:
    step = ScenarioStep(tool="dim", reasons=("The film is about to begin.",))
    text = build_writer(0).write(0, 3, [2], withhold=False, steps=(step,)).text
    assert text.index("The film is about to begin.") < text.index("the lamp in the hallway")


@pytest.mark.parametrize("seed", range(6))
def test_a_thing_in_another_is_said_once(seed: int) -> None:
    """The only device of a room is called by the room; `within` does not say the room again."""
    only = FromOutput(call=1, path="$.result[*].device_id", selectors=())
    lamps = {"result": LAMPS["result"][:1]}
    dim = call("dim", "write", {"device_id": "D1"}, device_id=only, percent=FromUser(known="dim.percent"))
    calls = [CALLS[0], call("list_devices", "read", lamps, room_id=ROOM), dim]
    text = build_writer(seed, calls).write(0, 3, [2], withhold=False).text
    assert text.count("hallway") == 1


@pytest.mark.parametrize(
    ("slots", "left_open", "said"),
    [
        ({"percent"}, {"device_id"}, True),
        ({"room_id"}, {"room_id"}, True),
        ({"device_id"}, {"device_id"}, False),
        ({"room_id", "percent"}, {"room_id"}, False),
    ],
    ids=["not_named", "one_of_my_rooms", "one_of_the_devices", "beside_something_else"],
)
def test_a_thing_is_left_open_only_as_people_do(slots: set[str], left_open: set[str], said: bool) -> None:
    own = EntityPhrases(noun="room", own=["my room"])
    book = BOOK.model_copy(update={"entities": {**BOOK.entities, "room_id": own}})
    wordings = GoalWordings(Wording(book, TOOLS), CALLS, random.Random(0), 0.5)
    assert wordings.may_leave_open(slots, left_open) is said


@pytest.mark.parametrize("seed", range(12))
def test_what_a_step_must_name_is_not_held_back(seed: int) -> None:
    """A story is told in its own words, or nothing is left out of it."""
    step = ScenarioStep(tool="dim", ask=("get the light at {device_id} down to {percent} percent",))
    request = build_writer(seed).write(0, 3, [2], withhold=True, steps=(step,))
    assert "get the light at the lamp in the hallway down to 40 percent" in request.text


@pytest.mark.parametrize("seed", range(6))
def test_what_was_answered_in_an_earlier_turn_is_not_said_again(seed: int) -> None:
    """Who has told a number when the agent asked for it does not add it to a later request."""
    writer = build_writer(seed, [*CALLS, CALLS[2]])
    writer.asked |= {"dim.percent"}
    assert (
        "40"
        not in writer.write(5, 6, [5], withhold=False, steps=(ScenarioStep(tool="dim", ask=("dim {device_id}",)),)).text
    )


@pytest.mark.parametrize("opening", ["Right,", "Next:"])
def test_a_name_that_opens_a_sentence_keeps_its_capital(opening: str) -> None:
    persona = Persona(name="Ann", role="clerk", style="plain")
    text = "Gantry Planner is slow."
    facts = [UserFact(key="a", label="name", value="Gantry Planner", said="Gantry Planner", slot="name"),
             UserFact(key="b", label="level", value="G", said="G", slot="level")]  # fmt: skip
    now = date(2026, 5, 1)
    assert render_query(opening, text, persona, facts, now, random.Random(0)) == f"{opening} {text}"
    assert render_query(opening, "Give it up.", persona, facts, now, random.Random(0)) == f"{opening} give it up."


@pytest.mark.parametrize("seed", range(8))
def test_one_word_links_a_wish_to_the_one_before(seed: int) -> None:
    writer = build_writer(seed)
    assert not writer._want("invite Ann as well", 1).startswith(("And", "Also", "I'd also", "While", "One more"))
    assert writer._say("Ann should come, too.", 1) == "Ann should come, too."


@pytest.mark.parametrize(
    ("owner", "said"),
    [
        ("the order with the Monitor Arm and Desk Chair", "the order with the Desk Chair"),
        ("my order with the Desk Chair, Monitor Arm and Shaver", "my order with the Desk Chair and Shaver"),
        ("the order with the Desk Chair and Shaver", "the order with the Desk Chair and Shaver"),
        ("the order from 3 May", "the order from 3 May"),
    ],
)
def test_an_owner_is_not_called_by_the_thing_itself(owner: str, said: str) -> None:
    assert _leave_out_name(owner, "my Monitor Arm") == said


@pytest.mark.parametrize("seed", range(8))
def test_a_filter_is_said_again_where_it_narrows_something_else_down(seed: int) -> None:
    tools = [tool("add", "day"), ToolSpec(server="home", name="agenda", description="agenda.",
             input_schema={"type": "object", "properties": {"from_day": {"type": "string"}}})]  # fmt: skip
    book = Phrasebook(
        tools={"add": ToolPhrases(ask=["add it on {day}"]),
               "agenda": ToolPhrases(ask=["see what is next", "see what there is from {from_day} on"])}
    )  # fmt: skip
    day = UserFact(key="add.day", label="day", value="Friday", said="Friday", slot="day")
    calls = [
        GoldCall(tool=name, arguments={slot: "Friday"}, provenance={slot: FromUser(known="add.day")}, effect=effect,
                 result={"day": "Friday"})
        for name, slot, effect in (("add", "day", "write"), ("agenda", "from_day", "read"))
    ]  # fmt: skip
    writer = RequestWriter(Wording(book, tools), calls, {"add.day": day}, "", random.Random(seed))
    assert "Friday" in writer.write(0, 1, [0], withhold=False).text
    assert "from Friday on" in writer.write(1, 2, [1], withhold=False).text


@pytest.mark.parametrize(
    ("text", "accepted"),
    [("Dim the lamp to 40 percent.", False), ("Dim the lamp in the hallway to 40 percent.", True)],
)
def test_what_a_look_up_is_made_in_must_be_named(text: str, accepted: bool) -> None:
    """An agent that lists the devices of a room that nobody spoke of would guess."""
    check = ReferenceCheck(Wording(BOOK, TOOLS), '{"R1": 1, "R2": 2, "D1": 1, "D2": 2}')
    drafts = ReadDrafts(check, CALLS, 0, 3)
    assert drafts.accept(text, [], "", ()) is accepted
    assert [(fault.kind, fault.expected) for fault in drafts.faults] == ([] if accepted else [("unnamed_value", "R1")])


def test_a_thing_is_called_by_what_it_is_looked_up_by() -> None:
    """Nobody says "invite the contact": without the name of the look-up, the thing is left open."""
    named = GoldCall(tool="find", arguments={"name": "Ann"}, provenance={"name": FromUser(known="find.name")},
                     effect="read", result={"contact_id": "C1"})  # fmt: skip
    source = FromOutput(call=0, path="$.contact_id", selectors=())
    assert _list_naming_keys(source, [named]) == ["find.name"]
    assert _list_naming_keys(ROOM, [CALLS[0]]) == ["pick.0.$.result.room_name.equals=hallway"]


@pytest.mark.parametrize("seed", range(12))
def test_who_the_user_is_is_said_once(seed: int) -> None:
    """A later look-up by the same email address needs no sentence: the agent has been told."""
    fact = UserFact(key="find_me.email", label="email", value="ida@example.com", said="ida@example.com", slot="email")
    book = BOOK.model_copy(update={"parameters": {"email": ParameterPhrases(tell=["My address is {value}."])}})
    source = {"email": FromUser(known="find_me.email")}
    find = GoldCall(
        tool="find_me", arguments={"email": fact.value}, provenance=source, effect="read", result={"user_id": "U1"}
    )
    owned = [
        GoldCall(
            tool=name,
            arguments={"user_id": "U1"},
            provenance={"user_id": FromOutput(call=number, path="$.user_id")},
            effect="read",
            result={"points": number},
        )
        for number, name in ((0, "get_points"), (2, "get_orders"))
    ]
    tools = [tool("find_me", "email"), tool("get_points", "user_id"), tool("get_orders", "user_id")]
    calls = [find, owned[0], find, owned[1]]
    writer = RequestWriter(Wording(book, tools), calls, {fact.key: fact}, "{}", random.Random(seed))
    first = writer.write(0, 2, [1], withhold=False)
    second = writer.write(2, 4, [3], withhold=False)
    assert first.text.count(fact.value) == 1 and fact.key in first.stated
    assert "address" not in second.text and fact.value not in second.text


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("Could you get a licence for Querydeck?", "Could you get me a licence for Querydeck?"),
        ("I'd be glad if you could get 10 more days.", "I'd be glad if you could get me 10 more days."),
        ("any chance u can get 15 more days for it", "any chance u can get me 15 more days for it"),
        ("Please get access to the drive.", "Please get me access to the drive."),
        ("I'd like to get access to the drive.", "I'd like to get access to the drive."),
        ("Could you get that order cancelled?", "Could you get that order cancelled?"),
        ("Could you find out which cards I have?", "Could you tell me which cards I have?"),
        ("I need to find out which cards I have.", "I need to know which cards I have."),
        ("Please see my open tasks.", "Please show me my open tasks."),
        ("I'd like to see my open tasks.", "I'd like to see my open tasks."),
        ("Can you check what's on?", "Can you tell me what's on?"),
        ("Can you check whether a window is open?", "Can you check whether a window is open?"),
        ("Would you be so kind as to find outdoor gear?", "Would you be so kind as to find outdoor gear?"),
    ],
)
def test_what_somebody_else_is_to_get_is_for_the_speaker(sentence: str, said: str) -> None:
    assert get_language().grammar.ask_for_oneself(sentence) == said


def test_a_sentence_without_a_stop_does_not_run_into_the_next() -> None:
    assert _join_sentences(["pls find out what my bills came to", "my number is 5"]) == (
        "pls find out what my bills came to. my number is 5"
    )


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ("Could you cancel it, because I don't need it?", "Could you cancel it? I don't need it."),
        ("Would you block my card, since it was stolen?", "Would you block my card? It was stolen."),
        ("Please cancel it, because I don't need it.", "Please cancel it, because I don't need it."),
        ("Could you list what I've paid since May?", "Could you list what I've paid since May?"),
    ],
)
def test_the_reason_for_a_question_is_a_sentence_of_its_own(wish: str, said: str) -> None:
    assert _part_reason(wish) == said


def test_a_choice_that_the_story_has_made_is_in_the_wish_itself() -> None:
    step = ScenarioStep(
        tool="dim", arguments={"percent": ("10",)}, ask=("dim {device_id} to {percent} percent", "dim {device_id}"),
        say=("{device_id} is too bright.",),
    )  # fmt: skip
    schema = {"type": "object", "properties": {"percent": {"type": "string", "enum": ["10", "50"]}}}
    choice = ToolSpec(server="home", name="dim", description="Dim.", input_schema=schema)
    dim = call("dim", "write", {}, percent=FromUser(known="percent"))
    wordings = GoalWordings(Wording(BOOK, [choice]), [dim], random.Random(1), 0.0)
    told = wordings._prefer_told(0, set(), step)
    assert (told.ask, told.say) == (("dim {device_id} to {percent} percent",), ())
    assert wordings._prefer_told(0, {"percent"}, step) == step, "what is held back is left out"


def test_long_words_of_politeness_open_a_dialogue_only() -> None:
    """ "I'd appreciate it if you could ..." stands at the beginning, if anywhere."""
    voice = load_voices().users["formal"].model_copy(update={"wants": ("I would like to {}.",)})
    firsts = set()
    for seed in range(30):
        calls = [GoldCall(tool="list_rooms", arguments={}, provenance={}, effect="read", result=ROOMS)] * 2
        writer = RequestWriter(Wording(Phrasebook(), TOOLS), calls, {}, "", random.Random(seed), voice=voice)
        first, second = (writer.write(number, number + 1, [number], False).text for number in range(2))
        firsts.add(first.partition(" list")[0])
        assert second.startswith("I would like to")
    assert len(firsts) > 1


@pytest.mark.parametrize(
    ("phrase", "closed"),
    [("cancel it", True), ("cancel it because the film starts later", False), ("pay Ann £5, marked rent", False)],
)
def test_nothing_is_added_to_a_wish_that_has_a_clause(phrase: str, closed: bool) -> None:
    """ "I need to freeze my card, because I don't trust one of the payments, please." is said by nobody."""
    voice = (
        load_voices().users["plain"].model_copy(update={"openers": (), "wants": ("I'd like to {}, please.", "Do {}.")})
    )
    wishes = set()
    for seed in range(30):
        writer = RequestWriter(Wording(BOOK, TOOLS), [], {}, "", random.Random(seed), voice=voice)
        wishes.add(writer._want(phrase, 0).endswith("please."))
    assert (True in wishes) is closed


def test_minutes_are_said_in_hours() -> None:
    assert get_language().grammar.format_minutes(90) == "an hour and a half"
    assert get_language().grammar.format_minutes(45) == "45 minutes"


def test_nobody_says_several_values_of_one_earlier_result():
    book = Phrasebook(parameters={name: ParameterPhrases(label=name) for name in ("street", "city")})

    def send(*names: str, how: str = "only") -> GoldCall:
        picks = (Selector(rows="$.orders", how=how, field="city"),)
        taken = {name: FromOutput(call=0, path=f"$.address.{name}", selectors=picks) for name in names}
        return GoldCall(tool="send", arguments=dict.fromkeys(names, "x"), provenance=taken, effect="write")

    fault = find_wordless_values([send("street", "city")], book)
    assert fault is not None
    assert fault.detail == "send: street, city"
    assert find_wordless_values([send("city"), send("street")], book) is None
    assert find_wordless_values([send("city", "order_id")], book) is None, "an order is called by what tells it"
    assert find_wordless_values([send("street", "city", how="equals")], book) is None, "the user says which row"
    assert find_wordless_values([send("latitude", "longitude")], book) is None, "no request has words for these"
    quoting = book.model_copy(update={"tools": {"send": ToolPhrases(ask=('send a card called "{city}"',))}})
    fault = find_wordless_values([send("city")], quoting)
    assert fault is not None, "nobody calls a card 'my city'"
    assert fault.detail == "send: city"
