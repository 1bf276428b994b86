"""What a turn leaves to be asked for: choices that there are, and nothing that its words name."""

import random

import pytest
from writing_desk import Place

from trajsmith.phrasing import Phrasebook, ScenarioStep, Wording
from trajsmith.phrasing.voices import draw_pattern, get_user_voice
from trajsmith.querygen.possible_choices import list_possible_rows
from trajsmith.querygen.request import RequestWriter
from trajsmith.records import FromOutput, FromUser, GoldCall, Selector, UserFact

CARDS = [
    {"card_id": "K1", "last_digits": "4408", "kind": "debit", "status": "frozen"},
    {"card_id": "K2", "last_digits": "1040", "kind": "virtual", "status": "blocked"},
    {"card_id": "K3", "last_digits": "7731", "kind": "virtual", "status": "frozen"},
]


def build_calls(rows: list[dict], field: str = "last_digits", **result: object) -> tuple[list[GoldCall], FromOutput]:
    """A list of cards, and a call that unfreezes the first."""
    pick = Selector(rows="$.result", how="equals", field=field, value=rows[0][field])
    source = FromOutput(call=0, path="$.result[*].card_id", selectors=(pick,))
    listed = GoldCall(tool="list_cards", arguments={}, provenance={}, effect="read", result={"result": rows})
    unfreeze = GoldCall(
        tool="unfreeze_card", arguments={"card_id": "K1"}, provenance={"card_id": source}, effect="write",
        result={**rows[0], "status": "active", **result},
    )  # fmt: skip
    return [listed, unfreeze], source


@pytest.mark.parametrize(
    ("where", "possible"),
    [({}, ["K1", "K3"]), ({"kind": ("debit",)}, ["K1"])],
    ids=["status_that_changes", "where"],
)
def test_rows_on_which_an_action_is_impossible_are_no_choice(where: dict, possible: list[str]) -> None:
    calls, source = build_calls(CARDS)
    step = ScenarioStep(tool="unfreeze_card", where=where)
    rows = list_possible_rows(calls[1], "K1", source, "$.result", calls, step)
    assert [row["card_id"] for row in rows] == possible


@pytest.mark.parametrize(("rows", "withheld"), [(CARDS[:2], False), (CARDS, True)], ids=["one", "two"])
def test_a_choice_of_one_is_not_left_to_be_asked_for(rows: list[dict], withheld: bool) -> None:
    calls, _ = build_calls(rows)
    key = "pick.0.$.result.last_digits.equals=4408"
    fact = UserFact(
        key=key, label="last digits", value="4408", said="my card ending 4408", slot="card_id|last_digits", how="equals"
    )
    request = RequestWriter(Place("bank").wording, calls, {key: fact}, "K1", random.Random(1)).write(0, 2, [1], True)
    assert ("4408" not in request.text) is withheld
    assert (key not in request.stated) is withheld


def test_what_the_words_name_is_not_asked_for() -> None:
    rows = [{**row, "kind": kind} for row, kind in zip(CARDS, ("travel money", "debit", "virtual"), strict=True)]
    calls, _ = build_calls(rows, "kind")
    key = "pick.0.$.result.kind.equals=travel money"
    fact = UserFact(key=key, label="kind", value="travel money", said="x", slot="card_id|kind", how="equals")
    writer = RequestWriter(Place("bank").wording, calls, {key: fact}, "K1", random.Random(1))
    request = writer.write(0, 2, [1], True, motive="My travel money card was frozen.")
    assert key in request.stated
    assert not writer.asked


@pytest.mark.parametrize(("second", "withheld"), [("+44 7263 1", False), ("+44 7263 2", True)])
def test_what_the_user_said_before_is_not_asked_for(second: str, withheld: bool) -> None:
    """Two of the linked environments look a person up by the same number, each under a name of its own."""
    numbers = {"phone": "+44 7263 1", "phone_number": second}
    calls = [
        GoldCall(
            tool="find_customer_by_phone", arguments={"phone": value}, provenance={"phone": FromUser(known=key)},
            effect="read", result={"customer_id": "C1", "name": "Wei"},
        )
        for key, value in numbers.items()
    ]  # fmt: skip
    known = {
        key: UserFact(key=key, label="phone number", value=value, said=f"My number is {value}.", slot="phone")
        for key, value in numbers.items()
    }
    customer = {"customer_id": FromOutput(call=1, path="$.customer_id")}
    cards = build_calls(CARDS)[0][0]
    calls.append(cards.model_copy(update={"arguments": {"customer_id": "C1"}, "provenance": customer}))
    writer = RequestWriter(Place("bank").wording, calls, known, "", random.Random(1))
    writer.write(0, 1, [0], False)
    assert (second not in writer.write(1, 3, [2], True).text) is withheld


def test_a_frame_comes_back_only_after_all_others() -> None:
    used: set[str] = set()
    frames = ["I want to {}.", "Please {}.", "[Could|Can] you {}?"]
    for _ in range(4):
        drawn = {draw_pattern(frames, random.Random(seed), used).partition(" ")[2] for seed in (1, 2, 3)}
        assert len(drawn) == 3


@pytest.mark.parametrize("seed", range(6))
def test_no_frame_opens_two_requests_of_a_dialogue(seed: int) -> None:
    read = GoldCall(tool="list_locks", arguments={}, provenance={}, effect="read", result={"result": []})
    wants = ("I want to {}.", "Please {}.", "Can you {}?")
    voice = get_user_voice("plain").model_copy(update={"openers": (), "wants": wants})
    writer = RequestWriter(
        Wording(Phrasebook(), Place("smart_home").spec.tools), [read] * 3, {}, "", random.Random(seed), voice=voice
    )
    texts = [writer.write(number, number + 1, [number], False).text for number in range(3)]
    assert sorted(text.partition(" ")[0] for text in texts) == ["Can", "I", "Please"]
