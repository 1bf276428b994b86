"""Keys under which a served environment tells what MCP has no word for."""

REFUSAL = "trajsmith/refusal"
"""In `_meta` of an error result: the kind of refusal."""
FAULT = "trajsmith/fault"
"""In the data of a protocol error: the environment broke; kind, environment, tool."""
