"""Finds dialogues of a run by what was said, called and judged, in one pass that parses only lines that may match."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import orjson

from trajsmith.pipeline.hub_runs import open_run
from trajsmith.pipeline.raw_records import RawReader
from trajsmith.pipeline.record_joins import PlayedPairs
from trajsmith.pipeline.run_directory import VERDICTS
from trajsmith.records import InputError, Outcome, Task, Trajectory, Verdict, has_records, read_whole_records

ACCEPTED, REJECTED = "accepted", "rejected"


@dataclass(frozen=True)
class DialogueQuery:
    """Conditions that a dialogue must meet, all of them; what is empty is none."""

    texts: tuple[str, ...] = ()
    """Parts of what user or agent said; upper and lower case are the same."""
    environment: str = ""
    tools: tuple[str, ...] = ()
    """Tools that the agent called."""
    outcome: str = ""
    """`accepted`, `rejected`, or an outcome of verdicts: `agent_error`."""
    variant: str = ""
    reason: str = ""
    """Part of a reason of the verdict."""

    def may_match(self, trajectory: bytes, verdict: bytes) -> bool:
        """Return False for lines of a trajectory and its verdict that cannot match; quick."""
        if self.environment and _quote(self.environment) not in trajectory:
            return False
        if any(_quote(tool) not in trajectory for tool in self.tools):
            return False
        if self.outcome in (ACCEPTED, REJECTED):
            wanted = b"true" if self.outcome == ACCEPTED else b"false"
            if b'"accepted":' + wanted not in verdict:
                return False
        elif self.outcome and _quote(self.outcome) not in verdict:
            return False
        # Lower case of non-ASCII letters is left to `matches`: bytes know none.
        plain = [_quote(text.lower())[1:-1] for text in self.texts if text.isascii()]
        lower = trajectory.lower() if plain else b""
        return all(text in lower for text in plain)

    def matches(self, task: Task, trajectory: Trajectory, verdict: Verdict) -> bool:
        """Return True if a dialogue has all that is asked for."""
        spoken = [
            (message.content or "").lower() for message in trajectory.messages if message.role in ("user", "assistant")
        ]
        called = {call.function.name for message in trajectory.messages for call in message.tool_calls or ()}
        return (
            all(any(text.lower() in part for part in spoken) for text in self.texts)
            and self.environment in ("", trajectory.environment)
            and called.issuperset(self.tools)
            and self.outcome in ("", ACCEPTED if verdict.accepted else REJECTED, verdict.outcome)
            and self.variant in ("", task.variant)
            and any(self.reason.lower() in reason.lower() for reason in (verdict.reasons or ("",)))
        )


def find_dialogues(path: Path, query: DialogueQuery) -> Iterator[tuple[Task, Trajectory, Verdict]]:
    """Iterate over the dialogues of a run that match, in its order; the run may be one of the Hub.

    Raises:
        InputError: There is no such outcome, or no run, or it has no verdicts.
        RunError: Records do not belong together.
    """
    outcomes = (ACCEPTED, REJECTED, *get_args(Outcome))
    if query.outcome and query.outcome not in outcomes:
        raise InputError(f"no outcome {query.outcome!a}; there are {', '.join(outcomes)}")
    run = open_run(path)
    if not has_records(run.file(VERDICTS)):
        raise InputError(f"{run.path} has no verdicts yet: run `trajsmith resume {run.path}`")
    reader: Any = RawReader(Verdict)
    pairs: Any = PlayedPairs(run, raw=True)
    verdicts: Iterator[Any] = read_whole_records(run.file(VERDICTS), reader)
    for (_, (task, trajectory)), verdict in zip(pairs, verdicts, strict=False):
        if query.may_match(trajectory.line, verdict.line):
            records = task.load(), trajectory.load(), verdict.load()
            if query.matches(*records):
                yield records


def _quote(text: str) -> bytes:
    return orjson.dumps(text)
