"""What generated code reaches for: a look at the text before anything of it runs, by the sandbox's own gate.

The sandbox is the boundary; this says early and in words that code was meant to do something else than keep its state.
"""

from environments.sandbox.gate import GateFinding, gate

_CHANCE = frozenset({"clock", "entropy", "random", "real-clock", "uuid"})
_REACH = frozenset({"attribute", "import", "name", "text"})
_PRIVATE = "which is private to code elsewhere"
"""What is said of an attribute that is odd and leads nowhere."""


def reaches(code: str) -> list[str]:
    """Places at which code reaches for what the sandbox closes: files, processes, the network, the interpreter."""
    return [_told(found) for found in gate(code, "") if found.rule in _REACH and _PRIVATE not in found.message]


def chances(code: str) -> list[str]:
    """Places at which code asks a clock or chance of its own, so that no replay is exact."""
    return [_told(found) for found in gate(code, "") if found.rule in _CHANCE]


def slows(code: str) -> list[str]:
    """Places for which every play needs a process of its own: just as right, and slower."""
    rest = [found for found in gate(code, "") if found.severity == "process"]
    return [_told(found) for found in rest if found.rule not in _REACH or _PRIVATE in found.message]


def _told(found: GateFinding) -> str:
    """Without what the gate says of sharing, which is not the point here."""
    return f"line {found.line}: {found.message.removesuffix(', which may keep things that sessions share')}"
