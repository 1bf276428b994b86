"""Run the pipeline on two bundled environments, read its records, and load the dataset.

    python examples/run_and_load.py

Scripted roles play the user and the agent: no key, no network, no GPU.
"""

import trajsmith as ts

CONFIG = {
    "name": "first",
    "seed": 7,
    "environments": [{"library": "retail"}, {"library": "bank"}],
    "sample": {"count": 20, "length": [3, 6]},
}


def main() -> None:
    run = ts.run(CONFIG, run="runs/first", fresh=True)
    print(run.summary.funnel)

    for task, trajectory, verdict in run.judged:  # read line by line
        print(task.turns[0].query)
        print("  calls:", [event.tool for event in trajectory.events])
        print("  verdict:", verdict.outcome, verdict.rewards)
        break

    dataset = run.dataset()  # a datasets.Dataset, ready for TRL's SFTTrainer
    print(dataset)
    print(dataset[0]["messages"][1])


if __name__ == "__main__":
    main()
