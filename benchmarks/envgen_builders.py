"""Models as builders at scale, scripted and behind a real server: more domains, mined domains, rounds of growth.

    python benchmarks/envgen_builders.py [OUT] [--count 1000]

1. `trajsmith env expand` from the 94 domains of the catalogue to --count. The model repeats itself, renames, proposes
   what keeps no state, and answers with prose (tests/envgen/expander/).
2. `trajsmith env gen --from-domain` with `search.mining` over two pages, to an accepted environment.
3. `trajsmith env grow --rounds 3` of that environment: two rounds are accepted, the third is undone.

The replies are files; the server counts a token for four characters, and the prices are those of the example
configuration. So the figures measure the loops, prompts and evidence, not a model.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests" / "envgen"
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "language_server")]

from running_server import RunningServer  # noqa: E402 - beside the tests

from trajsmith.pipeline.environment_generation import load_gen_config  # noqa: E402


def trajsmith(*arguments: object) -> None:
    """Run a command as a user does, and print its standard output with the CPU seconds that it took."""
    environment = {**os.environ, "COLUMNS": "150", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "trajsmith", *map(str, arguments)]
    before, started = os.times(), time.perf_counter()
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    print(f"$ trajsmith {' '.join(map(str, arguments[:3]))} ...")
    print(done.stdout + ("" if done.returncode == 0 else done.stderr))
    print(f"exit code {done.returncode}, {cpu:.0f} s of CPU, {time.perf_counter() - started:.0f} s\n")


def write_config(out: Path, name: str, url: str, **more: object) -> Path:
    """Write a configuration in which one scripted model plays all roles."""
    price = load_gen_config(ROOT / "configs" / "envgen_openai.yaml").models["large"].price.model_dump()
    file = out / f"{name}.yaml"
    config = {
        "name": name, "run": str(out / name), "synthesis": {"trial_rounds": 1},
        "models": {"expert": {"model": "expert", "base_url": url, "price": price}},
        "roles": dict.fromkeys(("designer", "programmer", "tester", "checker"), "expert"),
    }  # fmt: skip
    file.write_text(yaml.safe_dump(config | more))
    return file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", nargs="?", type=Path)
    parser.add_argument("--count", type=int, default=1000)
    arguments = parser.parse_args()
    out = (arguments.out or Path(tempfile.mkdtemp(prefix="builders-"))).resolve()
    out.mkdir(parents=True, exist_ok=True)
    with RunningServer(script=str(TESTS / "expander" / "expander.py"), model="expert") as server:
        config = write_config(out, "expand", server.url)
        size = ("--count", arguments.count, "--batch", 40, "--alike", 0.85)
        trajsmith("env", "expand", *size, "--out", out / "domains.yaml", "--config", config)
    pages = [sys.executable, str(TESTS / "pages_server.py"), str(TESTS / "pages_scores"), str(out / "calls.txt")]
    search = {"tool": "search", "command": pages, "mining": {"rounds": 3}}
    with RunningServer(script=str(TESTS / "expert" / "expert.py"), model="expert") as server:
        config = write_config(out, "mine", server.url, search=search)
        trajsmith("env", "gen", "--from-domain", "score lending", "--config", config)
        grown = write_config(out, "grow", server.url)
        wishes = ("--wish", "rehearsal rooms", "--wish", "member notices", "--wish", "member notices")
        parent = out / "mine" / "environments" / "score_library"
        trajsmith("env", "grow", parent, "--out", out, "--rounds", 3, *wishes, "--config", grown)


if __name__ == "__main__":
    main()
