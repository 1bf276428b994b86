"""Diagnosis of an agent with planted faults: which of the kinds it names, what else, and its CPU time.

    python benchmarks/diagnosis.py [--chains 350]

A run plays every task three times, twice by the scripted faulty agent. Its kinds of mistakes are planted; a kind is
named if the diagnosis names the first wrong step that belongs to it.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.sort(key=lambda entry: entry == str(Path(__file__).parent))  # benchmarks/grounding.py is not the package

STEPS = {"premature_answer": "missing_call", "missed_error": "unrecovered_error", "needless_read": "repeated_read"}
"""Planted kind to the name of its first wrong step, where they differ."""
EPISODES = 10_000


def main() -> None:
    """Print planted and named kinds, and the CPU time of 10,000 episodes; exit code 1 if a limit does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chains", type=int, default=350)
    chains = parser.parse_args().chains
    from trajsmith import run
    from trajsmith.evals import PlayedEpisode
    from trajsmith.evals.diagnosis import diagnose
    from trajsmith.evals.observations import observe_episode
    from trajsmith.pipeline.record_joins import join_verdicts
    from trajsmith.pipeline.run_directory import RunDirectory
    from trajsmith.usersim import FaultSettings

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        config = {
            "name": "planted",
            "seed": 11,
            "run": str(path),
            "environments": [{"library": "*", "states": {"small": 3}}],
            "sample": {"count": chains, "length": [5, 9], "scenarios": 0.9},
            "write": {"mean_calls": 2.6, "direct": 0.1, "withhold": 0.2, "tools": {"search": 0.15}},
            "vary": {
                "rates": {"refused_call": 0.3, "tool_failure": 0.2, "missing_parameter": 0.2, "batch_request": 0.2}
            },
            "play": {"candidates": 3, "faulty": 2},
        }
        run(config)
        start, observations = time.process_time(), []
        for task, trajectory, verdict in join_verdicts(RunDirectory.open(path)):
            if trajectory.injected is not None:
                passed = verdict.outcome == "completed"
                played = PlayedEpisode(task, trajectory.candidate, passed, "", trajectory, verdict)
                one = observe_episode(played)
                observations.append(one.model_copy(update={"task": one.episode}))  # each play has a fault of its own
        reading = (time.process_time() - start) / len(observations)
    diagnosis = diagnose(observations, "planted")
    named = {step.kind for step in diagnosis.steps if step.named}
    planted = {STEPS.get(kind, kind): kind for kind in FaultSettings.model_fields}
    print(
        f"{len(observations)} episodes with a planted fault; "
        f"{len(named & planted.keys())} of {len(planted)} kinds named"
    )
    print(f"not named: {', '.join(sorted(planted.keys() - named)) or 'none'}")
    print(f"named and not planted: {', '.join(sorted(named - planted.keys())) or 'none'}")
    many = [observations[number % len(observations)] for number in range(EPISODES)]
    start = time.process_time()
    diagnose([one.model_copy(update={"task": str(number)}) for number, one in enumerate(many)], "many")
    seconds = time.process_time() - start + EPISODES * reading
    print(f"{EPISODES} episodes: {seconds:.1f} CPU s, reading included")
    sys.exit(len(named & planted.keys()) < 10 or len(named - planted.keys()) > 1 or seconds >= 60)


if __name__ == "__main__":
    main()
