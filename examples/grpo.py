"""Reinforcement learning on the tasks of a run, in their live environments, with the verifier's rewards.

    python examples/grpo.py                       # what would be done
    python examples/grpo.py --train models/sft    # do it: needs pip install 'trajsmith[train]'

`models/sft` is what sft.py makes; best start from a model that was fine-tuned. Two steps run on a CPU.
"""

import sys

import trajsmith as ts

DATA = {
    "name": "grpo-data",
    "seed": 7,
    "environments": [{"library": "smart_home", "states": {"small": 8}}],
    "sample": {"count": 20, "length": [1, 1]},
    "ground": {"min_calls": 1},
    "write": {"mean_calls": 3, "direct": 1.0, "shown_tools": 2, "policy": False},
}


def train(spec: ts.TrajsmithSpec, model: str) -> None:
    from trl import GRPOConfig, GRPOTrainer

    args = GRPOConfig(
        output_dir="models/grpo",
        max_steps=2,
        num_generations=2,
        per_device_train_batch_size=2,
        max_completion_length=64,
        report_to="none",
        use_cpu=True,
    )
    trainer = GRPOTrainer(
        model=model,
        args=args,
        train_dataset=spec.train_dataset,
        rollout_func=spec.rollout_func,
        reward_funcs=spec.reward_funcs,
    )
    trainer.train()
    print("steps:", trainer.state.global_step)


def main() -> None:
    run = ts.run(DATA, run="runs/grpo-data", fresh=True)
    with ts.TrajsmithSpec(run, rewards=["rubric"], max_steps=4) as spec:
        rewards = [reward.__name__ for reward in spec.reward_funcs]
        print(f"{len(spec.tasks)} tasks, {len(spec.tool_schemas)} sets of tools, rewards {rewards}")
        print("first request:", spec.train_dataset[0]["prompt"][-1]["content"])
        if "--train" in sys.argv:
            train(spec, sys.argv[-1])


if __name__ == "__main__":
    main()
