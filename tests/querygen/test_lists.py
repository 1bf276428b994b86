"""The calls that lead to a list, when they are taken out of their task."""

from types import SimpleNamespace

from trajsmith.grounding import list_needed_keys
from trajsmith.querygen.vary._lists import find_opening_calls
from trajsmith.records import FromOutput, GoldCall, Selector, ToolSpec, UserFact

DOOR = Selector(rows="$.result", how="equals", field="lock_name", value="front door")


def test_what_the_user_knows_of_a_row_moves_with_the_call_that_lists_it():
    source = FromOutput(call=1, path="$.result[*].lock_id", selectors=(DOOR,))
    calls = (
        GoldCall(tool="run_scene", arguments={}, provenance={}, effect="write"),
        GoldCall(tool="list_locks", arguments={}, provenance={}, effect="read"),
        GoldCall(tool="list_codes", arguments={"lock_id": "L1"}, provenance={"lock_id": source}, effect="read"),
    )
    (key,) = list_needed_keys(calls[2])
    fact = UserFact(key=key, label="lock", value="front door", said="the front door")
    tool = ToolSpec(
        server="home", name="list_codes", description="List codes.",
        input_schema={"type": "object", "properties": {"lock_id": {"type": "string"}}, "required": ["lock_id"]},
    )  # fmt: skip
    opening, facts = find_opening_calls(SimpleNamespace(calls=calls, known={key: fact}), tool)
    (moved,) = list_needed_keys(opening[1])
    assert [call.tool for call in opening] == ["list_locks", "list_codes"]
    assert moved != key and facts == {moved: fact.model_copy(update={"key": moved})}
