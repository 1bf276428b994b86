"""Results of several benchmarks and models as one table, and in BFCL's own files."""

import csv
import io
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import orjson
from pydantic import ValidationError

from trajsmith.evals.bench import PLAYS, RESULTS, BenchPlay, CategoryScore
from trajsmith.evals.suites import CallRecord
from trajsmith.records import FrozenModel, InputError, JsonObject, format_first_error, read_entries, write_whole_file

ALL = "all"
BFCL = "bfcl"
BFCL_PREFIX = "BFCL_v4"


class BenchResults(FrozenModel):
    """`results.json` of one folder."""

    suite: str
    version: str
    model: str
    user: str = ""
    judge: str = ""
    scores: tuple[CategoryScore, ...]

    @property
    def setting(self) -> str:
        """Return the suite with all that its scores depend on beside the model."""
        parts = [f"{name} {value}" for name, value in (("user", self.user), ("judge", self.judge)) if value]
        return ", ".join([f"{self.suite} {self.version}", *parts])


class LeaderboardCell(FrozenModel):
    """Score of one model in one column."""

    plays: int
    pass1: float
    low: float
    high: float
    """95 % interval."""
    pass_k: dict[int, float] = {}
    unscored: int
    tokens: float


class Leaderboard(FrozenModel):
    """Models against columns; a column is a category of a benchmark in one setting."""

    columns: tuple[str, ...]
    rows: dict[str, dict[str, LeaderboardCell]]
    """Model to column to score; models in the order of their mean over the columns that all have."""
    shared: tuple[str, ...]
    """Columns that every model has."""


def read_bench_results(folder: Path) -> BenchResults:
    """Read the results of a benchmark.

    Raises:
        InputError: The folder holds none.
    """
    file = folder / RESULTS
    try:
        return BenchResults.model_validate_json(file.read_bytes())
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}; name a folder of trajsmith bench") from error
    except ValidationError as error:
        raise InputError(f"{file} is no result of trajsmith bench: {format_first_error(error)}") from error


def build_leaderboard(results: Sequence[BenchResults]) -> Leaderboard:
    """Return the table of several results.

    Raises:
        InputError: Two results have scores of one model for one column.
    """
    rows: dict[str, dict[str, LeaderboardCell]] = defaultdict(dict)
    columns: dict[str, None] = {}
    for one in results:
        for score in one.scores:
            if score.category == ALL and len(one.scores) > 1:
                continue  # over whichever categories were played
            column = f"{one.setting}: {score.category}"
            if column in rows[one.model]:
                raise InputError(f"{one.model} has two results for {column}: name one of the folders")
            columns[column] = None
            values = score.model_dump(include={"pass1", "low", "high", "pass_k", "unscored", "tokens"})
            rows[one.model][column] = LeaderboardCell(plays=score.tasks, **values)
    shared = tuple(column for column in columns if all(column in cells for cells in rows.values()))

    def rank(model: str) -> tuple[float, str]:
        return -sum(rows[model][column].pass1 for column in shared), model

    return Leaderboard(
        columns=tuple(columns), rows={name: rows[name] for name in sorted(rows, key=rank)}, shared=shared
    )


def render_leaderboard(ranking: Leaderboard, suffix: str) -> str:
    """Return the table as `.md`, `.csv` or `.json`.

    Raises:
        InputError: There is no such form.
    """
    if suffix == ".json":
        return orjson.dumps(ranking.model_dump(mode="json"), option=orjson.OPT_INDENT_2).decode() + "\n"
    if suffix == ".csv":
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["model", "column", *LeaderboardCell.model_fields])
        for model, cells in ranking.rows.items():
            for column, cell in cells.items():
                powers = " ".join(f"{k}:{share}" for k, share in cell.pass_k.items())
                writer.writerow([model, column, *(cell.model_copy(update={"pass_k": powers}).__dict__.values())])
        return text.getvalue()
    if suffix != ".md":
        raise InputError(f"a table is written as .md, .csv or .json, not as {suffix or 'a file without an ending'!r}")
    escaped = [column.replace("|", "\\|") for column in ranking.columns]
    lines = ["| " + " | ".join(["model", *escaped]) + " |", "|---" * (len(escaped) + 1) + "|"]
    for model, cells in ranking.rows.items():
        texts = [format_cell(cells.get(column)) for column in ranking.columns]
        lines.append("| " + " | ".join([model.replace("|", "\\|"), *texts]) + " |")
    return "\n".join(lines) + "\n"


def format_cell(cell: LeaderboardCell | None) -> str:
    """Return a score as per cent, with its interval and number of plays."""
    if cell is None:
        return ""
    return f"{100 * cell.pass1:.1f} ({100 * cell.low:.1f} to {100 * cell.high:.1f}; {cell.plays})"


def export_bfcl(folder: Path, out: Path) -> list[Path]:
    """Write the plays of a BFCL folder as BFCL's own result files, and return them.

    The layout is `MODEL/GROUP/BFCL_v4_CATEGORY_result.json`, which `bfcl evaluate --partial-eval` reads for a model
    that calls functions natively. Of several plays of a task the first is written.

    Raises:
        InputError: The folder is of another benchmark, or a call has no form there.
    """
    results = read_bench_results(folder)
    if results.suite != BFCL:
        raise InputError(f"{folder} holds results of {results.suite}, not of {BFCL}")
    rows: dict[str, list[JsonObject]] = defaultdict(list)
    scored = {
        play.task: play
        for play in read_entries(folder / PLAYS, BenchPlay)
        if play.passed is not None and not play.trial
    }
    for play in scored.values():
        turns = [[[_write_call(play, call) for call in step] for step in turn] for turn in play.play.steps]
        live = play.category.startswith("multi_turn")
        result = turns if live else [call for turn in turns for step in turn for call in step]
        rows[play.category].append({"id": play.task, "result": result})
    files = []
    for category, lines in rows.items():
        group = next((name for name in ("multi_turn", "live") if category.startswith(name)), "non_live")
        file = out / results.model.replace("/", "_") / group / f"{BFCL_PREFIX}_{category}_result.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole_file(file, b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines))
        files.append(file)
    return files


def _write_call(play: BenchPlay, call: CallRecord) -> JsonObject:
    if any(name.isdigit() for name in call.arguments):
        raise InputError(
            f"{play.task}: {call.name} has arguments without names, which BFCL's result files have no form for"
        )
    return {call.name: orjson.dumps(call.arguments).decode()}
