"""Check generated code statically, before it runs, with the sandbox's own gate.

The sandbox is the boundary; this says early and in words that code was meant to do something else than keep its state.
"""

from trajsmith.environments.sandbox.gate import GateFinding, examine_source

_CHANCE = frozenset({"clock", "entropy", "random", "real-clock", "uuid"})
_REACH = frozenset({"attribute", "import", "name", "text"})
_PRIVATE = "which is private to code elsewhere"
"""What is said of an attribute that is odd and leads nowhere."""


def find_closed_access(code: str) -> list[str]:
    """Return places where code accesses what the sandbox blocks: files, processes, network, interpreter."""
    return [
        _format_finding(finding)
        for finding in examine_source(code, "")
        if finding.rule in _REACH and _PRIVATE not in finding.message
    ]


def find_nondeterminism(code: str) -> list[str]:
    """Return places where code uses its own clock or randomness, so that replay is not exact."""
    return [_format_finding(finding) for finding in examine_source(code, "") if finding.rule in _CHANCE]


def find_process_only(code: str) -> list[str]:
    """Return places that force a process of its own for each session: just as correct, but slower."""
    rest = [finding for finding in examine_source(code, "") if finding.severity == "process"]
    return [_format_finding(finding) for finding in rest if finding.rule not in _REACH or _PRIVATE in finding.message]


def _format_finding(finding: GateFinding) -> str:
    """Without what the gate says of sharing, which is not the point here."""
    return f"line {finding.line}: {finding.message.removesuffix(', which may keep things that sessions share')}"
