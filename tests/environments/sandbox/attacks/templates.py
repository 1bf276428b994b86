"""Environments around attacks: the same two plays in each, one attacks and one is the victim."""

from attacks.catalog import HOST_CATEGORIES, Attack

NATIVE = '''
from datetime import datetime
from typing import Any

from trajsmith import Environment, EnvironmentState, tool

{attacks}

class LabState(EnvironmentState):
    token: str = ""
    counter: int = 0
    notes: dict[str, str] = {{}}


class Lab(Environment[LabState]):
    """A place where attacks are tried."""

    policy = ""
    {start}

    @classmethod
    def seed_state(cls, size: str, seed: int) -> LabState:
        {states}
        return LabState(now=datetime(2025, 1, 1), token=size)

    @tool(effect="write")
    def act(self, name: str, info: dict[str, Any]) -> Any:
        """Attack.

        Args:
            name: Which attack.
            info: What it is told.
        """
        return ATTACKS[name](info | {{"me": self}})

    @tool(effect="read")
    def get(self) -> dict[str, Any]:
        """What is there."""
        return {{"token": self.state.token, "counter": self.state.counter}}

    @tool(effect="write")
    def add(self, number: int) -> int:
        """Count.

        Args:
            number: How many.
        """
        self.state.counter += number
        return self.state.counter

{load}
'''
FILE = '''
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("lab")


class Api:
    def __init__(self):
        self.token = "A"
        self.counter = 0


api = Api()
{attacks}


@mcp.tool()
def load_scenario(scenario: dict) -> bool:
    """Load."""
    api.token, api.counter = scenario.get("token", "A"), scenario.get("counter", 0)
    return True


@mcp.tool()
def save_scenario() -> dict:
    """Save."""
    {save}
    return {{"token": api.token, "counter": api.counter}}


@mcp.tool()
def act() -> dict:
    """Attack."""
    return {{"said": {act}}}


@mcp.tool()
def get() -> dict:
    """What is there."""
    return {{"token": api.token, "counter": api.counter}}


@mcp.tool()
def add(number: int) -> dict:
    """Count."""
    api.counter += number
    return {{"counter": api.counter}}


{load}
'''


def _functions(attacks: list[Attack]) -> str:
    texts = [found.source.replace("def attack(", f"def attack_{number}(", 1) for number, found in enumerate(attacks)]
    names = ", ".join(f"{found.id!r}: attack_{number}" for number, found in enumerate(attacks))
    return "\n\n".join(texts) + f"\n\nATTACKS = {{{names}}}\n"


def native(attacks: list[Attack], info: dict[str, object] | None = None) -> str:
    """A native environment whose tool `act` makes the attacks, or that attacks when its own time comes.

    Args:
        attacks: Attacks of one `when`.
        info: What those are told that are not called by a tool.
    """
    when = attacks[0].when
    all_now = f"REPORT = {{}}\nINFO = {info!r}\n" + (
        "for NAME, FUNCTION in ATTACKS.items():\n"
        "    try:\n        REPORT[NAME] = repr(FUNCTION(INFO))[:300]\n"
        "    except Exception as ERROR:\n        REPORT[NAME] = 'blocked: ' + repr(ERROR)[:200]\n"
        "ATTACKS['report'] = lambda _: REPORT\n"
    )
    now = f"next(iter(ATTACKS.values()))({info!r})"
    start = f"\n    def __init__(self, state: LabState) -> None:\n        {now}\n        super().__init__(state)\n"
    # nobody hears what loading returns, but what it raises
    told = f"SAID = {now}\nif 'did: ' in f'{{SAID}}':\n    raise ValueError(SAID)\n"
    load = {"load": told, "load_all": all_now}.get(when, "")
    return NATIVE.format(
        attacks=_functions(attacks), load=load, states=now if when == "states" else "", start=start * (when == "start")
    )


def file(found: Attack, info: dict[str, object]) -> str:
    """A file in EnvFactory's form around one attack."""
    now = f"ATTACKS[{found.id!r}]({info!r} | {{'mcp': mcp, 'module': globals()}})"
    return FILE.format(
        attacks=_functions([found]),
        load=now if found.when == "file_load" else "",
        save=f"return {now}" if found.when == "file_save" else "",
        act=now if found.when == "file_call" else "''",
    )


def check(attacks: list[Attack], info: dict[str, object]) -> str:
    """Source of a check function that makes attacks; those on the host tell what they got in an exception."""
    shown = [found.id for found in attacks if found.category in HOST_CATEGORIES]
    return _functions(attacks) + (
        f"\nSHOWN = {shown!r}\nINFO = {info!r}\n\n\ndef check(initial_state, final_state, answer):\n"
        "    result = ATTACKS[answer](INFO | {'initial': initial_state, 'final': final_state})\n"
        "    if answer in SHOWN:\n        raise ValueError(str(result))\n    return result\n"
    )
