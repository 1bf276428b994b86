"""Bad files of others: tools, OpenAPI documents, tables, recordings, environments, graphs, phrases, prompts."""

import csv
import json
import random
import sqlite3
import tempfile
from pathlib import Path

import yaml
from campaign import Case
from mutation import dump, mutate_bytes, mutate_document

HERE = Path(__file__).parents[1]
FOREIGN = HERE / "pipeline" / "foreign"
TOOLS = [
    {
        "server": "shop",
        "name": "list_orders",
        "description": "List orders.",
        "inputSchema": {"type": "object", "properties": {"status": {"type": "string", "enum": ["open", "sent"]}}},
        "outputSchema": {
            "type": "array",
            "items": {"$ref": "#/$defs/Order"},
            "$defs": {
                "Order": {"type": "object", "properties": {"order_id": {"type": "string"}, "total": {"type": "number"}}}
            },
        },
    },
    {
        "server": "shop",
        "name": "get_order",
        "description": "Get one order by its id.",
        "inputSchema": {
            "type": "object",
            "properties": {"order_id": {"type": "string", "pattern": "^O[0-9]+$"}},
            "required": ["order_id"],
        },
        "outputSchema": {"type": "object", "properties": {"order_id": {"type": "string"}, "total": {"type": "number"}}},
    },
]
CALL = {"id": "c1", "type": "function", "function": {"name": "list_accounts", "arguments": '{"customer_id": "C001"}'}}
MESSAGES = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Which accounts have I?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": '[{"id": "A1"}]'},
    {"role": "assistant", "content": "One."},
]
RECORDINGS = {
    "openai": ("recorded.jsonl", [{"id": "x", "messages": MESSAGES}, {"id": "y", "messages": MESSAGES}]),
    "sharegpt": (
        "recorded.json",
        [
            {
                "conversations": [
                    {"from": "human", "value": "Which accounts have I?"},
                    {
                        "from": "function_call",
                        "value": '{"name": "list_accounts", "arguments": {"customer_id": "C001"}}',
                    },
                    {"from": "observation", "value": "[]"},
                    {"from": "gpt", "value": "None."},
                ],
                "system": "Be kind.",
            }
        ],
    ),
    "tau2": (
        "recorded.json",
        {
            "info": {"environment_info": {"policy": "Be kind."}, "agent_info": {"llm": "m"}, "user_info": {"llm": "u"}},
            "tasks": [
                {
                    "id": "7",
                    "user_scenario": {"instructions": {"reason_for_call": "ask"}},
                    "evaluation_criteria": {
                        "actions": [{"name": "list_accounts", "arguments": {"customer_id": "C001"}}],
                        "communicate_info": ["one"],
                    },
                }
            ],
            "simulations": [
                {
                    "id": "s1",
                    "task_id": "7",
                    "messages": [
                        {"role": "user", "content": "Which?"},
                        {"role": "assistant", "tool_calls": [{"id": "a", "name": "list_accounts", "arguments": {}}]},
                        {"role": "tool", "id": "a", "content": "[]", "error": False},
                    ],
                    "reward_info": {"reward": 1.0, "db_check": {"db_match": True}},
                }
            ],
        },
    ),
    "taubench": (
        "recorded.json",
        [
            {
                "task_id": 3,
                "trial": 2,
                "reward": 0.0,
                "traj": MESSAGES,
                "info": {
                    "task": {
                        "instruction": "ask",
                        "actions": [{"name": "list_accounts", "kwargs": {"customer_id": "C001"}}],
                        "outputs": [],
                    }
                },
            }
        ],
    ),
    "bfcl": ("recorded.jsonl", [{"id": "m_0", "result": [[["[list_accounts(customer_id='C001')]", "One."]]]}]),
}
LIBRARY = "name: tiny\nenvironments:\n  - {library: bank, states: {small: 1}}\nsample: {count: 2, length: [3, 4]}\n"
TABLES = {
    "boats": "boat_id,name,length,berth_id\nB1,Anna,7.5,Q1\nB2,Berta,9,Q2\nB3,Clara,12,Q1\n",
    "berths": "berth_id,quay,price\nQ1,North,40\nQ2,South,55\n",
}
PROMPT = "---\nversion: '1'\npurpose: test\n---\n## system\nYou are {{ role }}.\n## user\n{{ question }}\n"


def special_documents():
    """Yield (name, file name, bytes, command) of files that somebody made to do harm."""
    deep = '{"a":' * 5000 + "1" + "}" * 5000
    nested = {
        "$defs": {
            f"D{n}": {
                "type": "object",
                "properties": {"a": {"$ref": f"#/$defs/D{n + 1}"}, "b": {"$ref": f"#/$defs/D{n + 1}"}},
            }
            for n in range(26)
        }
    }
    nested["$defs"]["D26"] = {"type": "string"}
    loop = {
        "type": "object",
        "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}},
        "properties": {"x": {"$ref": "#/$defs/A"}},
    }
    itself = {"type": "object", "properties": {"x": {"$ref": "#"}}}
    tool = {"server": "s", "name": "t", "description": "", "inputSchema": {}}
    schemas = {
        "nested definitions": {"type": "object", "properties": {"x": {"$ref": "#/$defs/D0"}}, **nested},
        "references in a circle": loop,
        "a schema of itself": itself,
        "reference to nothing": {"type": "object", "properties": {"x": {"$ref": "#/$defs/None"}}},
        "reference to the network": {"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:9/x.json"}}},
        "reference to a file": {"type": "object", "properties": {"x": {"$ref": "file:///etc/passwd"}}},
        "unending pattern": {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(a|a)*$"}}},
        "pattern that is none": {"type": "object", "properties": {"x": {"type": "string", "pattern": "(["}}},
        "huge enum": {"type": "object", "properties": {"x": {"enum": [f"v{n}" for n in range(50_000)]}}},
        "many properties": {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(3000)}},
        "huge bounds": {"type": "object", "properties": {"x": {"type": "array", "minItems": 10**30, "items": {}}}},
        "misspelt type": {"type": "object", "properties": {"x": {"type": "arry"}}},
        "deep": json.loads('{"type":"object","properties":{"x":' * 150 + "{}" + "}}" * 150),
    }
    build = ("graph", "build", "--tools", "tools.jsonl", "--out", "graph.json")
    for name, schema in schemas.items():
        for field in ("inputSchema", "outputSchema"):
            other = {"inputSchema": {"type": "object", "properties": {}}}
            yield f"{field} {name}", "tools.jsonl", dump([{**tool, **other, field: schema}], True), build
    yield "deep JSON", "tools.jsonl", deep.encode(), build
    yield "long name", "tools.jsonl", dump([{**tool, "name": "n" * 100_000}], True), build
    yield "name with escape", "tools.jsonl", dump([{**tool, "name": "\x1b[2Jx"}], True), build
    yield "name twice", "tools.jsonl", dump([tool, tool], True), build
    yield "description with escape", "tools.jsonl", dump([{**tool, "description": "\x1b]0;x\x07"}], True), build
    openapi = {
        "openapi": "3.1.0",
        "info": {"title": "T", "version": "1"},
        "paths": {
            "/things": {
                "get": {
                    "operationId": "listThings",
                    "responses": {"200": {"description": "ok", "content": {"application/json": {}}}},
                }
            }
        },
    }
    for name, schema in schemas.items():
        document = json.loads(json.dumps(openapi))
        body = {"schema": schema}
        document["paths"]["/things"]["post"] = {
            "operationId": "addThing",
            "requestBody": {"content": {"application/json": body}},
            "responses": {"201": {"description": "ok", "content": {"application/json": body}}},
        }
        yield f"OpenAPI {name}", "api.json", dump(document), ("env", "show", "api.json")
    yield "OpenAPI deep", "api.json", deep.encode(), ("env", "show", "api.json")
    yield "OpenAPI deep YAML", "api.yaml", ("openapi: 3.1.0\nx: " + "[" * 4000).encode(), ("env", "show", "api.yaml")
    yield "YAML alias of itself", "api.yaml", b"openapi: &a [*a]\n", ("env", "show", "api.yaml")
    code = {
        "exits": "import sys\nsys.exit(3)\n",
        "loops": "while True:\n    pass\n",
        "raises": "raise ValueError('a\\nb\\x1b[31m')\n",
        "raises our error": "from trajsmith.records import InputError\nraise InputError('mine')\n",
        "no class": "from trajsmith.environments.native import Environment\nx = 1\n",
        "syntax": "from trajsmith import (\n",
        "NUL": "from trajsmith import x\n\0",
        "deep": "from trajsmith import x\nx = " + "(" * 5000 + ")" * 5000,
        "long line": "from trajsmith import x\nx = '" + "y" * 5_000_000 + "'\n",
        "recursion": "from trajsmith import x\ndef f(): f()\nf()\n",
        "prints": "from trajsmith import x\nprint('\\x1b[2J' * 1000)\n",
        "memory": "from trajsmith import x\nx = bytearray(8 << 30)\n",
        "kills": "import os\nfrom trajsmith import x\nos.kill(os.getpid(), 9)\n",
        "raises an exit": "from trajsmith import x\nraise SystemExit\n",
        "raises a group": "from trajsmith import x\nraise BaseExceptionGroup('x', [KeyboardInterrupt()])\n",
    }
    for name, text in code.items():
        yield f"code {name}", "mine.py", f"# from trajsmith\n{text}".encode(), ("env", "show", "mine.py")
    for name, text in {
        "loops": "phrases: {a: '{% for x in range(10**9) %}a{% endfor %}'}",
        "recursion": "call: '{{ self }}'",
        "not a mapping": "- a",
        "deep": "roles: " + "[" * 3000,
        "number": "5",
        "binary": "roles: !!binary aGVsbG8=",
        "alias": "roles: &a [*a]",
        "escape": 'roles: ["\\e[31m"]',
        "unclosed": "call: {x: '{{ a'}",
    }.items():
        yield f"phrases {name}", "phrases.yaml", text.encode(), ("env", "show", "lending.yaml")


HARMFUL_PROMPTS = (
    "{% for a in range(10**12) %}x{% endfor %}",
    "{{ ''.__class__.__mro__ }}",
    "{% include '/etc/passwd' %}",
    "{{ x.y.z }}",
    "{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}",
)


def make_cases(full: bool, seed: int = 0):
    """Return cases of files made to do harm, and of mutated good ones."""
    dice = random.Random(seed)
    lending = (FOREIGN / "lending.json").read_text()
    extra = {
        "lending.json": lending,
        "lending.yaml": "name: x\nenvironments:\n  - {envscaler: {file: lending.json}, phrases: phrases.yaml}\n",
    }
    for name, file, data, command in special_documents():
        yield Case(f"file: {name}", command, {**(extra if file == "phrases.yaml" else {}), file: data})
    times = 12 if full else 2
    for number in range(4 * times):
        data = dump(mutate_document(TOOLS, dice), True) if number % 4 else mutate_bytes(dump(TOOLS, True), dice)
        yield Case(f"tools {number}", ("graph", "build", "--tools", "t.jsonl", "--out", "g.json"), {"t.jsonl": data})
    for kind, (file, document) in RECORDINGS.items():
        for number in range(4 * times):
            lines = file.endswith("l")
            data = dump(document, lines)
            data = dump(mutate_document(document, dice), lines) if number % 4 else mutate_bytes(data, dice)
            command = ("import", file, "--run", "imported", "--config", "line.yaml")
            command += ("--format", kind) if number % 2 else ()
            yield Case(f"recording {kind} {number}", command, {file: data, "line.yaml": LIBRARY})
    desk = yaml.safe_load((FOREIGN / "desk.yaml").read_text())
    for number in range(6 * times):
        data = yaml.safe_dump(mutate_document(desk, dice)).encode()
        data = data if number % 4 else mutate_bytes((FOREIGN / "desk.yaml").read_bytes(), dice)
        yield Case(f"OpenAPI {number}", ("env", "show", "desk.yaml"), {"desk.yaml": data})
        command = ("env", "gen", "--from-openapi", "desk.yaml", "--out", "made", "--dry-run")
        yield Case(f"OpenAPI made {number}", command, {"desk.yaml": data})
    scaler = json.loads(lending)
    for number in range(4 * times):
        data = dump(mutate_document(scaler, dice)) if number % 4 else mutate_bytes(lending.encode(), dice)
        yield Case(f"EnvScaler {number}", ("env", "show", "lending.json"), {"lending.json": data})
    yield from make_table_cases(dice, times)
    phrases = (HERE.parent / "environments/library/bank/phrases.yaml").read_text()
    for number in range(2 * times):
        data = mutate_bytes(phrases.encode(), dice)
        yield Case(f"phrases {number}", ("env", "show", "lending.yaml"), {**extra, "phrases.yaml": data})
        data = PROMPT.encode() if number == 0 else mutate_bytes(PROMPT.encode(), dice)
        yield Case(f"prompts {number}", ("prompts", "list", "--prompts", "p"), {"p/verify/judge.md.j2": data})
    for number, text in enumerate(HARMFUL_PROMPTS):
        files = {"p/verify/judge.md.j2": PROMPT + text}
        yield Case(f"prompts code {number}", ("prompts", "list", "--prompts", "p"), files)


def make_table_cases(dice, times):
    """Yield mutated tables as CSV, JSON and SQLite, and lists of domains and tasks."""
    with tempfile.TemporaryDirectory() as folder:
        base = sqlite3.connect(f"{folder}/a.db")
        base.executescript(
            "CREATE TABLE boats (boat_id TEXT PRIMARY KEY, name TEXT, berth_id TEXT REFERENCES berths (berth_id));"
            "CREATE TABLE berths (berth_id TEXT PRIMARY KEY, price REAL);"
            "INSERT INTO boats VALUES ('B1', 'Anna', 'Q1'), ('B2', 'Berta', 'Q1');"
            "INSERT INTO berths VALUES ('Q1', 40);"
        )
        base.commit()
        base.close()
        database = Path(folder, "a.db").read_bytes()
    rows = {name: list(csv.DictReader(text.splitlines())) for name, text in TABLES.items()}
    for number in range(3 * times):
        files = {f"t/{name}.csv": mutate_bytes(text.encode(), dice) for name, text in TABLES.items()}
        yield Case(f"CSV {number}", ("env", "gen", "--from-tables", "t", "--out", "made", "--dry-run"), files)
        command = ("env", "gen", "--from-tables", "t.json", "--out", "made", "--dry-run")
        yield Case(f"JSON tables {number}", command, {"t.json": dump(mutate_document(rows, dice))})
        command = ("env", "gen", "--from-tables", "t.db", "--out", "made", "--dry-run")
        yield Case(f"SQLite {number}", command, {"t.db": mutate_bytes(database, dice)})
        tools = [{key: value for key, value in tool.items() if key != "server"} for tool in TOOLS]
        command = ("env", "gen", "--from-mcp", "tools.json", "--out", "made", "--dry-run")
        yield Case(f"MCP list {number}", command, {"tools.json": dump(mutate_document({"tools": tools}, dice))})
        data = mutate_bytes(b"- harbour office\n- library\n- name: bakery\n  about: bread\n", dice)
        yield Case(f"domains {number}", ("env", "sources", "--from-domains", "d.yaml"), {"d.yaml": data})
        data = dump(mutate_document([{"query": "Book a berth"}, {"task": "Bake"}], dice), True)
        yield Case(f"tasks {number}", ("env", "sources", "--from-tasks", "d.jsonl"), {"d.jsonl": data})
