"""Runs the environments that EnvFactory publishes, as they are, through our adapter.

    .venv/bin/python benchmarks/published_envfactory.py --path ../EnvFactory
    .venv/bin/python benchmarks/published_envfactory.py --path ../EnvFactory --only Canvas Notion

Every environment runs in the sandbox. Its tools are called with arguments that a random filler takes from the state and
from earlier results; no model is asked. An environment serves if it loads, a tool answers, and the state that its calls
left can be saved, loaded and saved again without a difference.
"""

import argparse
import asyncio
from pathlib import Path

from _published import EnvironmentRow, examine, show

from trajsmith.environments.adapters.envfactory.settings import PRELOAD, EnvFactorySettings, build_payload, discover
from trajsmith.environments.sandbox.settings import SandboxSettings
from trajsmith.environments.sandbox.source import SandboxSource


async def run(chosen: list[EnvFactorySettings], rounds: int, seed: int) -> list[EnvironmentRow]:
    rows = []
    for settings in chosen:
        sandbox = SandboxSettings(imports=PRELOAD)
        source = SandboxSource(settings.environment, "envfactory", build_payload(settings), sandbox)
        rows.append(await examine(settings.environment, source, rounds, seed))
        source.close()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--path", type=Path, required=True, help="a checkout of EnvFactory")
    parser.add_argument("--only", nargs="*", default=[], help="names of environments; all if left out")
    parser.add_argument("--rounds", type=int, default=8, help="calls of each tool from each of three states")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    entries = [entry for entry in discover(chosen.path) if not chosen.only or entry.environment in chosen.only]
    rows = asyncio.run(run(entries, chosen.rounds, chosen.seed))
    show(f"EnvFactory, {len(rows)} environments", rows)


if __name__ == "__main__":
    main()
