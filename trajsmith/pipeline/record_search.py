"""Finds records of a run by their ids, whatever their kind, without reading the files."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from trajsmith.pipeline.hub_runs import open_run
from trajsmith.pipeline.repairs import FAILED, FAILED_VERDICTS
from trajsmith.pipeline.run_directory import CHAINS, GROUNDED, TASKS, TRAJECTORIES, VARIED, VERDICTS
from trajsmith.pipeline.trace_import import OUTSIDE
from trajsmith.records import (
    Chain,
    GroundedChain,
    InputError,
    Record,
    RecordLookup,
    Task,
    TraceDialogue,
    Trajectory,
    Verdict,
    has_records,
)

KINDS: dict[type[Record], tuple[str, ...]] = {
    Chain: (CHAINS,),
    GroundedChain: (GROUNDED,),
    Task: (VARIED, TASKS),
    Trajectory: (TRAJECTORIES, FAILED),
    Verdict: (VERDICTS, FAILED_VERDICTS),
    TraceDialogue: (OUTSIDE,),
}
"""Kinds of records to the files in which they may be."""


def find_records(path: Path, names: Sequence[str]) -> Iterator[Record]:
    """Iterate over the records of a run with these ids, in the order of the ids; the run may be one of the Hub.

    Raises:
        InputError: There is none of an id, or it was changed by hand.
    """
    run = open_run(path)
    lookups: dict[str, RecordLookup] = {}
    with ExitStack() as stack:
        for name in names:
            kind = next((kind for kind in KINDS if name.startswith(f"{kind.PREFIX}_")), None)
            if kind is None:
                prefixes = ", ".join(f"{kind.PREFIX}_" for kind in KINDS)
                raise InputError(f"{name!a} is no id of a record of a run: those begin with {prefixes}")
            for file in KINDS[kind]:
                if file not in lookups and has_records(run.file(file)):
                    lookups[file] = stack.enter_context(run.open_lookup(file))
            places = [lookups[file] for file in KINDS[kind] if file in lookups]
            record = next((one for one in (place.find(name, kind) for place in places) if one is not None), None)
            if record is None:
                raise InputError(f"no record {name} in {run.path}")
            yield record
