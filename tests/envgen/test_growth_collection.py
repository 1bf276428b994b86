"""A collection of environments: duplicates, taxonomy, gaps; on the bundled ones and on small ones written here."""

import pytest

from trajsmith.envgen.growth.duplicates import (
    choose_dropped,
    find_duplicates,
    match_tools,
    rename_repeated,
    score_tool_likeness,
)
from trajsmith.envgen.growth.environment_shape import EnvironmentShape, find_table_schemas
from trajsmith.envgen.growth.gaps import find_gaps, load_catalogue
from trajsmith.envgen.growth.taxonomy import build_taxonomy, sample_stratified
from trajsmith.envgen.sources import ThemeSource
from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.pipeline.environment_collections import encode_words
from trajsmith.records import EnvironmentSpec, InputError, ToolSpec


@pytest.fixture(scope="module")
def library():
    return [ENVIRONMENTS.get(name).describe() for name in ENVIRONMENTS.names()]


def tool(server, name, **parameters):
    properties = {key: {"type": kind} for key, kind in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return ToolSpec(server=server, name=name, description=f"Does {name}.", input_schema=schema)


def environment(name, about, tools, state=None):
    made = tuple(tool(name, one, **taken) for one, taken in tools.items())
    properties = {
        table: {"type": "object", "additionalProperties": {"type": "object", "properties": fields}}
        for table, fields in (state or {}).items()
    }
    return EnvironmentSpec(
        name=name, version="1", description=about, tools=made, source="test",
        state_schema={"type": "object", "properties": properties},
    )  # fmt: skip


TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
LOANS = environment(
    "library_desk", "Books, members and loans of a public library.",
    {"get_book": {"book_id": "string"}, "lend_book": {"book_id": "string", "member_id": "string"},
     "return_book": {"loan_id": "string"}, "list_loans": {"member_id": "string"}},
    {"books": {"book_id": TEXT, "title": TEXT}, "loans": {"loan_id": TEXT, "book_id": TEXT, "member_id": TEXT},
     "members": {"member_id": TEXT, "name": TEXT}},
)  # fmt: skip
RENAMED = environment(
    "book_lending", "Lends books of a library to its members.",
    {"show_book": {"book_id": "string"}, "lend_book": {"book_id": "string", "member_id": "string"},
     "return_book": {"loan_id": "string"}, "search_loans": {"member_id": "string"}, "add_book": {"title": "string"}},
    {"books": {"book_id": TEXT, "title": TEXT}, "loans": {"loan_id": TEXT, "book_id": TEXT, "member_id": TEXT},
     "members": {"member_id": TEXT, "name": TEXT}},
)  # fmt: skip
PARKING = environment(
    "parking", "Garages, spaces and permits of a city's parking.",
    {"get_garage": {"garage_id": "string"}, "buy_permit": {"plate": "string", "months": "integer"}},
    {"garages": {"garage_id": TEXT, "spaces": WHOLE}, "permits": {"permit_id": TEXT, "plate": TEXT}},
)  # fmt: skip


def test_the_same_environment_under_another_name_is_a_duplicate():
    (pair,) = find_duplicates([PARKING, LOANS, RENAMED], encode_words, 0.5)
    assert (pair.keep, pair.drop, pair.why) == ("book_lending", "library_desk", "it has 5 tools against 4")
    assert pair.state == 1.0 and pair.contained > pair.tools > 0.4
    assert {("lend_book", "lend_book"), ("return_book", "return_book")} <= set(pair.counterparts)


def test_the_score_of_the_checker_decides_first():
    scores = {"library_desk": 0.99, "book_lending": 0.91}
    (pair,) = find_duplicates([LOANS, RENAMED], encode_words, 0.5, scores)
    assert (pair.keep, pair.why) == ("library_desk", "the environment checker gives it 0.99 against 0.91")


def test_of_three_equal_ones_one_stays():
    pairs = find_duplicates([LOANS, LOANS, LOANS], encode_words)
    assert [pair.score for pair in pairs] == [1.0] * 3
    assert len(choose_dropped(pairs)) == 2 and pairs[0].keep not in choose_dropped(pairs)
    assert [spec.name for spec in rename_repeated([LOANS, LOANS])] == ["library_desk", "library_desk (2)"]


def test_the_bundled_environments_are_no_duplicates(library):
    assert find_duplicates(library, encode_words) == []
    assert find_duplicates(library, encode_words, 0.01)[0].score < 0.4


def test_tools_are_paired_by_what_they_do_to_what():
    shape = EnvironmentShape(
        environment("x", "", {"get_order": {"order_id": "string"}, "cancel_order": {"order_id": "string"}})
    )
    other = EnvironmentShape(
        environment("y", "", {"cancel_order": {"order_id": "string"}, "get_user": {"user_id": "string"}})
    )
    assert match_tools(shape.tools, other.tools) == [("cancel_order", "cancel_order", 1.0)]
    assert score_tool_likeness(shape.tools[0], other.tools[1]) == 0.0
    assert 0.5 < score_tool_likeness(shape.tools[0], shape.tools[1]) < 1.0


def test_words_that_all_tools_begin_with_count_for_nothing():
    prefixed = environment("box", "", {"box_get_file": {"file_id": "string"}, "box_list_files": {}})
    plain = environment("store", "", {"get_file": {"file_id": "string"}, "list_files": {}})
    assert [one.noun for one in EnvironmentShape(prefixed).tools] == [one.noun for one in EnvironmentShape(plain).tools]


def test_the_shape_of_a_state_follows_references(library):
    retail = next(spec for spec in library if spec.name == "retail")
    fields = EnvironmentShape(retail).fields
    assert "table order" in fields and any(field.startswith("order id:") for field in fields)
    assert "orders" in find_table_schemas(retail)


@pytest.mark.parametrize("threshold", [0, 1.5], ids=["none", "more than all"])
def test_a_threshold_is_a_share(threshold):
    with pytest.raises(InputError, match="--threshold is above 0 and at most 1"):
        find_duplicates([LOANS, RENAMED], encode_words, threshold)


def test_a_taxonomy_holds_every_environment_once(library):
    made = build_taxonomy([*library, LOANS, RENAMED, PARKING], encode_words, 3, 5)
    assert len(made.groups) == 3 and len(list(made.leaves())) == 5
    names = [name for leaf in made.leaves() for name in leaf.members]
    assert sorted(names) == sorted([*ENVIRONMENTS.names(), "library_desk", "book_lending", "parking"])
    assert all(set(leaf.members) <= set(group.members) for group in made.groups for leaf in group.groups)
    assert [len(group.members) for group in made.groups] == sorted((len(g.members) for g in made.groups), reverse=True)
    shown = "\n".join(line for line in made.lines() if line.startswith("  "))
    assert all(shown.count(name) >= 1 for name in names) and len(shown.splitlines()) == 5


def test_like_environments_share_a_group_that_is_named_after_them():
    made = build_taxonomy([LOANS, PARKING, RENAMED], encode_words, 2, 2)
    assert [set(group.members) for group in made.groups] == [{"library_desk", "book_lending"}, {"parking"}]
    assert set(made.groups[0].name.split()) & {"book", "loan", "library", "member"}


def test_a_stratified_sample_takes_from_every_group(library):
    made = build_taxonomy([*library, LOANS, RENAMED, PARKING], encode_words, 4, 6)
    sample = sample_stratified(made, 4, seed=3)
    assert all(set(sample) & set(group.members) for group in made.groups)
    assert sample == sample_stratified(made, 4, seed=3)
    assert len({sample_stratified(made, 4, seed=seed) for seed in range(6)}) > 1
    assert set(sample_stratified(made, made.size)) == {name for group in made.groups for name in group.members}


def test_wrong_numbers_of_groups_and_samples_are_refused():
    with pytest.raises(InputError, match="9 groups of 2 environments: ask for fewer"):
        build_taxonomy([LOANS, PARKING], encode_words, 2, 9)
    with pytest.raises(InputError, match="no environment to group"):
        build_taxonomy([], encode_words)
    with pytest.raises(InputError, match="a sample has 1 to 2 environments, not 5"):
        sample_stratified(build_taxonomy([LOANS, PARKING], encode_words), 5)


def test_one_environment_is_one_group():
    (group,) = build_taxonomy([LOANS], encode_words).groups
    assert (group.members, group.groups) == (("library_desk",), ())


def test_domains_are_covered_by_environments_that_are_near(library):
    found = find_gaps(library, encode_words, 5)
    covered = {domain.name: domain.nearest for domain in found.domains if domain.covered}
    assert {name: covered[name] for name in ("retail bank", "smart home", "online shop back office")} == {
        "retail bank": "bank", "smart home": "smart_home", "online shop back office": "retail",
    }  # fmt: skip
    assert found.sectors["industry"][0] == 0 and sum(total for _, total in found.sectors.values()) == len(
        load_catalogue()
    )


def test_proposals_are_of_open_sectors_and_ask_for_what_is_thin(library):
    found = find_gaps(library, encode_words, 6)
    sectors = {source.name: sector for sector, source in load_catalogue()}
    assert len({sectors[one.name] for one in found.proposals}) == 6
    assert all(found.sectors[sectors[one.name]][0] == 0 for one in found.proposals)
    assert found.thin and all("Wanted, as few environments have it: " in one.summary for one in found.proposals)
    assert {one.kind for one in found.proposals} == {"domain"}


def test_proposals_may_come_from_given_sources():
    given = [
        ThemeSource(kind="tasks", name=name, summary=about, origin="t.jsonl", licence=None)
        for name, about in (("book loans", "Lend and return books of a library."), ("bee hives", "Honey and queens."))
    ]
    assert [one.name for one in find_gaps([LOANS, RENAMED], encode_words, 1, given).proposals] == ["bee hives"]


def test_kinds_of_rules_and_relations_are_counted():
    strict = LOANS.model_copy(update={"policy": "A loan is due within 14 days. A member has at most 5 loans."})
    found = find_gaps([strict, PARKING], encode_words, 1)
    rules = {kind.name: kind.environments for kind in found.rules}
    assert rules["deadlines"] == rules["limits"] == ("library_desk",) and rules["identity"] == ()
    relations = {kind.name: kind.environments for kind in found.relations}
    assert relations["one to many"] == relations["many to many"] == ("library_desk",)
    assert "identity" in found.thin and "limits" not in found.thin


def test_the_catalogue_names_each_domain_once():
    names = [source.name for _, source in load_catalogue()]
    assert len(names) == len(set(names)) > 70
    assert all(source.summary.endswith(".") for _, source in load_catalogue())
