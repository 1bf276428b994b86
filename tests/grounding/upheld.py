"""What every grounded chain must uphold, whatever it was grounded with."""

from trajsmith.environments import Session, ToolResult
from trajsmith.grounding import build_selector_key, iterate_leaves, list_needed_keys, resolve_reference
from trajsmith.records import EnvironmentSpec, FromOutput, FromUser, GroundedChain, JsonObject


async def assert_runs_again(grounded: GroundedChain, state: JsonObject, session: Session) -> None:
    """The gold calls give the same results and state hashes from a fresh start."""
    await session.reset(state)
    for call, expected in zip(grounded.calls, grounded.states, strict=True):
        before = await session.state_hash()
        result = await session.call(call.tool, call.arguments, call.actor)
        assert result == ToolResult(call.result)
        assert await session.state_hash() == expected
        assert call.effect == ("write" if expected != before else "read")


def assert_provenance_is_right(grounded: GroundedChain, spec: EnvironmentSpec) -> None:
    """Every value is what its provenance says, and the user knows what the user must say."""
    known = {entry.key: entry.value for entry in grounded.known}
    for number, call in enumerate(grounded.calls):
        assert set(call.provenance) == set(call.arguments)
        assert set(spec.tool(call.tool).required) <= set(call.arguments)
        assert set(list_needed_keys(call)) <= set(known)
        for _, source, value in iterate_leaves(call):
            if isinstance(source, FromUser):
                assert known[source.known] == value
            elif isinstance(source, FromOutput):
                assert source.call < number
                assert resolve_reference(source, grounded.calls[source.call].result) == value
                for selector in source.selectors:
                    if selector.how != "only":
                        assert known[build_selector_key(source.call, selector)] == selector.value
