"""Richer environments: ideas on a blueprint, steps that are kept or undone by earlier tests, refusals."""

import json
from pathlib import Path

import pytest

from trajsmith.envgen.generate.blueprint import Blueprint
from trajsmith.envgen.generate.code import rename_colliding_classes, render_environment_code
from trajsmith.envgen.generate.code_tests import render_test_code as code_of_tests
from trajsmith.envgen.generate.from_tables import read_tables
from trajsmith.envgen.generate.pipeline import GenerationResult
from trajsmith.envgen.generate.refinement import refine_blueprint
from trajsmith.envgen.generate.rules import render_rules
from trajsmith.envgen.growth import blueprint_growth
from trajsmith.envgen.growth.additions import order_by_use, propose_additions
from trajsmith.envgen.growth.ancestor_tests import read_ancestors, render_ancestor_tests, write_ancestors
from trajsmith.envgen.growth.blueprint_growth import (
    BlueprintParent,
    EnvironmentSize,
    choose_additions,
    grow_environment,
    run_tests,
)
from trajsmith.records import InputError


def tables_of_a_club(folder: Path) -> Path:
    source = folder / "club"
    source.mkdir()
    members = [{"id": n, "name": f"Member {n}", "email": f"m{n}@example.org"} for n in range(1, 13)]
    states = ["booked", "done", "cancelled"]
    visits = [{"id": n, "member_id": n % 12 + 1, "status": states[n % 3]} for n in range(1, 31)]
    (source / "members.json").write_text(json.dumps(members))
    (source / "visits.json").write_text(json.dumps(visits))
    return source


@pytest.fixture
def blueprint(tmp_path):
    return rename_colliding_classes(refine_blueprint(read_tables(tables_of_a_club(tmp_path))))


@pytest.fixture
def parent(blueprint, tmp_path):
    """A folder as `env gen` leaves it, without having asked the doctor."""
    folder = tmp_path / "out" / "club"
    folder.mkdir(parents=True)
    (folder / "blueprint.json").write_text(blueprint.model_dump_json())
    (folder / "club.py").write_text(render_environment_code(blueprint))
    (folder / "test_club.py").write_text(code_of_tests(blueprint, "club.py"))
    made = GenerationResult(
        name="club", accepted=True, directory=folder, score=1.0, tests="9 passed", entities=2, tools=10, left_out=0
    )
    (folder / "made.json").write_text(made.model_dump_json())
    return folder


def test_every_idea_only_adds(blueprint):
    grown = blueprint
    names = []
    for idea in propose_additions(blueprint, 0):
        after = rename_colliding_classes(refine_blueprint(idea.apply(grown)))
        old = {one.name: one for one in grown.operations}
        new = {one.name: one for one in after.operations}
        assert {name: new[name] for name in old} == old, idea.name
        for entity in grown.entities:
            assert set(after.entity(entity.table).columns) >= set(entity.columns), idea.name
        assert EnvironmentSize.of(after) != EnvironmentSize.of(grown), idea.name
        compile(render_environment_code(after), "club.py", "exec")
        names.append(idea.name)
        grown = after
    assert {"categories of visits", "look-ups", "lifecycle of members"} <= set(names)
    assert {name.split(" of ")[0] for name in names} >= {"reviews", "reminders", "holds", "notes"}


def test_ideas_depend_on_the_seed_alone(blueprint):
    first = [idea.name for idea in propose_additions(blueprint, 1)]
    assert first == [idea.name for idea in propose_additions(blueprint, 1)]
    assert len({tuple(idea.name for idea in propose_additions(blueprint, seed)) for seed in range(6)}) > 1
    assert order_by_use(blueprint)[0].table == "members"


def test_what_is_there_is_not_added_twice(blueprint):
    first = next(idea for idea in propose_additions(blueprint, 0) if idea.name.startswith("notes"))
    assert first.apply(first.apply(blueprint)) == first.apply(blueprint)


def test_new_tables_of_real_rows_refer_to_rows_that_are_there(blueprint):
    notes = next(idea for idea in propose_additions(blueprint, 0) if idea.name.startswith("notes")).apply(blueprint)
    made = notes.entities[-1]
    column = next(column for column in made.columns if column.references)
    place, target = made.names.index(column.name), notes.entity(column.references)
    keys = {row[target.names.index(target.key)] for row in target.rows}
    assert len(made.rows) == made.start == 60 and {row[place] for row in made.rows} <= keys


def test_grown_rules_are_told_and_kept(blueprint, tmp_path):
    lived = next(idea for idea in propose_additions(blueprint, 0) if idea.name == "lifecycle of members").apply(
        blueprint
    )
    made = rename_colliding_classes(refine_blueprint(lived))
    assert "A member that is archived stays so: its status cannot be changed any more." in list(render_rules(made))
    scope: dict = {}
    exec(compile(render_environment_code(made), "club.py", "exec"), scope)
    play = scope["Club"](scope["Club"].seed_state("large", 1))
    assert play.call("archive_member", {"member_id": 1}).content["status"] == "archived"
    assert "is archived and stays so" in play.call("resume_member", {"member_id": 1}).text
    assert play.call("add_member", {"name": "New", "email": "n@example.org"}).content["status"] == "active"


def test_steps_are_kept_while_all_earlier_tests_pass_and_are_not_tested_again(parent, tmp_path, monkeypatch):
    found = BlueprintParent(parent)
    start = found.blueprint.model_copy(update={"name": "club_g2"})
    stages, refused = choose_additions(found, start, 2, 0, tmp_path / "work")
    assert len(stages) == 2 and refused == []
    before, after = EnvironmentSize.of(found.blueprint), EnvironmentSize.of(stages[-1][1])
    assert after.tools >= before.tools + 8 and after.rules > before.rules and after.entities > before.entities

    def never(*_: object) -> str:
        raise AssertionError("tested again")

    monkeypatch.setattr(blueprint_growth, "_run_earlier_tests", never)
    again, _ = choose_additions(found, start, 2, 0, tmp_path / "work")
    assert [blueprint for _, blueprint in again] == [blueprint for _, blueprint in stages]
    with pytest.raises(AssertionError, match="tested again"):
        choose_additions(found, start, 1, 0, tmp_path / "other")


def test_a_step_that_breaks_an_earlier_test_is_undone(parent, tmp_path):
    found = BlueprintParent(parent)
    found.tests["test_club.py"] += (
        "\ndef test_members_have_no_status(play: Any) -> None:\n"
        '    assert not hasattr(first(play.state.members), "status")\n'
    )
    start = found.blueprint.model_copy(update={"name": "club_g2"})
    stages, refused = choose_additions(found, start, 2, 0, tmp_path / "work")
    undone = {one.what: one.reason for one in refused}
    assert "test_club.py::test_members_have_no_status" in undone["lifecycle of members"]
    assert all(idea.name != "lifecycle of members" for idea, _ in stages) and len(stages) == 2


def test_an_environment_that_is_full_is_left_as_it_is(parent, tmp_path, monkeypatch):
    monkeypatch.setattr(blueprint_growth, "MAX_OPERATIONS", 10)
    found = BlueprintParent(parent)
    stages, refused = choose_additions(
        found, found.blueprint.model_copy(update={"name": "club_g2"}), 3, 0, tmp_path / "work"
    )
    assert stages == [] and {one.reason for one in refused} == {"more than 12 tables or 10 tools"}


def test_earlier_tests_are_about_the_new_file(parent, tmp_path):
    folder = tmp_path / "child"
    folder.mkdir()
    blueprint_growth._write_tests(BlueprintParent(parent).tests, "club_g2.py", folder)
    (folder / "club_g2.py").write_text((parent / "club.py").read_text().replace("nothing to change", "no"))
    assert run_tests(folder, "-k", "needs_a_change").startswith(
        "FAILED test_club.py::test_update_member_needs_a_change"
    )
    assert run_tests(folder, "-k", "same_seed") == "1 passed, 16 deselected"


def test_a_folder_whose_tests_were_edited_runs_nothing(parent, tmp_path):
    canary = tmp_path / "ran"
    with (parent / "test_club.py").open("a") as file:
        file.write(f"\nPath({str(canary)!r}).touch()\n")
    with pytest.raises(InputError, match="differs from what its blueprint gives"):
        grow_environment(parent, tmp_path / "out")
    assert not canary.exists()


def test_tests_of_all_ancestors_come_from_their_blueprints(parent, blueprint, tmp_path):
    """A grandchild: the folder has the tests of both, laid out otherwise; without a blueprint they are not run."""
    made = blueprint.model_copy(update={"name": "club_g2"})
    folder = tmp_path / "club_g2"
    folder.mkdir()
    write_ancestors(folder, [blueprint])
    assert read_ancestors(folder) == (blueprint,) and read_ancestors(parent) == ()
    line = (blueprint, made)
    tests = render_ancestor_tests(folder, line)
    assert sorted(tests) == ["test_club.py", "test_club_g2.py"]
    assert all('with_name("club_g2.py")' in text for text in tests.values())
    (folder / "test_club.py").write_text(code_of_tests(blueprint, "club_g2.py"))
    assert render_ancestor_tests(folder, line) == tests
    (folder / "ancestors.json").unlink()
    with pytest.raises(InputError, match=r"test_club.py: no blueprint gives these tests"):
        render_ancestor_tests(folder, (*read_ancestors(folder), made))


def test_names_of_children_count_generations(parent, blueprint):
    assert BlueprintParent(parent).child == "club_g2"
    record = json.loads((parent / "blueprint.json").read_text())
    second = Blueprint.model_validate({**record, "name": "club_g2"})
    folder = parent.parent / "club_g2"
    folder.mkdir()
    (folder / "blueprint.json").write_text(second.model_dump_json())
    (folder / "club_g2.py").write_text(render_environment_code(second))
    (folder / "made.json").write_text((parent / "made.json").read_text().replace('"club"', '"club_g2"'))
    found = BlueprintParent(folder)
    assert (found.generation, found.child) == (2, "club_g3")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "blueprint.json").unlink(), "no blueprint.json: only what `trajsmith env gen` made"),
        (lambda folder: (folder / "made.json").write_text("{}"), "name: Field required"),
        (
            lambda folder: (folder / "made.json").write_text(
                (folder / "made.json").read_text().replace("true", "false").replace('"reasons":[]', '"reasons":["bad"]')
            ),
            r"club was rejected \(bad\): nothing is built on it",
        ),
        (
            lambda folder: (folder / "club.py").write_text((folder / "club.py").read_text().replace("still", "yet")),
            "differs from what blueprint.json gives",
        ),
        (lambda folder: (folder / "club.py").write_text("class"), "cannot be read: invalid syntax"),
        (
            lambda folder: (folder / "test_club.py").write_text(f"CANARY\n{(folder / 'test_club.py').read_text()}"),
            "test_club.py differs from what its blueprint gives, and only tests that `trajsmith env gen` wrote are run",
        ),
        (lambda folder: (folder / "test_club.py").write_text("def"), "test_club.py cannot be read: invalid syntax"),
        (lambda folder: (folder / "test_more.py").write_text("CANARY"), "test_more.py: no blueprint gives these tests"),
        (lambda folder: (folder / "ancestors.json").write_text("[{}]"), "ancestors.json: 0.name: Field required"),
        (
            lambda folder: (folder / "blueprint.json").write_text(
                (folder / "blueprint.json").read_text().replace('"club"', '"club; import os"', 1)
            ),
            "'club; import os' is no name in Python",
        ),
    ],
    ids=[
        "no blueprint",
        "broken record",
        "rejected",
        "edited",
        "broken code",
        "edited tests",
        "broken tests",
        "foreign tests",
        "broken ancestors",
        "a name that is code",
    ],
)
def test_what_cannot_grow_says_why(parent, tmp_path, spoil, message):
    spoil(parent)
    with pytest.raises(InputError, match=message):
        grow_environment(parent, tmp_path / "out")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"steps": 0}, "--steps is at least 1"),
        ({"name": "My Club"}, "snake case"),
        ({"name": "club"}, "not the parent's"),
    ],
    ids=["no steps", "no identifier", "the parent's name"],
)
def test_wrong_wishes_are_refused(parent, tmp_path, arguments, message):
    with pytest.raises(InputError, match=message):
        grow_environment(parent, tmp_path / "out", **arguments)
