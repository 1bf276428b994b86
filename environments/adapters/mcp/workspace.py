"""The directory of one session, and the alias under which everybody else knows it."""

import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from trajsmith.environments.adapters.mcp.database_rows import is_database, read_database
from trajsmith.environments.adapters.mcp.settings import WorkspaceSettings
from trajsmith.records import EnvironmentFault, JsonObject, JsonValue, hash_bytes

_LARGEST_TEXT = 64 * 1024
"""Bytes; larger files stand in the snapshot by their hash."""
_MOST_FILES = 20_000
_DATABASE_SIDES = ("-wal", "-shm", "-journal")
"""Endings of the files that SQLite keeps beside a database."""


class Workspace:
    """A fresh temporary directory; `close` removes it, and so does the interpreter's end."""

    def __init__(self, environment: str, settings: WorkspaceSettings) -> None:
        self._environment = environment
        self._ignore = settings.ignore
        self._databases = settings.databases
        self._drop = [re.compile(pattern) for pattern in settings.drop]
        self._alias = settings.alias
        self._holder = tempfile.TemporaryDirectory(prefix="trajsmith-mcp-", ignore_cleanup_errors=True)
        self._parent = Path(self._holder.name).resolve()
        self.path = self._parent / PurePosixPath(settings.alias).name
        """Real directory; its last name is the alias's, because servers tell names of directories too."""
        self.path.mkdir()
        self._secrets: tuple[str, ...] = ()
        self._alias_in_text = re.compile(rf"(?:(?<=://)|(?<![\w./-])){re.escape(settings.alias)}(?![\w-]|\.\w)")

    def mask(self, secrets: tuple[str, ...]) -> None:
        """From now on these values become "***" in everything that comes out."""
        self._secrets = secrets

    def write(self, files: Mapping[str, str]) -> None:
        """Put files (and, by a trailing slash, empty directories) into it."""
        for name, text in files.items():
            target = self.path / name
            if name.endswith("/"):
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8", newline="")

    def to_server(self, value: JsonValue) -> JsonValue:
        """Translate arguments for the server: the alias becomes the real directory."""
        return _map_texts(value, lambda text: self._alias_in_text.sub(lambda _: str(self.path), text))

    def from_server(self, value: JsonValue) -> JsonValue:
        """Translate results for clients: the real directory becomes the alias, secrets are masked."""
        return _map_texts(value, self.mask_text)

    def mask_text(self, text: str) -> str:
        """Return a text without real paths and secrets."""
        above = str(PurePosixPath(self._alias).parent)
        for parent in dict.fromkeys([str(self._parent), self._holder.name]):
            if parent in text:
                text = text.replace(f"{parent}/", above.rstrip("/") + "/").replace(parent, above)
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    def files(self) -> JsonObject:
        """Everything in it: relative path to text or hash; directories end in "/", links tell their target.

        Raises:
            EnvironmentFault: There are too many files to be a state.
        """
        contents: JsonObject = {}
        for directory, folders, names in os.walk(self.path):
            here = Path(directory)
            folders[:] = sorted(name for name in folders if not self._ignored(here / name, "/"))
            for name in folders:
                entry = here / name
                key = entry.relative_to(self.path).as_posix()
                contents.update({key: self._file(entry)} if entry.is_symlink() else {f"{key}/": "directory"})
            for name in sorted(names):
                if not self._ignored(here / name):
                    contents[(here / name).relative_to(self.path).as_posix()] = self._file(here / name)
            if len(contents) > _MOST_FILES:
                message = f"more than {_MOST_FILES} files in the workspace; name those that are no state under `ignore`"
                raise EnvironmentFault("state", self._environment, message)
        return contents

    def list_databases(self) -> list[str]:
        """Return the SQLite files in it, by their relative paths."""
        places = (path for path in sorted(self.path.rglob("*")) if path.is_file() and not path.is_symlink())
        return [
            path.relative_to(self.path).as_posix() for path in places if not self._ignored(path) and is_database(path)
        ]

    def read_databases(self, globs: Sequence[str]) -> None:
        """From now on, files that match one of these count by their rows."""
        self._databases = list(globs)

    def _ignored(self, path: Path, ending: str = "") -> bool:
        return self._matches(path, self._ignore, ending) or (
            not ending and path.name.endswith(_DATABASE_SIDES) and self._matches(_find_database(path), self._databases)
        )

    def _matches(self, path: Path, globs: Sequence[str], ending: str = "") -> bool:
        relative = path.relative_to(self.path).as_posix()
        return any(
            fnmatchcase(relative, glob) or fnmatchcase(relative + ending, glob) or fnmatchcase(path.name, glob)
            if "/" not in glob.rstrip("/")
            else fnmatchcase(relative + ending, glob)
            for glob in globs
        )

    def _file(self, path: Path) -> JsonValue:
        if path.is_symlink():
            return f"link:{self.mask_text(str(path.readlink()))}"
        if not path.is_file():
            return "special"
        if self._databases and self._matches(path, self._databases):
            return _map_texts(read_database(path), lambda text: self._shorten(self.mask_text(text)))
        try:
            data = path.read_bytes()
        except OSError as error:
            return f"unreadable:{error.strerror}"
        try:
            text = self._shorten(self.mask_text(data.decode("utf-8")))
        except UnicodeDecodeError:
            return f"sha256:{hash_bytes(data, 64)}"
        return text if len(data) <= _LARGEST_TEXT else f"sha256:{hash_bytes(text.encode(), 64)}"

    def _shorten(self, text: str) -> str:
        for pattern in self._drop:
            text = pattern.sub("", text)
        return text

    def close(self) -> None:
        """Remove it with all that is in it."""
        self._holder.cleanup()


def _find_database(side: Path) -> Path:
    return side.with_name(side.name.rsplit("-", 1)[0])


def _map_texts(value: JsonValue, change: Callable[[str], str]) -> JsonValue:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_map_texts(item, change) for item in value]
    if isinstance(value, dict):
        return {change(key): _map_texts(item, change) for key, item in value.items()}
    return value
