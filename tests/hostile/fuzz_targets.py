"""The parsers that see foreign bytes, each as a function of bytes that lets only its documented errors pass.

A target that raises anything else, takes too long or too much memory has a fault. `fuzz.py` drives them by coverage,
`test_fuzz_targets.py` by a short corpus and by mutations of it.
"""

import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from trajsmith.records import InputError, RecordDropped

Target = Callable[[bytes], None]
TARGETS: dict[str, Target] = {}
SEEDS: dict[str, tuple[bytes, ...]] = {}


def target(*seeds: bytes) -> Callable[[Target], Target]:
    """Register a target by its name, with inputs to start from."""

    def register(function: Target) -> Target:
        TARGETS[function.__name__] = function
        SEEDS[function.__name__] = seeds
        return function

    return register


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="fuzz"))


def _file(name: str, data: bytes) -> Path:
    path = _folder() / name
    path.write_bytes(data)
    return path


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


@cache
def _codec() -> Any:
    from trajsmith.environments.sandbox.codec import ReplyCodec, SizeLimits

    return ReplyCodec(SizeLimits(1 << 16, 1 << 16))


@target(
    b"\x00\x91\x93\x01\x00\xc4\x09{\"a\": 1}\n", b"\x02\x91\x93\x01\x00\xc4\x07\x91\x93\xa1a\xa1b\xc0",
    b"\x01\x91\x93\x01\x04\xc4\x0a\x93\xa5crash\xa1x\xc0", b"\x05\x91\x93\x01\x00\xc4\x0b\x92\xc4\x07{\"a\":1}\x90",
)  # fmt: skip
def worker_reply(data: bytes) -> None:
    """A frame of a worker, for a request of the operation that the first byte names."""
    from trajsmith.environments.sandbox.codec import ProtocolError
    from trajsmith.environments.sandbox.serialization import WorkerOp

    operations = list(WorkerOp)
    operation = operations[data[0] % len(operations)] if data else operations[0]
    try:
        replies = _codec().decode(data[1:], [[1, operation]])
    except ProtocolError as error:
        assert str(error).isprintable() and len(str(error)) < 300
    else:
        assert len(replies) == 1


@target(b"\x05\x00\x00\x00hello\x01\x00\x00\x00x")
def worker_stream(data: bytes) -> None:
    """A stream of frames."""
    from trajsmith.environments.sandbox.serialization import FrameReader

    reader = FrameReader()
    try:
        for start in range(0, len(data), 7):
            reader.feed(data[start : start + 7])
            while reader.frame(1 << 10) is not None:
                pass
    except ValueError:
        return
    assert len(reader) <= len(data)


@target(
    b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"[1]"}],"structuredContent":{"a":[1]}}}',
    b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}}],"nextCursor":"x"}}',
    b'{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"no"}}', b'{"jsonrpc":"2.0","method":"x"}',
)  # fmt: skip
def mcp_message(data: bytes) -> None:
    """A line of a live MCP server: a message, the result of a call in it, or a list of tools."""
    from mcp_types import CallToolResult, ListToolsResult
    from pydantic import ValidationError

    from trajsmith.environments.adapters.mcp.results import read_content, read_refusal
    from trajsmith.environments.adapters.mcp.transport import parse_message
    from trajsmith.records.canonical import canonical_json

    try:
        message = parse_message(data)
    except ValueError:
        return
    result = getattr(message, "result", None)
    for kind in (CallToolResult, ListToolsResult):
        try:
            parsed = kind.model_validate(result, by_name=False)
        except ValidationError:
            continue
        if isinstance(parsed, CallToolResult):
            with suppress(InputError):  # a number that cannot be stored: a call makes a fault of it
                canonical_json(read_content(parsed))
            read_refusal(parsed, str)


@target(
    b'{"choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}',
    b'{"choices":[{"message":{"content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}}]}',
    b'{"choices":[{"message":{"content":[{"type":"text","text":"x"}],"reasoning_content":"y"}}],"model":5}',
)  # fmt: skip
def model_reply(data: bytes) -> None:
    """The body of a chat completion."""
    from trajsmith.models.failures import FailedAttempt
    from trajsmith.models.serialization import parse_reply, serialize_message

    try:
        reply = parse_reply(data)
    except FailedAttempt as failed:
        str(failed)
        return
    orjson.dumps(serialize_message(reply.message, "reasoning"))
    reply.model_dump_json()


@target(
    b'{"status":"completed","output":[{"type":"reasoning","encrypted_content":"x","summary":[{"text":"a"}]},'
    b'{"type":"message","content":[{"type":"output_text","text":"hi"}]}],"usage":{"input_tokens":1}}',
    b'{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"function_call",'
    b'"call_id":"c","name":"f","arguments":"{}"}]}',
    b'{"status":"failed","error":{"code":"server_error","message":"no"}}',
)
def model_response(data: bytes) -> None:
    """The body of a response of the Responses API."""
    from trajsmith.models.failures import FailedAttempt
    from trajsmith.models.responses_api import parse_response, serialize_items

    try:
        reply = parse_response(data)
    except FailedAttempt as failed:
        str(failed)
        return
    orjson.dumps(serialize_items(reply.message))
    reply.model_dump_json()


@target(
    b'{"error": {"message": "no such model", "code": "model_not_found", "type": null}}', b"<html>bad gateway</html>",
    b'{"detail": [{"msg": "maximum context length is 5"}]}',
)  # fmt: skip
def model_error(data: bytes) -> None:
    """The body of a response with an error status."""
    from trajsmith.models.failures import FailedAttempt, HttpErrorResponse
    from trajsmith.records import TrajsmithError

    status = (400, 401, 404, 408, 413, 429, 500, 503)[len(data) % 8]
    headers = {"retry-after": data[:20].decode("latin-1")}
    error = HttpErrorResponse.read(status, data, headers).to_error("models.m", asked_tools=True)
    assert isinstance(error, FailedAttempt | TrajsmithError)
    str(error)


@target(
    b'<think>so</think>yes <tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call> {"score": 1, "reason": "x"}',
    b'```json\n{"score": 0.5, "reason": ""}\n```', b"[1, {}]",
    b"<tool_call>f\n<arg_key>a</arg_key><arg_value>1</arg_value></tool_call>",
    b"<tool_call><function=f><parameter=a>\n1\n</parameter></function></tool_call>",
    b'[TOOL_CALLS][{"name": "f", "arguments": {}}]', b'[TOOL_CALLS]f[ARGS]{"a": 1}', b'{"name": "f", "parameters": {}}',
    "<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{}\n```<｜tool▁call▁end｜>".encode(),
)  # fmt: skip
def model_text(data: bytes) -> None:
    """What a model wrote: reasoning, calls in every format, an object."""
    from pydantic import BaseModel

    from trajsmith.models.call_formats import FORMATS, split_calls, split_reasoning
    from trajsmith.models.structured import parse_answer
    from trajsmith.records.chat_tokens import find_chat_token

    class Answer(BaseModel):
        score: float
        reason: str

    text = data.decode("utf-8", "replace")
    _, rest = split_reasoning(text)
    tool = {"function": {"name": "f", "parameters": {"properties": {"a": {"type": ["integer", "null"]}}}}}
    for form in FORMATS:
        _, calls, malformed = split_calls(rest, form, [tool])
        for call in (*calls, *malformed):
            call.model_dump_json()
    find_chat_token(text)
    try:
        parse_answer(rest, Answer)
    except ValueError:
        return


OPENAPI = (
    b'{"openapi":"3.1.0","info":{"title":"T","version":"1"},"paths":{"/pets":{"get":{"responses":{"200":{"description":'
    b'"","content":{"application/json":{"schema":{"type":"array","items":{"$ref":"#/components/schemas/Pet"}}}}}}},'
    b'"post":{"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Pet"}}}},'
    b'"responses":{"201":{"description":""}}}},"/pets/{id}":{"get":{"parameters":[{"name":"id","in":"path","schema":'
    b'{"type":"string","pattern":"^a+$"}}],"responses":{"200":{"description":"","content":{"application/json":{"schema"'
    b':{"$ref":"#/components/schemas/Pet"}}}}}}}},"components":{"schemas":{"Pet":{"type":"object","properties":{"id":'
    b'{"type":"string"},"age":{"type":"integer","maximum":9},"owner":{"$ref":"#/components/schemas/Pet"}}}}}}'
)


@target(
    OPENAPI, b"openapi: 3.0.1\ninfo: {title: T, version: '1'}\npaths:\n  /a/{b}:\n    get: {responses: {200: {x: 1}}}\n"
)
def openapi(data: bytes) -> None:
    """An OpenAPI document, as text, and the environment that is derived from it."""
    from trajsmith.environments.adapters.openapi.program import load
    from trajsmith.records import EnvironmentFault

    text = _text(data)
    if text is None:
        return
    payload: dict[str, Any] = {"file": "api.yaml", "text": text, "name": "api", "include": None, "exclude": []}
    payload |= {"states": {"small": 1}, "policy": "", "domain": "", "user": None}
    try:
        load(payload)
    except (InputError, EnvironmentFault) as error:
        str(error)


@target(b"\x00a,b\n1,2\n3,\n", b'\x00a;b\n"x\ny";2\n', b'\x01[{"a": 1, "b": null}]', b'\x02{"a": 1}\n{"a": "x"}\n')
def tables(data: bytes) -> None:
    """CSV, JSON or JSON Lines with tables."""
    from trajsmith.envgen.generate.from_tables import read_tables

    suffix = ("csv", "json", "jsonl", "tsv")[data[0] % 4] if data else "csv"
    try:
        read_tables(_file(f"table.{suffix}", data[1:]))
    except InputError as error:
        str(error)


@cache
def _database() -> bytes:
    import sqlite3

    path = _folder() / "seed.db"
    base = sqlite3.connect(path)
    base.executescript(
        "PRAGMA page_size=512; CREATE TABLE a (id TEXT PRIMARY KEY, n REAL); CREATE TABLE b (a_id REFERENCES a (id));"
        "INSERT INTO a VALUES ('x', 1), ('y', 2.5); INSERT INTO b VALUES ('x');"
    )
    base.commit()
    base.close()
    return path.read_bytes()


@target()
def sqlite(data: bytes) -> None:
    """A SQLite database: the input says which bytes of a good one change."""
    from trajsmith.envgen.generate.from_tables import read_tables

    base = bytearray(_database())
    for at in range(0, len(data) - 2, 3):
        base[int.from_bytes(data[at : at + 2], "big") % len(base)] = data[at + 2]
    try:
        read_tables(_file("table.db", bytes(base)))
    except InputError as error:
        str(error)


@cache
def _parquet() -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    path = _folder() / "seed.parquet"
    parquet.write_table(pa.table({"a": ["x", "y"], "b": [[1], [2, 3]]}), path)
    return path.read_bytes()


@target()
def parquet(data: bytes) -> None:
    """A Parquet file of a dataset that is pushed: the input says which bytes of a good one change."""
    from trajsmith.export.hub import _refuse_secrets

    base = bytearray(_parquet())
    for at in range(0, len(data) - 2, 3):
        base[int.from_bytes(data[at : at + 2], "big") % len(base)] = data[at + 2]
    try:
        _refuse_secrets(_file("t.parquet", bytes(base)), "dataset")
    except InputError as error:
        str(error)


TRACES = (
    b'{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":'
    b'"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"[]"}]}',
    b'[{"conversations":[{"from":"human","value":"a"},{"from":"function_call","value":"{\\"name\\":\\"f\\"}"}]}]',
    b'{"schema_version":"ATIF-v1.4","session_id":"s","agent":{"name":"a","version":"1"},"steps":[{"step_id":1,"source":'
    b'"user","message":"a"},{"step_id":2,"source":"agent","message":"","tool_calls":[{"tool_call_id":"1",'
    b'"function_name":"f","arguments":{}}],"observation":{"results":[{"source_call_id":"1","content":"[]"}]}}]}',
    b'{"id":"m_0","result":[[["[f(a=\'x\', b=[1])]","One."]]]}',
    b'[{"task_id":3,"trial":2,"reward":0.0,"traj":[{"role":"user","content":"a"}],"info":{"task":{"instruction":"a",'
    b'"actions":[{"name":"f","kwargs":{}}],"outputs":[]}}}]',
    b'{"info":{"environment_info":{"policy":"p"}},"tasks":[{"id":"7","evaluation_criteria":{"actions":[]}}],'
    b'"simulations":[{"id":"s","task_id":"7","messages":[{"role":"user","content":"a"}],"reward_info":{"reward":1}}]}',
    b'{"type":"session","harness":"h","id":"s","trajsmith":{"task_id":"t"}}\n{"type":"message","message":{"role":"user",'
    b'"content":"a"}}\n{"type":"message","message":{"role":"assistant","content":"","toolCalls":[{"id":"1","function":'
    b'{"name":"f","arguments":"{}"}}]}}\n{"type":"message","message":{"role":"tool","toolCallId":"1","content":"[]"}}',
)


@target(*TRACES)
def traces(data: bytes) -> None:
    """Recorded dialogues in every format: ATIF, sessions of the Hub, OpenAI, ShareGPT, tau-bench, tau2, BFCL."""
    from trajsmith.verify.traces import read_dialogues

    path = _file("recorded.jsonl", data)
    for name in ("auto", "atif", "hub_traces", "openai", "sharegpt", "tau2", "taubench", "bfcl"):
        try:
            for _, dialogue in read_dialogues(path, name):
                if isinstance(dialogue, RecordDropped):
                    str(dialogue)
                else:
                    dialogue.model_dump_json()
        except InputError as error:
            str(error)


@target(
    b"name: x\nenvironments:\n  - {library: bank, states: {small: 1}}\nsample: {count: 2, length: [3, 4]}\n",
    b"a: &a [1, *a]\n", b"x: !!binary aGk=\n? [a]\n: 1\n", b"name: 0x_1\nseed: 1e400\n<<: {a: 1}\n",
)  # fmt: skip
def configuration(data: bytes) -> None:
    """The YAML of a configuration."""
    from trajsmith.pipeline.config import RunConfig
    from trajsmith.pipeline.yaml_settings import load_settings

    try:
        load_settings(_file("line.yaml", data), RunConfig)
    except InputError as error:
        str(error)


@target(b'{"id":"0000","schema_version":1,"environment":"e"}\n{"id": 5}\n', b"\n\n[]\n", b'{"a":')
def records(data: bytes) -> None:
    """JSON Lines of a run: records, entries of a ledger."""
    from trajsmith.records import GroundedChain, Task, Trajectory
    from trajsmith.records.journal import read_lines, read_records

    path = _file("records.jsonl", data)
    for model in (Task, Trajectory, GroundedChain):
        try:
            list(read_records(path, model))
        except InputError as error:
            str(error)
    assert sum(len(line.data) for line in read_lines(path)) <= len(data)


@target(
    b"{#\nPurpose: a\nSource: b\nVariables: question\n#}\n{% block user %}{{ question }}{% endblock %}",
    b"{% for m in messages %}<|im_start|>{{ m.role }}{{ m['content'] | tojson }}{% endfor %}", b"{{ a.b[c] * 9 }}",
)  # fmt: skip
def template(data: bytes) -> None:
    """Jinja of prompts, phrases and chat templates."""
    import jinja2

    from trajsmith.models.prompts import PromptSpec, _parse
    from trajsmith.records.template_sandbox import RENDER_ERRORS, template_environment

    text = _text(data)
    if text is None:
        return
    values = {"messages": [{"role": "user", "content": "a"}], "question": "q", "tools": [], "a": "b"}
    try:
        template_environment(bounded=True).from_string(text).render(values)
    except (jinja2.TemplateError, *RENDER_ERRORS) as error:
        str(error)
    try:
        _parse(PromptSpec("p", {"question": "q"}), "p", text)
    except InputError as error:
        str(error)


TOOL_LIST = (
    b'{"name":"list","inputSchema":{"type":"object","properties":{"a":{"type":"string","pattern":"^(a|b)*$"}}},'
    b'"outputSchema":{"type":"array","items":{"$ref":"#/$defs/O"},"$defs":{"O":{"type":"object","properties":{"id":'
    b'{"type":"string","enum":["x"]},"n":{"type":["number","null"],"minimum":0}}}}}}\n'
    b'{"name":"get","inputSchema":{"type":"object","properties":{"id":{"anyOf":[{"type":"string"},{"const":5}]}}}}\n'
)


@target(TOOL_LIST, b'{"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]}')
def tool_list(data: bytes) -> None:
    """Lists of tools, with their schemas, and the graph over them."""
    from trajsmith.toolgraph import build_graph
    from trajsmith.toolgraph.tool_lists import read_tool_list

    try:
        tools = read_tool_list(_file("tools.jsonl", data))
        if tools:
            build_graph(tools)
    except InputError as error:
        str(error)


@target(
    b'{"type":"object","properties":{"a":{"type":"string","pattern":"^(a|aa)+$","format":"date"}},"x":{"a":"aaa!"}}',
    b'{"properties":{"a":{"$schema":"http://json-schema.org/draft-07/schema#","pattern":"^(a|a)*$"}},"x":{"a":"aa!"}}',
    b'{"allOf":[{"properties":{"a":{}}}],"unevaluatedProperties":false,"patternProperties":{"^b":{}},"x":{"c":1}}',
    b'{"prefixItems":[{}],"contains":{"const":1},"unevaluatedItems":{"$ref":"#/$defs/a"},"$defs":{"a":{}},"x":[1,2]}',
)
def schema(data: bytes) -> None:
    """A JSON Schema, and a value (at its key `x`) that it judges."""
    from trajsmith.environments.arguments import validate_schema
    from trajsmith.environments.schema_patterns import compile_schema
    from trajsmith.environments.schemas import tidy_schema

    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError:
        return
    if not isinstance(document, dict):
        return
    value = document.pop("x", None)
    try:
        checked = validate_schema(document, "tool t")
    except InputError as error:
        str(error)
        return
    tidy_schema(checked)
    list(compile_schema(checked).iter_errors(value))
