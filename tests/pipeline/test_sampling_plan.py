"""A run with a plan makes more of what the plan names, and nothing that an evaluation asks."""

import shutil
from collections import Counter

import pytest
import yaml

from trajsmith import run
from trajsmith.evals.diagnosis import Diagnosis, GroupFinding
from trajsmith.evals.plans import build_plan
from trajsmith.pipeline.dataset_selection import load_unselected
from trajsmith.pipeline.run_directory import RunDirectory
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
