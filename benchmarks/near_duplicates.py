"""What it costs to look for near-duplicates and benchmark rows: CPU seconds per record, at growing numbers.

Records are made from a run: half of their words and values are changed at random, and every tenth is a copy.

    python benchmarks/near_duplicates.py runs/quickstart --sizes 5000 10000 20000
"""

import argparse
import random
import time
from pathlib import Path

from trajsmith.pipeline.record_joins import join_verdicts
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.records import Task, Trajectory
from trajsmith.verify.decontaminate import Decontaminator
from trajsmith.verify.duplicates import DuplicateFilter, DuplicateSettings


def changed(task: Task, trajectory: Trajectory, rng: random.Random, share: float, name: str) -> tuple[Task, Trajectory]:
    """The trajectory with this share of its user's words, and its values, replaced."""
    messages = []
    for message in trajectory.messages:
        words = [f"w{rng.randrange(5000)}" if rng.random() < share else word for word in message.content.split()]
        messages.append(message.model_copy(update={"content": " ".join(words)}) if message.role == "user" else message)
    events = [
        event.model_copy(update={"arguments": {key: f"v{rng.randrange(9999)}" for key in event.arguments}})
        if rng.random() < share
        else event
        for event in trajectory.events
    ]
    return task, trajectory.model_copy(update={"id": name, "messages": tuple(messages), "events": tuple(events)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[5000, 10000, 20000])
    parser.add_argument("--against", type=Path, nargs="*", default=[])
    arguments = parser.parse_args()
    base = [(task, trajectory) for task, trajectory, _ in join_verdicts(RunDirectory.open(arguments.run))]
    bench = Decontaminator(arguments.against)
    for size in arguments.sizes:
        rng, index, dropped, copies = random.Random(1), DuplicateFilter(DuplicateSettings()), 0, 0
        spent, compared, last = 0.0, 0.0, base[0]
        for number in range(size):
            copy = number % 10 == 9
            copies += copy
            last = changed(*(last if copy else rng.choice(base)), rng, 0.0 if copy else 0.5, f"traj_{number}")
            start = time.process_time()
            dropped += index.add(*last) is not None
            spent += time.process_time() - start
            start = time.process_time()
            bench.match(*last, ())
            compared += time.process_time() - start
        cost = f"{1000 * spent / size:.3f} ms CPU each for duplicates, {1000 * compared / size:.3f} ms for benchmarks"
        print(f"{size} records: {cost}; {dropped} dropped, {copies} were copies")


if __name__ == "__main__":
    main()
