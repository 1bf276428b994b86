"""Every attack of the corpus through the pool, in both modes, as this user and as an ordinary one. None may succeed.

The attacks are made by processes of their own (`attacks/campaign.py`), which are also what is attacked; all of them run
at once when the first test asks for a result. An attack that seems to have done harm is made again alone: a machine
that stands still for a second is no harm.
"""

import json
import os
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from attacks.catalog import HOST_CATEGORIES, Attack, all_attacks, host_attacks
from attacks.clients import OTHER_USER, as_user, environment, python_of, run_script

from trajsmith.environments.sandbox.probe import probe

ATTACKS = all_attacks()
HOST = sorted(HOST_CATEGORIES)
SLOW = ["hang", "load"]
"""Attacks that make the parent wait have a campaign of their own."""
QUICK = sorted({attack.category for attack in ATTACKS} - set(SLOW))
SAMPLE = [attack.id for number, attack in enumerate(host_attacks()) if number % 4 == 0]
MODES = ("default", "strict")
pytestmark = pytest.mark.timeout(900)  # the first test waits for all campaigns


@dataclass
class Campaign:
    """A run of `attacks/campaign.py`."""

    mode: str
    without: str = ""
    """Layers left out, with commas."""
    names: list[str] = field(default_factory=list)
    """Attacks or categories; all if empty."""
    ordinary: bool = False
    """As an ordinary user, where this is root."""
    results: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))

    @property
    def user(self) -> int | None:
        return OTHER_USER if self.ordinary else None

    def start(self) -> subprocess.Popen[str]:
        order = [str(python_of(self.user)), "-m", "attacks.campaign", self.mode, self.without, *self.names]
        return subprocess.Popen(
            order, env=environment(), cwd="/", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            **as_user(self.user),
        )  # fmt: skip

    def finish(self, process: subprocess.Popen[str]) -> None:
        out, err = process.communicate(timeout=800)
        assert process.returncode == 0, err[-2000:]
        for line in out.splitlines():
            result = json.loads(line)
            self.results[result["id"]].append(result)


@pytest.fixture(scope="module")
def campaigns(full: bool) -> Iterator[list[Campaign]]:
    """All campaigns that this machine can run, made; what burns time as an ordinary user only with --full."""
    works = [mode for mode in MODES if probe().modes[mode].works]
    planned = [Campaign(mode, "", names) for mode in works for names in (QUICK, SLOW)]
    planned += [Campaign(mode, "audit,hide", HOST) for mode in works]  # what the kernel alone stops
    if os.geteuid() == 0 and python_of(OTHER_USER) is not None:
        more = {"default": ["load"]} if full else {}
        planned += [Campaign(mode, "", [*SAMPLE, *more.get(mode, ())], True) for mode in works]
    running = [(campaign, campaign.start()) for campaign in planned]
    try:
        for campaign, process in running:
            campaign.finish(process)
    finally:
        for _, process in running:
            process.kill()
            process.wait()
    yield planned


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.id)
def test_the_attack_fails(campaigns: list[Campaign], attack: Attack, mode: str) -> None:
    made = [campaign for campaign in campaigns if campaign.mode == mode]
    if not made:
        pytest.skip(f"mode {mode} does not work here: {probe().modes[mode].message}")
    assert any(campaign.results[attack.id] for campaign in made), "the attack was not made"
    for campaign in made:
        for result in campaign.results[attack.id]:
            if result["found"]:
                again = run_script("campaign", mode, campaign.without, attack.id, user=campaign.user)
                found = [json.loads(line)["found"] for line in again.splitlines()]
                assert not any(found), f"{result} and again: {found}"


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_left_when_all_is_closed(campaigns: list[Campaign], mode: str) -> None:
    for campaign in campaigns:
        if campaign.mode == mode:
            assert campaign.results["end"][0]["found"] == []


def test_attacks_on_the_host_were_made_from_everywhere(campaigns: list[Campaign]) -> None:
    if not campaigns:
        pytest.skip("no mode works here")
    places = {result["where"] for attack in host_attacks() for result in campaigns[0].results[attack.id]}
    assert places >= {"tool", "load", "check"}


def test_without_the_audit_hook_it_is_the_kernel_that_refuses(campaigns: list[Campaign]) -> None:
    """Else the campaign would only show that modules cannot be imported."""
    for campaign in campaigns:
        if campaign.without:
            said = [result["said"] for attack in host_attacks() for result in campaign.results[attack.id]]
            refused = [text for text in said if "rrno 1" in text or "blocked" in text]
            assert len(refused) > 0.8 * len(said)


def test_the_corpus_is_what_it_should_be() -> None:
    assert len(ATTACKS) > 250
    assert {attack.category for attack in ATTACKS} >= HOST_CATEGORIES | {
        "plays", "results", "channel", "checks", "adapters", "load", "hang"
    }  # fmt: skip
    for attack in ATTACKS:
        compile(attack.source, attack.id, "exec")
        assert attack.source.startswith("def attack(info):")
