"""Services of known records beyond plain changes: trash, statistics, permissions, owners, words for look-ups."""

import importlib.util
import json
import random

import pytest

from trajsmith.envgen.generate.code import rename_colliding_classes, render_environment_code
from trajsmith.envgen.generate.code_tests import render_test_code
from trajsmith.envgen.generate.formatting import is_passing, run_tests
from trajsmith.envgen.generate.known_records import load_lexicon
from trajsmith.envgen.generate.phrasebooks import render_phrasebook
from trajsmith.envgen.generate.rules import render_rules
from trajsmith.envgen.generate.tool_lists import ToolList
from trajsmith.envgen.scale.services import read_service
from trajsmith.phrasing import EntityPhrases, Phrasebook, Wording, load_phrasebook
from trajsmith.phrasing.templates import render_phrase
from trajsmith.records import ToolSpec, UserFact


def tools(*names):
    return [{"name": name, "description": "", "input_schema": {"type": "object", "properties": {}}} for name in names]


def crud(*nouns):
    return tools(*(f"{verb}_{noun}" for noun in nouns for verb in ("create", "get", "update", "delete", "search")))


def read(raw, server="acme/office"):
    return rename_colliding_classes(read_service(ToolList(server, raw), "").blueprint)


def load(blueprint, folder):
    file = folder / f"{blueprint.name}.py"
    file.write_text(render_environment_code(blueprint))
    spec = importlib.util.spec_from_file_location(f"behaves_{blueprint.name}", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, blueprint.cls)


NOTES = [*crud("note", "notebook"), *tools("restore_note", "list_notes", "get_note_stats")]


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    return load(read(NOTES), tmp_path_factory.mktemp("notes"))


def test_what_is_deleted_lies_in_the_trash_until_it_is_restored(notes):
    play = notes(notes.seed_state("medium", 1))
    key = next(key for key, note in play.state.notes.items() if not note.in_trash)
    assert play.call("delete_note", {"note_id": key}).content["in_trash"] is True
    assert key in play.state.notes
    shown = [row["note_id"] for row in play.call("list_notes", {"limit": 100}).content["result"]]
    binned = [row["note_id"] for row in play.call("list_notes", {"limit": 100, "in_trash": True}).content["result"]]
    assert key not in shown and key in binned
    again = play.call("delete_note", {"note_id": key})
    assert again.error == "refused" and "in the trash already" in again.text
    assert play.call("restore_note", {"note_id": key}).content["in_trash"] is False


def test_the_policy_speaks_of_the_trash():
    rules = " ".join(render_rules(read(NOTES)))
    assert "A note that is deleted goes to the trash" in rules
    assert "A note is restored only if it is in the trash" in rules


INVOICES = [*crud("invoice", "customer"), *tools("void_invoice", "get_invoice_statistics", "list_invoices")]


def test_statistics_count_and_add_up_without_what_is_void(tmp_path):
    blueprint = read(INVOICES, "acme/billing")
    cls = load(blueprint, tmp_path)
    play = cls(cls.seed_state("large", 2))
    counted = [one for one in play.state.invoices.values() if one.status != "void"]
    assert len(counted) < len(play.state.invoices)
    numbers = play.call("get_invoice_statistics", {}).content
    assert numbers["count"] == len(counted) and "void" not in numbers["by_status"]
    assert numbers["total_amount"] == pytest.approx(sum(one.amount for one in counted))
    assert "The statistics of invoices leave out those that are void." in list(render_rules(blueprint))


TEAM = [*crud("user", "project"), *tools("suspend_user", "list_users", "list_projects")]


def test_only_some_roles_may_delete_people(tmp_path):
    blueprint = read(TEAM, "acme/team")
    assert blueprint.signed_in is not None and blueprint.signed_in.table == "users"
    cls = load(blueprint, tmp_path)
    play = cls(cls.seed_state("medium", 1))
    me, other = play.state.signed_in, next(key for key in play.state.users if key != play.state.signed_in)
    assert play.call("get_current_user", {}).content["user_id"] == me
    play.state.users[me].role = "editor"
    before = play.dump()
    refused = play.call("delete_user", {"user_id": other})
    assert refused.error == "refused" and "has the role editor: this needs admin" in refused.text
    assert play.dump() == before
    play.state.users[me].role = "admin"
    own = play.call("suspend_user", {"user_id": me})
    assert own.error == "refused" and "is signed in" in own.text
    assert any("Only an admin" in rule and "a user" in rule for rule in render_rules(blueprint))


def test_who_is_signed_in_stays_while_a_test_empties_what_is_deleted(tmp_path):
    """A team with a trash, whose people have roles: the tests once cleared all people, and the tool broke."""
    raw = [*crud("user", "team"), *tools("restore_team", "list_teams", "list_users", "suspend_user")]
    blueprint = read(raw, "acme/people")
    assert blueprint.signed_in is not None
    load(blueprint, tmp_path)
    code = render_test_code(blueprint, f"{blueprint.name}.py")
    assert "one.team_id = elsewhere.team_id" in code and "users.clear()" not in code
    (tmp_path / "test_it.py").write_text(code)
    assert is_passing(run_tests(tmp_path, "test_it.py"))


def find_owned():
    """Return a service in which only owners change records; half of the tables with an owner have the rule."""
    for number in range(20):
        blueprint = read(crud("dashboard", "feature_flag"), f"acme/board{number}")
        if blueprint.signed_in is not None:
            return blueprint
    raise AssertionError("no service of twenty has the rule")


def test_only_the_owner_changes_a_record(tmp_path):
    blueprint = find_owned()
    operation = next(one for one in blueprint.operations if one.belongs and one.action == "delete")
    cls, table = load(blueprint, tmp_path), operation.table
    play = cls(cls.seed_state("large", 1))
    rows = getattr(play.state, table)
    mine = sum(getattr(row, operation.belongs) == play.state.signed_in for row in rows.values())
    assert 0.2 < mine / len(rows) < 0.8
    key, row = next((key, row) for key, row in rows.items() if getattr(row, operation.belongs))
    setattr(row, operation.belongs, "Somebody Else")
    refused = play.call(operation.name, {blueprint.entity(table).key: key})
    assert refused.error == "refused" and "belongs to Somebody Else" in refused.text


TICKETS = [*crud("ticket", "contact", "company")]


def test_a_ticket_belongs_to_the_company_of_its_contact(tmp_path):
    blueprint = read(TICKETS, "acme/desk")
    cls = load(blueprint, tmp_path)
    state = cls.seed_state("large", 4)
    pairs = [(one.company_id, state.contacts[one.contact_id].company_id) for one in state.tickets.values()]
    assert all(own is None or own == theirs for own, theirs in pairs) and any(own for own, _ in pairs)
    assert "The company of a ticket is that of its contact, where both are known." in list(render_rules(blueprint))
    play = cls(state)
    contact = next(one for one in state.contacts.values() if one.company_id)
    other = next(key for key in state.companies if key != contact.company_id)
    refused = play.call("create_ticket", {"subject": "No light", "contact_id": contact.contact_id, "company_id": other})
    assert refused.error == "refused" and "belongs to another company" in refused.text


@pytest.mark.parametrize("raw", [NOTES, INVOICES, TEAM, TICKETS], ids=["notes", "invoices", "team", "tickets"])
def test_the_generated_tests_of_these_rules_pass(raw, tmp_path):
    blueprint = read(raw, "acme/any")
    load(blueprint, tmp_path)
    (tmp_path / "test_it.py").write_text(render_test_code(blueprint, f"{blueprint.name}.py"))
    assert is_passing(run_tests(tmp_path, "test_it.py"))


@pytest.mark.parametrize(
    ("raw", "server", "code", "broken", "test"),
    [
        (NOTES, "acme/office", "record.in_trash = True", "record.in_trash = False", "keeps_the_record_in_the_trash"),
        (INVOICES, "acme/billing", "not in ('void',)", "not in ('paid',)", "test_get_invoice_statistics"),
        (TEAM, "acme/team", "acting.role not in", "acting.role in ['nobody'] and acting.role not in", "needs_a_role"),
        (TICKETS, "acme/desk", "not in (None, record.company_id)", "in ('never',)", "keeps_the_owner_of_company_id"),
    ],
    ids=["trash", "statistics", "roles", "owners"],
)  # fmt: skip
def test_a_rule_that_the_code_does_not_keep_fails_its_test(raw, server, code, broken, test, tmp_path):
    blueprint = read(raw, server)
    written = render_environment_code(blueprint)
    assert code in written
    file = tmp_path / f"{blueprint.name}.py"
    file.write_text(written.replace(code, broken))
    (tmp_path / "test_it.py").write_text(render_test_code(blueprint, file.name))
    assert test in run_tests(tmp_path, "test_it.py")


def test_a_searched_name_and_a_filter_are_part_of_how_a_record_is_called(tmp_path):
    (tmp_path / "phrases.yaml").write_text(render_phrasebook(read([*TICKETS, *tools("list_tickets")], "acme/desk")))
    book = load_phrasebook(tmp_path / "phrases.yaml")
    assert book.entities["ticket_id"].by["query"] == ('the ticket "{value}"',)
    assert "{phrase} that is {value}" in book.entities["ticket_id"].within["list_tickets.status"]
    assert book.entities["contact_id"].within["ticket_id"] == ("{phrase} of {owner}",)
    assert book.entities["contact_id"].within["search_ticket.query"] == ('{phrase} of the ticket "{value}"',)


@pytest.mark.parametrize(
    ("noun", "beside", "name"),
    [
        ("release", {"discogs"}, "album"), ("release", {"github"}, "release"), ("location", {"quest"}, "location"),
        ("location", {"order"}, "store"), ("location", {"office"}, "venue"), ("location", set(), "location"),
        ("campaign", {"kanka"}, "game_campaign"), ("campaign", {"ads"}, "campaign"),
        ("category", {"discord"}, "channel_group"), ("item", {"dynamodb"}, "record"),
        ("server", {"guild"}, "community"),
    ],
)  # fmt: skip
def test_the_words_beside_a_noun_decide_what_it_means(noun, beside, name):
    assert load_lexicon().find(noun, frozenset(beside)).name == name


def test_names_do_not_repeat_and_new_records_have_new_names(tmp_path):
    blueprint = read(crud("project", "team"), "acme/plans")
    entity = blueprint.entity("projects")
    label = entity.column(entity.label)
    assert len(set(label.pool)) == len(label.pool) and not set(label.examples) & set(label.pool)
    state = load(blueprint, tmp_path).seed_state("large", 5)
    names = [getattr(one, entity.label) for one in state.projects.values()]
    assert len(set(names)) == len(names) == len(label.pool)


def test_names_that_may_repeat_do_so_only_when_all_are_used(tmp_path):
    blueprint = read(crud("task"), "acme/todo")
    entity = blueprint.entity("tasks")
    state = load(blueprint, tmp_path).seed_state("medium", 1)
    names = [getattr(one, entity.label) for one in state.tasks.values()]
    assert len(set(names)) == min(len(names), len(entity.column(entity.label).pool))
    moments = [one.created_at for one in state.tasks.values()] if "created_at" in entity.names else [True]
    assert all(moments)


def test_lists_are_in_the_order_that_a_saved_state_has(tmp_path):
    cls = load(read(crud("team"), "acme/crew"), tmp_path)
    play = cls(cls.seed_state("medium", 1))
    assert play.call("create_team", {"name": "Harbour Watch"}).ok
    before = play.call("list_teams", {"limit": 5}).content
    rows = json.loads(play.dump())
    rows["teams"] = dict(sorted(rows["teams"].items()))
    play.restore(json.dumps(rows).encode())
    assert play.call("list_teams", {"limit": 5}).content == before


def test_some_records_have_nothing_that_belongs_to_them(tmp_path):
    cls = load(read(crud("project", "task"), "acme/plan"), tmp_path)
    state = cls.seed_state("large", 1)
    assert set(state.projects) - {one.project_id for one in state.tasks.values()}


def test_a_change_of_state_that_nothing_leads_to_is_left_out():
    blueprint = read([*crud("credential"), *tools("rotate_credential", "revoke_credential")], "acme/keys")
    names = {one.name for one in blueprint.operations}
    assert "revoke_credential" in names and "rotate_credential" not in names
    assert "no state leads to active" in {one.reason for one in blueprint.left_out}


def test_dates_that_can_only_be_changed_are_not_over_either(tmp_path):
    raw = tools("get_api_token", "configure_api_token", "list_api_tokens", "revoke_api_token")
    raw[1]["input_schema"] = {"type": "object", "properties": {"expires_on": {"type": "string"}}}
    blueprint = read(raw, "acme/access")
    cls = load(blueprint, tmp_path)
    play = cls(cls.seed_state("medium", 1))
    [entity] = blueprint.entities
    key = next(key for key, one in getattr(play.state, entity.table).items() if one.status == "active")
    refused = play.call("configure_api_token", {entity.key: key, "expires_on": "2026-01-05"})
    assert refused.error == "refused" and "over already" in refused.text


def test_keys_of_different_records_begin_differently():
    blueprint = read(crud("marketplace_listing", "marketplace_order", "market_report"), "acme/one")
    prefixes = [entity.prefix for entity in blueprint.entities if entity.prefix]
    assert len(set(prefixes)) == len(prefixes)


def test_a_rule_of_the_blueprint_survives_its_file():
    blueprint = read(TEAM, "acme/team")
    assert type(blueprint).model_validate_json(json.dumps(blueprint.model_dump(mode="json"))) == blueprint


def read_book(raw, folder, server="acme/desk"):
    (folder / "phrases.yaml").write_text(render_phrasebook(read(raw, server)))
    return load_phrasebook(folder / "phrases.yaml")


def test_who_has_to_search_says_what_for_in_every_request(tmp_path):
    words = read_book(crud("ticket", "contact"), tmp_path).tools["search_ticket"]
    asked = [
        *words.ask,
        *words.say,
        *(text for question in words.questions if not question.row for text in question.ask),
    ]
    assert len(asked) > 5 and all("{query}" in text for text in asked)
    assert not any(question.say for question in words.questions if not question.row)


def test_a_count_says_what_it_leaves_out_and_has_one_of_one(tmp_path):
    words = read_book([*crud("document"), *tools("get_document_stats")], tmp_path).tools["get_document_stats"]
    texts = [
        render_phrase(words.done[0], {"out": {"count": count, "by_status": states}, "arg": {}})
        for count, states in (
            (1, {"draft": 1}),
            (3, {"draft": 3}),
            (3, {"draft": 2}),
            (3, {"draft": 1, "published": 2}),
            (0, {}),
        )
    ]
    left_out = ", not counting those that are archived."
    assert texts == [
        f"There is 1 document (draft){left_out}", f"There are 3 documents (all draft){left_out}",
        f"There are 3 documents (2 draft; 1 without a status){left_out}",
        f"There are 3 documents (1 draft and 2 published){left_out}", f"There are no documents{left_out}",
    ]  # fmt: skip
    assert not any("numbers" in text for text in (*words.ask, *words.say))


def test_ticking_off_is_not_called_checking(tmp_path):
    words = read_book(crud("checklist_item", "task"), tmp_path, "acme/h0")
    assert words.tools["check_checklist_item"].ask[0] == "tick off {checklist_item_id}"


def test_names_in_snake_case_are_said_as_they_are():
    kinds = {"kind": {"enum": ["key_value"]}, "mode": {"description": "read_only or open"}}
    schema = {"type": "object", "properties": {"table_name": {"type": "string", "examples": ["events_eu"]}, **kinds}}
    table = ToolSpec(server="s", name="create_table", description="", input_schema=schema)
    book = Phrasebook(entities={"table_id": EntityPhrases(noun="table", by={"table_name": ['the table "{value}"']})})
    wording, rng = Wording(book, [table]), random.Random(1)
    assert wording.value("create_table", "table_name", "events_eu", rng) == "events_eu"
    assert wording.value("create_table", "kind", "key_value", rng) == "key value"
    assert wording.value("create_table", "mode", "read_only", rng) == "read only"
    fact = UserFact(key="k", label="n", value="events_eu", said="", slot="table_id|table_name", how="equals")
    assert wording.describe("table_id", fact, rng) == 'the table "events_eu"'
