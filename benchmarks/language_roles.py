"""A real small model in every role: which gate refuses which draft, what users do wrong, what a judge says.

    python benchmarks/language_roles.py MODEL [--roles writer user agent judge] [--tasks 6] [--server] [--out DIR]

MODEL is a folder, for example one of `trajsmith models fetch-demo`. It plays one role at a time, in this process or
with `--server` behind HTTP (`tests/language_server/small_model.py`), and the scripted language plays the others. Needs
the train extra. Finished runs in DIR are not played again.
"""

import argparse
import asyncio
import logging
import os
import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path

ROOT = Path(__file__).parents[1]
SERVER = ROOT / "tests" / "language_server"
sys.path[:0] = [str(ROOT), str(SERVER)]

from running_server import RunningServer  # noqa: E402 - beside the tests
from small_model import MODEL  # noqa: E402

from trajsmith.pipeline.config import load_config  # noqa: E402
from trajsmith.pipeline.run_directory import RunDirectory  # noqa: E402
from trajsmith.pipeline.runner import run_pipeline  # noqa: E402
from trajsmith.pipeline.yaml_settings import dump_settings  # noqa: E402
from trajsmith.records import RunError, Trajectory, Verdict  # noqa: E402
from trajsmith.records.journal import read_records  # noqa: E402

CONFIG = """
name: small-{role}
seed: {seed}
environments: [{{library: helpdesk, states: {{small: 2}}}}]
sample: {{count: {count}, length: [2, 3]}}
write: {{mean_calls: 2, shown_tools: 5, direct: 0}}
play: {{max_steps: 6}}
judge: {{compare: 1.0}}
models: {{small: {{{model}, max_tokens: {tokens}, concurrency: 6, temperature: 0.7, top_p: 0.9}}}}
roles: {{{role}: small}}
"""
TOKENS = {"writer": 400, "judge": 300, "user": 100, "agent": 160}
"""Longest reply of each role."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--roles", nargs="+", default=list(TOKENS), choices=list(TOKENS))
    parser.add_argument("--tasks", type=int, default=6)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--server", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("runs/language-roles"))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    os.environ[MODEL] = str(arguments.model.resolve())
    server = RunningServer(script=str(SERVER / "small_model.py"), model="small") if arguments.server else nullcontext()
    with server as running:
        model = f"provider: transformers, model: {arguments.model.resolve()}"
        if running is not None:
            model = f'model: small, base_url: "{running.url}", timeout: 900, deadline: 3600'
        for role in arguments.roles:
            text = CONFIG.format(
                role=role, seed=arguments.seed, count=arguments.tasks, model=model, tokens=TOKENS[role]
            )
            show(role, *play(arguments.out, role, text))


def play(folder: Path, role: str, config: str) -> tuple[RunDirectory, list[str]]:
    """Run the pipeline and return the run with the log lines of drafts."""
    log, path = folder / f"{role}.drafts.log", folder / f"{role}.yaml"
    path.write_text(config)
    settings = load_config(path, [f"run={folder / role}"])
    if not settings.run.is_dir():
        log.unlink(missing_ok=True)
    handler, logger = logging.FileHandler(log), logging.getLogger("trajsmith.querygen.author")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    run = (
        RunDirectory.open(settings.run)
        if settings.run.is_dir()
        else RunDirectory.create(settings.run, dump_settings(settings))
    )
    try:
        asyncio.run(run_pipeline(run))
    except RunError as error:  # nothing was accepted: that is a result, too
        print(error)
    logger.removeHandler(handler)
    handler.close()
    return run, log.read_text().splitlines()


def show(role: str, run: RunDirectory, drafts: list[str]) -> None:
    summary = run.read_json("summary.json")
    print(f"\n{role}: {summary['funnel']}")
    dropped = {stage["name"]: stage["dropped"] for stage in summary["stages"] if stage["dropped"]}
    print(f"dropped: {dropped}; rejected: {summary['rejected']}; judge: {summary['judge']}")
    print(f"usage: {summary['usage']}")
    rounds = Counter()
    for line in drafts:  # "write of ground_0123, draft 2: query_invents_a_value, ..."
        head, _, reasons = line.partition(": ")
        for reason in reasons.split(", "):
            rounds[head.split(" of ")[0], f"draft {head.rpartition(' ')[2]}", reason] += 1
    for (purpose, draft, reason), count in sorted(rounds.items()):
        print(f"  {purpose} {draft}: {reason} {count}")
    played = list(read_records(run.file("trajectories.jsonl"), Trajectory))
    verdicts = list(read_records(run.file("verdicts.jsonl"), Verdict))
    events = [event for one in played for event in one.events if event.actor == "assistant"]
    print(f"ends: {count_names(one.stop_reason for one in played)}; faults: {count_names(one.fault for one in played)}")
    print(f"outcomes: {count_names(one.outcome for one in verdicts)}")
    print(f"reasons: {count_names(reason for one in verdicts for reason in one.reasons)}")
    print(f"{len(events)} calls: {count_names(event.error or 'made' for event in events)}")
    opinions = [(one.outcome, one.judge) for one in verdicts if one.judge]
    print(f"judge: {count_names(f'{outcome} -> {opinion.outcome}' for outcome, opinion in opinions)}")


def count_names(names: Iterable[object]) -> dict[str, int]:
    return dict(Counter(str(name) for name in names if name).most_common())


if __name__ == "__main__":
    main()
