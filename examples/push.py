"""What a push of a run's dataset to the Hub would upload; no request is made.

    python examples/push.py [RUN]

Without a run it makes a small one. To push: `trajsmith push RUN owner/name`, with the token in HF_TOKEN.
"""

import sys

import trajsmith as ts
from trajsmith.export.hub import plan_push

CONFIG = {
    "name": "small",
    "seed": 7,
    "environments": [{"library": "retail"}],
    "sample": {"count": 10, "length": [3, 5]},
}


def main() -> None:
    run = ts.load_run(sys.argv[1]) if sys.argv[1:] else ts.run(CONFIG, run="runs/small", fresh=True)
    plan = plan_push(run.path / "dataset", "owner/name", api=None)
    for name in plan.upload:
        print(f"would upload {name} ({(plan.folder / name).stat().st_size:,} bytes)")
    print(f"{plan.kind} {plan.repo}: {len(plan.upload)} files, {plan.size:,} bytes")


if __name__ == "__main__":
    main()
