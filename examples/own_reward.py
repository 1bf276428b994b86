"""A reward of your own: score trajectories with it, keep the best, and train with it.

    python examples/own_reward.py

To have it in every verdict of your runs, put `reward(evidence, settings)` into a package of yours and name it in its
pyproject.toml; `verify.rewards.names` then chooses it:

    [project.entry-points."trajsmith.rewards"]
    brevity = "my_package.brevity:reward"
"""

import trajsmith as ts

CONFIG = {"name": "small", "seed": 7, "environments": [{"library": "bank"}], "sample": {"count": 20, "length": [3, 6]}}


def brevity(trajectory: ts.Trajectory, verdict: ts.Verdict) -> float | None:
    """Return 1 for short answers of the agent, less for long ones, 0 for a task that was not done.

    None means that nothing can be said: the environment or the user broke, which must not teach anything.
    """
    if verdict.outcome in ("environment_error", "user_error", "undecided"):
        return None
    answers = [one.content for one in trajectory.messages if one.role == "assistant" and not one.tool_calls]
    words = sum(len(text.split()) for text in answers) / max(1, len(answers))
    return float(verdict.accepted) * min(1.0, 15 / max(1.0, words))


def main() -> None:
    run = ts.run(CONFIG, run="runs/own-reward", fresh=True)
    scored = [(brevity(one.trajectory, one.verdict) or 0.0, one) for one in run.judged]
    print("scores:", sorted(round(score, 2) for score, _ in scored))
    chosen = [one for score, one in scored if score >= 0.8]
    written = ts.export_dataset(run, "trl", run.path / "brief", records=chosen)
    print("kept:", written.writers["trl"].splits)

    with ts.TrajsmithSpec(run, rewards=["composite", brevity]) as spec:  # GRPO: see grpo.py
        print("rewards:", [reward.__name__ for reward in spec.reward_funcs])


if __name__ == "__main__":
    main()
