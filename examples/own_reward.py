"""A reward of your own: it stands in every verdict of the run, filters its trajectories, and trains.

    python examples/own_reward.py

A script registers its rewards before it uses a run that names them. For runs of the command line, put the function into
a package of yours and name it in its pyproject.toml:

    [project.entry-points."trajsmith.rewards"]
    few_calls = "my_package.few_calls:few_calls"
"""

import trajsmith as ts
from trajsmith.verify.rewards import REWARDS, RewardEvidence, RewardSettings

CONFIG = {
    "name": "own-reward",
    "seed": 7,
    "environments": [{"library": "bank"}],
    "sample": {"count": 20, "length": [3, 6]},
    "verify": {"rewards": {"names": ["composite", "few_calls"]}},
}


@REWARDS.register("few_calls")
def few_calls(evidence: RewardEvidence, settings: RewardSettings) -> float | None:
    """Return 1 for a completed task with at most two calls, less for more calls, 0 for a task that was not done.

    None means that nothing can be said: the environment or the user broke, which must not teach anything.
    """
    if evidence.is_undecidable:
        return None
    return float(evidence.outcome == "completed") * min(1.0, 2 / max(1, evidence.calls))


def main() -> None:
    run = ts.run(CONFIG, run="runs/own-reward", fresh=True)
    print("scores:", sorted({verdict.rewards["few_calls"] for verdict in run.verdicts}))
    chosen = ts.filter_trajectories(run, min={"few_calls": 0.6})
    written = ts.export_dataset(run, "trl", run.path / "few-calls", records=chosen)
    print("kept:", written.writers["trl"].splits, "dropped:", dict(chosen.dropped))

    with ts.TrajsmithSpec(run, rewards=["few_calls"]) as spec:  # GRPO: see grpo.py
        print("rewards:", [reward.__name__ for reward in spec.reward_funcs])


if __name__ == "__main__":
    main()
