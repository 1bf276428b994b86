"""Accepted plays of a run in the Hub's session trace format: in a folder of their own, or beside a dataset's rows."""

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from trajsmith.export import SPLITS, build_row
from trajsmith.export.atomic_folder import AtomicFolder
from trajsmith.export.columns import RowEncoder
from trajsmith.export.dataset import DATA
from trajsmith.export.hub import CARD, TRACES_OF_DATASET
from trajsmith.export.manifest import ENVELOPE, MANIFEST
from trajsmith.export.rows import ToolSchemaCache
from trajsmith.export.session_traces import (
    SCRIPTED,
    TRACE_COLUMNS,
    add_trace_config,
    build_trace_card,
    build_trace_row,
    write_session,
)
from trajsmith.export.shards import RowFiles
from trajsmith.pipeline.config import RunConfig
from trajsmith.pipeline.format_export import iter_selected, load_judged_config, load_pass_rates
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.stored_specs import load_stored_specs
from trajsmith.records import InputError, JsonObject, RecordDropped, RunError, content_hash, storage_boundary

FILES = (CARD, MANIFEST, ENVELOPE, *(f"{DATA}/{split}/traj_*.jsonl" for split in SPLITS))
"""Patterns of the files of a folder of sessions."""
WRITTEN = "written"
ROWS_PER_SHARD = 2000


def write_session_folder(run: RunDirectory, out: Path) -> Counter[str]:
    """Write a session for every accepted play of a run, and a card; an older export is replaced.

    Args:
        run: Run with verdicts.
        out: Folder, as `trajsmith push` and `hf upload` take it.

    Returns:
        How many sessions are "written", and how many plays the main dataset refuses, by reason.

    Raises:
        InputError: The run has no verdicts.
        RunError: No play was accepted, or `out` holds something else.
    """
    config, names = load_judged_config(run), list[str]()
    counts, splits = Counter[str](), Counter[str]()
    with storage_boundary(out), AtomicFolder(out, FILES) as folder:
        for split, row, model in _iter_rows(run, config, counts):
            write_session(folder.part / DATA / split, row, model)
            splits[split] += 1
            names.append(row["id"])
        counts[WRITTEN] = len(names)
        _refuse_nothing(run, counts)
        ordered = _order_splits(splits)
        card = build_trace_card(config.name, config.export.license, config.language, ordered, content_hash(names, 16))
        folder.attach(CARD, card)
    return counts


def write_dataset_traces(run: RunDirectory, folder: Path, limit: int) -> Counter[str]:
    """Write sessions of a run into `traces/` of its dataset, and a configuration into its card.

    Args:
        run: Run with verdicts.
        folder: Its dataset, with a card.
        limit: Most sessions; more accepted plays are thinned out evenly over the run.

    Returns:
        As `write_session_folder`.

    Raises:
        InputError: The dataset has no card of `trajsmith export`.
        RunError: No play was accepted.
    """
    card = folder / CARD
    if not card.is_file():
        raise InputError(f"{folder} has no card: write it with `trajsmith export {run.path}`")
    config, counts = load_judged_config(run), Counter[str]()
    part, target = folder / f".{TRACES_OF_DATASET}.part", folder / TRACES_OF_DATASET
    try:
        with storage_boundary(folder):
            shutil.rmtree(part, ignore_errors=True)
            splits, names = _write_traces(run, config, part, limit, counts)
            text = add_trace_config(card.read_text("utf-8"), splits, content_hash(names, 16))
            shutil.rmtree(target, ignore_errors=True)
            (part / TRACES_OF_DATASET).rename(target)
            card.write_text(text, "utf-8")
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return counts


def _write_traces(
    run: RunDirectory, config: RunConfig, part: Path, limit: int, counts: Counter[str]
) -> tuple[dict[str, int], list[str]]:
    """Write sessions and their rows into `traces/` of a folder; return their number by split, and their ids."""
    names = list[str]()
    total = sum(1 for _ in _iter_rows(run, config, Counter()))
    chosen = {number * total // limit for number in range(limit)} if total > limit else range(total)
    files = RowFiles(part / TRACES_OF_DATASET, ROWS_PER_SHARD, RowEncoder(TRACE_COLUMNS))
    for number, (split, row, model) in enumerate(_iter_rows(run, config, counts)):
        if number not in chosen:
            continue
        path = write_session(part / TRACES_OF_DATASET / split, row, model)
        try:
            files.write(build_trace_row(row, path, part), split)
        except RecordDropped as drop:
            counts[drop.reason] += 1
            path.unlink()
        else:
            names.append(row["id"])
    files.finish()
    counts[WRITTEN] = len(names)
    _refuse_nothing(run, counts)
    return _order_splits(files.rows), names


def _iter_rows(run: RunDirectory, config: RunConfig, counts: Counter[str]) -> Iterator[tuple[str, JsonObject, str]]:
    """Iterate over split, row and agent's model of the accepted plays; those that cannot be a row are counted."""
    run.refuse_links()
    specs, rates = load_stored_specs(run), load_pass_rates(run)
    shown: ToolSchemaCache = {}
    for task, trajectory, verdict in iter_selected(run):
        if not verdict.accepted:
            continue
        try:
            row = build_row(task, trajectory, verdict, specs[trajectory.environment], shown, rates.get(task.id))
        except RecordDropped as drop:
            counts[drop.reason] += 1
            continue
        yield config.export.split.of(task), row, trajectory.models.get("agent", SCRIPTED)


def _refuse_nothing(run: RunDirectory, counts: Counter[str]) -> None:
    if not counts[WRITTEN]:
        reasons = ", ".join(f"{reason} {number}" for reason, number in counts.most_common()) or "no play was accepted"
        raise RunError(f"{run.path}: no session can be written ({reasons})")


def _order_splits(counts: Counter[str] | dict[str, int]) -> dict[str, int]:
    """Return the splits that have sessions, train first."""
    return {split: counts[split] for split in SPLITS if counts.get(split)}
