"""Runs environments that AWM publishes, as they are, through our adapter, in the sandbox.

    .venv/bin/python benchmarks/published_awm.py --path DIRECTORY [--first 20]

DIRECTORY is what the reference's download makes: `gen_envs.jsonl`, `gen_db.jsonl`, `gen_sample.jsonl`; or a directory
with one `server_code.py` and its `initial.db`. Tools are called with arguments that a random filler takes from the
state and from earlier results; no model is asked. An environment serves if it loads, a tool answers, and a fresh state
can be saved, loaded and saved again without a difference. Needs the extra `awm`.
"""

import argparse
import asyncio
from pathlib import Path

from _published import EnvironmentRow, examine, show

from trajsmith.environments.adapters.awm import AwmSettings, discover
from trajsmith.environments.adapters.awm.settings import get_environment_name
from trajsmith.environments.sandbox.source import SandboxSource
from trajsmith.environments.sources import EnvironmentSettings, open_source
from trajsmith.records import InputError


async def run(chosen: list[AwmSettings], rounds: int, seed: int) -> list[EnvironmentRow]:
    rows = []
    for settings in chosen:
        name = get_environment_name(settings)
        try:
            source = open_source(EnvironmentSettings(awm=settings))
        except InputError as error:
            rows.append(EnvironmentRow(name, reason=str(error)))
            continue
        rows.append(await examine(name, source, rounds, seed))
        if isinstance(source, SandboxSource):
            source.close()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--path", type=Path, required=True, help="directory of published files, or one server's")
    parser.add_argument("--first", type=int, help="only so many environments")
    parser.add_argument("--rounds", type=int, default=4, help="calls of each tool from each state")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    server = chosen.path / "server_code.py"
    entries = [AwmSettings(server=server)] if server.is_file() else discover(chosen.path)
    rows = asyncio.run(run(entries[: chosen.first], chosen.rounds, chosen.seed))
    show(f"AWM, {len(rows)} environments", rows)


if __name__ == "__main__":
    main()
