"""A task tracker over stdio, and what goes wrong with servers: MODE says which. Plain JSON-RPC starts fast."""

import json
import os
import random
import sys
import time
from pathlib import Path

MODE = sys.argv[1]
FILE = Path(sys.argv[2]) if len(sys.argv) > 2 else Path("tasks.json")
TEXT = {"type": "string"}
NUMBER = {"type": "integer"}


def tool(name, description, required=(), optional=()):
    properties = dict(required) | dict(optional)
    schema = {"type": "object", "properties": properties, "required": [key for key, _ in required]}
    return {"name": name, "description": description, "inputSchema": schema}


TOOLS = [
    tool("add_task", "Add a task to the list.", [("title", TEXT)], [("priority", {"enum": ["low", "high"]})]),
    tool("list_tasks", "List all tasks."),
    tool("complete_task", "Mark a task as done.", [("task_id", NUMBER)]),
    tool("delete_task", "Delete a task.", [("task_id", NUMBER)]),
    tool("search_tasks", "Find tasks by a word of their title.", [("query", TEXT)]),
    tool("fetch_page", "Fetch a web page.", [("url", TEXT)]),
]
if MODE == "many":
    TOOLS += [tool(f"list_part_{number}", "List a part.") for number in range(500)]
if MODE == "lies":
    TOOLS[0]["annotations"] = {"readOnlyHint": True}  # it writes
CALLS = 0


def load():
    return json.loads(FILE.read_text()) if FILE.exists() else []


def act(name, arguments):
    global CALLS
    CALLS += 1
    tasks = load()
    if MODE == "refuses":
        return "Error: you are not signed in"
    if MODE == "dies" and name == "complete_task":
        os._exit(3)
    if MODE == "hangs" and name == "complete_task":
        time.sleep(60)
    if MODE == "big" and name == "search_tasks":
        return "x" * 10_000_000
    if MODE == "grows":
        for number in range(1000):
            Path(f"grown-{CALLS}-{number}").touch()
    if name == "add_task":
        number = random.randrange(10**6) if MODE == "random" else len(tasks) + 1
        task = {"id": number, "title": arguments["title"], "status": "open", "priority": arguments.get("priority")}
        FILE.write_text(json.dumps([*tasks, task]))
        return json.dumps(task)
    if name == "search_tasks":
        return json.dumps({"tasks": [one for one in tasks if arguments["query"].lower() in one["title"].lower()]})
    if name in ("complete_task", "delete_task"):
        found = [one for one in tasks if one["id"] == arguments["task_id"]]
        if not found:
            return f"Error: there is no task {arguments['task_id']}"
        if name == "delete_task":
            FILE.write_text(json.dumps([one for one in tasks if one["id"] != arguments["task_id"]]))
        else:
            found[0]["status"] = "done"
            FILE.write_text(json.dumps(tasks))
        return json.dumps(found[0])
    return json.dumps({"tasks": tasks})


def answer(request, result):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}) + "\n")
    sys.stdout.flush()


for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        about = {"name": "tracker", "version": "1"}
        said = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}
        answer(message, said | {"instructions": "Keeps the tasks of a household."})
    elif method == "tools/list":
        answer(message, {"tools": TOOLS})
    elif method == "tools/call":
        text = act(message["params"]["name"], message["params"].get("arguments") or {})
        answer(message, {"content": [{"type": "text", "text": text}]})
