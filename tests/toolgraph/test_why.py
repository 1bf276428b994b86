"""`graph show --why`: what was compared, what speaks for a link and what against it, for edges and for none."""

from typing import Any

from trajsmith.records import ToolSpec
from trajsmith.toolgraph import build_graph
from trajsmith.toolgraph.edge_explanation import explain_edge

STRING = {"type": "string"}


def spec(name: str, takes: list[str], gives: list[str] | None = None) -> ToolSpec:
    def schema(names: list[str]) -> dict[str, Any]:
        return {"type": "object", "properties": dict.fromkeys(names, STRING), "required": names}

    output = None if gives is None else schema(gives)
    return ToolSpec(server="shop", name=name, input_schema=schema(takes), output_schema=output)


FIND = spec("find_order", ["email"], ["order_id", "carrier_name"])
SHIP = spec("ship_order", ["order_id", "carrier_name"], ["order_id"])
PLACE = spec("place_order", ["sku"], ["order_id"])
PING = spec("ping_carrier", ["text"])
GRAPH = build_graph([FIND, SHIP, PLACE, PING])


def test_an_edge_is_told_link_by_link_with_who_else_gives_it() -> None:
    text = explain_edge(GRAPH, "find_order", "ship_order")
    assert text[0].startswith("shop.find_order -> shop.ship_order: there is an edge of weight 3, score 0.")
    (link,) = [line for line in text if "filled from $.order_id" in line]
    assert "it identifies the thing that is asked for; " in link
    assert "  it is internal and required: schema: an identifier that find_order gives" in text
    assert "  other tools give it too: shop.place_order" in text


def test_what_speaks_against_a_link_stands_behind_a_but() -> None:
    (link,) = [line for line in explain_edge(GRAPH, "place_order", "ship_order") if "$.order_id" in line]
    speaks, against = link.split("; but ")
    assert "it identifies the thing" in speaks
    assert "it can be looked up instead" in against
    assert "the source makes a new one" in against


def test_no_edge_is_told_with_the_best_pairs_and_who_gives_the_parameter() -> None:
    text = explain_edge(GRAPH, "ship_order", "place_order")
    assert text[0] == "shop.ship_order -> shop.place_order: there is no edge."
    assert "There is one the other way round: shop.place_order -> shop.ship_order." in text
    assert any(line.startswith("One pair of an output and a parameter was looked at; 0.") for line in text)
    assert "  $.order_id -> sku: score 0.00: nothing about them fits" in text
    assert text[-1].endswith("; no tool gives it.")


def test_a_source_without_output_schema_is_guessed_from_its_name() -> None:
    assert "ping_carrier has no output schema: what it gives is guessed from its name." in explain_edge(
        GRAPH, "ping_carrier", "ship_order"
    )


def test_reasons_of_words_are_said_to_be_so_where_an_encoder_had_a_say() -> None:
    edges = [edge for edge in GRAPH.edges if edge.target == "shop.ship_order"]
    assert edges
    assert "The reasons below come from names and descriptions only." not in explain_edge(
        GRAPH, "find_order", "ship_order"
    )

    def encode(texts: Any) -> Any:
        import numpy as np

        return np.ones((len(texts), 1), np.float32)

    built = build_graph([FIND, SHIP, PLACE, PING], None, encode)
    assert "The reasons below come from names and descriptions only." in explain_edge(built, "find_order", "ship_order")
