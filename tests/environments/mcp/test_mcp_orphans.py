"""Whatever happens to a session, its server and all children of the server end."""

import asyncio
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from live import SERVERS, left_in, processes_in, settings

from trajsmith.environments.adapters.mcp import McpSource


async def _until_gone(directory: str) -> list[int]:
    for _ in range(200):
        if not processes_in(directory):
            break
        await asyncio.sleep(0.02)
    return processes_in(directory)


async def test_close_ends_children_of_the_server_too(start, scratch):
    session = await start("broken.py", "has_child")
    child = psutil.Process(int((await session.call("act", {})).content))
    assert child.is_running()
    await session.close()
    await session.close()
    assert await _until_gone(scratch) == []


async def test_a_cancelled_call_kills_the_server_before_anybody_closes(start, scratch):
    session = await start("broken.py", "stubborn")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await session.call("act", {})
    assert await _until_gone(scratch) == []


async def test_a_cancelled_start_leaves_nothing(scratch):
    task = asyncio.create_task(McpSource(settings("broken.py", "never_ready")).spec())
    for _ in range(500):
        if processes_in(scratch):
            break
        await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await _until_gone(scratch) == []
    assert left_in(scratch) == []


async def test_closing_in_another_task_than_the_opening_one_works(start, scratch):
    session = await asyncio.create_task(start("broken.py", "good"))
    assert (await asyncio.create_task(session.call("act", {}))).content == "done"
    await asyncio.create_task(session.close())
    assert await _until_gone(scratch) == []


FORGETFUL = """
import asyncio, sys
from trajsmith.environments.adapters.mcp import McpSettings, McpSource

async def main():
    session = await McpSource(McpSettings(name="t", command=[sys.executable, sys.argv[1], "stubborn"])).open()
    await session.reset({})

asyncio.run(main())
"""


async def test_a_program_that_forgets_to_close_leaves_nothing(scratch):
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", FORGETFUL, str(SERVERS / "broken.py")]
    environment = {"TMPDIR": scratch, "PYTHONPATH": str(root)}
    done = await asyncio.to_thread(subprocess.run, command, cwd=root, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert await _until_gone(scratch) == []
    assert left_in(scratch) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills a child with its parent")
def test_a_server_that_does_not_listen_ends_with_a_parent_that_is_killed(scratch):
    root = Path(__file__).parents[3]
    code = FORGETFUL.replace(
        "await session.reset({})",
        "await session.reset({}); sys.stdout.write('up'); sys.stdout.flush(); await asyncio.sleep(600)",
    )
    environment = {"TMPDIR": scratch, "PYTHONPATH": str(root)}
    command = [sys.executable, "-c", code, str(SERVERS / "broken.py")]
    parent = subprocess.Popen(command, cwd=root, env=environment, stdout=subprocess.PIPE)
    try:
        assert parent.stdout is not None
        assert parent.stdout.read(2) == b"up"
        assert processes_in(scratch)
    finally:
        parent.kill()
        parent.communicate()
    assert asyncio.run(_until_gone(scratch)) == []
