"""The namespaces of a zygote: what is in them, and how they end."""

import json
import os

import pytest
from attacks.clients import ordinary_user, run_script

from trajsmith.environments.sandbox import limits

ROOT = os.geteuid() == 0


@pytest.fixture(scope="module", params=["this user", "ordinary user"])
def seen(request: pytest.FixtureRequest) -> dict[str, object]:
    """What a zygote and its worker see inside."""
    user = ordinary_user() if request.param == "ordinary user" else None
    if user is None and request.param == "ordinary user":
        pytest.skip("this is an ordinary user")
    found: dict[str, object] = json.loads(run_script("inside", "look", user=user))
    if "missing" in found:
        pytest.skip(str(found["missing"]))
    return found | {"root": ROOT and user is None}


def test_the_zygote_is_the_first_process(seen: dict[str, object]) -> None:
    assert seen["pid"] == 1
    assert seen["worker_pid"] == 2


def test_the_root_is_empty_and_cannot_be_written(seen: dict[str, object]) -> None:
    assert seen["files"] == []
    assert "Read-only" in str(seen["writing"])


def test_there_is_no_network(seen: dict[str, object]) -> None:
    assert seen["interfaces"] in (["lo"], [])
    assert seen["connecting"] in ("Network is unreachable", "Network is down", "Connection refused")


def test_users_inside_are_those_outside(seen: dict[str, object]) -> None:
    if seen["root"]:
        assert (seen["uid"], seen["worker_uid"]) == (70000 + 4095, 70007)
    else:
        assert seen["uid"] == seen["worker_uid"] != 0


def test_only_what_forks_workers_of_root_keeps_is_kept(seen: dict[str, object]) -> None:
    """To end workers, to make each another user, and to have it drop the rest; the workers themselves keep none."""
    kept = (limits.CAP_KILL, limits.CAP_SETUID, limits.CAP_SETGID, limits.CAP_SETPCAP)
    assert seen["capabilities"] == (sum(1 << number for number in kept) if seen["root"] else 0)
    assert seen["worker_capabilities"] == 0


def test_who_waits_ends_with_the_code_of_the_zygote(seen: dict[str, object]) -> None:
    assert seen["exit_code"] == 7


def test_everything_ends_with_who_waits(seen: dict[str, object]) -> None:
    assert seen["after_kill"] == "ended"
