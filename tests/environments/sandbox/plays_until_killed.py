"""Opens plays in a mode, prints the session id of the sandbox's processes, then works until somebody kills it."""

import asyncio
import os
import sys

from shop import shop

from trajsmith.environments.sandbox.host import _zygotes


async def main(mode: str, how: str) -> None:
    source = shop(own_process=mode == "process", mode="default" if mode == "process" else mode, wall_seconds=600.0)
    sessions = [await source.open() for _ in range(3)]
    for session in sessions:
        await session.reset((await source.states(1))[0])
    (process,) = _zygotes.values()
    sys.stdout.write(f"{os.getsid(process._process.pid)}\n")
    sys.stdout.flush()
    await asyncio.gather(*(session.call("misbehave", {"how": how}) for session in sessions))
    await asyncio.sleep(600)


asyncio.run(main(*sys.argv[1:]))
