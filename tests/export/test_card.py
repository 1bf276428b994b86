from pathlib import Path

import pytest
import yaml
from samples import ENVIRONMENTS, make_items, make_spec, make_summary

from trajsmith.export import Distribution, Statistics, build_card, build_funnel_steps, card
from trajsmith.export.card import COLUMN_MEANING, find_size_category
from trajsmith.export.dataset import COLUMNS
from trajsmith.pipeline.run_counts import RunCounts
from trajsmith.records import SEARCH_TOOLS, StageSummary

SPECS = [make_spec(name) for name in ENVIRONMENTS]


def gathered(count: int = 20) -> Statistics:
    statistics = Statistics()
    for item in make_items(count):
        statistics.add(*item)
    return statistics


def test_front_matter_is_yaml():
    card = build_card(make_summary(name='a: "b" #1'), SPECS, gathered(), license="cc-by-4.0")
    _, front, body = card.split("---\n", 2)
    fields = yaml.safe_load(front)
    assert (fields["license"], fields["pretty_name"], fields["size_categories"]) == ("cc-by-4.0", 'a: "b" #1', ["n<1K"])
    assert fields["configs"][0]["data_files"] == [{"split": "train", "path": "data/train-*"}]
    assert "## Limits" in body


def test_every_drop_reason_stands_in_the_funnel():
    card = build_card(make_summary(), SPECS, gathered())
    for reason in ("no_arguments_found (31)", "query_names_a_tool (8)", "state_mismatch (92)", "replay_differs (2)"):
        assert reason in card


def test_never_called_tools_are_named():
    coverage = {"shop": {"ping": 3, "find_order": 0}}
    line = next(line for line in build_card(make_summary(coverage=coverage), SPECS, gathered()).splitlines()
                if line.startswith("| shop"))  # fmt: skip
    assert "1 of 6" in line and "`find_order`" in line and "`ping`" not in line


def test_every_column_is_explained():
    assert COLUMN_MEANING.keys() == COLUMNS.keys()


@pytest.mark.parametrize("repairs", [{}, {"wrong_entity": {"cut": 2}}], ids=["plays", "repairs"])
def test_rows_that_are_learnt_in_part_are_not_called_ready(repairs):
    card = " ".join(build_card(make_summary(repairs=repairs), SPECS, gathered()).split())
    assert ("`SFTTrainer` takes them unchanged" in card) == (not repairs)
    assert ("`learnt_from` are context" in card and "`--format prompt_completion`" in card) == bool(repairs)


def test_empty_run_has_a_card():
    assert "0 multi-turn" in build_card(make_summary(funnel={}, environments={}, stages=()), [], Statistics())


@pytest.mark.parametrize(("rows", "name"), [(0, "n<1K"), (1000, "1K<n<10K"), (10**8, "n>10M")])
def test_size_category(rows, name):
    assert find_size_category(rows) == name


def test_statistics_count_accepted_only():
    statistics = gathered(20)
    assert sum(statistics.accepted.values()) == 15
    assert sum(statistics.played.values()) == 20
    assert statistics.turns.total == 15
    assert statistics.calls_per_turn.counts == {4: statistics.calls_per_turn.total}
    assert statistics.reasons["state_mismatch"] == 5


def test_unknown_stage_counts_with_the_step_before():
    stage = make_summary().stages[0].model_copy(update={"name": "own_filter", "dropped": {"too_dull": 3}})
    steps = {step.name: step for step in build_funnel_steps(make_summary(stages=(*make_summary().stages[:3], stage)))}
    assert ("too_dull", 3) in steps["written"].dropped


def test_drops_stand_with_the_step_that_they_explain():
    lost = {"written": {"weak_checks": 3}, "varied": {"missing_parameter: weak_checks": 1}, "accepted": {"enough": 57}}
    stages = [
        StageSummary(name=name, read=90, written=80, dropped=dropped)
        for name, dropped in zip(("write", "vary", "select"), lost.values(), strict=True)
    ]
    rejected = {"not the best candidate": 77, "not chosen: enough": 57}
    funnel = {"written": 36, "varied": 77, "played": 154, "accepted": 20}
    steps = build_funnel_steps(make_summary(stages=tuple(stages), funnel=funnel, rejected=rejected))
    assert {step.name: dict(step.dropped) for step in steps} == lost | {"played": {}, "accepted": rejected}


def test_calls_of_users_and_searches_count_as_in_the_summary():
    task, trajectory, verdict = next(iter(make_items(1)))
    first, second, *rest = trajectory.events
    events = (first.model_copy(update={"actor": "user"}), second.model_copy(update={"tool": SEARCH_TOOLS}), *rest)
    trajectory = trajectory.model_copy(update={"events": events})
    statistics, counts = Statistics(), RunCounts()
    statistics.add(task, trajectory, verdict)
    counts.add(trajectory, verdict)
    assert statistics.calls.counts == {counts.calls: 1}
    assert statistics.calls_per_turn.mean == counts.calls / counts.turns == statistics.skills.events["calls"]


def test_bins_leave_nothing_out():
    values = Distribution([1, 1, 2, 40, 41])
    assert sum(count for _, count in values.bins(5)) == 5
    assert len(values.bins(5)) <= 5
    assert (values.quantile(0.5), values.quantile(1.0), values.mean) == (2, 41, 17.0)


def test_rows_of_one_run_are_not_given_for_those_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`datasets` keeps what it has read under a hash of the card, whatever the folder."""
    from datasets import load_dataset

    for number in (1, 2, 3, 4):  # the others are the second, exported by versions with another type and a column less
        if number == 3:
            monkeypatch.setattr(card, "COLUMNS", COLUMNS | {"repair": "string"})
        if number == 4:  # a copy: a key that is taken out and put back goes to the end, in all later exports
            monkeypatch.setattr(card, "COLUMNS", {name: COLUMNS[name] for name in COLUMNS if name != "repair"})
        folder = tmp_path / str(number) / "dataset"
        (folder / "data").mkdir(parents=True)
        (folder / "README.md").write_text(build_card(make_summary(content=str(min(number, 2))), SPECS, gathered()))
        (folder / "data" / "train-00000-of-00001.jsonl").write_text(f'{{"number": {number}}}\n')
    loaded = [load_dataset(str(tmp_path / name / "dataset"), cache_dir=str(tmp_path / "cache")) for name in "1234"]
    assert [list(found["train"]["number"]) for found in loaded] == [[1], [2], [3], [4]]
