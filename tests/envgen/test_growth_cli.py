"""The commands on a collection of environments, as a user types them."""

import json

import pytest

from trajsmith.cli.app import main


def run(monkeypatch, capsys, *words):
    monkeypatch.setattr("sys.argv", ["trajsmith", *words])
    code = 0
    try:
        main()
    except SystemExit as stopped:
        code = stopped.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_duplicates_of_the_library(monkeypatch, capsys, tmp_path):
    code, out, _ = run(
        monkeypatch, capsys, "env", "duplicates", "--library", "--threshold", "0.05", "--json", str(tmp_path / "p.json")
    )
    assert code == 0 and out.startswith("9 environments, ")
    pairs = json.loads((tmp_path / "p.json").read_text())
    assert len(pairs) > 3 and {"keep", "drop", "score", "counterparts"} <= pairs[0].keys()
    assert f"keep {pairs[0]['keep']}, drop {pairs[0]['drop']} (tools" in out


def test_a_taxonomy_as_a_tree_and_as_json(monkeypatch, capsys, tmp_path):
    code, out, _ = run(
        monkeypatch, capsys, "env", "taxonomy", "--library", "--groups", "2", "--inner", "4", "--json",
        str(tmp_path / "t.json"),
    )  # fmt: skip
    assert code == 0
    tree = json.loads((tmp_path / "t.json").read_text())
    assert len(tree["groups"]) == 2 and sum(line.startswith("  ") for line in out.splitlines()) == 4
    code, out, _ = run(monkeypatch, capsys, "env", "taxonomy", "--library", "--sample", "3")
    assert code == 0 and len(out.split()) == 3


def test_proposals_are_sources_that_can_be_read_again(monkeypatch, capsys, tmp_path):
    file = tmp_path / "next.jsonl"
    code, out, _ = run(monkeypatch, capsys, "env", "gaps", "--library", "--count", "3", "--out", str(file))
    assert code == 0 and out.count("next: ") == 3 and "industry: 0 of 6" in out
    again = run(monkeypatch, capsys, "env", "gaps", "--library", "--count", "1", "--candidates", str(file))
    first = [json.loads(line)["name"] for line in file.read_text().splitlines()]
    assert again[0] == 0 and any(f"next: {name}: " in again[1] for name in first)


def test_sources_are_shown_with_what_is_left_out(monkeypatch, capsys, tmp_path):
    (tmp_path / "d.txt").write_text("Library loans: Books and holds.\nParking\nparking\n")
    code, out, _ = run(
        monkeypatch,
        capsys,
        "env",
        "sources",
        "--from-domains",
        str(tmp_path / "d.txt"),
        "--out",
        str(tmp_path / "s.jsonl"),
    )
    assert code == 0 and "3 read, 2 sources, 1 left out" in out and "left out: 1: named twice" in out
    assert [json.loads(line)["kind"] for line in (tmp_path / "s.jsonl").read_text().splitlines()] == ["domain"] * 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["duplicates"], "name directories or environments, or give --library"),
        (["taxonomy", "--library", "--groups", "99"], "99 groups of 9 environments: ask for fewer"),
        (["gaps", "nowhere"], "no environment named 'nowhere'"),
        (["gaps", "--library", "--candidates", "pyproject.toml"], "no JSON"),
        (["sources"], "give exactly one of --from-tasks, --from-documents, --from-domains"),
        (["sources", "--from-tasks", "nowhere.jsonl"], "nowhere.jsonl cannot be read"),
        (["grow", "nowhere", "--out", "out"], "nowhere: no design.json: only an environment that models made can grow"),
    ],
    ids=["nothing", "too many groups", "unknown", "no sources", "no source", "no file", "no parent"],
)
def test_wrong_words_are_one_line_and_exit_code_2(monkeypatch, capsys, words, message):
    code, _, err = run(monkeypatch, capsys, "env", *words)
    assert code == 2 and message in err and len(err.strip().splitlines()) == 1
