"""Keep trajectories by verdict and by the verifier's rewards, and export them; export the rejected ones too.

    python examples/filter_trajectories.py [RUN]

Without a run it makes a small one. The same on the command line:

    trajsmith filter RUN --min composite=0.8 --verdict completed --out data/best
    trajsmith export RUN --include rejected
"""

import sys

import trajsmith as ts

CONFIG = {
    "name": "candidates",
    "seed": 7,
    "environments": [{"library": "retail"}],
    "sample": {"count": 12, "length": [4, 6]},
    "play": {"candidates": 2},  # of each task only the best candidate is accepted
}


def main() -> None:
    run = ts.load_run(sys.argv[1]) if sys.argv[1:] else ts.run(CONFIG, run="runs/candidates", fresh=True)

    best = ts.filter_trajectories(run, min={"composite": 0.8}, verdict=("completed",))
    written = ts.export_dataset(run, "trl", run.path / "best", records=best)
    print("kept:", written.writers["trl"].splits, "dropped:", dict(best.dropped))

    first = [one for one in best if one.trajectory.candidate == 0]  # any condition of your own
    print("first candidates:", len(first))

    rejected = ts.export_dataset(run, "judged", run.path / "rejected", include="rejected")
    print("rejected:", rejected.writers["judged"].splits)
    reasons = {reason for verdict in run.verdicts for reason in verdict.reasons}
    print("reasons:", reasons)


if __name__ == "__main__":
    main()
