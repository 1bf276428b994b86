"""Tools by which an agent reaches other tools: it lists or searches them, and calls one by its name.

`play.tools: two_level` shows list_tools and call_tool (AWM A.4). A task with `search` shows search_tools and call_tool.
"""

from trajsmith.records.tool import ToolSpec

LIST_TOOLS, SEARCH_TOOLS, CALL_TOOL = "list_tools", "search_tools", "call_tool"
DIRECTORY_TOOLS = frozenset({LIST_TOOLS, SEARCH_TOOLS})
"""Those that show tools and nothing of the environment; the environment is not asked."""

_CALL = ToolSpec(
    server="",
    name=CALL_TOOL,
    description="Call one of the tools that were shown, by its name.",
    input_schema={
        "type": "object",
        "properties": {
            "tool_name": {"type": "string", "description": "Name of the tool, as it was shown."},
            "arguments": {"type": "string", "description": 'Arguments as a JSON string, for example {"id": "7"}.'},
        },
        "required": ["tool_name", "arguments"],
    },
)
TWO_LEVEL = (
    ToolSpec(
        server="",
        name=LIST_TOOLS,
        description="List the tools of this environment, each with its description and the schema of its arguments.",
        input_schema={"type": "object", "properties": {}},
    ),
    _CALL,
)
TOOL_SEARCH = (
    ToolSpec(
        server="",
        name=SEARCH_TOOLS,
        description="Search for tools. Returns those that fit the query best, each with its description and the schema "
        "of its arguments.",
        input_schema={
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What the tool should do, in a few words."},
            },
            "required": ["query"],
        },
    ),
    _CALL,
)
