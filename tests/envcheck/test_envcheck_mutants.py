"""A sample of seeded faults in a bundled environment; `benchmarks/sharpness.py` has them all."""

from itertools import islice
from pathlib import Path

import pytest
from mutants import KINDS, ModuleMutant, MutantSource, build_mutants, load_overridden

from trajsmith.envcheck import CheckPlan, check_environment
from trajsmith.envcheck.checks import CHECKS
from trajsmith.envcheck.exploration import ExplorationEffort
from trajsmith.environments import library
from trajsmith.environments.native_source import NativeSource

PACKAGE = "trajsmith.environments.library.smart_home"
FILE = Path(library.__file__).parent / "smart_home" / "__init__.py"
PLAN = CheckPlan(effort=ExplorationEffort(first=12, enough=3, hard=30, walks=1, length=12), seeds=8, starts=2)

SAMPLE = [
    ("off_by_one", "until_day > today", "boundaries"),
    ("missing_write", "without lock.status = wanted", "writes"),
    ("missing_write", "without code.revoked = True", "writes"),
    ("missing_write", "without self.state.access_codes[code.access_code_id]", "answered_names"),
    ("missing_write", "without device.level = level", "silent_write"),
    ("wrong_key", "access_code_id=lock_id", "identifiers"),
    ("wrong_key", "lock_id=lock.lock_name", "answered_names"),
    ("wrong_key", "device_id=device.device_name", "answers"),
    ("wrong_key", "self.state.access_codes[code.access_code_id] under", "references"),
    ("swallowed_error", "any row of self.state.scenes", "unknown"),
    ("swallowed_error", "no ToolError('the last day of a code", "past_days"),
    ("swallowed_error", "no ToolError(f'that schedule already starts", "silent_write"),
    ("wrong_type", "schedule.starts_at = starts_at as a list", "crash"),
    ("wrong_type", "the result of get_energy_use as text", "output_schema"),
    ("shared_state", "'access_code' ids counted in the class", "determinism"),
    ("shared_state", "results of list_rooms kept in the class", "answers"),
    ("unsaved_field", "set_door_lock remembers", "save_load"),
    ("unsaved_field", "rows of self.state.access_codes", "answered_names"),
    ("output_missing", "EnergyUse without highest_week", "output_schema"),
    ("output_missing", "LockRow without door_open", "output_schema"),
    ("effect_undeclared", "list_access_codes declared as write", "writes"),
    ("effect_undeclared", "set_level declared as read", "effect"),
    ("refusal_without_reason", "the last day of a code", "refusal_reason"),
    ("refusal_without_reason", "is for adults only", "refusal_reason"),
    ("stale_index", "list_access_codes by an old list", "save_load"),
    ("stale_index", "list_devices answers as it did before", "save_load"),
]


def seeded(kind: str, what: str) -> ModuleMutant:
    return next(build_mutants(PACKAGE, FILE, (kind,), lambda site: what in site.description))


@pytest.mark.parametrize(("kind", "what", "check"), SAMPLE, ids=[f"{kind}-{what[:30]}" for kind, what, _ in SAMPLE])
async def test_a_seeded_fault_is_found(kind: str, what: str, check: str) -> None:
    mutant = seeded(kind, what)
    with load_overridden(PACKAGE, {mutant.module: mutant.text}) as module:
        source = NativeSource(module.SmartHome, {"small": 1})
        report = await check_environment(source, PLAN, [one for one in CHECKS if one.name == check])
    assert check in {finding.check for finding in report.findings if finding.severity != "note"}


async def test_the_machines_clock_is_found_in_another_process() -> None:
    """The mutant is loaded from its text over there as well."""
    mutant = seeded("wall_clock", "create_access_code")
    texts = {mutant.module: mutant.text}
    with load_overridden(PACKAGE, texts) as module:
        source = MutantSource(module.SmartHome, {"small": 1}, texts)
        report = await check_environment(source, PLAN, [one for one in CHECKS if one.name in ("determinism", "clock")])
    assert [(finding.check, finding.tool) for finding in report.findings] == [("clock", "create_access_code")]
    assert [step.tool for step in report.findings[0].case.steps] == ["create_access_code"]


async def test_results_kept_across_states_are_found_by_isolation() -> None:
    """Small homes have the same rooms, so that names do not betray a kept result; another process does."""
    mutant = seeded("shared_state", "results of get_energy_use kept in the class")
    texts = {mutant.module: mutant.text}
    with load_overridden(PACKAGE, texts) as module:
        source = MutantSource(module.SmartHome, {"small": 1}, texts)
        report = await check_environment(source, PLAN, [one for one in CHECKS if one.name == "isolation"])
    assert [(finding.check, finding.tool) for finding in report.findings] == [("isolation", "get_energy_use")]


async def test_the_sound_environment_gives_no_finding() -> None:
    with load_overridden(PACKAGE, {}) as module:
        report = await check_environment(NativeSource(module.SmartHome, {"small": 1}), PLAN)
    assert [finding.message for finding in report.findings if finding.severity != "note"] == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_places(kind: str) -> None:
    found = list(islice(build_mutants(PACKAGE, FILE, (kind,)), 3))
    assert len(found) == 3
    assert len({mutant.text for mutant in found}) == len(found)
    for mutant in found:
        compile(mutant.text, mutant.name, "exec")


def test_loading_a_mutant_leaves_the_library_as_it_was() -> None:
    from trajsmith.environments.library import smart_home

    mutant = seeded("effect_undeclared", "list_rooms")
    with load_overridden(PACKAGE, {mutant.module: mutant.text}) as module:
        assert module is not smart_home
        assert module.SmartHome is not smart_home.SmartHome
    from trajsmith.environments.library import smart_home as again

    assert again is smart_home
