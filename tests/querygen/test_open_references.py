"""A reference that is left open: it fits two or three rows of a list, and not all of them."""

from types import SimpleNamespace

import pytest

from trajsmith.phrasing import EntityPhrases, Phrasebook, Wording
from trajsmith.querygen.vary.ambiguous_reference import _iter_readings
from trajsmith.records import FromOutput, GoldCall, Selector, UserFact


def list_readings(towns):
    rows = [{"trip_id": f"T{number}", "start": "Brindle", "to": town} for number, town in enumerate(towns)]
    rows = [{**row, "day": f"2026-06-0{number + 1}"} for number, row in enumerate(rows)]
    pick = Selector(rows="$.result", field="day", how="equals", value="2026-06-01")
    source = FromOutput(call=0, path="$.result[*].trip_id", selectors=(pick,))
    calls = [
        GoldCall(tool="list_trips", arguments={}, provenance={}, effect="read", result={"result": rows}),
        GoldCall(tool="cancel", arguments={"trip_id": "T0"}, provenance={"trip_id": source}, effect="write"),
    ]
    by = {field: [f"the trip {field} {{value}}"] for field in ("start", "to", "day")}
    book = Phrasebook(entities={"trip_id": EntityPhrases(noun="trip", by=by)})
    known = {"0:$.result:day": UserFact(key="k", label="day", value="", said="")}
    case = SimpleNamespace(
        calls=calls, spans=[(0, 2)], wording=Wording(book, []), first_needed=lambda key: 0, known=AnyKey(known)
    )
    return [(reading.field, reading.rows) for reading in _iter_readings(case)]


class AnyKey(dict):
    def __contains__(self, key):
        return True


@pytest.mark.parametrize(
    ("towns", "readings"),
    [(["Selbay", "Selbay", "Lunna"], [("to", 2)]), (["Selbay", "Selbay"], []), (["Selbay", "Lunna", "Oxley"], [])],
)
def test_what_all_rows_have_in_common_picks_none_of_them(towns, readings):
    assert list_readings(towns) == readings
