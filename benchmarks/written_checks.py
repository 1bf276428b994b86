"""Written checks: are weak, wrong and cheating functions found, and are right ones kept?

    .venv/bin/python benchmarks/written_checks.py              # every kind on 4 tasks, 60 right functions; some minutes
    .venv/bin/python benchmarks/written_checks.py --tasks 2 --right 20

A scripted expert writes right functions from what the gold run changed and from what the answer must tell; about one
change of each task every kind of bad function is written, too. No model is involved.
"""

import argparse
import asyncio
import resource
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from _check_writers import list_planted_sources, list_right_bodies, write_function
from rich.console import Console
from rich.table import Table

from trajsmith.pipeline.config import resolve_config
from trajsmith.pipeline.eval_contexts import open_eval_contexts, split_tasks
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.runner import run_pipeline
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.records import CodeCheck, Task
from trajsmith.verify import CodeCheckRunner
from trajsmith.verify.check_cases import list_gold_changes
from trajsmith.verify.check_panel import CheckPanel
from trajsmith.verify.checks import MISSING
from trajsmith.verify.code_checks import CHECK_SANDBOX
from trajsmith.verify.gold_run import GoldRun, list_gold_calls
from trajsmith.verify.written_checks import WrittenCheckSettings, WrittenCheckTester

SETTINGS = WrittenCheckSettings(mutants=6, equivalents=2)


async def make_tasks(folder: Path, count: int, seed: int) -> tuple[list[Task], Any]:
    """Make a run and return its tasks and their environments."""
    config = resolve_config(
        {
            "name": "written-checks", "seed": seed, "run": str(folder / "run"),
            "environments": [{"library": "*", "states": {"small": 1}}], "sample": {"count": count},
            "write": {"direct": 1.0},
        }
    )  # fmt: skip
    run = RunDirectory.create(config.run, dump_settings(config))
    await run_pipeline(run)
    return list(split_tasks(run, "all")), await open_eval_contexts(run)


async def measure(tasks: int, right: int, seed: int, folder: Path) -> list[Table]:
    """Return the tables of bad and of right functions."""
    written_tasks, contexts = await make_tasks(folder, max(40, right), seed)
    code = CodeCheckRunner(CHECK_SANDBOX.model_copy(update={"call_seconds": 0.5}))
    reasons_by_kind, total = defaultdict[tuple[str, str], Counter[str]](Counter), Counter[tuple[str, str]]()
    right_kept, lost, missed = 0, list[str](), list[str]()
    planted = cases = verdict_tasks = 0
    compared = Counter[str]()
    try:
        for task in written_tasks:
            if planted >= tasks and right_kept + len(lost) >= right:
                break
            context = contexts[task.environments[0]]
            session = await context.source.open()
            try:
                gold = GoldRun(list_gold_calls(task.turns), session)
                await gold.play(context.state(task.initial_state))
                facts, asked = [turn.facts for turn in task.turns], [turn.asked for turn in task.turns]
                panel = CheckPanel(gold, task.masks, [turn.checks for turn in task.turns], facts, code, asked)
                tester = await WrittenCheckTester.of(panel, context.spec, SETTINGS, task.seed, code)
            finally:
                await session.close()
            bodies = list(list_right_bodies(panel))
            cases, verdict_tasks = cases + len(tester.cases), verdict_tasks + 1
            caught = set[int]()
            for item, body in bodies if right_kept + len(lost) < right else ():
                source = write_function(body)
                fault = await tester.test(CodeCheck(says=item, source=source))
                right_kept += fault is None
                caught |= tester.caught[source] if fault is None else set()
                lost += [f"{task.environments[0]}: {item}: {fault.reason}: {fault.detail}"] if fault else []
            if caught:
                mutants = [case for case in tester.cases if case.kind == "mutant"]
                compared += Counter(
                    mutants=len(mutants), derived=sum(case.fails_derived for case in mutants), written=len(caught)
                )
            changes = {f"{change.path} is as it should be": change for change in list_gold_changes(panel)}
            about = next(
                (
                    (changes[item], body) for item, body in bodies
                    if item in changes and changes[item].after is not MISSING and not changes[item].generated
                    and not isinstance(changes[item].after, list | dict | bool)
                ),
                None,
            )  # fmt: skip
            if about is None or planted >= tasks:
                continue
            planted += 1
            for group, kind, source in list_planted_sources(panel, *about):
                fault = await tester.test(CodeCheck(says=kind, source=source))
                total[group, kind] += 1
                if fault is None:
                    missed.append(f"{task.environments[0]}: {kind} about {about[0].path}")
                else:
                    reasons_by_kind[group, kind][fault.reason] += 1
    finally:
        code.close()
        contexts.context.code_checks.close()
    bad = Table("group", "kind", "planted", "found", "reasons", title=f"bad functions on {planted} tasks")
    for group, kind in total:
        reasons = ", ".join(f"{name} {number}" for name, number in reasons_by_kind[group, kind].most_common())
        bad.add_row(group, kind, str(total[group, kind]), str(reasons_by_kind[group, kind].total()), reasons)
    everything = sum(counter.total() for counter in reasons_by_kind.values())
    bad.add_row("all", f"{len(total)} kinds", str(total.total()), str(everything), "")
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    good = Table("figure", "value", title="right functions of the scripted expert")
    good.add_row("written, kept", f"{right_kept + len(lost)}, {right_kept}")
    good.add_row("cases of a task, mean", f"{cases / max(1, verdict_tasks):.1f}")
    good.add_row("wrong runs of these tasks", str(compared["mutants"]))
    good.add_row("caught by the derived checks", str(compared["derived"]))
    good.add_row("caught by the right functions alone", str(compared["written"]))
    good.add_row("CPU seconds, all", f"{sum(one.ru_utime + one.ru_stime for one in usage):.0f}")
    for text in [*lost, *missed]:
        good.add_row("wrongly judged", text)
    return [bad, good]


def main() -> None:
    """Print two tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=4, help="tasks on which every kind of bad function is planted")
    parser.add_argument("--right", type=int, default=60, help="right functions")
    parser.add_argument("--seed", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tables = asyncio.run(measure(arguments.tasks, arguments.right, arguments.seed, Path(folder)))
    for table in tables:
        Console(width=140).print(table)


if __name__ == "__main__":
    main()
