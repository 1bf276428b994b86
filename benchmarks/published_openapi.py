"""Loads OpenAPI documents that others published and plays them: what is kept, what is left out and why, calls tried.

    .venv/bin/python benchmarks/published_openapi.py SPEC... [--calls 300] [--all]

Every kept operation is called with arguments that fit the state (made from its schema, from records that are there),
on one state of every size. `lost` counts references that lead nowhere afterwards, `invalid` answers that the document
does not allow: both must be 0. With --all every operation is printed, and every note.
"""

import argparse
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from trajsmith.environments.adapters.openapi import OpenApiSettings, build_payload
from trajsmith.environments.adapters.openapi.argument_sampling import sample_arguments
from trajsmith.environments.adapters.openapi.document_references import UnsupportedFeature
from trajsmith.environments.adapters.openapi.program import OpenApiProgram, OpenApiSession, load
from trajsmith.environments.adapters.openapi.store import ResourceStore, find_dangling
from trajsmith.environments.programs import apply_changes
from trajsmith.records import EnvironmentFault, InputError, JsonObject, TrajsmithError, canonical_json


@dataclass
class DocumentRow:
    """Result of one document."""

    name: str
    program: OpenApiProgram | None = None
    seconds: float = 0.0
    calls: Counter[str] = field(default_factory=Counter)
    answered: set[str] = field(default_factory=set)
    lost: int = 0
    microseconds: float = 0.0
    reason: str = ""


def examine(path: Path, calls: int) -> DocumentRow:
    row = DocumentRow(path.name)
    started = time.perf_counter()
    try:
        row.program = load(build_payload(OpenApiSettings(spec=path)))
        states = row.program.states(0)
    except TrajsmithError as error:
        row.reason = str(error)
        return row
    row.seconds = time.perf_counter() - started
    spent = sum(_play(row, row.program, state, calls // len(states)) for state in states)
    row.microseconds = spent / max(1, row.calls.total()) * 1e6
    return row


def _play(row: DocumentRow, program: OpenApiProgram, state: JsonObject, calls: int) -> float:
    """Call operations in random order on one state; the seconds that the calls took."""
    play, spent = program.start(canonical_json(state)), 0.0
    for number in range(calls):
        tool = random.Random(number).choice(sorted(program.built.derived))
        try:
            store = ResourceStore(program.built.model.tables, state)
            arguments = sample_arguments(program.built.derived[tool], program.built.model, store, random.Random(number))
        except (UnsupportedFeature, IndexError):
            row.calls["nothing to call it with"] += 1
            continue
        started = time.perf_counter()
        row.calls[_call(row, play, tool, arguments)] += 1
        spent += time.perf_counter() - started
        state = apply_changes(canonical_json(state), play.changes())
    row.lost += len(list(find_dangling(program.built.model.tables.values(), state)))
    return spent


def _call(row: DocumentRow, play: OpenApiSession, tool: str, arguments: JsonObject) -> str:
    try:
        result = play.call(tool, arguments)
    except EnvironmentFault as fault:
        row.reason = row.reason or str(fault)
        return "invalid" if fault.kind == "output_schema" else fault.kind
    if result.ok:
        row.answered.add(tool)
    return result.error or "ok"


def show(rows: list[DocumentRow], console: Console, everything: bool) -> None:
    table = Table(title=f"OpenAPI, {len(rows)} documents")
    heads = (
        "document",
        "kept",
        "left out",
        "tables",
        "load s",
        "answered",
        "ok",
        "refused",
        "invalid",
        "lost",
        "us/call",
    )
    for head in (*heads, "reason"):
        table.add_column(head, justify="left" if head in ("document", "reason") else "right")
    for row in rows:
        table.add_row(row.name, *_cells(row), row.reason[:90])
    console.print(table)
    for row in rows:
        _show_operations(row, console, everything)


def _cells(row: DocumentRow) -> list[str]:
    if row.program is None:
        return ["-"] * 10
    built, calls = row.program.built, row.calls
    counts = [len(built.derived), len(built.left_out), len(built.model.tables)]
    refused = calls["refused"] + calls["invalid_arguments"]
    played = [len(row.answered), calls["ok"], refused, calls["invalid"], row.lost, round(row.microseconds)]
    return [*map(str, counts), f"{row.seconds:.1f}", *map(str, played)]


def _show_operations(row: DocumentRow, console: Console, everything: bool) -> None:
    if row.program is None:
        return
    console.print(f"\n[bold]{row.name}[/bold]")
    built = row.program.built
    kinds = Counter(operation.kind for operation in built.derived.values())
    console.print(f"  kept: {', '.join(f'{count} {kind}' for kind, count in kinds.most_common())}")
    if everything:
        for operation in built.derived.values():
            console.print(f"  + {operation.kind:7} {operation.operation.label}", markup=False)
            for note in operation.notes:
                console.print(f"      {note}", markup=False)
    for label, reason in built.left_out.items():
        console.print(f"  - {label}: {reason[:160]}", markup=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", type=Path, nargs="+", metavar="SPEC")
    parser.add_argument("--calls", type=int, default=300, help="calls per document")
    parser.add_argument("--all", action="store_true", help="print every operation and every note")
    chosen = parser.parse_args()
    missing = [path for path in chosen.paths if not path.is_file()]
    if missing:
        raise InputError(f"no such file: {missing[0]}")
    show([examine(path, chosen.calls) for path in chosen.paths], Console(width=200), chosen.all)


if __name__ == "__main__":
    main()
