"""What the process of a play costs: the pages of memory that it writes to after its fork."""

import subprocess
import sys
from pathlib import Path

import pytest
from shop import shop

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the sandbox needs Linux"),
]
FILL = """
from trajsmith.environments.sandbox.warm_up import fill_free_chunks
from trajsmith.environments.sandbox.syscalls import libc
fill_free_chunks()
memory = libc().mallinfo2()
print(memory.fordblks - memory.keepcost)
"""

WARM_UP = """
import signal
from trajsmith.environments.sandbox.virtual import VirtualSources
from trajsmith.environments.sandbox.warm_up import serve_trial_plays
world = VirtualSources()
world.install()
serve_trial_plays(world)
print(signal.getitimer(signal.ITIMER_PROF))
"""


def test_the_process_that_forks_workers_has_no_timer_of_its_trial_plays() -> None:
    done = subprocess.run([sys.executable, "-c", WARM_UP], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("(0.0, 0.0)\n", "")


def count_faults(pid: int) -> int:
    """Return the pages that a process was given so far, copies of shared ones among them."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[7])


async def test_a_play_writes_to_few_pages_of_the_worker_that_it_is_forked_from() -> None:
    source = shop(plays="process")
    try:
        session = await source.open()
        await session.reset((await source.states(1))[0])
        assert count_faults(session.link._connection.forked.pid) < 600
    finally:
        source.close()


@pytest.mark.skipif(sys.platform != "linux", reason="glibc only")
def test_no_memory_is_free_between_older_objects_before_a_play_is_forked() -> None:
    done = subprocess.run([sys.executable, "-c", FILL], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 4096
