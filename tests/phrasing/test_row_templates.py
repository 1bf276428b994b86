"""Rows of lists: an entity may have several templates, of which one list takes one."""

import random

import pytest

from trajsmith.phrasing import EntityPhrases, Phrasebook, Wording
from trajsmith.phrasing.templates import find_row_template, join_rows, render_phrase

TEMPLATES = ("{name} at {price|money}", "{name} ({price|money}, {stock} left)", "{price|money} for {name}")
ROWS = [{"name": "Kettle", "price": 20.0, "stock": 3}, {"name": "Lamp", "price": 35.5}]


def test_one_template_may_stand_without_a_list():
    assert EntityPhrases(noun="product", row="{name}").row == ("{name}",)
    assert EntityPhrases(noun="product").row == EntityPhrases(noun="product", row="").row == ()


def test_a_list_uses_one_template_for_all_its_rows():
    assert join_rows(ROWS, TEMPLATES[1:]) == "£20.00 for Kettle and £35.50 for Lamp"
    assert find_row_template(ROWS, TEMPLATES[1:2]) == ""


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{name}", "Kettle, Lamp and Rug"),
        ("{name} ({price}, {stock} left)", "Kettle (1, 2 left), Lamp (1, 2 left) and Rug (1, 2 left)"),
        ("{name}, {price}", "Kettle, 1; Lamp, 1; and Rug, 1"),
        ("{name} at 0{stock}:30", "Kettle at 02:30, Lamp at 02:30 and Rug at 02:30"),
        ("{name} and {stock}", "Kettle and 2; Lamp and 2; and Rug and 2"),
    ],
    ids=["words", "commas_in_brackets", "commas", "times", "and"],
)
def test_rows_are_joined_as_a_person_lists_them(template: str, said: str):
    rows = [{"name": name, "price": 1, "stock": 2} for name in ("Kettle", "Lamp", "Rug")]
    assert join_rows(rows, [template]) == said


def test_many_long_rows_do_not_stand_in_one_clause():
    rows = [{"name": f"{colour} kettle with a lid and a very long name"} for colour in ("Red", "Blue", "Green", "Grey")]
    assert join_rows(rows[:3], ["the {name}"]).count(";") == 2, "because of their and"
    assert join_rows(rows, ["{name|replace(' and a', ' of a')}"]).count(";") == 3
    assert join_rows(rows[:3], ["{name|replace(' and a', ' of a')}"]).count(";") == 0


def test_drawn_orders_use_every_template_and_depend_on_the_seed_alone():
    wording = Wording(Phrasebook(entities={"sku": EntityPhrases(noun="product", row=TEMPLATES)}), ())
    drawn = [wording.shuffle_rows(random.Random(seed))["sku"] for seed in range(30)]
    assert {order[0] for order in drawn} == set(TEMPLATES)
    assert drawn == [wording.shuffle_rows(random.Random(seed))["sku"] for seed in range(30)]


def test_reports_of_lists_use_the_templates_of_their_entity():
    wording = Wording(Phrasebook(entities={"sku": EntityPhrases(noun="product", row=TEMPLATES)}), ())
    said = {
        wording.results(["We have {out.result|rows('sku')}."], {"result": ROWS}, {}, random.Random(seed))
        for seed in range(20)
    }
    assert said == {
        "We have Kettle at £20.00 and Lamp at £35.50.",
        "We have £20.00 for Kettle and £35.50 for Lamp.",
    }


@pytest.mark.parametrize("value", ["2026-03-03", "2026-03-03T14:30:00"])
def test_days_are_named(value):
    assert render_phrase("{value|weekday} {value|date}", {"value": value}) == "Tuesday 3 March 2026"


@pytest.mark.parametrize(
    ("value", "shown"),
    [("2026-02-20", "6 March 2026"), ("2026-12-24T10:00:00", "7 January 2027"), ("soon", None)],
    ids=["date", "datetime", "no date"],
)
def test_days_are_added_to_dates(value: str, shown: str | None) -> None:
    assert render_phrase("{value|plus_days('14')|date}", {"value": value}) == shown


def test_what_all_names_of_a_list_begin_with_is_said_once():
    template = "{% set place = names|shared_start %}In the {place}, the {names|drop_start(place)|words} are on."
    names = ["main bedroom air purifier", "main bedroom floor lamp"]
    assert render_phrase(template, {"names": names}) == "In the main bedroom, the air purifier and floor lamp are on."
    alone = "{['kitchen fridge']|shared_start}{['kitchen fridge']|drop_start('')|words}"
    assert render_phrase(alone, {}) == "kitchen fridge", "of one name nobody can tell which part is shared"
