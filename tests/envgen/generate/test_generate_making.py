"""From a blueprint to files: code that runs and keeps its rules, the same again, and stages that are not done twice."""

import ast
import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from trajsmith.envgen.generate import pipeline
from trajsmith.envgen.generate.code import rename_colliding_classes, render_environment_code
from trajsmith.envgen.generate.columns import build_open_columns
from trajsmith.envgen.generate.from_mcp import read_mcp
from trajsmith.envgen.generate.from_openapi import read_openapi
from trajsmith.envgen.generate.from_tables import read_tables
from trajsmith.envgen.generate.pipeline import StageJournal, generate_environment
from trajsmith.envgen.generate.refinement import refine_blueprint
from trajsmith.envgen.generate.rules import render_rules
from trajsmith.envgen.generate.tool_lists import read_tool_list
from trajsmith.records import InputError, RunError

SPECS = Path(__file__).parents[2] / "environments" / "openapi" / "specs"


@pytest.fixture
def blueprint(tmp_path):
    source = tmp_path / "club"
    source.mkdir()
    (source / "members.json").write_text(
        json.dumps([{"id": n, "name": f"Member {n}", "email": f"m{n}@example.org"} for n in range(1, 13)])
    )
    states = ["booked", "done", "cancelled"]
    (source / "visits.json").write_text(
        json.dumps([{"id": n, "member_id": n % 12 + 1, "status": states[n % 3]} for n in range(1, 31)])
    )
    return refine_blueprint(read_tables(source))


def load_generated(blueprint, folder):
    """Return a blueprint as it is rendered, and the class that its code defines."""
    made = rename_colliding_classes(refine_blueprint(blueprint))
    file = folder / f"{made.name}.py"
    file.write_text(render_environment_code(made))
    spec = importlib.util.spec_from_file_location(f"generated_{made.name}", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return made, getattr(module, made.cls)


@pytest.fixture
def play(blueprint, tmp_path):
    _, cls = load_generated(blueprint, tmp_path)
    return cls(cls.seed_state("large", 1))


def test_an_environment_may_be_called_like_its_only_table(tmp_path):
    (tmp_path / "shop.json").write_text(json.dumps([{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]))
    made = rename_colliding_classes(refine_blueprint(read_tables(tmp_path / "shop.json")))
    assert (made.cls, made.entities[0].cls) == ("ShopEnvironment", "Shop")
    compile(render_environment_code(made), "shop.py", "exec")


def test_the_same_source_gives_the_same_code(blueprint):
    assert render_environment_code(blueprint) == render_environment_code(blueprint.model_copy())


def test_seed_states_hold_the_real_rows_with_what_they_mean(play):
    small = type(play).seed_state("small", 5)
    assert small == type(play).seed_state("small", 5) != type(play).seed_state("small", 6)
    assert all(str(visit.member_id) in small.members for visit in small.visits.values())
    assert len(play.state.visits) == 30


def test_rules_are_told_and_kept(blueprint, play):
    told = "\n".join(render_rules(blueprint))
    assert "The member of a visit must exist." in told
    assert "No two members have the same email." in told
    assert "A visit that is done or cancelled stays so" in told.replace("cancelled or done", "done or cancelled")
    refusals = {
        "member not found: 99": ("add_visit", {"member_id": 99, "status": "booked"}),
        "there is another member with email m1@example.org": ("add_member", {"name": "X", "email": "m1@example.org"}),
        "member 1 still has visits": ("delete_member", {"member_id": 1}),
        "nothing to change": ("update_member", {"member_id": 1, "name": "Member 1"}),
        "visit 1 is done and stays so": ("update_visit", {"visit_id": 1, "status": "booked"}),
    }
    for reason, (tool, arguments) in refusals.items():
        before = play.dump()
        result = play.call(tool, arguments)
        assert result.error == "refused" and reason in result.text
        assert play.dump() == before


def test_tools_work_together(play):
    made = play.call("add_visit", {"member_id": 3, "status": "booked"}).content
    assert made["visit_id"] == 31
    assert made in play.call("search_visits", {"member_id": 3}).content["result"]
    assert play.call("delete_visit", {"visit_id": 31}).ok
    assert play.call("get_visit", {"visit_id": 31}).error == "refused"


def test_done_stages_are_not_done_again(tmp_path):
    done = []
    StageJournal(tmp_path, "a").run("code", lambda: done.append(1) or "first")
    with (tmp_path / "stages.jsonl").open("ab") as file:
        file.write(b'{"stage": "tes')  # a killed run's last line
    assert StageJournal(tmp_path, "a").run("code", lambda: done.append(2) or "second") == "first"
    assert StageJournal(tmp_path, "b").run("code", lambda: done.append(3) or "third") == "third"
    assert StageJournal(tmp_path, "b").run("code", lambda: done.append(4) or "fourth") == "third"
    assert done == [1, 3]


def test_a_directory_that_is_not_ours_is_left_alone(tmp_path):
    (tmp_path / "boxes").mkdir()
    (tmp_path / "boxes.json").write_text(json.dumps([{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]))
    with pytest.raises(InputError, match="is no generated environment"):
        generate_environment(lambda: read_tables(tmp_path / "boxes.json"), tmp_path)


def test_texts_of_a_source_cannot_leave_their_quotation_marks(blueprint):
    evil = 'x\x00"""\nimport os\\N{y}'
    operations = tuple(one.model_copy(update={"description": evil}) for one in blueprint.operations)
    entities = tuple(
        entity.model_copy(
            update={
                "description": evil,
                "columns": tuple(one.model_copy(update={"description": evil}) for one in entity.columns),
            }
        )
        for entity in blueprint.entities
    )
    made = blueprint.model_copy(update={"title": evil, "operations": operations, "entities": entities})
    tree = ast.parse(render_environment_code(made))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert imported == {"random"}


def test_titles_of_operations_on_one_record_get_their_article(blueprint):
    operations = tuple(
        one.model_copy(update={"description": "Delete visits"}) if one.name == "delete_visit" else one
        for one in blueprint.operations
    )
    code = render_environment_code(blueprint.model_copy(update={"operations": operations}))
    assert '"""Delete a visit.' in code and '"""List visits, all or those that fit.' in code


def test_names_of_people_are_no_fixed_set_even_if_they_repeat(tmp_path):
    rows = [{"id": n, "name": f"Ann {n % 4}", "grade": "abc"[n % 3]} for n in range(1, 31)]
    (tmp_path / "pupils.json").write_text(json.dumps(rows))
    kinds = {one.name: one.kind for one in read_tables(tmp_path / "pupils.json").entities[0].columns}
    assert (kinds["name"], kinds["grade"]) == ("text", "choice")


def test_times_of_a_day_are_those_of_a_day():
    schema = {"type": "string", "pattern": r"^([01]\d|2[0-3]):?([0-5]\d)$", "examples": ["09:00"]}
    opens, closes = (build_open_columns().column(name, schema, "hour", True) for name in ("timeOpen", "timeClose"))
    assert max(opens.pool) < min(closes.pool) and "09:00" in opens.pool and len(opens.pool) == 10


def test_a_checker_without_time_decides_nothing(tmp_path, monkeypatch):
    """On a machine that is busy nothing is known of an environment: no rejection, and the next start examines it."""
    asked = []

    async def no_time(*_):
        asked.append(1)
        return SimpleNamespace(score=None)

    monkeypatch.setattr(pipeline, "check_environment", no_time)
    (tmp_path / "boxes.json").write_text(json.dumps([{"id": n, "name": f"Box {n}"} for n in range(1, 9)]))
    for _ in range(2):
        with pytest.raises(RunError, match="nothing is decided: repeat the command"):
            generate_environment(lambda: read_tables(tmp_path / "boxes.json"), tmp_path / "out")
    ledger = (tmp_path / "out" / "work" / "boxes" / "stages.jsonl").read_text()
    stages = [json.loads(line)["record"]["stage"] for line in ledger.splitlines()]
    assert asked == [1, 1] and stages == ["blueprint", "code", "tests"]
    assert not (tmp_path / "out" / "rejected").exists()


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"result": 5}', '{"tools": 5}', '{"tools": [{"name": "get_x", "input_schema": 5}]}',
     '{"tools": [{"name": "get_x", "input_schema": {"properties": [1], "required": [{}]}, "outputSchema": 7}]}'],
    ids=["too deep", "no result", "no list", "no schema", "odd schema"],
)  # fmt: skip
def test_tool_lists_of_any_shape_are_refused_with_one_line(text, tmp_path):
    (tmp_path / "tools.json").write_text(text)
    with pytest.raises(InputError, match=r"no JSON|no tools in it|nothing usable"):
        read_mcp(read_tool_list(str(tmp_path / "tools.json")))


def test_records_inside_records_are_made_checked_and_kept(tmp_path):
    made, cls = load_generated(read_openapi(SPECS / "shop.yaml"), tmp_path)
    assert "The product sku in the items of an order must exist." in list(render_rules(made))
    play = cls(cls.seed_state("small", 1))
    skus = set(play.state.products)
    assert {item.product_sku for order in play.state.orders.values() for item in order.items} <= skus
    sku = min(skus)
    place = {"customer_id": next(iter(play.state.customers.values())).customer_id}
    order = play.call("place_order", {**place, "items": [{"product_sku": sku, "quantity": 2}]})
    assert order.ok, order.text
    assert order.content["items"] == [{"product_sku": sku, "product_id": None, "quantity": 2}]
    assert play.call("place_order", {**place, "items": []}).error == "invalid_arguments", "minItems"
    unknown = play.call("place_order", {**place, "items": [{"product_sku": "ZZZ-9999", "quantity": 1}]})
    assert unknown.error == "refused" and "product not found: ZZZ-9999" in unknown.text
    wrong = play.call("place_order", {**place, "items": [{"product_sku": sku, "quantity": 0}]})
    assert wrong.error == "invalid_arguments" and "quantity" in wrong.text


def test_lists_are_bounded_and_flags_are_set_once(tmp_path):
    _, cls = load_generated(read_openapi(SPECS / "shop.yaml"), tmp_path)
    play = cls(cls.seed_state("large", 1))
    prices = sorted(one.price for one in play.state.products.values())
    found = play.call("search_products", {"min_price": prices[10], "limit": 100}).content["result"]
    assert sorted(one["price"] for one in found) == [price for price in prices if price >= prices[10]]
    moment = sorted(one.created_at for one in play.state.orders.values())[5]
    later = play.call("list_orders", {"created_after": f"{moment.isoformat()}Z", "limit": 100}).content["result"]
    assert len(later) == sum(one.created_at >= moment for one in play.state.orders.values())
    _, cls = load_generated(read_openapi(SPECS / "desk.json"), tmp_path)
    play = cls(cls.seed_state("small", 1))
    ticket = next(one for one in play.state.tickets.values() if not one.locked)
    assert play.call("tickets_lock", {"ticket_id": ticket.ticket_id}).content["locked"] is True
    assert "is locked already" in play.call("tickets_lock", {"ticket_id": ticket.ticket_id}).text
    closed = play.call("tickets_close", {"ticket_id": ticket.ticket_id, "resolution": "Fixed"})
    closed = closed if closed.ok else play.call("tickets_reopen", {"ticket_id": ticket.ticket_id})
    assert closed.ok, closed.text


def test_watchers_are_added_listed_and_removed_once(tmp_path):
    _, cls = load_generated(read_openapi(SPECS / "desk.json"), tmp_path)
    play = cls(cls.seed_state("medium", 1))
    ticket = next(iter(play.state.tickets.values()))
    name = next(agent for agent in play.state.agents if agent not in (ticket.watcher_ids or []))
    pair, key = {"ticket_id": ticket.ticket_id, "username": name}, {"ticket_id": ticket.ticket_id, "limit": 100}
    assert play.call("watchers_add", pair).ok
    assert f"has agent {name} already" in play.call("watchers_add", pair).text
    assert name in [one["username"] for one in play.call("watchers_list", key).content["result"]]
    assert play.call("watchers_remove", pair).ok
    assert f"has no agent {name}" in play.call("watchers_remove", pair).text
    assert name not in [one["username"] for one in play.call("watchers_list", key).content["result"]]


def test_the_one_record_of_another_is_shown_made_and_changed(tmp_path):
    _, cls = load_generated(read_openapi(SPECS / "shop.yaml"), tmp_path)
    play = cls(cls.seed_state("small", 1))
    new = play.call("create_customer", {"name": "Ada", "email": "ada@example.com"}).content["customer_id"]
    assert f"customer {new} has no preferences" in play.call("get_preferences", {"customer_id": new}).text
    refused = play.call("change_preferences", {"customer_id": new, "language": "de"})
    assert refused.error == "refused" and "has no preferences yet: give newsletter" in refused.text
    made = play.call("change_preferences", {"customer_id": new, "newsletter": True})
    assert made.content == {"newsletter": True, "language": None}
    assert play.call("change_preferences", {"customer_id": new, "newsletter": True}).error == "refused"
    assert play.call("get_preferences", {"customer_id": new}).content == made.content


def test_two_kinds_of_records_never_share_a_class(tmp_path):
    inside = {"type": "object", "required": ["size"], "properties": {"size": {"type": "string"}}}
    document = {"openapi": "3.1.0", "info": {"title": "Shop"}, "paths": {}}
    for table, field in (("orders", "item_box"), ("order_items", "box"), ("boxes", "boxes")):
        record = {"type": "object", "required": ["id", "name"],
                  "properties": {"id": {"type": "integer"}, "name": {"type": "string"}, field: inside}}  # fmt: skip
        answers = {"responses": {"200": {"description": "ok", "content": {"application/json": {"schema": record}}}}}
        parameter = {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
        document["paths"][f"/{table}/{{id}}"] = {"parameters": [parameter], "get": answers}
    (tmp_path / "shop.json").write_text(json.dumps(document))
    made, cls = load_generated(read_openapi(tmp_path / "shop.json"), tmp_path)
    classes = [one.cls for entity in made.entities for one in (entity, *entity.parts)]
    assert len(classes) == len(set(classes)) == 6
    assert len(cls.seed_state("small", 1).orders) >= 4
