"""Exports in workers: the same files whatever their number, killed or not, and only where they pay."""

import asyncio
import os
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from trajsmith.api.runs import load_run
from trajsmith.api.runs import run as run_settings
from trajsmith.export import FORMATS, FormatSettings, FormatTargets
from trajsmith.pipeline import export_engine, export_plan, runner
from trajsmith.pipeline.config import EngineSettings, load_config
from trajsmith.pipeline.export_chunks import ExportOrder
from trajsmith.pipeline.export_engine import count_export_workers
from trajsmith.pipeline.progress import NullProgress
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.runner import export_again
from trajsmith.pipeline.worker_pool import WorkerPool
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.records import InputError, RunError

FORMATS_BESIDE = ["per_turn", "openai", "dpo", "grpo"]
SETTINGS = {
    "name": "exports",
    "seed": 4,
    "environments": [{"library": "bank", "states": {"small": 1}}, {"library": "mobile_care", "states": {"small": 1}}],
    "sample": {"count": 16, "length": [3, 5]},
    "vary": {"rates": {"refused_call": 0.5}},
    "play": {"candidates": 2, "faulty": 1},
    "engine": {"workers": 1},
    "export": {"rows_per_shard": 3, "split": {"validation": 0.3}, "formats": FORMATS_BESIDE},
}
OUTPUTS = ("dataset", "exports", "gallery", "report.html", "summary.json")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 16 chains, exported in one process with chunks of one shard."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export_plan, "ROWS_PER_CHUNK", 1)
        path = tmp_path_factory.mktemp("exports") / "run"
        run_settings(SETTINGS, run=path)
    return path


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_plan, "ROWS_PER_CHUNK", 1)


def read_outputs(path: Path) -> dict[str, str | bytes]:
    """Files of all exports, without times and without the setting that differs."""
    files: dict[str, str | bytes] = {}
    for file in sorted(path.rglob("*")):
        name = str(file.relative_to(path))
        if file.is_file() and name.startswith(OUTPUTS) and name != "dataset/config.yaml":
            data = file.read_bytes()
            text = name in ("report.html", "summary.json")
            files[name] = re.sub(r'econds": [\d.]+|[\d.]+ s of work', "", data.decode()) if text else data
    return files


def export_copy(made: Path, target: Path, *settings: str) -> dict[str, str | bytes]:
    shutil.copytree(made, target, ignore=shutil.ignore_patterns(*OUTPUTS))
    config = target / "config.yaml"
    config.write_text(dump_settings(load_config(config, [f"run={target}", *settings])))
    asyncio.run(export_again(RunDirectory.open(target), NullProgress()))
    return read_outputs(target)


@pytest.mark.parametrize("workers", [2, 3])
def test_any_number_of_workers_gives_the_same_files(made: Path, workers: int, tmp_path: Path) -> None:
    expected = read_outputs(made)
    shards = [name for name in expected if name.startswith("dataset/data/train-")]
    assert len(shards) > 3, "several chunks"
    assert {name.split("/")[1] for name in expected if name.startswith("exports/")} == set(FORMATS_BESIDE)
    assert export_copy(made, tmp_path / "run", f"engine.workers={workers}") == expected


def test_parts_count_what_one_pass_counts(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_parts = export_copy(made, tmp_path / "parts", "export.split.validation=0")
    monkeypatch.setattr(export_plan, "ROWS_PER_CHUNK", 10_000)
    at_once = export_copy(made, tmp_path / "once", "export.split.validation=0")
    cut = re.compile(r"exports/(dpo|grpo|per_turn)/data/.*")
    parts, once = (
        {name: data for name, data in files.items() if not cut.fullmatch(name)} for files in (in_parts, at_once)
    )
    assert parts == once, "only shards of formats with other rows than trajectories are cut elsewhere"


def test_another_split_or_pass_rate_is_another_hash_of_rows(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`datasets` gives what it has read under the hash, although the files are others."""

    def read_hash(name: str, *settings: str) -> str:
        card = export_copy(made, tmp_path / name, *settings)["dataset/README.md"]
        (text,) = re.findall(rb"description: rows (\w+)", card if isinstance(card, bytes) else card.encode())
        return str(text, "ascii")

    again, more = read_hash("again"), read_hash("more", "export.split.validation=0.5")
    task = next(verdict.task_id for verdict in load_run(made).verdicts if verdict.accepted)
    monkeypatch.setattr(runner, "load_pass_rates", lambda _: {task: {"solver": 0.5}})
    other = read_hash("other")
    assert len({again, more, other}) == 3
    assert f"description: rows {again}" in (made / "dataset" / "README.md").read_text()


def test_files_have_the_rows_that_were_asked_for(made: Path) -> None:
    from pyarrow.parquet import read_metadata

    files = sorted((made / "dataset" / "data").glob("train-*.parquet"))
    rows = [read_metadata(file).num_rows for file in files]
    assert rows[:-1] == [3] * (len(files) - 1)
    assert [file.name for file in files] == [f"train-{n:05d}-of-{len(files):05d}.parquet" for n in range(len(files))]


def test_a_killed_worker_is_replaced_and_the_files_are_the_same(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[int] = []
    attempt = WorkerPool.attempt

    async def kill_now_and_then(pool: WorkerPool, stage: str, item: Any) -> Any:
        asked = asyncio.create_task(attempt(pool, stage, item))
        if item.chunk.number in (1, 4):
            await asyncio.sleep(0.5)
            killed.append(next(pid for pid in pool.processes if pid not in killed))
            os.kill(killed[-1], signal.SIGKILL)
        return await asked

    monkeypatch.setattr(export_engine.WorkerPool, "attempt", kill_now_and_then)
    assert export_copy(made, tmp_path / "run", "engine.workers=2") == read_outputs(made)
    assert len(set(killed)) == 2


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("file", "old", "new", "reason"),
    [
        pytest.param("trajectories", b'"candidate":', b'"kandidate":', "candidate", id="unknown-key"),
        pytest.param("varied", b'"mode":"conversation"', b'"mode":"direct"', "changed by hand", id="task"),
        pytest.param("verdicts", b'"trajectory_match":', b'"trajectory_match":0.', "", id="verdict"),
    ],
)
def test_a_bad_line_is_named(
    made: Path, tmp_path: Path, workers: int, file: str, old: bytes, new: bytes, reason: str
) -> None:
    target = tmp_path / "run"
    shutil.copytree(made, target)
    path = target / f"{file}.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    place = max(number for number, line in enumerate(lines) if old in line)
    lines[place] = lines[place].replace(old, new, 1)
    path.write_bytes(b"".join(lines))
    config = target / "config.yaml"
    config.write_text(dump_settings(load_config(config, [f"run={target}", f"engine.workers={workers}"])))
    with pytest.raises(InputError, match=rf"{file}\.jsonl:{place + 1}: .*{reason}"):
        asyncio.run(export_again(RunDirectory.open(target), NullProgress()))
    assert (target / "dataset" / "README.md").read_bytes() == (made / "dataset" / "README.md").read_bytes()
    assert not list(target.glob(".dataset.part")), "nothing is left behind"


def test_records_that_do_not_belong_together_are_refused(made: Path, tmp_path: Path) -> None:
    target = tmp_path / "run"
    shutil.copytree(made, target)
    path = target / "trajectories.jsonl"
    first, second, *others = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([second, first, *others]))
    with pytest.raises(RunError, match=r"verdict_\w+ belongs to traj_\w+, not to traj_"):
        asyncio.run(export_again(RunDirectory.open(target), NullProgress()))


def test_small_exports_start_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_engine, "count_cores", lambda: 8)
    order = ExportOrder(FormatTargets({"trl": Path("data")}, FormatSettings()))
    auto = EngineSettings()
    assert [count_export_workers(auto, order, judged) for judged in (0, 9_999, 10_000, 10**6)] == [1, 1, 2, 8]
    assert count_export_workers(EngineSettings(workers=3), order, 10) == 3
    assert count_export_workers(EngineSettings(kind="ray", workers=64), order, 10**6) == 8, "all on this machine"


def test_a_format_of_this_program_stays_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_engine, "list_program_plugins", lambda: [_Plugin("own")])
    own = ExportOrder(FormatTargets({"trl": Path("a"), "own": Path("b")}, FormatSettings()))
    assert count_export_workers(EngineSettings(workers=4), own, 10**6) == 1
    assert "own" not in FORMATS.names()


class _Plugin:
    def __init__(self, name: str) -> None:
        self.name = name


def test_the_worker_loads_no_stage() -> None:
    """What is not needed costs each worker a second of CPU and 100 MiB."""
    import subprocess
    import sys

    code = (
        "import sys, trajsmith.pipeline.export_worker\n"
        "print([name for name in ('trajsmith.pipeline.stages', 'trajsmith.toolgraph', 'trajsmith.usersim', 'datasets', "
        "'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
