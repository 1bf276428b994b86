"""Runs environments that EnvScaler publishes, as they are, through our adapter.

    .venv/bin/python benchmarks/published_envscaler.py --path filtered_env_metadata.json --scenarios env_scenario.json

The metadata and the scenarios are data sets of their own, beside EnvScaler's repository. Every environment runs in the
sandbox. Its tools are called with arguments that a random filler takes from the state and from earlier results; no
model is asked. An environment serves if it loads, a tool answers, and a fresh state can be saved, loaded and saved
again without a difference.
"""

import argparse
import asyncio
from pathlib import Path

from _published import EnvironmentRow, examine, show

from trajsmith.environments.adapters.envscaler.settings import (
    PRELOAD,
    EnvScalerSettings,
    build_payload,
    discover,
    get_environment_name,
)
from trajsmith.environments.sandbox.settings import SandboxSettings
from trajsmith.environments.sandbox.source import SandboxSource
from trajsmith.records import InputError


async def run(chosen: list[EnvScalerSettings], rounds: int, seed: int) -> list[EnvironmentRow]:
    rows = []
    for settings in chosen:
        name = f"{settings.id or settings.file.name}: {get_environment_name(settings)}"
        try:
            payload = build_payload(settings)
        except InputError as error:
            rows.append(EnvironmentRow(name, reason=str(error)))
            continue
        source = SandboxSource(name, "envscaler", payload, SandboxSettings(imports=PRELOAD))
        rows.append(await examine(name, source, rounds, seed))
        source.close()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--path", type=Path, required=True, help="metadata of environments, .json or .jsonl, or a class, .py"
    )
    parser.add_argument("--scenarios", type=Path, help="their initial states")
    parser.add_argument("--rounds", type=int, default=8, help="calls of each tool from each of three states")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    python = chosen.path.suffix == ".py"
    single = [EnvScalerSettings(file=chosen.path, scenarios=chosen.scenarios)]
    entries = single if python else discover(chosen.path, chosen.scenarios)
    rows = asyncio.run(run(entries, chosen.rounds, chosen.seed))
    show(f"EnvScaler, {len(rows)} environments", rows)


if __name__ == "__main__":
    main()
