"""Locks as file systems of a network give them: none, or of another machine. Two writers never work at a time."""

import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from input_campaign import Campaign
from test_disk_faults import CONFIG, read_records

from trajsmith.records.writer_lock import has_local_locks

pytestmark = [
    pytest.mark.skipif(shutil.which("cc") is None, reason="the failing file system is compiled with cc"),
]
NO_LOCKS = {"ENOLCK": errno.ENOLCK, "EOPNOTSUPP": errno.EOPNOTSUPP, "ENOSYS": errno.ENOSYS}
HOLD = """
import sys
from pathlib import Path
from trajsmith.pipeline.run_directory import RunDirectory
with RunDirectory(Path(sys.argv[1])).lock():
    print("locked", flush=True)
    sys.stdin.readline()
"""
RACE = """
import os, sys, time
from pathlib import Path
from trajsmith.records import RunError, WriterLock
folder = Path(sys.argv[1])
for number in range(40):
    file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
    try:
        lock = WriterLock(file, folder / "owner", folder)
    except RunError:
        os.close(file)
        continue
    inside = os.open(folder / "inside", os.O_CREAT | os.O_EXCL)  # fails if another one is in here
    time.sleep(0.001)
    os.unlink(folder / "inside")
    os.close(inside)
    lock.release()
    os.close(file)
print("done")
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file system without locks."""
    target = tmp_path_factory.mktemp("library") / "faults.so"
    source = Path(__file__).with_name("disk_faults.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", target, source, "-ldl"], check=True)
    return target


def without_locks(library: Path, folder: Path, number: int) -> dict[str, str]:
    return {**os.environ, "LD_PRELOAD": str(library), "FAULT_ROOT": str(folder), "FAULT_LOCKS": str(number)}


@pytest.mark.parametrize("number", NO_LOCKS.values(), ids=list(NO_LOCKS))
def test_of_two_writers_without_locks_the_second_is_refused_in_one_line(
    library: Path, tmp_path: Path, number: int
) -> None:
    folder = tmp_path / "cases"
    (folder / "one").mkdir(parents=True)
    (folder / "one" / "line.yaml").write_text(CONFIG)
    fault = {"FAULT_ROOT": str(folder), "FAULT_LOCKS": str(number)}
    run, owner = folder / "one" / "run", folder / "one" / "run" / ".lock.owner"
    with Campaign(folder, environment={"LD_PRELOAD": str(library)}) as campaign:
        started = campaign.call(folder / "one", ("run", "line.yaml", "--run", "run"), fault)
        assert started.code == 0, started.err
        assert not owner.exists(), "an idle run names nobody"
        calm = read_records(run)
        (run / "verdicts.jsonl").write_bytes(b"")  # something to do for a second writer
        (run / "ledger" / "verify.jsonl").unlink(missing_ok=True)
        before = read_records(run)
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(run)], env=without_locks(library, folder, number), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert holder.stdout is not None and holder.stdout.readline() == "locked\n"
        second = campaign.call(folder / "one", ("resume", "run"), fault)
        assert (second.code, second.out) == (1, "")
        assert second.err == f"error: run is being written by process {holder.pid}: wait for it, or stop it\n"
        assert read_records(run) == before
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert owner.exists(), "it had no time to tidy up"
        again = campaign.call(folder / "one", ("resume", "run"), fault)
        assert again.code == 0, again.err
        assert not owner.exists()
        assert read_records(run).keys() == calm.keys()


def test_a_writer_of_another_machine_is_named_with_what_to_do(library: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cases"
    (folder / "one").mkdir(parents=True)
    (folder / "one" / "line.yaml").write_text(CONFIG)
    with Campaign(folder, environment={"LD_PRELOAD": str(library)}) as campaign:
        assert campaign.call(folder / "one", ("run", "line.yaml", "--run", "run")).code == 0
        owner = folder / "one" / "run" / ".lock.owner"
        before = read_records(owner.parent)
        for text, writer in (
            ("71 123456 elsewhere\n", "process 71 on elsewhere"),
            ("", "another process on another machine"),
        ):
            owner.write_text(text)
            for fault in ({}, {"FAULT_ROOT": str(folder), "FAULT_LOCKS": str(errno.ENOLCK)}):
                refused = campaign.call(folder / "one", ("resume", "run"), fault)
                assert refused.code == 1
                assert refused.err == (
                    f"error: run is being written by {writer}: wait for it, or stop it; if it is gone, remove "
                    "run/.lock.owner\n"
                )
        assert read_records(owner.parent) == before
        owner.unlink()
        assert campaign.call(folder / "one", ("resume", "run")).code == 0


def test_many_writers_without_locks_are_never_two_at_a_time(library: Path, tmp_path: Path) -> None:
    (tmp_path / "owner").write_text(f"{os.getpid()} 1 {os.uname().nodename}\n")  # left by a process that is gone
    command = [sys.executable, "-c", RACE, str(tmp_path)]
    told = without_locks(library, tmp_path, errno.ENOLCK)
    writers = [
        subprocess.Popen(command, env=told, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)
    ]
    for writer in writers:
        out, err = writer.communicate(timeout=120)
        assert (out, writer.returncode) == ("done\n", 0), err
    assert not (tmp_path / "owner").exists()


MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /data rw,relatime shared:9 - nfs4 server:/data rw,vers=4.2,local_lock=none,addr=10.0.0.1
31 22 0:41 / /old rw,relatime - nfs server:/old rw,vers=3,nolock,local_lock=all
32 22 0:42 / /half rw,relatime - nfs server:/half rw,vers=3,local_lock=flock
33 22 0:43 / /home/me/far\\040away rw - fuse.sshfs me@server:/ rw,user_id=0
"""


@pytest.mark.parametrize(
    ("path", "local"),
    [
        ("/data/run", False), ("/old/run", True), ("/half/a/b", True), ("/home/me/far away/run", True),
        ("/home/me", False), ("/oldest", False),
    ],
)  # fmt: skip
def test_mounts_whose_locks_other_machines_do_not_see_are_known(tmp_path: Path, path: str, local: bool) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    assert has_local_locks(Path(path), mounts) is local
    assert not has_local_locks(Path(path), tmp_path / "none")
