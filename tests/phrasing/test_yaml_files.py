"""YAML files of an environment are read strictly."""

from pathlib import Path

import pytest

from trajsmith.phrasing import load_phrasebook
from trajsmith.records import InputError


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
