"""A live MCP server as environment: the server of this folder, over stdio.

    python examples/mcp_server/run.py

The server saves and loads its state by tools of its own (`snapshot`), so that one process serves many dialogues. A
server without such tools needs only its `command` or `url`, and `observe`, the calls whose results count as state; it
is started anew for every dialogue.
"""

import sys
from pathlib import Path

import trajsmith as ts

SERVER = {
    "name": "shopping",
    "description": "A shopping list.",
    "command": [sys.executable, str(Path(__file__).with_name("server.py"))],
    "snapshot": {"save": "save_state", "load": "load_state", "argument": "state", "reuse": True},
    "parameter_examples": {"set_amount.amount": [1, 2, 5, 12]},
}


def main() -> None:
    config = {
        "name": "shopping",
        "environments": [{"mcp": SERVER}],
        "graph": {"execution": {"calls": 0, "live_calls": 0}},  # links from the schemas alone: quicker
        "sample": {"count": 2, "length": [2, 2]},
        "ground": {"min_calls": 1},
    }
    run = ts.run(config, run="runs/shopping", fresh=True)
    print(run.summary.funnel)
    for message in next(run.rows())["messages"]:
        print(message["role"], message.get("tool_calls") or message["content"][:80])


if __name__ == "__main__":
    main()
