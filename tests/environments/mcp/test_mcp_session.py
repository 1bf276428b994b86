"""A good server: results, aliases, states, isolation, determinism."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from live import SERVERS, settings

from trajsmith.environments.adapters.mcp import McpSettings, McpSource
from trajsmith.records import EnvironmentFault, InputError

OBSERVE = [{"tool": "list_notes", "label": "notes", "drop": ["at [0-9:]+"]}]
STATE = {
    "files": {"notes/plan.md": "see /workspace/notes\n", "empty/": ""},
    "calls": [{"tool": "add_note", "arguments": {"title": "first", "text": "made at 10:15"}}],
}


async def test_results_are_structured_parsed_or_text_and_a_refusal_is_a_result(start):
    session = await start("notes.py")
    assert (await session.call("add_note", {"title": "a", "text": "b"})).content == {"title": "a", "text": "b"}
    assert (await session.call("list_notes", {})).content == {"result": [{"title": "a", "text": "b"}]}
    assert (await session.call("note_json", {"title": "a"})).content == {"title": "a", "text": "b"}
    assert (await session.call("shout", {"text": "hi"})).content == "HI"
    refused = await session.call("note_json", {"title": "missing"})
    assert refused.error == "refused"
    assert "note_json" in refused.content["error"]
    unknown = await session.call("drop_all", {})
    assert (unknown.error, unknown.content) == ("unknown_tool", {"error": "unknown tool: drop_all"})
    assert (await session.call("shout", {"text": "hi"}, "user")).error == "unknown_tool"
    wrong = await session.call("shout", {"text": 3})
    assert (wrong.error, wrong.content) == ("invalid_arguments", {"error": "text: 3 is not of type 'string'"})
    assert (await session.call("shout", {})).content == {"error": "'text' is a required property"}


async def test_an_error_that_the_server_does_not_mark_is_a_refusal_where_the_settings_know_its_words(start):
    calls = [
        ("read_row", {"key": "a"}),
        ("read_row", {"key": "b"}),
        ("write_row", {"key": "a", "value": -1}),
        ("read_row", {"key": "log"}),
    ]
    errors = []
    for patterns in ([], ["Database error: ", "Error: the value"]):
        session = await start("unmarked.py", refusals=patterns)
        errors.append([(await session.call(tool, arguments)).error for tool, arguments in calls])
    assert errors == [[None] * 4, [None, "refused", "refused", None]]
    assert (await session.call("read_row", {"key": "b"})).content == {"error": "Database error: no row b"}


async def test_patterns_of_refusals_count_in_the_version_of_the_environment():
    plain, known = McpSource(settings("unmarked.py")), McpSource(settings("unmarked.py", refusals=["Error"]))
    assert (await plain.spec()).version != (await known.spec()).version


def test_a_pattern_of_refusals_that_is_no_regular_expression_is_wrong_input():
    with pytest.raises(ValueError, match=r"'\(' is no regular expression"):
        settings("unmarked.py", refusals=["("])


async def test_the_same_calls_on_fresh_servers_give_the_same_hash(start):
    hashes, snapshots = [], []
    for _ in range(2):
        session = await start("notes.py", state=STATE, observe=OBSERVE)
        seen = [await session.state_hash()]
        await session.call("save", {"path": "/workspace/empty/new.txt", "text": "x"})
        seen.append(await session.state_hash())
        await session.call("add_note", {"title": "second", "text": "t"})
        seen.append(await session.state_hash())
        hashes.append(seen)
        snapshots.append(await session.snapshot())
    assert hashes[0] == hashes[1]
    assert len(set(hashes[0])) == 3
    assert snapshots[0] == {
        "files": {
            "empty/": "directory", "empty/new.txt": "x", "notes/": "directory",
            "notes/plan.md": "see /workspace/notes\n",
        },
        "observed": {
            "notes": {"result": [{"title": "first", "text": "made "}, {"title": "second", "text": "t"}]},
        },
    }  # fmt: skip
    await session.reset(STATE)
    assert await session.state_hash() == hashes[0][0]


def _really_written(directory: str, pattern: str) -> str:
    return next(Path(directory).glob(pattern)).read_text()


async def test_real_paths_stay_inside_and_the_alias_outside(start, scratch):
    session = await start("notes.py", workspace={"alias": "/home/ana/project"})
    content = "at /home/ana/project/a.txt, file:///home/ana/project/b, not /x/home/ana/project or /home/ana/projects."
    result = await session.call("save", {"path": "/home/ana/project/a.txt", "text": content})
    assert result.content == f"saved /home/ana/project/a.txt and /home/ana/project/a.txt with {content}"
    assert (await session.snapshot())["files"] == {"a.txt": content}
    assert _really_written(scratch, "*/project/a.txt").count(scratch) == 2
    assert (await session.call("environment", {})).content["HOME"] == "/home/ana/project"


async def test_a_server_sees_no_more_of_our_environment_than_it_must(start, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-parent-secret")
    monkeypatch.setenv("PASSED_ON", "wanted-value")
    session = await start("notes.py", env={"MODE": "test", "FILE": "{workspace}/f", "TOKEN": "${PASSED_ON}"})
    seen = (await session.call("environment", {})).content
    assert seen.keys() - {"LC_CTYPE"} == {"PATH", "HOME", "LANG", "MODE", "FILE", "TOKEN"}
    assert (seen["MODE"], seen["FILE"], seen["TOKEN"]) == ("test", "/workspace/f", "***")


async def test_a_wanted_variable_that_is_not_set_is_wrong_input():
    source = McpSource(settings("notes.py", env={"TOKEN": "${NOT_SET_ANYWHERE}"}))
    with pytest.raises(InputError, match="MCP server trial: the environment variable NOT_SET_ANYWHERE is not set"):
        await source.spec()


async def test_secrets_are_masked_in_results(start, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    session = await start("broken.py", "tells_secret", env={"API_KEY": "${MY_KEY}"})
    assert (await session.call("act", {})).content == "key ***"


async def test_set_up_ignored_and_odd_files(start):
    workspace = {
        "setup": [["sh", "-c", "mkdir -p .git/x a && echo 1 > .git/x/y && printf '\\377' > a/raw && ln -s $HOME/a l"]],
        "ignore": [".git/*", "*.log"],
    }
    session = await start("broken.py", "good", workspace=workspace, state={"files": {"a/x.log": "1", "b": "2"}})
    files = (await session.snapshot())["files"]
    assert files.pop("a/raw").startswith("sha256:a8100ae6aa1940d0")
    assert files == {"a/": "directory", "b": "2", "l": "link:/workspace/a"}


async def test_the_spec_tells_what_the_server_and_the_settings_tell(tmp_path):
    examples = {"title": ["Groceries"], "shout.text": ["hello"], "tags": ["red"]}
    tools = {"exclude": ["environment"]}
    more = {"read_only": ["shout"], "parameter_examples": examples, "tools": tools, "policy": "Be kind."}
    spec = await McpSource(settings("notes.py", **more)).spec()
    assert [tool.name for tool in spec.tools] == ["add_note", "list_notes", "note_json", "shout", "save", "tag"]
    assert (spec.can_restore, spec.policy) == (False, "Be kind.")
    assert spec.source.endswith("(notes 1.2)")
    assert [tool.declares_write for tool in spec.tools] == [True, False, True, False, True, True]
    assert spec.tool("add_note").parameters["title"] == {"type": "string", "examples": ["Groceries"]}
    assert "examples" not in spec.tool("add_note").parameters["text"]
    assert spec.tool("tag").parameters["tags"] == {"type": "array", "items": {"type": "string", "examples": ["red"]}}
    assert spec.tool("tag").input_schema["properties"]["note"]["properties"]["title"]["examples"] == ["Groceries"]
    assert spec.tool("shout").parameters["text"]["examples"] == ["hello"]
    assert spec.tool("shout").output_schema is None
    assert spec.tool("list_notes").output_schema is not None


async def test_the_version_is_of_what_matters():
    first = await McpSource(settings("broken.py", "good", policy="Be kind.")).spec()
    same = await McpSource(settings("broken.py", "good", policy="Be kind.", timeout=3)).spec()
    other = await McpSource(settings("broken.py", "good", policy="Be quick.")).spec()
    assert (same.id, same.version != other.version) == (first.id, True)


UNKNOWN = [
    ({"read_only": ["nope"]}, "read_only names 'nope', which the server does not have; it has act"),
    ({"tools": {"exclude": ["nope"]}}, "tools.exclude names 'nope'"),
    ({"observe": [{"tool": "nope", "label": "x"}]}, "observe names 'nope'"),
    ({"states": {"s": {"calls": [{"tool": "nope"}]}}}, "states.s.calls names 'nope'"),
    ({"parameter_examples": {"txet": ["a"]}}, "parameter_examples names 'txet', which no tool has"),
]


@pytest.mark.parametrize(("more", "message"), UNKNOWN, ids=[next(iter(more)) for more, _ in UNKNOWN])
async def test_settings_that_name_what_is_not_there_are_wrong_input(more, message):
    with pytest.raises(InputError) as caught:
        await McpSource(settings("broken.py", "good", **more)).spec()
    assert message in str(caught.value)


REFUSED = [
    ({}, "give either `command`"),
    ({"command": ["a"], "url": "http://x"}, "give either `command`"),
    ({"command": ["a"], "headers": {"A": "b"}}, "`headers` are only for"),
    ({"command": ["a"], "tmeout": 3}, "Extra inputs are not permitted"),
    ({"command": ["a"], "states": {"s": {"files": {"/etc/x": ""}}}}, "inside the workspace"),
    ({"command": ["a"], "workspace": {"alias": "work"}}, "absolute path"),
    ({"command": ["a"], "observe": [{"tool": "t", "label": "l", "drop": ["("]}]}, "no regular expression"),
]


@pytest.mark.parametrize(("more", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_settings_are_validated(more, message):
    with pytest.raises(ValueError, match=message):
        McpSettings(name="x", **more)


async def test_states_come_in_order_and_there_is_always_one():
    states = {"b": {"files": {"b": "1"}}, "a": {}}
    source = McpSource(settings("notes.py", states=states))
    assert await source.states(1) == [{"files": {"b": "1"}, "calls": []}, {"files": {}, "calls": []}]
    assert await McpSource(settings("notes.py")).states(2) == [{"files": {}, "calls": []}]


async def test_programs_and_phrases_are_found_beside_the_base_directory(tmp_path, start):
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "my-server"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    (tmp_path / "server.py").write_text((SERVERS / "broken.py").read_text())
    (tmp_path / "words.yaml").write_text("roles: [tester]\n")
    found = McpSettings(name="x", command=["my-server", "server.py", "good"], path=["bin"], phrases=Path("words.yaml"))
    source = McpSource(found, tmp_path)
    assert [tool.name for tool in (await source.spec()).tools] == ["act"]
    assert source.phrasebook.roles == ("tester",)


def test_importing_the_adapter_does_not_import_the_sdk():
    code = "import sys, trajsmith.environments.adapters.mcp; sys.exit('mcp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[3]).returncode == 0


@pytest.fixture
def address(tmp_path: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The good server on a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = subprocess.DEVNULL
    environment = {"PATH": os.environ["PATH"]}
    server = subprocess.Popen(
        [sys.executable, str(SERVERS / "notes.py"), str(port)], env=environment, stdout=log, stderr=log, cwd=tmp_path
    )
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.05)
    yield f"http://127.0.0.1:{port}/mcp", server
    server.kill()
    server.wait()


async def test_streamable_http(address):
    url, server = address
    source = McpSource(McpSettings(name="far", url=url, headers={"X-Test": "1"}, observe=OBSERVE, timeout=5))
    spec = await source.spec()
    assert spec.source == "mcp:http (notes 1.2)"
    session = await source.open()
    await session.reset(STATE)
    assert (await session.call("shout", {"text": "hi"})).content == "HI"
    assert (await session.snapshot())["observed"] == {"notes": {"result": [{"title": "first", "text": "made "}]}}
    server.kill()
    with pytest.raises(EnvironmentFault) as caught:
        await session.call("shout", {"text": "hi"})
    assert caught.value.kind == "server_exited"
    with pytest.raises(EnvironmentFault) as gone:
        await session.reset({})
    assert str(gone.value) == f"far: start: {url.split('/')[2]}: All connection attempts failed"
    await session.close()


@pytest.mark.parametrize(
    ("peeks", "tools", "users"),
    [("user", {}, {"peek"}), ("user", {"user": []}, set()), ("assistant", {"user": ["add", "look"]}, {"add", "look"})],
    ids=["declared", "settings_say_none", "settings"],
)
async def test_the_user_has_the_tools_that_the_server_or_the_settings_say(start, peeks, tools, users):
    session = await start("keeper.py", "good", env={"PEEKS": peeks}, tools=tools)
    assert {tool.name for tool in session.spec.tools if tool.actor == "user"} == users
    for tool in users:
        arguments = {"title": "Ash"} if tool == "add" else {}
        assert (await session.call(tool, arguments)).error == "unknown_tool"
        assert (await session.call(tool, arguments, "user")).ok
    assert (await session.call("dump", {})).ok and (await session.call("dump", {}, "user")).error == "unknown_tool"


@pytest.mark.parametrize(
    ("peeks", "tools", "reason"),
    [
        ("robot", {}, "tool peek: the actor is 'robot'; it must be one of assistant, user"),
        ("user", {"user": ["fly"]}, "MCP server trial: user tool 'fly' does not exist; there are add, dump, look"),
        ("user", {"user": ["look"], "exclude": ["look"]}, "MCP server trial: user tool 'look' does not exist"),
        ("user", {"include": ["peek"]}, "MCP server trial: all tools are the user's; leave the agent at least one"),
    ],
)
async def test_who_calls_a_tool_must_make_sense(peeks, tools, reason):
    with pytest.raises(InputError, match=reason):
        await McpSource(settings("keeper.py", "good", env={"PEEKS": peeks}, tools=tools)).spec()
