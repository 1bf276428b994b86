"""The shipped model: a file that says how it was made, a score that can be read, and damage that is told."""

import json
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from trajsmith.records import InputError
from trajsmith.toolgraph.link_model import FREE, PRIOR, load_link_model, load_shipped_model, logistic, read_model
from trajsmith.toolgraph.parameter_kinds import KIND_PRIOR, load_kind_model
from trajsmith.toolgraph.promised_outputs import PROMISES, get_promise_name

STORED = (files("trajsmith.toolgraph") / "data" / "model.json").read_bytes()


def test_it_says_how_it_was_made_and_how_good_it_is() -> None:
    model = load_shipped_model()
    assert "link is a true one if gold states it" in model["recipe"]
    assert len(model["trained_on"]) >= 5
    assert set(model["trained_on"]) <= model["links"]["left_out"].keys()
    assert all(0 <= row["f1"] <= 1 and 0 < row["threshold"] < 1 for row in model["links"]["left_out"].values())
    assert model["kinds"]["left_out"].keys() <= model["links"]["left_out"].keys()
    assert all(0 <= figure <= 1 for figure in model["kinds"]["left_out"].values())


def test_it_has_a_weight_for_every_term_with_the_sign_of_its_meaning() -> None:
    for weights, prior in ((load_link_model().weights, PRIOR), (load_kind_model().weights, KIND_PRIOR)):
        assert weights.keys() == prior.keys()
        assert all(weights[name] * meant >= 0 for name, meant in prior.items() if name not in FREE)


def test_a_score_is_a_probability_that_rises_with_the_fit() -> None:
    names = {"fit", "identifier", "named", "carried", "resource", "pipe", "told", "circular", "echo", "gap", "read_gap"}
    names |= {"home_gap", "same_server", "virtual", "source_searches", "source_creates_id", "source_creates"}
    names |= {"source_changes", "target_authenticates", "target_reads", "named_for", "oneself", "new", "required"}
    names |= {"choice", "default", "control", "kinds_clash", "types_differ", "number_to_text", "receipt", "cover"}
    names |= {"back_cover", "backwards"}
    names |= {get_promise_name(promise) for promise in PROMISES}
    features = {name: np.zeros(5) for name in names}
    features |= {"same_server": np.ones(5), "required": np.ones(5), "identifier": np.linspace(0.2, 1, 5)}
    scores = load_link_model().score(features)
    assert np.all((scores > 0) & (scores < 1))
    assert np.all(np.diff(scores) > 0)
    assert scores[0] < load_link_model().threshold < scores[-1]


def test_scores_are_calibrated_where_there_are_enough_edges() -> None:
    """Left-out scores by bands: the share that is true rises from band to band."""
    rows = [row for row in load_shipped_model()["calibration"]["rows"] if row[3] >= 50]
    shares = [row[2] for row in rows]
    assert shares == sorted(shares)
    assert all(abs(row[1] - row[2]) < 0.2 for row in rows)


def changed(**parts: Any) -> bytes:
    model = json.loads(STORED)
    for path, value in parts.items():
        part, _, name = path.partition("__")
        model[part][name] = value
    return json.dumps(model).encode()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(STORED[:-40], "JSONDecodeError", id="cut-off"),
        pytest.param(b"[]", "KeyError 'links'", id="another-file"),
        pytest.param(changed(links__weights={"bias": -6}), "KeyError 'identifier'", id="a-term-is-missing"),
        pytest.param(
            changed(links__weights={**PRIOR, "circular": 2.0}), "the sign of 'circular'", id="a-sign-is-turned"
        ),
        pytest.param(changed(links__weights={**PRIOR, "gap": float("nan")}), "the sign of 'gap'", id="no-number"),
        pytest.param(changed(links__threshold=7), "a threshold is no probability", id="threshold"),
        pytest.param(changed(kinds__threshold="high"), "ValueError", id="threshold-is-a-word"),
    ],
)
def test_a_damaged_file_says_what_to_do(data: bytes, reason: str) -> None:
    with pytest.raises(InputError, match=f"model.json is damaged, install trajsmith again: .*{reason}"):
        read_model(data)


def test_the_logistic_does_not_overflow() -> None:
    assert logistic(np.array([-1e9, 0.0, 1e9])).tolist() == pytest.approx([0, 0.5, 1])
