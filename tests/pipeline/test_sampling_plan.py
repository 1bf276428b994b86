"""A run with a plan makes more of what the plan names, and nothing that an evaluation asks."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
import yaml

from trajsmith import run
from trajsmith.evals.diagnosis import Diagnosis, Example, GroupFinding
from trajsmith.evals.plans import build_plan
from trajsmith.pipeline.dataset_selection import load_unselected
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.runner import run_one_stage
from trajsmith.records import Chain, InputError, RunError, Task
from trajsmith.records.journal import read_records

CONFIG = {
    "name": "plan",
    "seed": 3,
    "environments": [{"library": "bank", "states": {"small": 2}}, {"library": "retail", "states": {"small": 2}}],
    "sample": {"count": 24, "length": [3, 6], "scenarios": 0.5},
}


def draw(tmp_path, name, **settings):
    config = CONFIG | {"run": str(tmp_path / name)} | settings
    run(config)
    chains = list(read_records(tmp_path / name / "chains.jsonl", Chain))
    return chains, list(read_records(tmp_path / name / "tasks.jsonl", Task))


def target(dimension, name, share=1.0):
    return {"dimension": dimension, "name": name, "share": share}


def test_shares_of_the_plan_are_drawn_and_evaluated_tasks_are_refused(tmp_path):
    plain, _ = draw(tmp_path, "plain")
    rare = Counter(f"{chain.environment}.{tool}" for chain in plain for tool in set(chain.tools)).most_common()[-1][0]
    plan = {"targets": [target("tool", rare, 3), target("environment", "bank", 1)], "share": 0.75}
    chains, same = draw(tmp_path, "planned", plan=plan)
    assert draw(tmp_path, "untargeted", plan={"targets": []})[0] == plain, "as a control arm has it"
    environment, _, name = rare.partition(".")

    def count(some):
        return sum(chain.environment == environment and name in chain.tools for chain in some)

    assert len(chains) == len(plain) == 24
    assert count(chains) >= 10 > count(plain)

    shutil.copy(tmp_path / "planned" / "tasks.jsonl", tmp_path / "evaluated.jsonl")
    avoid = plan | {"avoid": [str(tmp_path / "evaluated.jsonl")]}
    with pytest.raises(RunError, match="no trajectory was accepted"):
        draw(tmp_path, "avoiding", plan=avoid)
    reasons = load_unselected(RunDirectory.open(tmp_path / "avoiding"))
    assert len(reasons) == len(same) and all(reason.startswith("repeats_an_evaluation") for reason in reasons.values())


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (target("tool", "bank.fly"), "no environment of this run has 'bank.fly'"),
        (target("environment", "travel"), "no environment of this run has 'travel'"),
        (target("edge", "bank.list_accounts"), "write two tools as"),
        (target("variant", "upside_down"), "no variant.* 'upside_down'"),
    ],
    ids=["tool", "environment", "edge", "variant"],
)
def test_a_plan_that_no_environment_serves_is_one_clear_error(tmp_path, wanted, text):
    with pytest.raises(InputError, match=text):
        draw(tmp_path, "run", plan={"targets": [wanted]})
    assert not (tmp_path / "run" / "chains.jsonl").exists()


def test_a_diagnosis_becomes_a_plan(tmp_path):
    group = {
        "episodes": 50,
        "failures": 30,
        "rate": 0.6,
        "low": 0.5,
        "high": 0.7,
        "elsewhere": 0.1,
        "p": 0.0,
        "q": 0.0,
        "named": True,
    }
    groups = (
        GroupFinding(dimension="tool", name="bank.pay_payee", added=0.5, **group),
        GroupFinding(dimension="skill", name="tool search", added=0.5, **group),
    )
    numbers = {
        "episodes": 99,
        "unscored": 0,
        "failures": 30,
        "rate": 0.3,
        "low": 0.2,
        "high": 0.4,
        "base": 0.1,
        "says": "",
    }
    plan = build_plan(Diagnosis(name="eval", groups=groups, **numbers), [tmp_path / "tasks.jsonl"])
    assert [(one.dimension, one.name, one.share) for one in plan.targets] == [("tool", "bank.pay_payee", 25.0)]
    assert plan.unserved == ("skill tool search",) and plan.avoid == (tmp_path / "tasks.jsonl",)
    assert build_plan(Diagnosis(name="eval", groups=groups[1:], **numbers)) is None
    (tmp_path / "tasks.jsonl").touch()

    from typer.testing import CliRunner

    from trajsmith.cli.app import app

    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan.model_dump(mode="json")))
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(CONFIG | {"run": str(tmp_path / "cli")}))
    arguments = ["run", str(tmp_path / "run.yaml"), "--plan", str(tmp_path / "plan.yaml")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    chains = list(read_records(tmp_path / "cli" / "chains.jsonl", Chain))
    assert sum("pay_payee" in chain.tools for chain in chains) >= 8


def test_an_environment_that_is_weak_as_a_whole_is_wished_for_without_the_requests_of_the_evaluation():
    def group(dimension, name):
        counts = {"episodes": 40, "failures": 20, "rate": 0.5, "low": 0.3, "high": 0.7, "elsewhere": 0.1}
        example = Example(episode="e", request="Pay Lena 12 euros.", error="wrong_state")
        return GroupFinding(
            dimension=dimension, name=name, **counts, p=0.001, q=0.001, named=dimension == "environment", added=0.5,
            kinds={"wrong_entity": 20}, examples=(example,),
        )  # fmt: skip

    groups = (group("environment", "bank"), group("tool", "bank.pay_payee"), group("tool", "retail.find_order"))
    rates = {"rate": 0.3, "low": 0.2, "high": 0.4, "base": 0.1}
    diagnosis = Diagnosis(name="why", episodes=80, unscored=0, failures=24, **rates, says="", groups=groups)
    plan = build_plan(diagnosis)
    (wish,) = plan.environments
    assert (wish.like, wish.files) == ("bank", ())
    assert "pay_payee" in wish.wish and "wrong_entity" in wish.wish and "find_order" not in wish.wish
    assert "Lena" not in wish.wish
    assert plan.list_open_wishes() == ("environments like bank",)


def test_chains_of_an_environment_made_for_a_weak_one_count_for_its_target(tmp_path):
    folder = Path(__file__).parents[2] / "examples" / "garden"
    for source in folder.iterdir():
        shutil.copy(source, tmp_path / source.name)
    file = (tmp_path / "garden.py").rename(tmp_path / "another_name.py")
    plan = {"targets": [target("environment", "shop")], "environments": [{"like": "shop", "files": [str(file)]}]}
    chains, _ = draw(tmp_path, "made", plan=plan)
    made = sum(chain.environment == "garden" for chain in chains)
    assert made >= round(0.7 * len(chains)), "the plan's share goes to the environment of the file"
    own = [*CONFIG["environments"], {"python": f"{file}:Garden"}]
    assert draw(tmp_path, "both", plan=plan, environments=own)[0] == chains, "opened once"
    with pytest.raises(InputError, match=r"no environment of this run has 'shop'"):
        draw(tmp_path, "unmade", plan=plan | {"environments": [{"like": "shop"}]})
    gone = plan | {"environments": [{"like": "shop", "files": [str(tmp_path / "gone.py")]}]}
    with pytest.raises(InputError, match="gone"):
        draw(tmp_path, "gone", plan=gone)


def test_chains_do_without_the_tools_that_are_left_out(tmp_path):
    chains, _ = draw(tmp_path, "without", sample=CONFIG["sample"] | {"without_tools": ["bank.pay_payee"]})
    plain, _ = draw(tmp_path, "with")
    assert len(chains) == len(plain)
    assert any("pay_payee" in chain.tools for chain in plain)
    assert not any(chain.environment == "bank" and "pay_payee" in chain.tools for chain in chains)
    with pytest.raises(InputError, match=r"sample.without_tools: no tool 'bank.pay_paye'"):
        draw(tmp_path, "typo", sample=CONFIG["sample"] | {"without_tools": ["bank.pay_paye"]})


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (
            {"sample": {"count": 4, "without_tools": ["bank.pay_paye"]}},
            r"sample.without_tools: no tool 'bank.pay_paye'",
        ),
        ({"plan": {"targets": [target("tool", "bank.pay_paye")]}}, r"plan: no environment of this run has 'bank.pay_p"),
    ],
    ids=["left out", "plan"],
)
async def test_a_stage_alone_refuses_names_that_are_not_there(settings, says, tmp_path):
    config = CONFIG | {"run": str(tmp_path / "run")} | settings
    made = RunDirectory.create(tmp_path / "run", yaml.safe_dump(config))
    for stage in ("sample", "ground"):
        with pytest.raises(InputError, match=says):
            await run_one_stage(made, stage)
    assert not made.file("chains.jsonl").is_file()


TWO = [{"library": "bank", "states": {"small": 1}}, {"library": "calendar", "states": {"small": 1}}]
SOURCES = {
    "programs": {"sources": {"chains": 0, "programs": 1}},
    "state_first": {"sources": {"chains": 0, "state_first": 1}},
    "world": {
        "environments": [{"linked": "trips", "states": {"small": 1}}],
        "sample": {"count": 8, "scenarios": 0.5, "length": [2, 8]},
    },
    "servers": {"environments": TWO, "sample": {"count": 8, "servers": 2, "length": [3, 5]}},
}


@pytest.mark.parametrize(
    ("kind", "tool"),
    [
        ("programs", "bank.list_cards"),
        ("programs", "bank.freeze_card"),
        ("state_first", "bank.list_cards"),
        ("state_first", "bank.add_payee"),
        ("world", "travel.search_connections"),
        ("world", "trips.travel__search_connections"),
        ("servers", "bank.list_standing_orders"),
    ],
)
def test_no_task_of_any_source_needs_a_tool_that_is_left_out(tmp_path, kind, tool):
    base = {"environments": TWO[:1], "sample": {"count": 16, "length": [3, 6]}} | SOURCES[kind]
    plain = count_calls(draw(tmp_path, "plain", **base)[1])
    without = count_calls(draw(tmp_path, "without", **base | {"sample": base["sample"] | {"without_tools": [tool]}})[1])
    name = tool.partition(".")[2].rpartition("__")[2]
    assert plain[name] and without and not without[name]


def test_a_variant_that_calls_a_tool_that_is_left_out_is_dropped_with_a_reason(tmp_path):
    base = {
        "environments": [{"library": "retail", "states": {"medium": 1}}],
        "sample": {"count": 20, "length": [3, 6]},
        "vary": {"rates": {"later_page": 1.0}},
    }
    without = base["sample"] | {"without_tools": ["retail.search_products"]}
    for name, sample, calls in (("plain", base["sample"], True), ("without", without, False)):
        draw(tmp_path, name, **base | {"sample": sample})
        tasks = read_records(tmp_path / name / "varied.jsonl", Task)
        assert bool(count_calls(tasks)["search_products"]) == calls
        summary = json.loads((tmp_path / name / "summary.json").read_bytes())
        (stage,) = (stage for stage in summary["stages"] if stage["name"] == "vary")
        assert ("later_page: left_out_tool" in stage["dropped"]) != calls


def count_calls(tasks):
    calls = (call for task in tasks for turn in task.turns for call in turn.gold_calls)
    return Counter(call.tool.rpartition("__")[2] for call in calls)
