"""An environment for Harbor without Docker: an overlay of this machine's files, with a network of its own.

It does what the Dockerfiles of `trajsmith export --format harbor` say: copies, the agent's user, the closed folder. The
installed trajsmith is that of this checkout. It needs root.
"""

import asyncio
import os
import shutil
import tempfile
from pathlib import Path

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities

UP = (
    "import fcntl, socket, struct; "
    "fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sh', b'lo', 0x41))"
)  # fmt: skip


class OverlayEnvironment(BaseEnvironment):
    """One trial: namespaces that a sleeping process holds open, with the overlay as their root."""

    _holder: asyncio.subprocess.Process | None = None

    @staticmethod
    def type() -> str:
        return "overlay"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities()

    def _validate_definition(self) -> None:
        if not (self.environment_dir / "Dockerfile").is_file():
            raise FileNotFoundError("no Dockerfile")

    async def start(self, force_build: bool) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="overlay-"))
        for name in ("upper", "work", "root"):
            (self._folder / name).mkdir()
        root = self._folder / "root"
        layers = f"lowerdir=/,upperdir={self._folder / 'upper'},workdir={self._folder / 'work'}"
        script = f"mount -t overlay overlay -o {layers} {root} && mount -t proc proc {root}/proc && "
        script += f'mount --rbind /dev {root}/dev && python3 -c "{UP}" && echo up && exec sleep 3600'
        self._holder = await asyncio.create_subprocess_exec(
            "unshare", "-m", "-n", "sh", "-c", script, stdout=asyncio.subprocess.PIPE
        )
        assert self._holder.stdout is not None
        assert await self._holder.stdout.readline() == b"up\n"
        self._build()
        await self.exec(
            "mkdir -p /logs/agent /logs/verifier /logs/artifacts && chmod 777 /logs/agent && "
            "chmod o+x /root && useradd -m agent"
        )

    def _build(self) -> None:
        """Copy what the Dockerfile copies, and close the folder of the server."""
        for line in (self.environment_dir / "Dockerfile").read_text().splitlines():
            words = line.split()
            if words[:1] == ["COPY"]:
                source, target = self.environment_dir / words[1], self._inside(words[2])
                target.parent.mkdir(parents=True, exist_ok=True)
                (shutil.copytree if source.is_dir() else shutil.copyfile)(source, target)
            if words[:3] == ["RUN", "chmod", "700"]:
                self._inside(words[3]).chmod(0o700)

    def _inside(self, path: str) -> Path:
        """Return a path of the overlay as the holder's root shows it."""
        assert self._holder is not None
        return Path(f"/proc/{self._holder.pid}/root{self._folder}/root") / path.lstrip("/")

    async def stop(self, delete: bool) -> None:
        if self._holder is not None:
            for pid in self._list_processes():
                os.kill(pid, 9)
            await self._holder.wait()
            shutil.rmtree(self._folder, ignore_errors=True)

    def _list_processes(self) -> list[int]:
        """Return the processes in the network of this trial."""
        assert self._holder is not None
        own = Path(f"/proc/{self._holder.pid}/ns/net").readlink()
        pids = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if (folder / "ns" / "net").readlink() == own:
                    pids.append(int(folder.name))
            except OSError:
                continue
        return pids

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        target = self._inside(str(target_path))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source_path, target)

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        shutil.copytree(source_dir, self._inside(str(target_dir)), dirs_exist_ok=True)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        shutil.copy(self._inside(str(source_path)), target_path)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        shutil.copytree(self._inside(str(source_dir)), target_dir, dirs_exist_ok=True)

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        assert self._holder is not None
        user = self._resolve_user(user) or "root"
        program = ["nsenter", "-t", str(self._holder.pid), "-m", "-n", "chroot", str(self._folder / "root")]
        program += ["runuser", "-u", str(user), "--"] if user != "root" else []
        paths = f"{os.environ['TRAJSMITH_BIN']}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *program,
            "sh",
            "-c",
            f"cd {cwd or '/'} && {command}",
            env={"HOME": "/tmp", "PATH": paths, **(self._merge_env(env) or {})},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
        )
        out, err = await asyncio.wait_for(process.communicate(), timeout_sec)
        return ExecResult(stdout=out.decode(), stderr=err.decode(), return_code=process.returncode or 0)
