"""Templates, phrasebooks and the words drawn from them."""

import random
from pathlib import Path
from typing import Any

import pytest

from trajsmith.phrasing import EntityPhrases, Phrasebook, Wording, load_phrasebook, pick_text
from trajsmith.phrasing.plain_sentences import render_superlative
from trajsmith.phrasing.templates import join_rows, list_slots, render_phrase
from trajsmith.phrasing.wording import derive_request_phrase
from trajsmith.records import InputError, ToolSpec, UserFact


def spec(name: str, description: str = "") -> ToolSpec:
    schema = {"type": "object", "properties": {"order_id": {"type": "string"}}}
    return ToolSpec(server="shop", name=name, description=description, input_schema=schema)


@pytest.mark.parametrize(
    ("template", "values", "text"),
    [
        pytest.param("cancel {order_id}", {"order_id": "W1"}, "cancel W1", id="slot"),
        pytest.param(
            "{out.total|money} on {out.day|date}",
            {"out": {"total": 5, "day": "2026-03-03"}},
            "£5.00 on 3 March 2026",
            id="filters",
        ),
        pytest.param("{% for o in out.orders %}{o} {% endfor %}", {"out": {"orders": ["a", "b"]}}, "a b", id="loop"),
        pytest.param("{value}", {"value": True}, "yes", id="finalised"),
        pytest.param("{missing}", {}, None, id="missing-slot"),
        pytest.param("{out.total|money}", {"out": {}}, None, id="missing-field"),
        pytest.param("{value.__class__.__mro__}", {"value": 1}, None, id="sandboxed"),
    ],
)
def test_render(template: str, values: dict[str, Any], text: str | None) -> None:
    assert render_phrase(template, values) == text


def test_rows_are_cut_and_counted() -> None:
    rows = [{"id": number} for number in range(12)]
    assert join_rows(rows, ("#{id}",), limit=2) == "#0; #1; and 10 more"


def test_slots_of_a_template() -> None:
    assert list_slots("{out.total|money} for {% if arg.x %}{name}{% endif %}") == {"out", "arg", "name"}


def test_a_broken_template_is_named() -> None:
    with pytest.raises(InputError, match=r"phrase template '\{a b\}'"):
        render_phrase("{a b}", {"a": 1})


def test_only_templates_whose_slots_are_filled_are_picked() -> None:
    texts = {pick_text(("{a}", "{b}", "plain"), {"a": "A"}, random.Random(seed)) for seed in range(20)}
    assert texts == {"A", "plain"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param("tools: [", "not YAML", id="no-yaml"),
        pytest.param("tols: {}", "tols: Extra inputs", id="unknown-key"),
        pytest.param("tools: {a: {aks: [x]}}", r"tools\.a\.aks: Extra inputs", id="unknown-key-below"),
    ],
)
def test_a_bad_phrasebook_says_why(tmp_path: Path, content: str, reason: str) -> None:
    path = tmp_path / "phrases.yaml"
    path.write_text(content)
    with pytest.raises(InputError, match=reason):
        load_phrasebook(path)


def test_a_phrasebook_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        load_phrasebook(tmp_path / "none.yaml")


def test_an_empty_phrasebook_is_fine(tmp_path: Path) -> None:
    path = tmp_path / "phrases.yaml"
    path.write_text("# nothing yet\n")
    assert load_phrasebook(path) == Phrasebook().set_file(path)


@pytest.mark.parametrize(
    ("description", "request_"),
    [
        pytest.param("Returns the open orders, newest first", "return the open orders", id="third-person"),
        pytest.param("Searches flights. Slow.", "search flights", id="es"),
        pytest.param("Access the vault", "access the vault", id="no-verb-form"),
        pytest.param("", "cancel order", id="nothing-but-a-name"),
        pytest.param("Get {x} of a thing", "get (x) of a thing", id="braces"),
    ],
)
def test_requests_from_descriptions(description: str, request_: str) -> None:
    assert derive_request_phrase(spec("cancel_order", description)) == request_


@pytest.mark.parametrize(
    ("field", "how", "value", "text"),
    [
        pytest.param("placed_at", "largest", "2026-03-03T10:00:00", "my most recent order", id="recent"),
        pytest.param("placed_at", "smallest", "2026-03-03", "my oldest order", id="oldest"),
        pytest.param("price", "smallest", 3, "the cheapest order", id="cheapest"),
        pytest.param("total", "largest", 3, "the order with the highest total", id="highest"),
    ],
)
def test_extremes(field: str, how: str, value: Any, text: str) -> None:
    assert render_superlative(EntityPhrases(noun="order"), field, field, how, value) == text


def test_a_choice_is_said_in_the_words_of_the_phrasebook() -> None:
    book = Phrasebook.model_validate({"parameters": {"reason": {"values": {"late": ["it is too late"]}}}})
    wording = Wording(book, [spec("cancel_order")])
    known = UserFact(key="k", label="reason", value="late", said="late", slot="reason")
    assert wording.value("cancel_order", "reason", "late", random.Random(0)) == "it is too late"
    assert "it is too late" in wording.tell("cancel_order", known, random.Random(0))


def test_without_a_phrasebook_every_tool_can_be_asked_for() -> None:
    wording = Wording(Phrasebook(), [spec("cancel_order", "Cancels an order.")])
    assert wording.tool("cancel_order").ask == ("cancel an order",)
    assert wording.entity("order_id").noun == "order"
    assert wording.parameter("cancel_order", "order_id").label == "order id"


def test_the_same_seed_speaks_the_same_way() -> None:
    wording = Wording(Phrasebook(), [spec("cancel_order")])
    known = UserFact(key="k", label="reason", value="late", said="late", slot="reason")
    said = [[wording.tell("cancel_order", known, random.Random(seed)) for seed in range(8)] for _ in range(2)]
    assert said[0] == said[1]
    assert len(set(said[0])) > 1
