"""Splits of generated environments: whole groups, few tools in common, the same share of every family."""

import json
from collections import Counter

import pytest
import yaml
from typer.testing import CliRunner

from trajsmith.cli.app import app
from trajsmith.envgen.generate.tool_lists import ToolList
from trajsmith.envgen.scale import read_environments, select_services, split_environments, write_catalogue
from trajsmith.envgen.scale.catalogue import CatalogueEntry, group_services, measure_coverage
from trajsmith.envgen.scale.splits import SplitEnvironment
from trajsmith.records import InputError


def environment(name, group, family="work", tools=(), features=()):
    return SplitEnvironment(name, group, family, frozenset(tools or {name}), frozenset(features or {name}))


def build_collection():
    """Return two families of four groups with three environments each; one group has twins in another."""
    environments = []
    for family in ("work", "commerce"):
        for group in range(4):
            for number in range(3):
                name = f"{family}_{group}_{number}"
                shared = {"create twin", "get twin", "list twin"} if group in (0, 1) and number == 0 else set()
                tools = {*shared, f"get {name}"}
                environments.append(environment(name, f"{family} {group}", family, tools, {f"{name} get"}))
    return environments


def test_no_group_is_in_both_parts_and_every_family_is_in_each():
    split = split_environments(build_collection(), 0.25)
    assert not {one.group for one in split.train} & {one.group for one in split.held_out}
    assert dict(Counter(one.family for one in split.held_out)) == {"work": 3, "commerce": 3}
    assert len(split.train) + len(split.held_out) + len(split.left_out) == 24


def test_what_is_too_similar_is_in_neither_part():
    environments = build_collection()
    split = split_environments(environments, 0.5, most_overlap=0.1)
    assert split.most_overlap <= 0.1
    names = {one.name for part in (split.train, split.held_out, split.left_out) for one in part}
    assert names == {one.name for one in environments}
    twins = [environment("a", "one", tools=("x", "y")), environment("b", "two", tools=("x", "y", "z")),
             environment("c", "three")]  # fmt: skip
    for seed in range(6):
        parts = split_environments(twins, 0.6, most_overlap=0.5, seed=seed)
        held = {one.name for one in parts.held_out}
        assert held and not ({"a"} <= held and "b" in {one.name for one in parts.train})


def test_groups_that_cost_nothing_are_held_out_first():
    split = split_environments(build_collection(), 0.25, most_overlap=0.1)
    assert {one.group.split()[1] for one in split.held_out} <= {"2", "3"} and not split.left_out


def test_the_seed_decides_and_the_same_one_gives_the_same():
    names = [tuple(one.name for one in split_environments(build_collection(), 0.25, seed=s).held_out) for s in range(8)]
    assert len(set(names)) > 1
    assert names[3] == tuple(one.name for one in split_environments(build_collection(), 0.25, seed=3).held_out)


def test_one_group_cannot_be_split():
    with pytest.raises(InputError, match="two groups"):
        split_environments([environment("a", "one"), environment("b", "one")], 0.5)


def tools(*nouns):
    names = [f"{verb}_{noun}" for noun in nouns for verb in ("create", "get", "update", "delete")]
    return [{"name": name, "description": "", "input_schema": {"type": "object", "properties": {}}} for name in names]


@pytest.fixture
def made(tmp_path):
    """A directory as `env gen --count` leaves it, without code."""
    lists = [ToolList("x/shop", tools("order", "product")), ToolList("x/diary", tools("recipe", "habit")),
             ToolList("x/board", tools("board", "card")), ToolList("x/crm", tools("company", "deal"))]  # fmt: skip
    services = select_services(lists).services
    groups = group_services(services)
    entries = [
        CatalogueEntry(
            name=one.blueprint.name, group=groups[one.blueprint.name], family=one.family, records=(), tools=8,
            added_tools=0, rules=4, source="x", licence="", accepted=one.blueprint.name != "crm",
        )
        for one in services
    ]  # fmt: skip
    for one in services:
        (tmp_path / one.blueprint.name).mkdir()
        (tmp_path / one.blueprint.name / "blueprint.json").write_text(one.blueprint.model_dump_json())
    write_catalogue(tmp_path, entries, {}, measure_coverage(services))
    return tmp_path


def test_the_command_writes_lists_for_runs(made):
    done = CliRunner().invoke(app, ["env", "split", str(made), "--held-out", "0.3"])
    assert done.exit_code == 0, done.output
    parts = [yaml.safe_load((made / name).read_text()) for name in ("train.yaml", "held_out.yaml")]
    names = [{entry["python"].rsplit("/", 1)[1] for entry in part} for part in parts]
    assert all(names) and not names[0] & names[1]
    assert "crm.py" not in names[0] | names[1], "only accepted environments"
    assert "largest overlap between the parts: 0.00" in done.output
    shop = next(one for one in read_environments(made) if one.name == "shop")
    assert "order create" in shop.features and "create order" in shop.tools


def test_the_folder_of_the_lists_is_made(made, tmp_path):
    folder = tmp_path / "parts" / "first"
    done = CliRunner().invoke(app, ["env", "split", str(made), "--out", str(folder)])
    assert done.exit_code == 0, done.output
    assert {file.name for file in folder.iterdir()} == {"train.yaml", "held_out.yaml"}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("[]", "is no catalogue"),
        ('{"entries": []}', "no environment is accepted"),
        ("{", "is no catalogue"),
    ],
)
def test_a_file_that_is_no_catalogue_is_one_line(content, text, tmp_path):
    (tmp_path / "catalogue.json").write_text(content)
    with pytest.raises(InputError, match=text):
        read_environments(tmp_path)


def test_a_missing_blueprint_is_named(made):
    (made / "shop" / "blueprint.json").write_text(json.dumps({"name": "shop"}))
    with pytest.raises(InputError, match="generate shop again"):
        read_environments(made)
