"""Each layer alone stops what it owns, and without it the same attempt succeeds. In processes that are thrown away."""

import os
from collections.abc import Iterator

import pytest
from attacks.catalog import Attack, host_attacks
from attacks.clients import Bare, achieved, ordinary_user, run_script

from trajsmith.environments.sandbox.landlock import build_ruleset, get_landlock_abi
from trajsmith.environments.sandbox.lockdown import LAYERS

ROOT = os.geteuid() == 0
NEEDS_ROOT = pytest.mark.skipif(not ROOT, reason="needs root")
ATTACKS = {attack.id: attack for attack in host_attacks()}


@pytest.fixture(scope="module")
def bare() -> Iterator[Bare]:
    made = Bare()
    yield made
    made.close()


@pytest.fixture(scope="module")
def ordinary() -> Iterator[Bare]:
    """The same as an ordinary user."""
    made = Bare(ordinary_user())
    yield made
    made.close()


def _assert_stopped(bare: Bare, layers: tuple[str, ...], name: str) -> None:
    attack = ATTACKS[name]
    if not bare.achieves((), attack):
        pytest.skip("this machine stops it even without a layer")
    answer = bare.run(layers, attack.source)
    assert answer["ready"] == '"ready"', answer
    assert not achieved(answer), answer


@pytest.mark.parametrize(
    "name",
    ["read_a_file_by_open", "write_a_new_file", "remove_a_file", "list_a_folder", "make_a_link", "connect_by_tcp",
     "connect_to_an_abstract_socket", "signal_the_parent", "end_a_sibling", "parent_memory"],
)  # fmt: skip
def test_landlock(bare: Bare, name: str) -> None:
    if get_landlock_abi() < 6:
        pytest.skip(f"Landlock ABI {get_landlock_abi()} covers files only")
    _assert_stopped(bare, ("landlock",), name)


@pytest.mark.parametrize(
    "name",
    ["read_a_file_by_open", "ask_for_the_size", "send_by_udp", "open_a_netlink_socket", "fork", "start_a_thread",
     "signal_the_parent", "memory_file", "memory_that_executes", "new_namespaces", "raise_its_limits",
     "keys_of_the_kernel"],
)  # fmt: skip
def test_seccomp(bare: Bare, name: str) -> None:
    _assert_stopped(bare, ("seccomp",), name)


@pytest.mark.parametrize(
    "name", ["much_memory_by_mmap", "much_memory_by_brk", "append_to_a_file", "many_sockets", "many_descriptors"]
)
def test_rlimits(bare: Bare, name: str) -> None:
    _assert_stopped(bare, ("rlimits",), name)


@NEEDS_ROOT
@pytest.mark.parametrize(
    "name", ["signal_the_parent", "end_a_sibling", "parent_memory", "become_root", "change_the_mode", "set_the_clock"]
)
def test_uid(bare: Bare, name: str) -> None:
    _assert_stopped(bare, ("uid",), name)


@NEEDS_ROOT
@pytest.mark.parametrize("name", ["fork", "start_a_thread"])
def test_limits_of_processes_need_a_user_of_their_own(bare: Bare, name: str) -> None:
    assert bare.achieves(("rlimits",), ATTACKS[name])  # the kernel does not count root's
    _assert_stopped(bare, ("rlimits", "uid"), name)


@NEEDS_ROOT
def test_no_new_privs(bare: Bare) -> None:
    attack = ATTACKS["become_root_by_a_program"]
    if not bare.achieves(("uid",), attack):
        pytest.skip("programs of root give nobody their rights here")
    answer = bare.run(("uid", "no_new_privs"), attack.source)
    assert "ran as 61000" in answer["said"]


@pytest.mark.parametrize("name", ["sibling_memory", "sibling_memory_by_process_vm_readv", "attach_to_a_sibling"])
def test_undumpable_keeps_workers_of_one_user_apart(ordinary: Bare, name: str) -> None:
    _assert_stopped(ordinary, ("undumpable",), name)


@pytest.mark.parametrize("name", ["own_environment", "inherited_descriptors"])
def test_a_clean_start(bare: Bare, name: str) -> None:
    _assert_stopped(bare, ("clean",), name)


@pytest.mark.parametrize("kind", ["worker", "session"])
def test_pdeathsig(kind: str) -> None:
    assert run_script("orphan", kind, "pdeathsig,uid").strip() == "ended"
    assert run_script("orphan", kind, "uid").strip() == "lives on"


def test_pdeathsig_when_the_parent_was_faster() -> None:
    assert run_script("orphan", "late", "pdeathsig").strip() == "ended"


@pytest.mark.parametrize(
    "abi,words", [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2), (6, 3), (7, 3), (99, 3)], ids=lambda value: str(value)
)
def test_every_abi_of_landlock_gets_the_ruleset_that_it_knows(abi: int, words: int) -> None:
    made = build_ruleset(abi)
    files = int.from_bytes(made[:8], "little")
    assert len(made) == 8 * words
    assert files.bit_count() == {1: 13, 2: 14, 3: 15, 4: 15}.get(abi, 16)


def test_layers_have_the_names_that_settings_use() -> None:
    names = "uid rlimits undumpable landlock no_new_privs pdeathsig seccomp namespaces"
    assert " ".join(sorted(LAYERS)) == " ".join(sorted(names.split()))


def test_no_attack_is_counted_twice() -> None:
    assert len({attack.source for attack in ATTACKS.values()}) == len(ATTACKS)
    assert all(isinstance(attack, Attack) for attack in ATTACKS.values())
