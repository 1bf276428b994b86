"""What environments cost GRPO: time that a step waits for them, and what 1,024 open episodes weigh.

    .venv/bin/python benchmarks/grpo_environments.py              # a few minutes; needs the train extra
    .venv/bin/python benchmarks/grpo_environments.py --only open  # needs no torch

`steps` trains models on 64 episodes a step: folders, or ones that are made here and taught briefly. They are so small
that generation and the optimiser are as cheap as they can be: the share of the environments is an upper bound. Since a
model that knows little makes few calls, the last column has the share if every episode made its gold calls and nothing
of them overlapped with generation. `open` starts 1,024 episodes, makes one call in each, and finishes them; time is
wall and CPU, memory is the growth of the resident size.
"""

import argparse
import asyncio
import json
import resource
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from trajsmith.pipeline.run_directory import RunDirectory

EPISODES = 64
"""Episodes of a step."""
QUIET = {"disable_tqdm": True, "logging_steps": 1, "dataloader_pin_memory": False}
CONFIG = """
name: bench
seed: 5
run: {run}
environments: [{{library: smart_home, states: {{small: 8}}}}]
sample: {{count: {chains}, length: [1, 2], method: random_walk}}
ground: {{min_calls: 1}}
write: {{mean_calls: 3, direct: 1.0, shown_tools: 2, policy: false}}
"""


def make_run(folder: Path, chains: int) -> RunDirectory:
    """A small run with tasks, trajectories and verdicts."""
    from trajsmith.pipeline.config import load_config
    from trajsmith.pipeline.runner import run_pipeline
    from trajsmith.pipeline.yaml_settings import dump_settings

    (folder / "line.yaml").write_text(CONFIG.format(run=folder / "run", chains=chains))
    settings = load_config(folder / "line.yaml")
    run = RunDirectory.create(settings.run, dump_settings(settings))
    asyncio.run(run_pipeline(run))
    return run


def opened(run: RunDirectory, episodes: int) -> dict[str, float]:
    """Start episodes, make the first gold call in each, say the rest, wait for the verdicts."""
    from trajsmith.environments.blocking import BackgroundLoop
    from trajsmith.models import ChatReply
    from trajsmith.pipeline.eval_contexts import open_eval_contexts
    from trajsmith.pipeline.record_joins import join_verdicts
    from trajsmith.train_grpo.rollouts import Rollout, collect_next_steps, send_replies
    from trajsmith.usersim import PlaySettings

    known, grounds, background = list(join_verdicts(run)), asyncio.run(open_eval_contexts(run)), BackgroundLoop()
    played = [known[number % len(known)] for number in range(episodes)]
    before, start, cpu = resident(), time.perf_counter(), time.process_time()
    rollouts = [Rollout(task, grounds[task.environments[0]], PlaySettings()) for task, _, _ in played]
    for rollout in rollouts:
        rollout.start(background)
    steps = collect_next_steps(background, rollouts)
    reset, reset_cpu = time.perf_counter() - start, time.process_time() - cpu
    start, cpu = time.perf_counter(), time.process_time()
    records = [record for _, record, _ in played]
    send_replies(background, [(one, ChatReply(message=record.messages[len(step)])) for one, record, step in
                        zip(rollouts, records, steps, strict=True)])  # fmt: skip
    steps = collect_next_steps(background, rollouts)
    call, call_cpu = time.perf_counter() - start, time.process_time() - cpu
    weight = resident() - before
    start = time.perf_counter()
    while any(step is not None for step in steps):
        going = [(one, record, step) for one, record, step in zip(rollouts, records, steps, strict=True) if step]
        send_replies(background, [(one, ChatReply(message=record.messages[len(step)])) for one, record, step in going])
        next_steps = iter(collect_next_steps(background, [one for one, _, _ in going]))
        steps = [next(next_steps) if step else None for step in steps]
    passed = sum(bool(done := rollout.verdict()) and done[0].passed for rollout in rollouts)
    whole = reset + call + time.perf_counter() - start
    background.close()
    return {
        "whole": whole, "reset": reset, "reset_cpu": reset_cpu, "call": call, "call_cpu": call_cpu, "mib": weight,
        "passed": passed,
    }  # fmt: skip


def resident() -> float:
    """Resident size of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def train_small_model(run: RunDirectory, folder: Path, shape: str) -> Path:
    """A model of this shape ("64x2": hidden size and layers), briefly taught the rows of the run."""
    from trajsmith.train_sft import ScratchSettings, SftConfig
    from trajsmith.train_sft.training import train

    hidden, layers = map(int, shape.split("x"))
    out = folder / f"model-{shape}"
    trainer = {"max_steps": 30, "per_device_train_batch_size": 8, "learning_rate": 3e-3, "save_strategy": "no"}
    small = ScratchSettings(hidden=hidden, layers=layers, heads=4, vocabulary=800)
    train(SftConfig(scratch=small, dataset=run.path, out=out, max_length=4000, trainer=QUIET | trainer))
    return out


def trained(run: RunDirectory, folder: Path, model: Path, steps: int) -> dict[str, float]:
    """Mean wall time of a step with 64 episodes, and of it what was spent waiting for environments."""
    from trajsmith.pipeline.eval_contexts import open_eval_contexts, split_tasks
    from trajsmith.train_grpo import GrpoConfig
    from trajsmith.train_grpo.training import train

    out = folder / f"grpo-{model.name}"
    trainer = {"max_steps": steps, "per_device_train_batch_size": EPISODES, "num_generations": 8,
               "learning_rate": 1e-5, "save_strategy": "no"}  # fmt: skip
    settings = GrpoConfig(
        model=str(model), run=run.path, out=out, reward="composite", episode_tokens=600, max_steps=6,
        trainer=QUIET | trainer,
    )  # fmt: skip
    train(settings, list(split_tasks(run, "train")), asyncio.run(open_eval_contexts(run)))
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    rows = [row for row in rows if "environment/seconds" in row]
    names = {"waited": "environment/seconds", "step": "step_time", "calls": "episode/calls"}
    return {key: sum(row[name] for row in rows) / len(rows) for key, name in names.items()}


def main() -> None:
    """Measure and print."""
    sys.path[0] = str(Path(__file__).parents[1])  # beside this file lie scripts with the names of packages
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["open", "steps"])
    parser.add_argument("--episodes", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--models", nargs="+", default=["64x2", "256x4"], help="Folders, or hidden size x layers.")
    parser.add_argument("--chains", type=int, default=48)
    options = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory() as scrap:
        run = make_run(Path(scrap), options.chains)
        if options.only != "steps":
            table = Table(
                "episodes", "start s", "CPU ms each", "one call s", "CPU ms each", "MiB", "KiB each", "passed"
            )
            cost, many = opened(run, options.episodes), options.episodes
            table.add_row(
                str(many), f"{cost['reset']:.2f}", f"{1000 * cost['reset_cpu'] / many:.2f}", f"{cost['call']:.2f}",
                f"{1000 * cost['call_cpu'] / many:.2f}", f"{cost['mib']:.0f}", f"{1024 * cost['mib'] / many:.0f}",
                str(cost["passed"]),
            )  # fmt: skip
            console.print(table)
        if options.only != "open":
            table = Table(
                "model", "step s", "waited for environments s", "share", "calls an episode", "share, gold calls"
            )
            gold = opened(run, EPISODES)["whole"]
            for name in options.models:
                model = Path(name) if Path(name).is_dir() else train_small_model(run, Path(scrap), name)
                cost = trained(run, Path(scrap), model, options.steps)
                at_most = gold / (cost["step"] - cost["waited"] + gold)
                table.add_row(
                    name, f"{cost['step']:.2f}", f"{cost['waited']:.3f}",
                    f"{100 * cost['waited'] / cost['step']:.2f} %", f"{cost['calls']:.1f}", f"{100 * at_most:.2f} %",
                )  # fmt: skip
            console.print(table)


if __name__ == "__main__":
    main()
