"""Records of services that agree: texts with names, names with owners, dates with states, words with kinds."""

import importlib.util
import random
import re
from collections import Counter

import pytest

from trajsmith.envgen.generate.blueprint import Blueprint
from trajsmith.envgen.generate.code import rename_colliding_classes, render_environment_code
from trajsmith.envgen.generate.code_tests import render_test_code
from trajsmith.envgen.generate.formatting import is_passing, run_tests
from trajsmith.envgen.generate.known_agreements import drop_circles
from trajsmith.envgen.generate.known_records import load_lexicon
from trajsmith.envgen.generate.phrasebooks import render_phrasebook
from trajsmith.envgen.generate.rules import render_rules
from trajsmith.envgen.generate.tool_lists import ToolList
from trajsmith.envgen.generate.tool_names import interpret_service_tool
from trajsmith.envgen.scale.composition import compose_services, find_joined_tools
from trajsmith.envgen.scale.services import read_service
from trajsmith.phrasing import load_phrasebook, pick_text


def tools(*names, parameters=(), about=""):
    properties = {name: {"type": "string"} for name in parameters}
    schema = {"type": "object", "properties": properties}
    return [{"name": name, "description": about, "input_schema": schema} for name in names]


def crud(*nouns):
    return tools(*(f"{verb}_{noun}" for noun in nouns for verb in ("create", "get", "update", "delete", "list")))


def read(raw, server="acme/office") -> Blueprint:
    return rename_colliding_classes(read_service(ToolList(server, raw), "").blueprint)


def load(blueprint, folder):
    file = folder / f"{blueprint.name}.py"
    file.write_text(render_environment_code(blueprint))
    spec = importlib.util.spec_from_file_location(f"agrees_{blueprint.name}", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, blueprint.cls)


CODE = crud("repository", "branch", "pull_request", "issue", "file")


@pytest.fixture(scope="module")
def code(tmp_path_factory):
    return load(read(CODE, "acme/code"), tmp_path_factory.mktemp("code"))


def test_a_file_is_in_the_language_that_its_name_says(code):
    languages = {"py": "Python", "ts": "TypeScript", "md": "Markdown", "go": "Go", "sh": "Shell", "dart": "Dart"}
    languages |= {"toml": "TOML", "css": "CSS", "Dockerfile": "Dockerfile"}
    files = [one for seed in range(3) for one in code.seed_state("medium", seed).files.values()]
    labelled = [(getattr(one, "name", None) or one.file_name, one.language) for one in files if one.language]
    assert len(labelled) > 20
    assert all(languages[name.rpartition(".")[2].rpartition("/")[2]] == language for name, language in labelled)


def test_a_pull_request_has_a_branch_and_no_second_name_of_it():
    pulls = read(CODE, "acme/code").entity("pull_requests")
    assert pulls.column("branch_id").required and "source_branch" not in pulls.names


def test_a_text_goes_with_the_name_of_its_record(code):
    lexicon = load_lexicon()
    issues = [one for seed in range(3) for one in code.seed_state("medium", seed).issues.values() if one.description]
    assert len(issues) > 20
    for one in issues:
        assert one.description == lexicon.describe("issue_title", "text", one.issue_title)


def test_no_sentence_is_repeated_more_than_a_few_times(tmp_path):
    for number, raw in enumerate((CODE, crud("project", "task", "note"), crud("customer", "booking", "invoice"))):
        state = load(read(raw, f"acme/texts{number}"), tmp_path).seed_state("medium", 2).model_dump(mode="json")
        texts = Counter(
            value
            for table in state.values() if isinstance(table, dict)
            for row in table.values() if isinstance(row, dict)
            for name, value in row.items() if isinstance(value, str) and value.endswith(".")
        )  # fmt: skip
        assert texts and max(texts.values()) <= 4, texts.most_common(2)


def test_no_pool_of_sentences_serves_two_families():
    lexicon, families = load_lexicon(), dict[str, set[str]]()
    for record in lexicon.records.values():
        for column in record.columns:
            if column.is_text:
                families.setdefault(column.pool, set()).add(record.name)
    shared = {pool: kinds for pool, kinds in families.items() if len(kinds) > 2 and pool != "prompt_text"}
    assert not shared


def test_what_is_over_lies_in_the_past_and_what_is_planned_ahead(tmp_path):
    cls = load(read(crud("meeting", "project", "invoice", "sprint"), "acme/plans"), tmp_path)
    for seed in range(4):
        state = cls.seed_state("medium", seed)
        for one in state.meetings.values():
            ahead = one.starts_at > state.now
            assert ahead == (one.status in ("scheduled", "cancelled")), (one.status, one.starts_at)
            if one.status == "in_progress":
                assert (state.now - one.starts_at).total_seconds() < 3600
        for one in state.invoices.values():
            if one.due_date is not None:
                assert (one.due_date < state.now.date()) == (one.status == "overdue")
        for one in state.sprints.values():
            if one.start_date is None or one.end_date is None:
                continue
            days, today = (one.start_date, one.end_date), state.now.date()
            phase = "planned" if days[0] > today else "completed" if days[1] < today else "active"
            assert one.status == phase, (one.status, days)


def test_addresses_are_those_of_the_company(tmp_path):
    cls = load(read(crud("organization", "domain"), "acme/edge"), tmp_path)
    state = cls.seed_state("medium", 3)
    for one in state.domains.values():
        owner = getattr(state.organizations[one.organization_id], read_label(state.organizations))
        slug = re.sub(r"[^a-z0-9]", "", owner.lower())
        assert slug in getattr(one, read_label(state.domains)).replace("-", "")
    for one in state.organizations.values():
        website = getattr(one, "website", None)
        name = re.sub(r"[^a-z0-9-]", "", getattr(one, read_label(state.organizations)).lower())
        assert website is None or name in website


def read_label(table):
    return next(name for name in type(next(iter(table.values()))).model_fields if name.endswith("name"))


def test_new_domains_are_those_of_nobody_else():
    label = read(crud("organization", "domain"), "acme/edge").entity("domains").column("domain_name")
    known = [name for _, names in label.names for name in names]
    assert label.examples and not set(label.examples) & {*known, *load_lexicon().pools["domain_name"]}


def test_what_was_sent_is_not_changed():
    blueprint = read(crud("email", "invoice"), "acme/post")
    changes = [one for one in blueprint.operations if one.action == "update"]
    assert changes and all("sent" not in one.only_while and one.only_while for one in changes)


def test_rows_are_called_like_what_their_table_holds(tmp_path):
    lexicon = load_lexicon()
    cls = load(read(crud("table", "record"), "acme/base"), tmp_path)
    state = cls.seed_state("medium", 1)
    known = lexicon.names_of["record"]
    fitting = 0
    for one in state.data_records.values():
        table = lexicon.find_base("table_name", getattr(state.tables[one.table_id], read_label(state.tables)))
        title = next(value for name, value in one if name.endswith("title"))
        assert any(title.startswith(name) for name in known.get(table, (title,))), (table, title)
        fitting += table in known
    assert fitting > 10


def test_links_that_make_a_service_are_filled(tmp_path):
    blueprint = read(crud("folder", "dashboard", "team", "alert", "project"), "acme/boards")
    cls = load(blueprint, tmp_path)
    for entity in blueprint.entities:
        for column in entity.columns:
            if column.references:
                states = [cls.seed_state("medium", seed) for seed in range(3)]
                rows = [one for state in states for one in getattr(state, entity.table).values()]
                filled = sum(getattr(one, column.name) is not None for one in rows)
                assert filled >= 0.8 * len(rows), (entity.table, column.name)


def test_what_belongs_to_each_other_has_no_circles():
    owners = {"project": [("folder", True)], "folder": [("project", True)], "org": []}
    owners["team"] = [("project", True), ("org", False)]
    kept = drop_circles(owners)
    assert kept["project"] == [("folder", True)] and kept["folder"] == []
    assert kept["team"] == [("project", True), ("org", False)]
    assert drop_circles({"a": [("b", True), ("c", False)], "b": [("a", True)], "c": []})["a"]


def test_names_are_unique_within_what_they_belong_to(tmp_path):
    blueprint = read(crud("repository", "branch"), "acme/git")
    rules = list(render_rules(blueprint))
    assert any(rule.startswith("No two branches of a repository have the same") for rule in rules), rules
    play = load(blueprint, tmp_path)
    play = play(play.seed_state("medium", 1))
    first, second = list(play.state.repositories)[:2]
    label = blueprint.entity("branches").label
    given = {label: "feature/wide-tables", "repository_id": first}
    assert play.call("create_branch", given).ok
    assert play.call("create_branch", given).error == "refused"
    assert play.call("create_branch", {**given, "repository_id": second}).ok


@pytest.mark.parametrize("server", [f"acme/pipes{number}" for number in range(6)])
def test_only_plans_and_places_limit_numbers(server):
    blueprint = read(crud("project", "pipeline", "pipeline_run", "issue", "comment", "webhook", "team"), server)
    limited = {entity.noun for entity in blueprint.entities if entity.quota}
    assert limited <= {"webhook", "user", "project"}  # projects of a plan
    assert all(str(limit.most)[0] in "125" for entity in blueprint.entities for limit in entity.limits)


def test_some_webhooks_are_limited():
    assert any(read(crud("project", "webhook"), f"acme/h{number}").entity("webhooks").quota for number in range(8))


@pytest.mark.parametrize(
    ("noun", "beside", "name"),
    [
        ("template", {"pod", "endpoint"}, "machine_template"), ("template", {"email"}, "message_template"),
        ("template", {"page"}, "template"), ("prediction", {"flux"}, "image_job"), ("svg", {"flux"}, "graphic"),
        ("livestream", {"kick"}, "livestream"), ("pull_comment", {"pull"}, "dev_comment"),
        ("label", {"pull"}, "issue_label"), ("client", {"ssid"}, "device"), ("client", {"invoice"}, "company"),
        ("issue_type", set(), "issue_type"), ("project", {"sprint"}, "dev_project"), ("move", {"chess"}, "chess_move"),
        ("filter", {"board"}, "saved_view"), ("agent", {"elevenlabs"}, "assistant"), ("login_link", set(), None),
        ("variant", {"flag"}, "flag_variant"), ("story", {"quest"}, "tale"), ("plan", {"addon"}, "price"),
        ("tcp_proxy", set(), "tcp_proxy"), ("event", {"funnel"}, "analytics_event"), ("zone", {"vpc"}, "cloud_zone"),
        ("rule", {"semgrep"}, "code_rule"), ("room", {"palace"}, "palace_room"), ("site", {"floor"}, "venue"),
        ("reminder", {"invoice"}, "payment_reminder"), ("game", {"chess"}, "chess_game"), ("trace", set(), "app_trace"),
        ("retrospective", set(), "retro"), ("release_rating", set(), "music_review"),
        ("app", {"field"}, "database"), ("channel", {"playlist"}, "video_channel"),
        ("session", {"dataset"}, "analysis_session"), ("thread", {"github"}, "dev_notification"),
        ("thread_subscription", set(), None),
        ("position", {"market"}, "prediction_stake"), ("security_group", set(), "security_group"),
        ("product", {"license"}, "saas_product"), ("category", {"yapi"}, "api_category"),
        ("category", set(), "product_category"), ("trending_topic", set(), None),
        ("category", {"article"}, "help_category"), ("exam_results_user", set(), None),
        ("creation_guideline", set(), None), ("instant_search_price", set(), None),
        ("position", {"pgn"}, None), ("position", {"broker"}, "holding"), ("material", {"sketchup"}, None),
        ("layout_mode", {"figma"}, None),
    ],
)  # fmt: skip
def test_nouns_are_read_by_what_the_service_is_about(noun, beside, name):
    record = load_lexicon().find(noun, frozenset(beside))
    assert (record.name if record else None) == name


def test_a_name_that_asks_for_a_change_is_about_no_record():
    assert "made elsewhere" in interpret_service_tool("request_email_change", ())
    for name in ("clone_node", "import_contact", "duplicate_page"):  # nothing is made of nothing
        assert getattr(interpret_service_tool(name, ()), "action", "") not in ("create", "update")
    assert interpret_service_tool("volume_list", ()).noun == "volume"


@pytest.mark.parametrize("name", ["add_issue_to_project", "remove_tag_from_task", "linear_add_issue_to_project"])
def test_a_tool_that_joins_records_makes_none(name):
    assert "joins two records" in interpret_service_tool(name, ())


def test_what_is_made_of_something_is_what_the_name_begins_with():
    assert interpret_service_tool("service_create_from_repo", ()).noun == "service"
    assert interpret_service_tool("add_comment_to_issue", ()).noun == "comment"


def test_records_of_tables_need_a_table():
    blueprint = read([*crud("incident"), *tools("get_record", "list_records", "update_record")], "acme/noc")
    assert [entity.noun for entity in blueprint.entities] == ["incident"]
    assert "nothing says what such a record holds" in {one.reason for one in blueprint.left_out}


def test_members_and_users_are_the_same_people():
    blueprint = read([*crud("user", "team"), *tools("list_team_members", "get_team_member")], "acme/people")
    assert {entity.noun for entity in blueprint.entities} == {"user", "team"}


def test_a_comment_is_one_on_an_issue_though_its_project_is_named():
    raw = [
        *crud("project", "issue"),
        *tools("create_comment", parameters=("project_id", "text")),
        *tools("list_comments"),
    ]
    comments = read(raw, "acme/talk").entity("comments")
    assert [column.references for column in comments.columns if column.references] == ["issues"]


def test_an_event_fits_its_calendar(tmp_path):
    lexicon = load_lexicon()
    state = load(read(crud("calendar", "event"), "acme/days"), tmp_path).seed_state("medium", 1)
    for one in state.events.values():
        calendar = state.calendars[one.calendar_id].name
        title = next(value for name, value in one if name.endswith("title"))
        assert any(title.startswith(name) for name in lexicon.names_of["event"][calendar])


def test_the_publisher_of_a_server_says_nothing_about_its_nouns():
    raw = [*crud("pull_request"), *tools("list_conversations", "get_conversation", "close_conversation")]
    pool = read(raw, "acme-ai/hub").entity("conversations").columns[1].pool
    assert set(pool) <= set(load_lexicon().draw("ticket_subject", "hub", "conversation", size=30))


def test_nouns_of_composed_services_stay_whole():
    server = "acme/one + acme/two"
    blueprint = read_service(ToolList(server, crud("ai_action", "project")), "ai_action_desk").blueprint
    assert "ai_actions" in {entity.table for entity in blueprint.entities}


def test_tests_of_a_course_are_about_it(tmp_path):
    state = load(read(crud("course", "quiz"), "acme/school"), tmp_path).seed_state("medium", 1)
    for one in state.quizzes.values():
        course = next(value for name, value in state.courses[one.course_id] if name.endswith("title"))
        assert next(value for name, value in one if name.endswith("title")).startswith(f"{course}: ")


def test_a_label_belongs_to_no_issue():
    raw = [*crud("issue"), *tools("create_label", "list_labels", "delete_label", parameters=("issue_id", "name"))]
    labels = read(raw, "acme/marks").entity("labels")
    assert not [column.name for column in labels.columns if column.references == "issues"]


def test_who_made_a_record_is_not_changed():
    blueprint = read(crud("comment", "pull_request", "issue"), "acme/made")
    for one in blueprint.operations:
        assert one.action != "update" or not {"author", "reporter"} & set(one.fields) or len(one.fields) == 1


def test_a_room_is_booked_and_not_made():
    blueprint = read(tools("book_room", "list_rooms", "create_room", "close_room", "get_room"), "acme/rooms")
    booked = next(one for one in blueprint.operations if one.name == "book_room")
    assert (booked.action, booked.sets) == ("move", "occupied")
    made = read(tools("book_appointment", "list_appointments", "cancel_appointment"), "acme/visits")
    assert next(one for one in made.operations if one.name == "book_appointment").action == "create"


def test_whose_records_they_are_is_no_part_of_their_name():
    blueprint = read([*crud("user_repo"), *tools("list_issues", "create_issue")], "acme/hub")
    assert "repos" in {entity.table for entity in blueprint.entities}
    assert "user_repos" not in {entity.table for entity in blueprint.entities}


def test_a_reply_to_a_ticket_belongs_to_no_article():
    blueprint = read(crud("solution_article", "ticket_reply"), "acme/help")
    assert not [column for column in blueprint.entity("ticket_replies").columns if column.references]


def test_what_can_be_reopened_can_be_closed():
    blueprint = read(tools("create_incident", "list_incidents", "reopen_incident", "get_incident", "update_incident",
                           "delete_incident", "search_incidents"), "acme/noc")  # fmt: skip
    sets = {one.sets for one in blueprint.operations if one.action == "move"}
    assert "investigating" in sets and sets & {"closed", "resolved"}


@pytest.mark.parametrize(
    ("description", "kept"),
    [
        ("Get stories from Hacker News.", False), ("Mark a story as read in the memory palace.", False),
        ("Create a story in a project.", True), ("Create a story.", True),
    ],
)  # fmt: skip
def test_descriptions_speak_of_the_service_only(description, kept):
    raw = [*crud("project"), *tools("create_story", about=description), *tools("list_stories", "delete_story")]
    blueprint = read(raw, "acme/sprints")
    story = next(one for one in blueprint.operations if one.name == "create_story")
    assert (story.description == description) == kept


def test_tools_of_composed_services_have_no_words_of_their_servers():
    lists = [
        ToolList(f"acme/s{number}", [{**one, "description": "Does it in Hacker News style."} for one in crud(*nouns)])
        for number, nouns in enumerate([("invoice", "customer"), ("invoice", "payment"), ("payment", "refund")])
    ]
    services = compose_services(lists)
    assert services
    assert all(not one.description for service in services for one in service.blueprint.operations)


def test_an_account_in_a_company_is_a_part_of_it(tmp_path):
    state = load(read(crud("organization", "account"), "acme/crm"), tmp_path).seed_state("medium", 1)
    for one in state.accounts.values():
        owner = getattr(state.organizations[one.organization_id], read_label(state.organizations))
        assert getattr(one, read_label(state.accounts)).startswith(owner)


def test_a_call_has_no_kind_of_its_own():
    entity = read(crud("outbound_call"), "acme/calls").entities[0]
    assert "kind" not in entity.names


def test_few_names_are_not_repeated(tmp_path):
    state = load(read(crud("decision"), "acme/votes"), tmp_path).seed_state("medium", 1)
    titles = Counter(one.title for one in state.decisions.values())
    assert len(titles) >= 6 and max(titles.values()) == 1


def test_archived_and_cancelled_records_are_few(tmp_path):
    cls = load(read(crud("repository"), "acme/old"), tmp_path)
    states = Counter(one.status for seed in range(5) for one in cls.seed_state("medium", seed).repositories.values())
    assert states["archived"] < states["active"] / 2


def test_composed_services_have_no_table_apart():
    blueprint = read(crud("repository", "branch", "meeting"), "acme/mixed")
    assert find_joined_tools(blueprint) == {one.name for one in blueprint.operations if one.table != "meetings"}


def test_a_budget_for_a_day_is_small():
    raw = [*tools("create_campaign", parameters=("daily_budget", "name")), *tools("list_campaigns", "get_campaign")]
    column = read(raw, "acme/ads").entity("campaigns").column("daily_budget")
    assert max(column.pool) <= 300


def test_who_is_signed_in_is_a_person():
    blueprint = read(crud("organization", "invitation"), "acme/access")
    assert blueprint.signed_in is None or blueprint.signed_in.table != "invitations"


def test_customers_are_not_the_staff(tmp_path):
    state = load(read(crud("user", "customer"), "acme/shop"), tmp_path).seed_state("large", 1)
    staff, customers = ({one.full_name for one in table.values()} for table in (state.users, state.customers))
    assert not staff & customers


WORDED = crud("volume", "file", "issue")


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    path = tmp_path_factory.mktemp("words") / "phrases.yaml"
    path.write_text(render_phrasebook(read(WORDED, "acme/words")))
    return load_phrasebook(path)


def test_changes_are_told_in_sentences(book):
    done = book.tools["update_issue"].done
    assert all("; new " not in text for text in done)
    assert any("; its priority is now " in text or "; its description is now " in text for text in done), done


def test_numbers_are_said_with_what_they_count(book):
    asks = " ".join(book.tools["create_volume"].ask)
    assert "size gb" not in asks and "with the size {size_gb} GB" in asks
    assert all("as its" not in answer for one in book.tools["get_file"].questions for answer in one.answer)


@pytest.mark.parametrize(
    ("nouns", "table", "named", "kind"),
    [(("contact", "note"), "contacts", "remarks", "text"), (("bug", "label"), "bugs", "tags", "texts")],
)
def test_a_column_is_not_called_like_a_table_beside_it(nouns, table, named, kind):
    columns = [
        column
        for number in range(20)
        for entity in read(crud(*nouns), f"acme/place{number}").entities
        if entity.table == table
        for column in entity.columns
    ]
    assert {column.kind for column in columns if column.name == named} == {kind}
    assert not {nouns[1], f"{nouns[1]}s"} & {column.name for column in columns}


def test_one_minute_is_no_minutes(tmp_path):
    (tmp_path / "phrases.yaml").write_text(render_phrasebook(read(crud("meeting"), "acme/plans")))
    book = load_phrasebook(tmp_path / "phrases.yaml")
    tells = book.parameters["duration_minutes"].tell
    for number, unit in ((1, " minute."), (2, " minutes.")):
        texts = [pick_text([tell], {"value": number}, random.Random(0)) for tell in tells]
        assert texts and all(text.endswith(f" {number}{unit}") for text in texts), texts


def test_answers_call_records_by_name(tmp_path):
    (tmp_path / "phrases.yaml").write_text(render_phrasebook(read(crud("workflow"), "acme/flows")))
    tools_of_book = load_phrasebook(tmp_path / "phrases.yaml").tools
    told = [text for one in tools_of_book.values() for text in one.done if "{out.workflow_id}" in text]
    assert told and all("name}" in text for text in told), told


def test_statistics_are_told_in_one_sentence(tmp_path):
    raw = [*crud("invoice"), *tools("get_invoice_statistics")]
    (tmp_path / "phrases.yaml").write_text(render_phrasebook(read(raw, "acme/sums")))
    done = load_phrasebook(tmp_path / "phrases.yaml").tools["get_invoice_statistics"].done
    assert all("|human}: " not in text and "loop.last" in text for text in done), done


def test_a_date_that_names_a_record_is_said_as_people_do(tmp_path):
    (tmp_path / "phrases.yaml").write_text(render_phrasebook(read(crud("poll"), "acme/polls")))
    by = load_phrasebook(tmp_path / "phrases.yaml").entities["poll_id"].by
    assert by["closes_on"] == ("the poll that closes on {value|date}",)


def test_what_is_counted_is_said_with_its_number(tmp_path):
    raw = [*tools("create_service", parameters=("replicas",)), *tools("list_services", "delete_service")]
    (tmp_path / "phrases.yaml").write_text(render_phrasebook(read(raw, "acme/run")))
    asks = " ".join(load_phrasebook(tmp_path / "phrases.yaml").tools["create_service"].ask)
    assert "the replicas {replicas}" not in asks and "with {replicas} replicas" in asks


def test_a_named_record_is_not_renamed_to_something_else():
    blueprint = read(WORDED, "acme/words")
    for one in blueprint.operations:
        if one.action == "update" and len(one.fields) > 1:
            assert blueprint.entity(one.table).label not in one.fields


def test_a_record_is_called_by_its_parts_as_people_do(tmp_path):
    (tmp_path / "phrases.yaml").write_text(
        render_phrasebook(read([*crud("board"), *tools("create_card", "list_cards", "get_card")], "acme/grid"))
    )
    within = load_phrasebook(tmp_path / "phrases.yaml").entities["board_id"].within
    assert within["list_cards.status"] == ("{phrase} of the card that is {value}",)


@pytest.mark.parametrize("raw", [CODE, crud("meeting", "project", "invoice", "sprint"), crud("organization", "domain"),
                                 crud("table", "record")], ids=["code", "plans", "edge", "base"])  # fmt: skip
def test_the_generated_tests_pass(raw, tmp_path):
    blueprint = read(raw, "acme/tested")
    load(blueprint, tmp_path)
    (tmp_path / "test_it.py").write_text(render_test_code(blueprint, f"{blueprint.name}.py"))
    assert is_passing(run_tests(tmp_path, "test_it.py"))


def test_a_page_of_a_document_has_one_column_of_each_name():
    blueprint = read(crud("document", "page", "block"), "acme/wiki")
    for entity in blueprint.entities:
        assert len({*entity.names}) == len(entity.names)
        assert not entity.column(entity.key).references
    render_environment_code(blueprint)


def test_no_value_of_a_pool_has_a_word_twice_in_a_row():
    drawn = {name for place in "abcdefgh" for name in load_lexicon().draw("file_name", place, size=60)}
    assert len(drawn) > 60
    assert not [name for name in drawn if re.search(r"\b(\w+)\W+\1\b", name)]
