"""The loop of `trajsmith env gen` with the scripted expert behind a real server: the funnel, every round, trajectories.

    python benchmarks/envgen_expert.py [OUT] [--chains 20] [--faults]

Six themes: one that is accepted after wrong drafts, a second proposal of it, a hopeless draft, code that attacks the
sandbox, a source without a state, and a model that answers prose. What is accepted grows twice, once in vain. The
expert's answers are files in `tests/envgen/expert/`; the server counts a token for four characters, and the prices are
those of the example configuration. With a model of your own: `trajsmith env gen --config configs/envgen_openai.yaml`.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import yaml
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "language_server")]

from running_server import RunningServer  # noqa: E402 - beside the tests

from trajsmith.envgen.synthesis.records import EnvironmentDraft, Examination, SemanticAssessment, SynthesisOutcome  # noqa: E402
from trajsmith.pipeline.environment_generation import load_gen_config  # noqa: E402
from trajsmith.records.journal import StepJournal  # noqa: E402

EXPERT = ROOT / "tests" / "envgen" / "expert"
WISHES = ("rehearsal rooms", "instrument hire")
"""What there is to be more of; the second breaks what was promised."""
FAULTS = {"rate_limit": 0.1, "server_error": 0.1, "garbage": 0.05, "bad_schema": 0.1}
console = Console(width=170, highlight=False)


def trajsmith(*arguments: str | Path) -> str:
    """Run a command as a user does; what it printed."""
    environment = {**os.environ, "COLUMNS": "170", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "trajsmith", *map(str, arguments)]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout + ("" if done.returncode == 0 else done.stderr)


def make(out: Path, faults: dict[str, float]) -> None:
    """All themes through the provider for OpenAI-compatible servers."""
    price = load_gen_config(ROOT / "configs" / "envgen_openai.yaml").models["large"].price.model_dump()
    with RunningServer(script=str(EXPERT / "expert.py"), model="expert", faults=faults) as server:
        config = {
            "name": "expert", "run": str(out / "run"),
            "models": {"expert": {"model": "expert", "base_url": server.url, "price": price}},
            "roles": dict.fromkeys(("designer", "programmer", "tester", "checker"), "expert"),
            "synthesis": {"trial_rounds": 1},
        }  # fmt: skip
        file = out / "expert.yaml"
        file.write_text(yaml.safe_dump(config))
        print(trajsmith("env", "gen", "--from-domain", EXPERT / "themes.txt", "--config", file))
        for wish in WISHES:
            options = ("--config", file, "--out", grown(out, wish), "--wish", wish)
            print(trajsmith("env", "grow", out / "run" / "environments" / "score_library", *options))
        stats = server.stats()
        console.print(
            f"the server had {stats['requests']} requests, {stats['answered']} answered; faults {stats['faults']}"
        )


def grown(out: Path, wish: str) -> Path:
    """Return the folder of the environments that are grown by a wish."""
    return out / wish.split()[0]


def rounds(run: Path) -> None:
    """Print the results of executing every version."""
    store = StepJournal(run)
    names = {outcome.theme: outcome.name for outcome in store.all("outcomes", SynthesisOutcome)}
    drafts = {draft.id: draft for draft in store.all("drafts", EnvironmentDraft)}
    judged = {one.draft: one.score for one in store.all("semantics", SemanticAssessment)}
    table = Table("environment", "repair", "loads", "tests", "rules bound", "check", "semantic", "score", "complaints")
    for version in store.all("examinations", Examination):
        draft = drafts[version.draft]
        kinds = Counter(complaint.kind for complaint in version.complaints)
        table.add_row(
            names[version.theme], f"{draft.number}{' (less tools)' if draft.dropped and not draft.decisions else ''}",
            "yes" if version.loads else "no", f"{version.tests_passed}/{version.tests}",
            f"{version.rules_bound}/{version.rules}",
            "-" if version.check_score is None else f"{version.check_score:.2f}",
            f"{judged[version.draft]:.2f}" if version.draft in judged else "-", f"{version.score:.2f}",
            ", ".join(f"{kind} {count}" for kind, count in kinds.items()),
        )  # fmt: skip
    console.print(table)


def play(out: Path, chains: int) -> None:
    """Trajectories of what was accepted."""
    folders = [path.parent for path in sorted(out.glob("*/**/made.json")) if "work" not in path.parts]
    for folder in folders:
        config = {
            "name": folder.name, "seed": 7, "run": str(out / folder.name),
            "environments": [{"python": str(folder / f"{folder.name}.py")}],
            "sample": {"count": chains, "length": [3, 6]},
        }  # fmt: skip
        file = out / f"{folder.name}.yaml"
        file.write_text(yaml.safe_dump(config))
        print(trajsmith("run", file))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--chains", type=int, default=20)
    parser.add_argument("--faults", action="store_true", help="Let the server fail at 35 %% of the requests.")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scrap:
        out = (arguments.out or Path(scrap)).resolve()
        out.mkdir(parents=True, exist_ok=True)
        started, cpu = time.perf_counter(), os.times()
        make(out, FAULTS if arguments.faults else {})
        spent = os.times()
        used = spent.children_user + spent.children_system - cpu.children_user - cpu.children_system
        for run in (out / "run", *(grown(out, wish) / "work" / "score_library_g2" for wish in WISHES)):
            rounds(run)
        console.print(f"made in {time.perf_counter() - started:.0f} s, {used:.0f} s of CPU")
        play(out, arguments.chains)


if __name__ == "__main__":
    main()
