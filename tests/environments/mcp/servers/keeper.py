"""A shelf that is saved and loaded by tools, or only played again; by mode it lies, breaks, or is not deterministic.

Speaks JSON-RPC by hand, because that starts ten times faster than the SDK, and because the SDK does not let it break.
"""

import json
import os
import sys
import time

MODE = sys.argv[1]
ANY = {"type": "object", "properties": {}}
TITLE = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
STATE = {"type": "string"} if MODE == "as_text" else {"type": "object"}
TOOLS = {
    "add": {"inputSchema": TITLE},
    "look": {"inputSchema": ANY, "annotations": {"readOnlyHint": True}},
    "peek": {"inputSchema": ANY, "_meta": {"trajsmith/actor": os.environ.get("PEEKS", "assistant")}},
    "dump": {"inputSchema": TITLE if MODE == "needs_more" else ANY},
    "restore": {"inputSchema": {"type": "object", "properties": {"shelf": STATE}}},
}
shelf: dict = {"books": {}, "last": 0}
loads = adds = 0


def add(title: str) -> object:
    global adds
    adds += 1
    if title == "full":
        raise ValueError("the shelf is full")
    if MODE == "dies_on_add" and title == "last":
        os._exit(3)
    shelf["last"] += 1
    key = f"p{os.getpid()}" if MODE == "random_ids" else f"b{shelf['last']}"
    if MODE == "refuses_again" and os.path.exists("been.here"):  # noqa: PTH110 - pathlib doubles the start
        raise ValueError("not twice")
    shelf["books"][key] = title
    return {"key": key, "at": time.time_ns() if MODE == "tells_time" else 0}


def dump() -> object:
    if MODE == "saves_text":
        return "a shelf with books"
    if MODE == "saves_list":
        return [shelf]
    if MODE == "refuses_save":
        raise ValueError("not now")
    if MODE == "floods":
        return {"flood": "x" * 17_000_000}
    if MODE == "as_text":
        return json.dumps(shelf)
    return shelf


def restore(given: object) -> object:
    global shelf, loads
    loads += 1
    if MODE == "dies_in_load":
        os._exit(5)
    if MODE == "hangs_in_load":
        time.sleep(600)
    if MODE == "nonsense_in_load":
        sys.stdout.write("loading...\n" * 200)
        sys.stdout.flush()
    if MODE == "refuses_load" or (MODE == "refuses_odd" and "books" not in given):
        raise ValueError("no shelf")
    loaded = json.loads(given) if MODE == "as_text" else given
    if MODE == "merges":
        shelf["books"].update(loaded["books"])
        shelf["last"] = loaded["last"]
    elif MODE == "forgets":
        shelf = {"books": {}, "last": loaded["last"]}
    elif MODE != "ignores":
        shelf = loaded
    return "loaded"


def act(name: str, arguments: dict) -> object:
    if name == "add":
        return add(**arguments)
    if name in ("look", "peek"):
        return {"books": shelf["books"], "loads": loads, "adds": adds, "pid": os.getpid()}
    return dump() if name == "dump" else restore(arguments["shelf"])


def answer(number: object, result: object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}) + "\n")
    sys.stdout.flush()


for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "initialize":
        about = {"name": "keeper", "version": "1"}
        answer(message["id"], {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about})
    elif message["method"] == "tools/list":
        answer(message["id"], {"tools": [{"name": name, **spec} for name, spec in TOOLS.items()]})
    elif message["method"] == "tools/call":
        failed = False
        try:
            given = act(message["params"]["name"], message["params"].get("arguments") or {})
            text = given if isinstance(given, str) else json.dumps(given)
        except ValueError as error:
            failed, text = True, str(error)
        answer(message["id"], {"content": [{"type": "text", "text": text}], "isError": failed})
