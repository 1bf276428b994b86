"""Keys are found by shape or by the environment variable that bears them, and never shown."""

import pytest

from trajsmith.records.secrets import PLACEHOLDER, find_secret, known_secrets, redact_secrets, redact_url

KEY = "sk-" + "a1B2" * 8


@pytest.mark.parametrize("text", [KEY, f'"{KEY}"', "hf_" + "x" * 34, "AKIA" + "Z" * 16, "-----BEGIN PRIVATE KEY-----"])
def test_known_shapes_are_keys_and_not_shown(text):
    found = find_secret(f"before {text} after", {})
    assert found and found.startswith("what looks like a key") and KEY not in found


@pytest.mark.parametrize("text", ["task-0123456789abcdef01234567", "sk-short", "${OPENAI_API_KEY}", "hf_hub", ""])
def test_other_texts_are_none(text):
    assert find_secret(text, {}) is None


def test_values_of_variables_that_bear_keys_are_found_by_name(monkeypatch):
    monkeypatch.setenv("SHOP_TOKEN", "swordfish-99")
    monkeypatch.setenv("SHORT_TOKEN", "abc")
    monkeypatch.setenv("SHOP_NAME", "corner shop")
    known = known_secrets()
    assert find_secret("x swordfish-99 y", known) == "the value of the environment variable SHOP_TOKEN"
    assert find_secret("abc corner shop", known) is None
    assert redact_secrets("x swordfish-99 y", tuple(known)) == f"x {PLACEHOLDER} y"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:pass@host:80/v1?key=abc", f"https://{PLACEHOLDER}@host:80/v1?{PLACEHOLDER}"),
        ("https://host/v1?key=${SHOP_KEY}", "https://host/v1?key=${SHOP_KEY}"),
        ("http://localhost:8000/v1", "http://localhost:8000/v1"),
    ],
)
def test_addresses_lose_user_and_query(url, shown):
    assert redact_url(url) == shown
