"""Many environments of many tool lists: what is selected, what is composed, and a run that is killed and resumed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from trajsmith.cli.app import app
from trajsmith.envgen.generate import GenerationResult
from trajsmith.envgen.generate.tool_lists import ToolList, read_tool_lists
from trajsmith.envgen.scale import MassPlan, generate_environments, runner, select_services
from trajsmith.envgen.scale.composition import MOST_SHARED, measure_overlap
from trajsmith.records import InputError, RunError


def tools(*names):
    return [{"name": name, "description": "", "input_schema": {"type": "object", "properties": {}}} for name in names]


def crud(*nouns):
    return tools(*(f"{verb}_{noun}" for noun in nouns for verb in ("create", "get", "update", "delete")))


WEB = ToolList("x/browser-mcp", tools("browser_navigate", "browser_click", "take_screenshot"))
BOARD = ToolList("x/board", crud("board", "card", "label"))
TWIN = ToolList("y/board-too", crud("board", "card", "label"))
CRM = ToolList("x/crm", crud("company", "contact", "deal"))
RECIPES = ToolList("x/recipes", tools("create_recipe", "delete_recipe"))
MENUS = ToolList("x/menus", [*tools("list_recipes", "get_recipe"), *crud("restaurant")[:3]])
NOTHING = ToolList("x/nothing", tools("think", "compute_sum", "get_sprocket"))


def test_every_server_is_a_service_or_is_rejected_with_a_reason():
    selection = select_services([WEB, BOARD, TWIN, CRM, NOTHING])
    assert sorted(one.blueprint.name for one in selection.services) == ["board", "crm"]
    reasons = {one.server: (one.reason, one.detail) for one in selection.rejected}
    assert reasons["x/browser-mcp"] == ("needs the world outside", "web pages")
    assert reasons["y/board-too"] == ("nearly the same as another", "board")
    assert reasons["x/nothing"][0] == "no known record that its tools can change"
    assert selection.count_reasons()["nearly the same as another"] == 1


def test_a_large_server_becomes_several_services():
    nouns = ("task", "note", "invoice", "contact", "event", "recipe", "vehicle", "book", "song", "pet", "plant")
    selection = select_services([ToolList("x/all", crud(*nouns))])
    parts = [{entity.noun for entity in one.blueprint.entities} for one in selection.services]
    assert len(parts) == 2 and not parts[0] & parts[1] and len(parts[0] | parts[1]) == len(nouns)


def test_small_servers_are_composed_around_a_kind_of_record():
    selection = select_services([BOARD, RECIPES, MENUS])
    composed = next(one.blueprint for one in selection.services if " + " in one.blueprint.source.name)
    assert {entity.noun for entity in composed.entities} == {"recipe", "restaurant"}
    assert "nothing" not in selection.count_reasons()


def test_tools_of_a_composed_service_are_named_alike():
    other = ToolList("x/plates", tools("plates_api_post_a_recipe", "recipeUpdate", "archive_restaurant"))
    composed = next(
        one.blueprint for one in select_services([BOARD, RECIPES, MENUS, other]).services
        if " + " in one.blueprint.source.name
    )  # fmt: skip
    names = {one.name for one in composed.operations}
    assert {"create_recipe", "update_recipe", "list_recipes", "get_recipe"} <= names
    assert not any(name.startswith("plates") for name in names)
    assert "update_recipe is recipeUpdate of x/plates" in composed.notes


def test_what_adds_most_to_the_coverage_comes_first():
    big = ToolList("z/big", crud("order", "customer", "product", "invoice", "payment"))
    assert select_services([BOARD, big, CRM]).services[0].blueprint.name == "big"


def test_kinds_of_records_can_be_avoided():
    selection = select_services([BOARD, ToolList("x/desk", crud("ticket"))], avoid=["ticket"])
    assert [one.blueprint.name for one in selection.services] == ["board"]
    assert selection.count_reasons()["about records that are to be avoided"] == 1


LINKED = [
    ToolList(f"x/{first}s", crud(first, second))
    for first, second in [
        ("team", "project"), ("task", "label"), ("issue", "milestone"), ("document", "folder"), ("channel", "message"),
        ("repository", "branch"), ("deployment", "application"), ("dashboard", "dataset"),
    ]
]  # fmt: skip


def test_linked_kinds_stand_together_in_more_ways_where_lists_give_too_few():
    natural = select_services(LINKED).services
    services = select_services(LINKED, wanted=4 * len(natural)).services
    further = services[len(natural) :]
    assert [one.blueprint for one in services[: len(natural)]] == [one.blueprint for one in natural]
    assert len(further) > len(natural)
    assert len({one.blueprint.name for one in services}) == len(services)
    for number, one in enumerate(further, len(natural)):
        tables = {entity.table for entity in one.blueprint.entities}
        linked = {column.references for entity in one.blueprint.entities for column in entity.columns} & tables
        assert linked and len(tables) > 1
        assert all(measure_overlap(one.features, other.features) <= MOST_SHARED for other in services[:number])
    assert select_services(LINKED, wanted=4 * len(natural)).services == services


@pytest.mark.parametrize("wanted", [0, 5])
def test_no_service_is_added_to_those_that_are_enough(wanted):
    natural = select_services(LINKED).services
    assert len(natural) > 5 + 5 // 10
    assert select_services(LINKED, wanted=wanted).services == natural


def test_avoided_kinds_of_records_stay_out_of_what_is_added():
    for one in select_services(LINKED, avoid=["project"], wanted=60).services:
        kinds = Counter(kind for kind, _ in one.features)
        assert kinds.most_common(1)[0][0] != "project"


@pytest.fixture
def stubbed(monkeypatch):
    """The generation of one environment, decided by its name: no tests, no examination."""

    def generate(read, out, name=None, seed=0, check_seconds=0.0):
        blueprint = read()
        if blueprint.name == "crm":
            raise RunError("crm: no time")
        accepted = blueprint.name != "board"
        (out / blueprint.name).mkdir(parents=True, exist_ok=True)
        return GenerationResult(
            name=blueprint.name, accepted=accepted, directory=out / blueprint.name, score=1.0 if accepted else 0.4,
            tests="3 passed", entities=1, tools=len(blueprint.operations), left_out=0,
            reasons=() if accepted else ("the environment checker gives 0.40",),
        )  # fmt: skip

    monkeypatch.setattr(runner, "generate_environment", generate)


SHOP = ToolList("x/shop", crud("order", "product", "customer"), "MIT")
DIARY = ToolList("x/diary", crud("recipe", "habit", "event"))


def test_the_catalogue_has_verdicts_reasons_and_what_is_covered(stubbed, tmp_path):
    result = generate_environments(select_services([BOARD, CRM, SHOP, DIARY, WEB]), MassPlan(tmp_path, 9))
    assert {one.name: one.accepted for one in result.entries} == {"board": False, "shop": True, "diary": True}
    assert result.undecided == {"crm": "crm: no time"}
    document = json.loads((tmp_path / "catalogue.json").read_text())
    assert document["rejected_servers"] == {"needs the world outside": 1}
    assert document["coverage"]["order create"] == 1 and "card create" not in document["coverage"]
    page = (tmp_path / "catalogue.md").read_text()
    assert "2 accepted, 1 rejected" in page and "the environment checker gives 0.40" in page
    shop = next(entry for entry in document["entries"] if entry["name"] == "shop")
    assert shop["licence"] == "MIT" and shop["records"] and shop["rules"] > 0


def test_a_killed_run_continues_where_it_was(stubbed, tmp_path, monkeypatch):
    selection = select_services([SHOP, DIARY])

    def kill(line):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate_environments(selection, MassPlan(tmp_path, 9), kill)
    lines = list[str]()
    whole = generate_environments(selection, MassPlan(tmp_path, 9), lines.append)
    assert len(lines) == 1 and len(whole.accepted) == 2
    monkeypatch.setattr(runner, "generate_environment", lambda *_, **__: pytest.fail("it is done"))
    again = generate_environments(selection, MassPlan(tmp_path, 9))
    assert {one.name for one in again.accepted} == {one.name for one in whole.accepted}


ORPHAN = """
import os, signal
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from trajsmith.envgen.scale.runner import end_with_parent

if __name__ == "__main__":
    pool = ProcessPoolExecutor(1, get_context("spawn"), initializer=end_with_parent)
    print(pool.submit(os.getpid).result(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_workers_end_with_a_killed_process(tmp_path):
    script = tmp_path / "orphan.py"
    script.write_text(ORPHAN)
    done = subprocess.run([sys.executable, script], stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    worker = Path(f"/proc/{int(done.stdout)}")
    end = time.monotonic() + 60
    while worker.exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not worker.exists(), "the worker waits for ever"


def test_enough_is_enough(stubbed, tmp_path):
    assert len(generate_environments(select_services([SHOP, DIARY]), MassPlan(tmp_path, 1)).accepted) == 1


def test_text_of_a_source_cannot_break_the_page(stubbed, tmp_path):
    selection = select_services([ToolList("x/<img src=x>|a`b`", SHOP.tools)])
    generate_environments(selection, MassPlan(tmp_path, 1))
    page = (tmp_path / "catalogue.md").read_text()
    assert "<img" not in page and "|a" not in page


@pytest.mark.timeout(900)
def test_the_command_makes_one_environment_that_passes_its_tests_and_the_checker(tmp_path):
    file = tmp_path / "lists.tools.jsonl"
    file.write_text("\n".join(json.dumps({"server": "x/shop", **one}) for one in crud("order")))
    assert [one.server for one in read_tool_lists(file)] == ["x/shop"]
    command = ["env", "gen", "--from-mcp", str(file), "--count", "1", "--out", str(tmp_path / "made")]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "1/1 shop: accepted" in done.output
    assert (tmp_path / "made" / "shop" / "shop.py").is_file()


def test_the_command_says_what_does_not_go_together(tmp_path):
    refused = CliRunner().invoke(app, ["env", "gen", "--from-tables", "x", "--count", "2", "--out", str(tmp_path)])
    assert isinstance(refused.exception, InputError | SystemExit) and refused.exit_code != 0
    with pytest.raises(InputError, match="no server of the tool lists"):
        generate_environments(select_services([WEB]), MassPlan(tmp_path, 1))


def test_the_order_of_services_is_the_same_in_every_process(tmp_path):
    code = (
        "from pathlib import Path\n"
        "from trajsmith.envgen.generate.tool_lists import ToolList\n"
        "from trajsmith.envgen.scale import select_services\n"
        "nouns = ('task', 'note', 'user', 'invoice', 'customer', 'team', 'event', 'comment', 'order', 'product')\n"
        "verbs = ('create', 'get', 'update', 'delete', 'list', 'search')\n"
        "def tools(start):\n"
        "    return [{'name': f'{v}_{nouns[(start + k) % 10]}', 'description': '', 'input_schema': {}}\n"
        "            for k in range(3) for v in verbs[: 4 + (start + k) % 3]]\n"
        "lists = [ToolList(f'acme/s{n}', tools(n)) for n in range(10)]\n"
        "print([one.blueprint.name for one in select_services(lists).services])\n"
    )
    orders = set()
    for seed in range(4):
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        made = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        orders.add(made.stdout)
    assert len(orders) == 1
