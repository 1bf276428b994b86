"""Machines that lack something, simulated by a filter: what the probe says of them, and what the pool does there.

Arguments: "probe" and a JSON list of {call: errno}, or a mode, one {call: errno}, and settings.
"""

import asyncio
import json
import os
import sys

from attacks import templates
from attacks.catalog import Attack

from trajsmith.environments.sandbox import limits, seccomp
from trajsmith.environments.sandbox.probe import probe


def deny(errors: dict[str, int]) -> None:
    """From now on these calls fail with these errors."""
    answers = {name: seccomp.refuse(number) for name, number in errors.items()}
    limits.set_no_new_privileges()
    seccomp.install(seccomp.assemble(os.uname().machine, (), {}, answers, seccomp.ALLOW))


def main() -> None:
    if sys.argv[1] != "probe":
        deny(json.loads(sys.argv[2]))
        sys.stdout.write(asyncio.run(_pool(sys.argv[1], json.loads(sys.argv[3]))))
        return
    for errors in json.loads(sys.argv[2]):
        child = os.fork()
        if child == 0:
            deny(errors) if errors else None
            sys.stdout.write(probe().model_dump_json() + "\n")
            sys.stdout.flush()
            os._exit(0)
        os.waitpid(child, 0)


async def _pool(mode: str, settings: dict[str, object]) -> str:
    """ "ok" if an environment can be used, else the error."""
    from trajsmith.environments.sandbox.settings import SandboxSettings
    from trajsmith.environments.sandbox.source import SandboxSource
    from trajsmith.records import RunError

    text = templates.native([Attack("none", "", "def attack(info): pass\n")])
    payload = {"file": "lab.py", "cls": "", "sizes": {"A": 1}, "source": text}
    source = SandboxSource("lab", "native", payload, SandboxSettings(mode=mode, **settings))
    try:
        session = await source.open()
        await session.reset((await source.states(0))[0])
        await session.close()
    except RunError as error:
        return str(error)
    finally:
        source.close()
    return "ok"


if __name__ == "__main__":
    main()
