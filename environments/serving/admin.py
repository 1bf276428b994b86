"""Tools that a served environment has only with `--admin`: whoever has them decides what the state is."""

from trajsmith.records import ToolAnnotations, ToolSpec

_NOTHING = {"type": "object", "properties": {}, "additionalProperties": False}
_HASH = {"type": "object", "properties": {"state_hash": {"type": "string"}}, "required": ["state_hash"]}

ADMIN_TOOLS: dict[str, ToolSpec] = {
    tool.name: tool
    for tool in (
        ToolSpec(
            server="admin",
            name="load_state",
            description="Administration: continue from this state, whatever happened before.",
            input_schema={
                "type": "object",
                "properties": {
                    "state": {"type": "object", "description": "A state as save_state gives it, or an initial one."}
                },
                "required": ["state"],
                "additionalProperties": False,
            },
            output_schema=_HASH,
            annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True),
        ),
        ToolSpec(
            server="admin",
            name="save_state",
            description="Administration: the whole state as it is now.",
            input_schema=_NOTHING,
            output_schema={"type": "object"},
            annotations=ToolAnnotations(read_only_hint=True),
        ),
        ToolSpec(
            server="admin",
            name="reset",
            description="Administration: go back to the initial state of this connection.",
            input_schema=_NOTHING,
            output_schema=_HASH,
            annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True),
        ),
    )
}
"""By name."""
