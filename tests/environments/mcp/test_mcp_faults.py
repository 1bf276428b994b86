"""A server that breaks is an `EnvironmentFault` that says how, never the agent's fault and never a hang."""

import sys

import pytest
from live import processes_in, settings

from trajsmith.environments.adapters.mcp import McpSettings, McpSource
from trajsmith.records import EnvironmentFault, InputError

IN_A_CALL = [
    ("dies", "server_exited", "the server exited with code 7; its last line on stderr: out of memory in /very/deep"),
    ("killed", "server_exited", "the server was killed by signal 9"),
    ("silent", "timeout", "no answer within 0.5 s"),
    ("stubborn", "timeout", "no answer within 0.5 s"),
    ("babbles", "protocol", "'here is your answer: 42'"),
    ("garbage", "protocol", "no message"),
    ("wrong_result", "protocol", "content"),
    ("wrong_output", "output_schema", "'one' is not of type 'integer'"),
]


@pytest.mark.parametrize(("mode", "kind", "message"), IN_A_CALL, ids=[mode for mode, *_ in IN_A_CALL])
async def test_a_fault_in_a_call_says_what_broke_and_leaves_no_process(start, scratch, mode, kind, message):
    session = await start("broken.py", mode, timeout=0.5 if kind == "timeout" else 30.0)
    with pytest.raises(EnvironmentFault) as caught:
        await session.call("act", {})
    assert (caught.value.kind, caught.value.tool, caught.value.environment) == (kind, "act", "trial")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(EnvironmentFault) as after:
        await session.call("act", {})
    assert after.value.kind in ("server_exited", "protocol")
    await session.close()
    assert processes_in(scratch) == []


async def test_a_session_can_be_reset_after_a_fault(start):
    session = await start("broken.py", "dies")
    for _ in range(2):
        with pytest.raises(EnvironmentFault, match="server_exited"):
            await session.call("act", {})
        await session.reset({"files": {"a.txt": "again"}})
        assert await session.snapshot() == {"files": {"a.txt": "again"}, "observed": {}}


AT_THE_START = [
    ("cannot_start", "the server exited with code 1; its last line on stderr: no licence found"),
    ("never_ready", "no answer within 0.5 s"),
]


@pytest.mark.parametrize(("mode", "message"), AT_THE_START, ids=[mode for mode, _ in AT_THE_START])
async def test_a_server_that_does_not_come_up_is_named_with_its_last_words(scratch, mode, message):
    with pytest.raises(EnvironmentFault) as caught:
        await McpSource(settings("broken.py", mode, start_timeout=0.5 if mode == "never_ready" else 30)).spec()
    assert caught.value.kind == "start"
    assert sys.executable in str(caught.value)
    assert message in str(caught.value)
    assert processes_in(scratch) == []


UNUSABLE = [
    ("bad_schema", "tool act: inputSchema is no valid JSON Schema: $.properties.text.type: 'strang' is not valid"),
    ("bad_reference", "tool act: inputSchema is no valid JSON Schema: $ref '#/$defs/Gone' leads nowhere"),
    ("no_object", "tool act: inputSchema.type: Input should be 'object'"),
]


@pytest.mark.parametrize(("mode", "message"), UNUSABLE, ids=[mode for mode, _ in UNUSABLE])
async def test_an_unusable_schema_is_wrong_input_that_names_server_tool_and_fault(scratch, mode, message):
    with pytest.raises(InputError) as caught:
        await McpSource(settings("broken.py", mode)).spec()
    assert str(caught.value).startswith(f"MCP server trial: {message}")
    assert "\n" not in str(caught.value)
    assert processes_in(scratch) == []


async def test_a_missing_program_says_what_to_do():
    source = McpSource(McpSettings(name="gone", command=["no-such-server-program"]))
    with pytest.raises(InputError, match=r"'no-such-server-program' was not found; install it, or .* under `path`"):
        await source.spec()


@pytest.mark.parametrize("mode", ["floods_stderr", "banner"])
async def test_noise_that_other_clients_bear_is_borne(start, capfd, mode):
    session = await start("broken.py", mode)
    assert (await session.call("act", {})).content == "done"
    await session.close()
    assert capfd.readouterr() == ("", "")


async def test_an_error_with_the_code_of_a_closed_connection_is_a_refusal_while_the_server_lives(start):
    session = await start("broken.py", "error_code")
    for _ in range(2):
        result = await session.call("act", {})
        assert (result.error, result.content) == ("refused", {"error": "quota used up in /workspace"})


async def test_a_failing_set_up_command_is_named_with_its_last_words(scratch):
    workspace = {"setup": [["sh", "-c", "echo no such thing >&2; exit 4"]]}
    with pytest.raises(EnvironmentFault, match="start: set-up command sh ended with code 4: no such thing"):
        await McpSource(settings("broken.py", "good", workspace=workspace)).spec()


async def test_a_state_whose_call_is_refused_or_that_is_no_state_is_a_fault_of_the_environment(start):
    session = await start("broken.py", "error_code")
    with pytest.raises(EnvironmentFault, match=r"trial.act: state: .* refused: .*quota used up"):
        await session.reset({"calls": [{"tool": "act"}]})
    with pytest.raises(EnvironmentFault, match="state: observed: Extra inputs"):
        await session.reset({"files": {}, "observed": {}})
    with pytest.raises(EnvironmentFault, match="must be a path inside the workspace"):
        await session.reset({"files": {"../outside": "x"}})


async def test_a_server_that_refuses_the_handshake_is_quoted(scratch):
    with pytest.raises(EnvironmentFault, match=r"start: .*: we are closed$"):
        await McpSource(settings("broken.py", "refuses_handshake")).spec()
