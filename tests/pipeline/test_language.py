"""A run in another language: nobody speaks English in it, and its checks reject what is wrong."""

import json
import re

import pytest

from trajsmith import run
from trajsmith.pipeline.config import resolve_config
from trajsmith.records import InputError

ENGLISH = re.compile(
    r"\b(the|and|your|you|my|please|with|which|order|orders|for|from|this|that|is|are|of|not|shall|would|thanks|"
    r"pending|shipped|delivered|cancelled|processing|store credit|refund|customer|status of|tracking)\b",
    re.IGNORECASE,
)
EXACT = re.compile(r"„[^“]*“|\S*[@\d_]\S*(?: x [A-Z][\w ]*)?|\d+ x [A-Z0-9][\w ]*")
"""Names of products, addresses and codes, which stay as they are."""


def build_config(folder, **changes):
    return {
        "name": "german",
        "seed": 5,
        "run": str(folder / "run"),
        "language": "de",
        "environments": [{"library": "retail"}],
        "sample": {"count": 30, "scenarios": 1.0},
        **changes,
    }


def read_lines(folder, name):
    return [json.loads(line) for line in (folder / "run" / f"{name}.jsonl").read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("german")
    run(build_config(folder))
    return folder


def test_a_german_run_is_accepted(folder):
    verdicts = read_lines(folder, "verdicts")
    assert len(verdicts) >= 20 and all(verdict["accepted"] for verdict in verdicts)


def test_nobody_speaks_english(folder):
    for trajectory in read_lines(folder, "trajectories"):
        for message in trajectory["messages"]:
            if message["role"] in ("user", "assistant"):
                spoken = EXACT.sub(" ", message["content"])
                assert not ENGLISH.search(spoken), message["content"]


def test_agents_say_sie(folder):
    for trajectory in read_lines(folder, "trajectories"):
        texts = [message["content"] for message in trajectory["messages"] if message["role"] == "assistant"]
        assert not any(re.search(r"\b(du|dir|dich|deine?[nmrs]?)\b", EXACT.sub(" ", text)) for text in texts)


def test_the_card_names_the_language(folder):
    card = (folder / "run" / "dataset" / "README.md").read_text("utf-8")
    assert re.search(r"^language:\n- de$", card, re.MULTILINE)


def test_injected_faults_are_rejected(tmp_path):
    run(build_config(tmp_path, seed=11, play={"candidates": 2, "faulty": 1}, sample={"count": 40, "scenarios": 1.0}))
    faults = json.loads((tmp_path / "run" / "summary.json").read_bytes())["faults"]
    caught = sum(row["rejected"] + row["removed"] for kind, row in faults.items() if kind != "none")
    made = sum(row["plays"] for kind, row in faults.items() if kind != "none")
    assert made >= 15 and caught >= 0.95 * made
    assert faults["none"]["rejected"] <= 1


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"environments": [{"library": "travel"}]}, "environment travel has no phrases in it; there are: retail"),
        ({"vary": {"rates": {"missing_parameter": 0.1}}}, "variants are written in English only"),
        ({"play": {"reasoning": "grounded"}}, "reasoning is written in English only"),
        ({"language": "fr"}, "language"),
    ],
    ids=["environment", "variants", "reasoning", "unknown"],
)
def test_what_a_language_does_not_have_is_said(tmp_path, changes, says):
    with pytest.raises(InputError, match=re.escape(says)):
        resolve_config(build_config(tmp_path, **changes))
