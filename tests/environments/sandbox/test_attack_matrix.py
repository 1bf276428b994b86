"""Each kernel layer is seen to work: without it, and all that stand behind it, attacks succeed; with it they do not.

An attack names the sets of layers ("cuts") without which it succeeds. For every cut: without the whole of it the attack
succeeds, with any one layer of it put back it fails. A layer that is silently not there fails this.
"""

import os
from collections import Counter
from collections.abc import Iterator

import pytest
from attacks.catalog import Attack, host_attacks
from attacks.clients import ALL, Bare

from trajsmith.environments.sandbox.landlock import get_landlock_abi

ROOT = os.geteuid() == 0
WITH_CUTS = [attack for attack in host_attacks() if attack.cuts]


def _abi() -> int:
    try:
        return get_landlock_abi()
    except OSError:
        return 0


@pytest.fixture(scope="module")
def bare() -> Iterator[Bare]:
    made = Bare()
    yield made
    made.close()


def _why_not(attack: Attack) -> str | None:
    if not ROOT and any("uid" in cut for cut in attack.cuts):
        return "the layer `uid` is there for root only"
    if _abi() < 6 and attack.category != "files" and any("landlock" in cut for cut in attack.cuts):
        return f"Landlock ABI {_abi()} covers files only"
    return None


@pytest.mark.parametrize("attack", host_attacks(), ids=lambda attack: attack.id)
def test_all_layers_together_stop_the_attack(bare: Bare, attack: Attack) -> None:
    answer = bare.run(ALL, attack.source)
    assert answer["ready"] == '"ready"', answer
    assert not answer["found"] and "did: " not in answer["said"], answer


@pytest.mark.parametrize("attack", WITH_CUTS, ids=lambda attack: attack.id)
def test_each_layer_of_a_cut_stops_the_attack_alone(bare: Bare, attack: Attack) -> None:
    if reason := _why_not(attack):
        pytest.skip(reason)
    for cut in attack.cuts:
        if not bare.achieves(ALL - cut, attack):
            if not bare.achieves((), attack):
                pytest.skip("this machine stops it even without a layer")
            pytest.fail(f"it should succeed without {sorted(cut)}")
        for layer in cut:
            answer = bare.run(ALL - cut | {layer}, attack.source)
            assert not answer["found"] and "did: " not in answer["said"], f"{layer} should stop it: {answer}"


def test_the_matrix_covers_every_layer_and_most_attacks() -> None:
    layers = Counter(layer for attack in WITH_CUTS for cut in attack.cuts for layer in cut)
    alone = Counter(layer for attack in WITH_CUTS for cut in attack.cuts for layer in cut if len(cut) == 1)
    assert layers.keys() == ALL - {
        "pdeathsig",
        "undumpable",
    }  # those two have tests of their own: no attack of a worker
    assert alone["seccomp"] > 50 and alone["rlimits"] >= 3
    assert len(WITH_CUTS) > 0.85 * len(host_attacks())


@pytest.mark.skipif(not ROOT, reason="namespaces of root's workers")
@pytest.mark.parametrize(
    "name",
    ["read_a_file_by_open", "ask_for_the_size", "connect_by_tcp", "send_by_udp", "connect_to_a_socket_file",
     "connect_to_an_abstract_socket", "signal_the_parent", "parent_environment", "list_a_folder", "write_a_new_file",
     "parent_memory_by_process_vm_readv", "mount_over_a_folder"],
)  # fmt: skip
def test_namespaces_stop_it_where_nothing_else_does(bare: Bare, name: str) -> None:
    attack = next(attack for attack in host_attacks() if attack.id == name)
    assert bare.achieves(("clean",), attack)
    answer = bare.run(("clean", "namespaces"), attack.source)
    assert answer["ready"] == '"ready"', answer
    assert not answer["found"] and "did: " not in answer["said"], answer


SAMPLE = [attack for number, attack in enumerate(host_attacks()) if number % 4 == 0]


@pytest.mark.parametrize("attack", SAMPLE, ids=lambda attack: attack.id)
def test_a_session_of_a_forker_in_namespaces_stops_the_attack(bare: Bare, attack: Attack) -> None:
    answer = bare.run(ALL | {"namespaces"}, attack.source, session=True)
    if answer["ready"] is None:
        pytest.skip("no namespaces here")
    assert answer["ready"] == '"ready"', answer
    assert not answer["found"] and "did: " not in answer["said"], answer
