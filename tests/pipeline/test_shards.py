"""Shards: merged, they are the run without shards, byte for byte; quotas and duplicates look at all of them."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from trajsmith.api.runs import run
from trajsmith.pipeline.shard_range import ShardRange
from trajsmith.records import InputError

CONFIG = """
name: sharded
seed: 5
environments:
  - {library: bank, states: {small: 1}}
  - {library: mobile_care, states: {small: 1}}
sample: {count: 20, length: [3, 5]}
vary: {rates: {refused_call: 0.5}}
engine: {workers: 1}
"""


def content(path: Path) -> dict[str, bytes]:
    """Records, ledgers, states, specs and rows."""
    files = [*path.glob("*.jsonl"), *path.glob("ledger/*.jsonl"), *path.glob("states/*"), *path.glob("environments/*")]
    files += [path / "graph.json", *path.glob("dataset/data/*")]
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "sharded.yaml"
    path.write_text(CONFIG + f"run: {tmp_path / 'run'}\n")
    return path


def test_merged_shards_are_the_whole_run(config: Path, tmp_path: Path, trajsmith: Any) -> None:
    run(config)
    for number in (3, 1, 2):
        done = trajsmith("run", config, "--shard", f"{number}/3")
        assert done.code == 0, done.err
    assert not (tmp_path / "run-1-of-3" / "dataset").exists(), "a shard chooses no rows"
    assert "merge" in done.out
    shards = [tmp_path / f"run-{number}-of-3" for number in (2, 3, 1)]
    merged = trajsmith("merge", *shards, "--out", tmp_path / "merged")
    assert merged.code == 0, merged.err
    assert content(tmp_path / "merged") == content(tmp_path / "run")
    assert not list(tmp_path.glob("*.merging"))


def test_quotas_count_the_rows_of_all_shards(config: Path, tmp_path: Path, trajsmith: Any) -> None:
    chosen = ["--set", "accept.count=13", "--set", "accept.by={environment: even}"]
    for number in (1, 2):
        done = trajsmith("run", config, "--shard", f"{number}/2", *chosen)
        assert done.code == 0, done.err
    shards = [tmp_path / f"run-{number}-of-2" for number in (1, 2)]
    merged = trajsmith("merge", *shards, "--out", tmp_path / "merged")
    assert merged.code == 0, merged.err
    assert run_rows(tmp_path / "merged") == 13


def run_rows(path: Path) -> int:
    rows: int = orjson.loads((path / "summary.json").read_bytes())["funnel"]["accepted"]
    return rows


def test_a_shard_that_was_stopped_goes_on_with_the_same_command(
    config: Path, tmp_path: Path, trajsmith: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trajsmith.pipeline import runner

    run_stages = runner._run_stages

    async def stop_before_play(run: Any, context: Any, names: Any, progress: Any, rounds: Any = ()) -> None:
        await run_stages(run, context, names[:3], progress, rounds)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(runner, "_run_stages", stop_before_play)
        stopped = trajsmith("run", config, "--shard", "1/2")
    assert stopped.code == 1 and "the same command goes on" in stopped.err
    shard = tmp_path / "run-1-of-2"
    tasks = (shard / "tasks.jsonl").read_bytes()
    refused = trajsmith("merge", shard, "--out", tmp_path / "merged")
    assert refused.code == 2 and "stage verify is not done" in refused.err
    assert trajsmith("run", config, "--shard", "1/2").code == 0
    assert (shard / "tasks.jsonl").read_bytes() == tasks
    assert (shard / "verdicts.jsonl").stat().st_size


def test_what_is_no_whole_run_is_not_merged(config: Path, tmp_path: Path, trajsmith: Any) -> None:
    few = ["--set", "sample.count=4"]
    for number in (1, 2):
        assert trajsmith("run", config, "--shard", f"{number}/2", *few).code == 0
    one, two = (tmp_path / f"run-{number}-of-2" for number in (1, 2))
    out = ["--out", tmp_path / "merged"]
    assert "shards are missing: 2/2" in trajsmith("merge", one, *out).err
    assert "are both shard 1/2" in trajsmith("merge", one, one, *out).err
    other = tmp_path / "other"
    assert trajsmith("run", config, "--shard", "2/2", "--run", other, *few, "--set", "seed=6").code == 0
    assert "is of another run" in trajsmith("merge", one, other, *out).err
    changed = trajsmith("run", config, "--shard", "2/2", *few, "--set", "seed=6")
    assert changed.code == 2 and "another configuration" in changed.err
    assert not (tmp_path / "merged").exists()
    (two / "graph.json").write_text("{}")
    assert "the shards are of other code" in trajsmith("merge", one, two, *out).err


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "a/b", "-1/2", "1/0"])
def test_a_wrong_shard_is_refused(text: str, config: Path, trajsmith: Any) -> None:
    with pytest.raises(InputError, match="number/count"):
        ShardRange.parse(text)
    assert trajsmith("run", config, f"--shard={text}").code == 2


@pytest.mark.parametrize(("total", "count"), [(10, 3), (2, 5), (0, 2), (1000, 64)])
def test_shards_cover_everything_once(total: int, count: int) -> None:
    parts = [ShardRange(number, count).slice(total) for number in range(1, count + 1)]
    assert [index for start, stop in parts for index in range(start, stop)] == list(range(total))
    assert max(stop - start for start, stop in parts) - min(stop - start for start, stop in parts) <= 1


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("sample.without_tools=[bank.fly]", "sample.without_tools: no tool 'bank.fly'"),
        ("plan={targets: [{dimension: tool, name: bank.fly, share: 1}]}", "no environment of this run has 'bank.fly'"),
    ],
    ids=["without_tools", "plan"],
)
def test_a_shard_looks_at_the_names_of_tools_first(config: Path, trajsmith: Any, setting: str, reason: str) -> None:
    done = trajsmith("run", config, "--shard", "1/3", "--set", setting)
    assert done.code == 2 and reason in done.err
