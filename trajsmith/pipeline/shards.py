"""Merging the shards of a run into one run.

Shard i of n does the i-th part of the chains of the whole run, with their numbers and seeds there. The record files of
all shards in their order are therefore those of a run without shards, byte for byte; what looks at many rows at a time
(quotas, near-duplicates, the dataset) is left to the merged run.
"""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from trajsmith.models.registry import USAGE
from trajsmith.pipeline.config import RunConfig, load_config
from trajsmith.pipeline.journal import build_ledger_path, read_ledger
from trajsmith.pipeline.progress import RunProgress
from trajsmith.pipeline.run_context import GRAPH
from trajsmith.pipeline.run_directory import RunDirectory, list_changes
from trajsmith.pipeline.shard_range import ShardRange
from trajsmith.pipeline.stage_times import read_stage_times, sum_stage_times, write_stage_times
from trajsmith.pipeline.stages import find_record_files
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.records import AppendFile, InputError, count_records, open_records, storage_boundary

PART = ".merging"
"""End of the name of a merged run that is not complete yet."""
OF_A_SHARD = ("run", "shard", "engine", "budget")
"""Settings in which shards of one run may differ."""
DONE = "summary.json"
"""File that a shard writes when all its stages are done."""
BLOCK = 1 << 24
"""Bytes of ledger rows that are copied at a time."""


def merge_runs(paths: Sequence[Path], out: Path, progress: RunProgress) -> RunDirectory:
    """Write the records of all shards of a run as one run, which `resume` then exports.

    A run that is killed while it merges leaves a directory with the end `.merging`, which the next attempt replaces.

    Args:
        paths: Run directories of all shards, in any order.
        out: Directory of the merged run.
        progress: Shows the record files.

    Raises:
        InputError: A shard is missing, not finished or of another run, or `out` holds something.
        RunError: The disk is full.
    """
    shards = _order_shards([RunDirectory.open(path) for path in paths])
    config = load_config(shards[0].config_path).model_copy(update={"run": out, "shard": None})
    text = dump_settings(config)
    RunDirectory(out).check_new(text)
    part = out.with_name(out.name + PART)
    if part.is_dir():
        shutil.rmtree(part)
    merged = RunDirectory.create(part, text)
    files = find_record_files(config)
    with merged.lock(), storage_boundary(part):
        _copy_shared_files(shards, merged)
        with progress.stage("merge records", len(files), 0, 0) as bar:
            for stage, file in files.items():
                _merge_stage(shards, merged, stage, file)
                bar.advance()
        _merge_usage(shards, merged)
    with storage_boundary(out):
        if out.is_dir():  # empty, or the start of a run: check_new has looked
            shutil.rmtree(out)
        part.rename(out)
    return RunDirectory.open(out)


def _order_shards(runs: Sequence[RunDirectory]) -> list[RunDirectory]:
    """Return the shards in their order, after a look at whether they are all of one run, and finished.

    Raises:
        InputError: They are not.
    """
    numbered: dict[ShardRange, RunDirectory] = {}
    first: RunConfig | None = None
    for run in runs:
        config = load_config(run.config_path)
        if config.shard is None:
            raise InputError(f"{run.path} is no shard: make shards with trajsmith run CONFIG --shard 1/8")
        shard = ShardRange.parse(config.shard)
        if shard in numbered:
            raise InputError(f"{run.path} and {numbered[shard].path} are both shard {shard}")
        numbered[shard] = run
        first = first or config
        old, new = (
            {key: value for key, value in one.model_dump(mode="json").items() if key not in OF_A_SHARD}
            for one in (first, config)
        )
        changes = list_changes(old, new)
        if changes:
            raise InputError(f"{run.path} is of another run than {runs[0].path}: {changes[0][0]} differs")
        _check_finished(run, config)
    counts = {shard.count for shard in numbered}
    if len(counts) != 1:
        raise InputError(f"these shards are of runs cut into {' and '.join(map(str, sorted(counts)))} parts")
    count = min(counts)
    missing = [f"{number}/{count}" for number in range(1, count + 1) if ShardRange(number, count) not in numbered]
    if missing:
        raise InputError(f"shards are missing: {', '.join(missing[:5])}{' ...' if len(missing) > 5 else ''}")
    return [numbered[shard] for shard in sorted(numbered)]


def _check_finished(run: RunDirectory, config: RunConfig) -> None:
    """Find out whether each stage has taken all that the stage before it made.

    Raises:
        InputError: One has not.
    """
    files = find_record_files(config)
    taken = {stage: count_records(build_ledger_path(run, stage)) for stage in files}
    counts = {stage: count_records(run.file(file)) for stage, file in files.items()}
    tasks = counts["vary"] if "vary" in files else counts["write"]
    open_stage = next(
        (
            stage
            for stage, inputs in {"ground": counts["sample"], "write": counts["ground"], "play": tasks}.items()
            if taken[stage] != inputs
        ),
        "" if run.file(DONE).is_file() else "verify",
    )
    if open_stage:
        raise InputError(f"{run.path}: stage {open_stage} is not done: resume with `trajsmith resume {run.path}`")


def _copy_shared_files(shards: Sequence[RunDirectory], merged: RunDirectory) -> None:
    """Copy states, specs and the graph.

    Raises:
        InputError: Two shards have different environments, or different graphs.
    """
    for shard in shards:
        for source in [*shard.path.glob("environments/*"), shard.file(GRAPH)]:
            target = merged.file(str(source.relative_to(shard.path)))
            if target.is_file():
                if target.read_bytes() != source.read_bytes():
                    raise InputError(f"{source} differs from that of {shards[0].path}: the shards are of other code")
                continue
            shutil.copyfile(source, target)
        for source in shard.path.glob("states/*"):
            target = merged.file(f"states/{source.name}")
            if not target.is_file():
                shutil.copyfile(source, target)


def _merge_stage(shards: Sequence[RunDirectory], merged: RunDirectory, stage: str, file: str) -> None:
    """Append the records and the ledgers of all shards; ends in the ledgers count from the start of the whole file."""
    with AppendFile(merged.file(file)) as records, AppendFile(build_ledger_path(merged, stage)) as ledger:
        for shard in shards:
            before = records.end
            with open_records(shard.file(file)) as source:
                for block in source.iter_blocks():
                    records.append(block)
            for rows in _shifted_rows(shard, stage, before):
                ledger.append(rows)
        records.close(sync=True)
        ledger.close(sync=True)
    write_stage_times(merged, stage, sum_stage_times([read_stage_times(shard, stage) for shard in shards]))


def _shifted_rows(shard: RunDirectory, stage: str, offset: int) -> Iterator[bytes]:
    """Yield blocks of ledger rows, each row with its end moved by an offset."""
    block: list[bytes] = []
    size = 0
    for row in read_ledger(build_ledger_path(shard, stage)):
        line = row.model_copy(update={"end": row.end + offset}).to_line()
        block.append(line)
        size += len(line)
        if size >= BLOCK:
            yield b"".join(block)
            block, size = [], 0
    if block:
        yield b"".join(block)


def _merge_usage(shards: Sequence[RunDirectory], merged: RunDirectory) -> None:
    """Append what models cost; answers in `cache/` stay with the shards."""
    rows = [shard.file(USAGE).read_bytes() for shard in shards if shard.file(USAGE).is_file()]
    if rows:
        with AppendFile(merged.file(USAGE)) as usage:
            usage.append(b"".join(rows))
            usage.close(sync=True)
