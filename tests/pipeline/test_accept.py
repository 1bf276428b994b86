"""Exactly N rows: shares become whole numbers, rounds fill what is missing, and a run that cannot says why."""

from collections import Counter

import pyarrow.parquet as parquet
import pytest

from trajsmith.pipeline.quotas import AcceptSettings, Quotas, apportion, find_stratum

CONFIG = """
name: counted
environments:
  - {library: retail, states: {small: 1}}
  - {library: mobile_care, states: {small: 1}}
sample: {count: 6, length: [4, 7]}
vary: {rates: {user_tools: 0.5, tool_failure: 0.5}}
duplicates: {threshold: 0.8}
accept:
  count: 20
  by:
    variant: {base: 0.6, user_tools: 0.2, tool_failure: 0.2}
    environment: even
"""


def rows(run):
    (path,) = (run / "dataset" / "data").iterdir()
    return parquet.read_table(path, columns=["id", "variant", "environment"]).to_pylist()


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "counted.yaml"
    path.write_text(CONFIG)
    return path


def test_the_dataset_has_exactly_what_was_asked_for(config, tmp_path, trajsmith):
    said = trajsmith("run", config, "--run", tmp_path / "run")
    assert said.code == 0, said.err
    found = rows(tmp_path / "run")
    assert Counter(row["variant"] for row in found) == {"base": 12, "user_tools": 4, "tool_failure": 4}
    assert Counter(row["environment"] for row in found) == {"retail": 10, "mobile_care": 10}
    assert "select" in said.out and "enough" in said.out
    assert "## Near-duplicates" in (tmp_path / "run" / "dataset" / "README.md").read_text()
    lines = (tmp_path / "run" / "selection.jsonl").read_text().splitlines()
    assert lines and all('"reason":' in line for line in lines)
    again = trajsmith("resume", tmp_path / "run")
    assert again.code == 0 and rows(tmp_path / "run") == found
    replayed = trajsmith("replay", tmp_path / "run")
    assert replayed.code == 0 and "(100.0 %)" in replayed.out


def test_a_run_that_was_stopped_between_rounds_ends_with_the_same_rows(config, tmp_path, trajsmith, monkeypatch):
    from trajsmith.pipeline import runner

    assert trajsmith("run", config, "--run", tmp_path / "whole").code == 0
    original = runner._run_stages
    passes = []

    async def stopping(*arguments):
        passes.append(1)
        if len(passes) == 2:
            raise KeyboardInterrupt
        await original(*arguments)

    monkeypatch.setattr(runner, "_run_stages", stopping)
    assert trajsmith("run", config, "--run", tmp_path / "halves").code == 1
    monkeypatch.setattr(runner, "_run_stages", original)
    assert trajsmith("resume", tmp_path / "halves").code == 0
    assert rows(tmp_path / "halves") == rows(tmp_path / "whole")


def test_a_starving_stratum_is_named_with_the_reason(config, tmp_path, trajsmith):
    config.write_text(CONFIG.replace("  - {library: mobile_care, states: {small: 1}}\n", ""))
    said = trajsmith("run", config, "--run", tmp_path / "run", "--set", "accept.budget.chains=12")
    assert said.code == 1
    assert "variant user_tools: 4 short" in said.err and "user_tools: no_user_tools" in said.err
    assert not (tmp_path / "run" / "dataset").exists()


def test_variants_that_nobody_makes_cannot_be_asked_for(config, trajsmith):
    config.write_text(CONFIG.replace("vary: {rates: {user_tools: 0.5, tool_failure: 0.5}}\n", ""))
    said = trajsmith("run", config, "--dry-run")
    assert said.code == 2 and "no variants are made" in said.err


def test_the_report_of_decontamination_is_in_the_card(config, tmp_path, trajsmith):
    bench = tmp_path / "bench.jsonl"
    bench.write_text('{"text": "nothing of this kind is said in any of our dialogues, as far as anybody can tell"}\n')
    said = trajsmith("run", config, "--run", tmp_path / "run", "--set", f"decontaminate=[{bench}]")
    assert said.code == 0, said.err
    card = (tmp_path / "run" / "dataset" / "README.md").read_text()
    assert "## Decontamination" in card and "`bench.jsonl` (1 rows): dropped nothing" in card


@pytest.mark.parametrize(
    ("count", "shares", "expected"),
    [
        (10, {"a": 1, "b": 1, "c": 1}, {"a": 4, "b": 3, "c": 3}),
        (7, {"a": 0.5, "b": 0.5}, {"a": 4, "b": 3}),
        (1, {"a": 0.1, "b": 0.9}, {"a": 0, "b": 1}),
    ],
    ids=["thirds", "halves", "one"],
)
def test_shares_become_whole_numbers_that_sum_up(count, shares, expected):
    assert apportion(count, shares) == expected


def test_an_open_stratum_takes_everything_above():
    assert [find_stratum(label, {"2": 1, "3+": 1}) for label in ("1", "2", "3", "9")] == ["1", "2", "3+", "3+"]


def test_rows_that_fit_two_ways_are_placed_so_that_all_find_a_place():
    quotas = Quotas(2, {"variant": {"base": 1, "odd": 1}, "environment": {"here": 1, "there": 1}})
    for variant, environment in (("base", "here"), ("base", "there"), ("odd", "here")):
        cell = quotas.cell({"variant": variant, "environment": environment})
        quotas.available[cell] += 1
    assert quotas.missing() == {}
    taken = {cell for cell, number in quotas.solve().items() if number}
    assert taken == {("there", "base"), ("here", "odd")}


def test_shares_are_checked():
    with pytest.raises(ValueError, match="shares must be above 0"):
        AcceptSettings(count=3, by={"turns": {"1": 0}})
    with pytest.raises(ValueError, match='"even" is for environments'):
        AcceptSettings(count=3, by={"turns": "even"})
    with pytest.raises(ValueError, match="its groups are those of trajsmith env taxonomy"):
        AcceptSettings(count=3, by={"taxonomy": {"bank": 1}})


def test_rows_are_even_over_the_groups_of_the_taxonomy(tmp_path, trajsmith):
    names = ("bank", "retail", "calendar", "travel")
    lines = "".join(f"  - {{library: {name}, states: {{small: 1}}}}\n" for name in names)
    text = f"name: grouped\nenvironments:\n{lines}sample: {{count: 12, length: [2, 3]}}\n"
    (tmp_path / "grouped.yaml").write_text(f"{text}accept: {{count: 12, by: {{taxonomy: even}}}}\n")
    said = trajsmith("run", tmp_path / "grouped.yaml", "--run", tmp_path / "run")
    assert said.code == 0, said.err
    counts = Counter(row["environment"] for row in rows(tmp_path / "run"))
    assert counts["bank"] + counts["retail"] == counts["calendar"] == counts["travel"] == 4, "bank and retail are alike"


@pytest.mark.parametrize(
    ("by", "fault"),
    [
        ("environment={bogus: 1}", "accept.by.environment: no environment 'bogus'; there are retail, mobile_care"),
        ("turns={x+: 1}", "'x+' is no number of turns"),
        ("variant={nonsense: 1}", "accept.by.variant: no variant named 'nonsense'"),
    ],
)
def test_strata_that_cannot_be_are_known_before_any_work(config, tmp_path, trajsmith, by, fault):
    said = trajsmith("run", config, "--run", tmp_path / "run", "--set", f"accept.by.{by}")
    assert said.code == 2 and fault in said.err
    assert not (tmp_path / "run" / "chains.jsonl").exists()


def test_formats_keep_to_the_choice_and_wait_for_it(config, tmp_path, trajsmith):
    run = tmp_path / "run"
    assert trajsmith("run", config, "--run", run).code == 0
    assert trajsmith("export", run, "--format", "openai", "--out", tmp_path / "openai").code == 0
    written = sum(len(path.read_text().splitlines()) for path in (tmp_path / "openai").rglob("*.jsonl"))
    assert written == 20
    (run / "selection.jsonl").unlink()
    said = trajsmith("export", run, "--format", "openai", "--out", tmp_path / "again")
    assert said.code == 2 and "what goes in is not decided yet" in said.err


def test_variants_that_no_setting_asks_for_are_not_made(tmp_path, trajsmith):
    path = tmp_path / "plain.yaml"
    path.write_text(CONFIG.split("vary:")[0])
    assert trajsmith("run", path, "--run", tmp_path / "run").code == 0
    said = trajsmith("vary", tmp_path / "run")
    assert said.code == 2 and "set vary.rates" in said.err
    assert not (tmp_path / "run" / "varied.jsonl").exists()
