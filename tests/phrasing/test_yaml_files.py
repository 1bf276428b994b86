"""YAML files of an environment are read strictly."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from trajsmith.phrasing import load_phrasebook, yaml_files
from trajsmith.records import InputError, UserCache


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "phrases.yaml"
    path.write_text("tools:\n  switch:\n    implausible: [is already]\n    implausible: [is a blind]\n")
    with pytest.raises(InputError, match=r"the key 'implausible' stands twice.*line 4"):
        load_phrasebook(path)


def test_merged_keys_may_be_set_again(tmp_path: Path) -> None:
    path = tmp_path / "phrases.yaml"
    path.write_text(
        "tools:\n  start: &start\n    ask: [switch it on]\n  stop:\n    <<: *start\n    ask: [switch it off]\n"
    )
    assert load_phrasebook(path).tools["stop"].ask == ("switch it off",)


@pytest.mark.parametrize(
    ("text", "data", "parses"),
    [
        pytest.param("a: {b: [1, 2.5, yes, null]}", {"a": {"b": [1, 2.5, True, None]}}, 1, id="json"),
        pytest.param("a: 2026-01-02", {"a": date(2026, 1, 2)}, 2, id="date"),
        pytest.param("1: one", {1: "one"}, 2, id="number_as_key"),
        pytest.param("", None, 1, id="empty"),
    ],
)
def test_what_is_json_is_parsed_once(
    text: str, data: Any, parses: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAJSMITH_CACHE", str(tmp_path))
    parsed: list[str] = []
    compose = yaml_files.compose_yaml

    def count(text: str, loader: Any) -> Any:
        parsed.append(text)
        return compose(text, loader)

    monkeypatch.setattr(yaml_files, "compose_yaml", count)
    for _ in range(2):
        monkeypatch.setattr(yaml_files, "_CACHE", UserCache("yaml"))
        assert yaml_files.read_yaml(text) == data
    assert len(parsed) == parses
