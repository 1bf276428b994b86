"""Foreign code: what its ids are made of shows when moments pass that nothing happens in."""

import sys
from pathlib import Path
from typing import Any

import pytest

from trajsmith.environments.program_sessions import RestorableSession
from trajsmith.environments.sources import EnvironmentSettings, open_source
from trajsmith.records import GoldCall, JsonObject
from trajsmith.verify.gold_run import GoldRun, run_all
from trajsmith.verify.nondeterminism import find_nondeterminism_mask
from trajsmith.verify.normalized_state import normalize_state

PLANTS = Path(__file__).parents[1] / "pipeline" / "foreign" / "Plants.py"


def note(plant: str, text: str) -> GoldCall:
    return GoldCall(tool="add_note", arguments={"plant_id": plant, "text": text}, provenance={}, effect="write")


@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox needs Linux")
async def test_ids_of_foreign_code_are_masked() -> None:
    source: Any = open_source(EnvironmentSettings(envfactory=PLANTS))
    try:
        state: JsonObject = (await source.states(0))[0]
        plants = list(state["plants"])
        session = await source.open()
        assert isinstance(session, RestorableSession)
        gold = GoldRun([[note(plants[0], "dry"), note(plants[1], "wet")]], session)
        await gold.play(state)
        masks, _ = await find_nondeterminism_mask(gold, session)
        assert (masks.tables, masks.clock, masks.counters) == (("notes",), "", "")
        assert len(masks.names) == 2
        await session.reset(state)
        other = await run_all(gold.steps[::-1], 1, session, gold.calls)
        assert other.states[0] != gold.ran.states[0]
        forms = [normalize_state(gold.initial, ran.states[0], masks) for ran in (gold.ran, other)]
        assert forms[0].hash == forms[1].hash
        await session.close()
    finally:
        source.close()
