"""`trajsmith audit` of our own exports by the clients of verifiers and OpenEnv: gold passes, all else fails."""

import os
import subprocess

import orjson
import pytest
from other_side import ROOT, find_python, read_version

pytestmark = pytest.mark.servers


def audit(name, folder, options, *paths):
    target = folder / "audit.json"
    command = [find_python(name), "-m", "trajsmith", "audit", *map(str, options), "--json", str(target)]
    env = os.environ | {"PYTHONPATH": ":".join([*map(str, paths), str(ROOT / "src")]), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=folder, timeout=850, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    (counts,) = orjson.loads(target.read_bytes())
    return counts


def check(counts, tasks):
    assert counts["tasks"] == counts["played"] == counts["gold_passes"] == counts["empty_fails"] == tasks
    assert counts["reasons"] == {} and sum(counts["mutants"].values()) > 0
    return sum(counts["caught"].values()), sum(counts["mutants"].values())


def test_mutants_fail_on_the_server(run, openenv_url, tmp_path, checked):
    counts = audit("openenv", tmp_path, ["--openenv", openenv_url, "--gold", run.path, "--limit", 4, "--mutants", 3])
    checked("openenv", read_version("openenv", "openenv"), "audit: mutants fail", *check(counts, 4))


@pytest.mark.timeout(900)
def test_mutants_fail_in_the_package(run, verifiers_site, tmp_path, checked):
    options = ["--verifiers", "trajsmith-run", "--gold", run.path, "--limit", 1, "--mutants", 2]
    counts = audit("verifiers", tmp_path, options, verifiers_site)
    checked("verifiers", read_version("verifiers", "verifiers"), "audit: mutants fail", *check(counts, 1))


@pytest.mark.timeout(600)
def test_a_taskset_with_reference_answers_needs_no_gold_play(tmp_path, checked):
    """Its reward takes the answer in tags only, and any answer that contains the right one."""
    package = tmp_path / "sums"
    package.mkdir()
    (package / "__init__.py").write_text(TASKSET)
    counts = audit("verifiers", tmp_path, ["--verifiers", "sums", "--mutants", 2], tmp_path)
    assert (counts["tasks"], counts["gold_passes"], counts["empty_fails"]) == (3, 2, 3)
    assert counts["mutants"] == counts["caught"] and counts["mutants"]["text left out"] >= 2
    assert counts["reasons"] == {"gold fails: reward 0": 1}
    checked("verifiers", read_version("verifiers", "verifiers"), "audit: reference answers", 2, 2)


TASKSET = """
import verifiers.v1 as vf


class SumData(vf.TaskData):
    answer: str


class SumTask(vf.Task[SumData]):
    @vf.reward
    async def right(self, trace: vf.Trace) -> float:
        return float(f"<answer>{self.data.answer}</answer>" in (trace.last_reply or "") and self.data.answer != "9")


class Sums(vf.Taskset[SumTask, vf.TasksetConfig]):
    def load(self):
        for number in (2, 3, 9):
            yield SumTask(SumData(name=f"sum {number}", prompt="Add.", answer=str(number)), self.config.task)


__all__ = ["Sums"]
"""
