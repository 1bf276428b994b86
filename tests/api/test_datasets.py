"""`filter_trajectories` and `export_dataset`, and the commands `filter` and `export --include`."""

import pytest

import trajsmith as ts
from trajsmith.api.datasets import OUTCOMES
from trajsmith.cli.app import app
from trajsmith.records import InputError, RunError

CONFIG = """
name: filtered
seed: 5
environments: [{library: retail, states: {small: 1}}]
sample: {count: 14, length: [3, 5]}
accept: {count: 6}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with trajectories of every kind: accepted, failed, beyond the number that was asked for."""
    folder = tmp_path_factory.mktemp("datasets")
    (folder / "run.yaml").write_text(CONFIG)
    made = ts.run(folder / "run.yaml", run=folder / "run")
    verdicts = list(made.verdicts)
    outcomes = {0: "partial", 1: "undecided", 2: "agent_error"}
    for number, outcome in outcomes.items():
        rewards = {} if outcome == "undecided" else dict.fromkeys(verdicts[number].rewards, 0.25)
        changes = {"outcome": outcome, "accepted": False, "rewards": rewards, "reasons": (f"made {outcome}",), "id": ""}
        verdicts[number] = verdicts[number].model_validate(verdicts[number].model_dump() | changes)
    made.directory.file("verdicts.jsonl").write_bytes(b"".join(verdict.to_line() for verdict in verdicts))
    unselected = {line.split('"')[3] for line in made.directory.file("selection.jsonl").read_text().splitlines()}
    assert unselected - {verdict.trajectory_id for verdict in verdicts[:3]}
    return made


def load(folder, tmp_path):
    from datasets import load_dataset

    return list(load_dataset(str(folder), split="train", cache_dir=str(tmp_path / "cache")))


def test_a_filter_passes_by_verdict_and_reward_and_counts_the_rest(run):
    good = ts.filter_trajectories(run, min={"composite": 0.8})
    kept = list(good)
    assert kept and all(one.verdict.outcome == "completed" for one in kept)
    assert all(one.verdict.rewards["composite"] >= 0.8 for one in kept)
    assert {"verdict partial", "verdict undecided", "verdict agent_error"} <= set(good.dropped)
    assert any(reason.startswith("not chosen: enough") for reason in good.dropped)
    assert len(kept) + good.dropped.total() == len(run.verdicts)


def test_failed_trajectories_pass_where_they_are_asked_for(run):
    failed = ts.filter_trajectories(run.path, verdict=("partial", "undecided", "agent_error"))
    assert {one.verdict.outcome for one in failed} <= {"partial", "undecided", "agent_error"}
    scored = ts.filter_trajectories(failed, min={"checks": 0.2}, verdict=OUTCOMES)
    assert "undecided" not in {one.verdict.outcome for one in scored}
    assert scored.dropped["no reward checks"] == 1
    too_high = ts.filter_trajectories(failed, min={"checks": 0.3}, verdict=("partial",))
    assert list(too_high) == [] and too_high.dropped["checks below 0.3"] == 1


@pytest.mark.parametrize(
    ("criteria", "text"),
    [
        pytest.param(
            {"min": {"compsite": 1}},
            r"no reward named 'compsite' \(did you mean .composite.\?\); there are: .*rubric",
            id="reward",
        ),
        pytest.param(
            {"verdict": ["done"]}, "no verdict 'done'; there are: completed, partial, agent_error", id="verdict"
        ),
    ],
)
def test_unknown_names_are_one_line_that_lists_what_there_is(run, criteria, text):
    with pytest.raises(InputError, match=text):
        ts.filter_trajectories(run, **criteria)


def test_filtered_trajectories_become_a_dataset(run, tmp_path):
    chosen = ts.filter_trajectories(run, min={"composite": 0.8})
    written = ts.export_dataset(run, "trl", tmp_path / "best", records=chosen)
    assert written.writers["trl"].splits == {"train": len(list(chosen))}
    assert {row["id"] for row in load(tmp_path / "best", tmp_path)} == {one.trajectory.id for one in chosen}


def test_rejected_rows_are_exported_with_scores_and_reasons(run, tmp_path):
    ts.export_dataset(run, "judged", tmp_path / "rejected", include="rejected")
    rows = load(tmp_path / "rejected", tmp_path)
    assert rows and not any(row["accepted"] for row in rows)
    reasons = [reason for row in rows for reason in row["reasons"]]
    assert "made partial" in reasons and any(reason.startswith("not chosen: enough") for reason in reasons)
    assert {row["verdict"]["rewards"].get("composite") for row in rows if row["reasons"] == ["made partial"]} == {0.25}
    ts.export_dataset(run, "judged", tmp_path / "all", include="all")
    accepted = [row["id"] for row in load(tmp_path / "all", tmp_path) if row["accepted"]]
    assert sorted(accepted) == sorted(row["id"] for row in run.rows())


def test_other_formats_do_not_take_rejected_rows(run, tmp_path):
    with pytest.raises(InputError, match="export rejected rows in the format judged"):
        ts.export_dataset(run, "trl", tmp_path / "x", include="rejected")
    with pytest.raises(RunError, match=r"no row to export \(no record was passed\)"):
        ts.export_dataset(run, "trl", tmp_path / "x", records=[])


def test_a_filter_that_nothing_passes_says_what_was_asked_for(run, tmp_path):
    none = ts.filter_trajectories(run, min={"composite": 1.5})
    with pytest.raises(RunError) as caught:
        ts.export_dataset(run, "trl", tmp_path / "x", records=none)
    passed = f"no trajectory passes composite >= 1.5 and verdict completed ({len(run.verdicts)} dropped)"
    assert str(caught.value) == f"format trl: no row to export ({passed})"


def test_the_commands(run, tmp_path, capsys):
    def call(*arguments) -> str:
        app([str(argument) for argument in arguments], standalone_mode=False)
        return capsys.readouterr().out

    filtered = call("filter", run.path, "--min", "composite=0.8", "--verdict", "completed", "--out", tmp_path / "best")
    assert f"rows in {tmp_path}/best" in filtered and "dropped: verdict partial: 1" in filtered
    assert f"rows in {tmp_path}/no" in call("export", run.path, "--include", "rejected", "--out", tmp_path / "no")
    with pytest.raises(InputError, match="--include some: it is one of accepted, rejected, all"):
        call("export", run.path, "--include", "some")


def test_the_help_of_filter_says_that_several_plays_of_a_task_pass(capsys):
    app(["filter", "--help"], standalone_mode=False)
    assert "Every play that passes is written, several of one task, too" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("options", "text"),
    [
        pytest.param(("--min", "composite"), "--min composite: write it as reward=number", id="no-number"),
        pytest.param(("--min", "speed=1"), "no reward named 'speed'; there are: .*composite", id="no-reward"),
        pytest.param(("--verdict", "good"), "no verdict 'good'; there are: completed, partial", id="no-verdict"),
    ],
)
def test_wrong_use_of_filter_is_one_line(run, tmp_path, options, text):
    with pytest.raises(InputError, match=text):
        app(["filter", str(run.path), *options, "--out", str(tmp_path / "wrong")], standalone_mode=False)
    assert not (tmp_path / "wrong").exists()
