"""Pushing datasets, models and environments to the Hub: only what is missing there, in small commits, the card last."""

import errno
import hashlib
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from trajsmith.environments import PUBLISHED_FOLDER, PUBLISHED_INDEX
from trajsmith.export.manifest import ENVELOPE, MANIFEST, list_files
from trajsmith.records import InputError, RunError, find_secret, known_secrets, to_one_line

if TYPE_CHECKING:
    from huggingface_hub import HfApi, RepoFile

_log = logging.getLogger(__name__)

FILES_PER_COMMIT = 20
CARD = "README.md"
LAST = frozenset({CARD, MANIFEST, ENVELOPE, PUBLISHED_INDEX})
"""Files that speak of all others: they are uploaded when those are there."""
TASKS_OF_DATASET = "run"
"""Folder of a dataset that holds its tasks as a run."""
TRACES_OF_DATASET = "traces"
"""Folder of a dataset that holds sessions of its plays, and the configuration of its card that names them."""
OWN_FOLDERS = ("data/", f"{PUBLISHED_FOLDER}/", f"{TASKS_OF_DATASET}/", f"{TRACES_OF_DATASET}/")
READ = 1 << 20
BINARY = frozenset({".safetensors", ".png", ".bin", ".pt"})
"""Files without texts."""

Kind = Literal["dataset", "model", "space"]


@dataclass(frozen=True)
class PushPlan:
    """Uploads and deletions of a push to the Hub."""

    repo: str
    kind: Kind
    folder: Path
    upload: tuple[str, ...]
    """Files that the Hub lacks or has otherwise, card last."""
    same: tuple[str, ...]
    """Files that are there already, from an earlier or an interrupted push."""
    delete: tuple[str, ...]
    """Files of data, tasks and sessions, and manifests, of an older push that are not part of this one."""

    @property
    def size(self) -> int:
        """Bytes to upload, at most."""
        return sum((self.folder / name).stat().st_size for name in self.upload)


def detect_repo_kind(folder: Path) -> Kind:
    """Return the kind of repository in a folder: dataset or model.

    Raises:
        InputError: It is neither.
    """
    if (folder / "config.json").is_file() and any(folder.glob("*.safetensors")):
        return "model"
    if any((folder / "data").glob("*")):
        return "dataset"
    raise InputError(f"{folder} holds neither a dataset (data/) nor a model (config.json and *.safetensors)")


def plan_push(folder: Path, repo: str, api: "HfApi | None", kind: Kind | None = None) -> PushPlan:
    """Compare a folder with the repository; nothing is changed. A repository that is not there yet is empty.

    Args:
        folder: Dataset or model.
        repo: Repository as owner/name.
        api: Client of the Hub; None makes no request and takes the repository as empty.
        kind: Kind of the repository; found out if None.

    Raises:
        InputError: The folder, the repository's name or the token is wrong, or a file holds a key.
        RunError: The Hub cannot be reached.
    """
    from huggingface_hub.utils._validators import validate_repo_id

    kind = detect_repo_kind(folder) if kind is None else kind
    names = sorted(list_files(folder), key=lambda name: (name in LAST, name))
    _check_name(repo)
    for name in names:
        _refuse_secrets(folder / name, kind)
    with translate_hub_errors(repo):
        validate_repo_id(repo)
        there = {} if api is None else _remote_files(repo, kind, api)
    same = tuple(name for name in names if name in there and _equal(folder / name, there[name]))
    ours = (name for name in there if name.startswith(OWN_FOLDERS) or name in (MANIFEST, ENVELOPE))
    old = tuple(sorted(name for name in ours if name not in names))
    upload = tuple(name for name in names if name not in same)
    return PushPlan(repo, kind, folder, upload, same, () if kind == "model" else old)


def execute_push(
    plan: PushPlan,
    api: "HfApi",
    private: bool = True,
    done: Callable[[int], None] = lambda files: None,
    per_commit: int | None = None,
) -> str:
    """Execute a plan and return the URL. After a kill, a new plan uploads what is missing.

    Files go up in small commits; the last one brings the card and takes away data files of an older push.

    Args:
        plan: What to do.
        api: Client with endpoint and token.
        private: Whether a new repository is private; one that exists stays what it is.
        done: Called after each commit with the number of files in it.
        per_commit: Files of one commit; many small ones may go together. None stands for `FILES_PER_COMMIT`.

    Raises:
        InputError: The token may not write there.
        RunError: The Hub cannot be reached or the disk is full; what was committed stays.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    with translate_hub_errors(plan.repo):
        sdk = "static" if plan.kind == "space" else None
        address = str(api.create_repo(plan.repo, repo_type=plan.kind, private=private, exist_ok=True, space_sdk=sdk))
        for names in _batches(plan.upload, per_commit or FILES_PER_COMMIT):
            last = names[-1] == plan.upload[-1]
            operations = [CommitOperationAdd(name, str(plan.folder / name)) for name in names]
            gone = [CommitOperationDelete(name) for name in plan.delete] if last else []
            api.create_commit(
                plan.repo, [*operations, *gone], repo_type=plan.kind, commit_message=f"Add {_join_names(names)}"
            )
            _log.info("%s: uploaded %s", plan.repo, ", ".join(names))
            done(len(names))
        if plan.delete and not plan.upload:
            gone = [CommitOperationDelete(name) for name in plan.delete]
            api.create_commit(plan.repo, gone, repo_type=plan.kind, commit_message="Remove older data")
    return address


@contextmanager
def translate_hub_errors(repo: str) -> Iterator[None]:
    """Turn the client's errors into one line that says what to do.

    Raises:
        InputError: Token or name.
        RunError: Everything that may be otherwise in a moment.
    """
    from huggingface_hub import errors

    unreachable: type[Exception] = errors.HTTPError  # type: ignore[attr-defined]  # httpx's or httpx2's, by version
    try:
        yield
    except errors.HFValidationError as error:
        raise InputError(f"{repo!r} is no name of a repository: {to_one_line(error, 300)}") from error
    except errors.LocalTokenNotFoundError as error:
        raise InputError("no token: set HF_TOKEN or run `hf auth login`") from error
    except errors.HfHubHTTPError as error:
        raise _error_for_status(repo, error.response.status_code, to_one_line(error, 300)) from error
    except unreachable as error:
        reason = _describe(error)
        raise RunError(f"the Hub cannot be reached ({reason}): run the same command again later") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise RunError(f"disk full ({error.strerror}): free some space, then run the same command again") from error
        if error.errno is None:  # the client's own, such as a snapshot that is not there without a network
            raise RunError(f"{repo}: {_describe(error)}: run the same command again later") from error
        raise RunError(f"{repo} stopped ({error.strerror}): run the same command again") from error


def _describe(error: Exception) -> str:
    """Return the client's words on one line, without numbers of errors."""
    return re.sub(r"\[Errno -?\d+\] ", "", to_one_line(error, 300))


def _error_for_status(repo: str, status: int, text: str) -> InputError | RunError:
    if status == 401:
        return InputError(
            f"the Hub refuses the token ({status}): set HF_TOKEN to one that may write, or `hf auth login`"
        )
    if status in (403, 404):
        return InputError(
            f"{repo}: there is no such repository, or this token may not use it ({status}): check the name and the "
            "token's rights"
        )
    if status in (413, 507):
        return RunError(f"{repo}: the Hub has no room left ({status}): {text}")
    return RunError(f"{repo}: the Hub answered {status}: run the same command again to continue ({text})")


def _check_name(repo: str) -> None:
    """The client checks the letters; a name without owner would go to whoever the token belongs to."""
    if repo.count("/") != 1:
        raise InputError(f"{repo!r}: write the repository as owner/name, for example me/{repo.rpartition('/')[2]}")


def _refuse_secrets(path: Path, kind: Kind) -> None:
    """Refuse a file that holds a key, or that is a link out of a dataset.

    Raises:
        InputError: It does; the text names file and line, or row.
    """
    if kind != "model" and path.is_symlink():
        raise InputError(f"{path} is a symbolic link: put a copy in its place before it is published")
    if path.suffix in BINARY:
        return
    known = known_secrets()
    for number, text in enumerate(_texts(path), 1):
        secret = find_secret(text, known)
        if secret:
            raise InputError(f"{path}:{number}: it holds {secret}: nothing was pushed; take it out, then push again")


def _texts(path: Path) -> Iterator[str]:
    """The lines of a file, or the rows of a table as JSON."""
    if path.suffix == ".parquet":
        import orjson
        from pyarrow import ArrowException, parquet

        try:
            for batch in parquet.ParquetFile(path).iter_batches(batch_size=64):
                yield from (orjson.dumps(row, default=str).decode() for row in batch.to_pylist())
        except (OSError, ValueError, TypeError, ArrowException) as error:
            raise InputError(f"{path}: no whole Parquet file ({to_one_line(error, 80)}): export it again") from error
        return
    with path.open("rb") as file:
        for line in file:
            yield line.decode("utf-8", "replace")


def _remote_files(repo: str, kind: Kind, api: "HfApi") -> dict[str, "RepoFile"]:
    from huggingface_hub import RepoFile
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    try:
        entries = list(api.list_repo_tree(repo, recursive=True, repo_type=kind))
    except RepositoryNotFoundError as error:
        if error.response.status_code == 401:
            raise
        return {}
    except RevisionNotFoundError:
        return {}
    return {entry.path: entry for entry in entries if isinstance(entry, RepoFile)}


def _equal(path: Path, remote: "RepoFile") -> bool:
    """By content: the Hub names large files by SHA-256, others as git does."""
    size = path.stat().st_size
    if size != remote.size:
        return False
    if remote.lfs is not None:
        return _digest(path, hashlib.sha256()) == remote.lfs.sha256
    return _digest(path, hashlib.sha1(b"blob %d\x00" % size, usedforsecurity=False)) == remote.blob_id


def _digest(path: Path, digest: "hashlib._Hash") -> str:
    with path.open("rb") as file:
        while part := file.read(READ):
            digest.update(part)
    return digest.hexdigest()


def _batches(names: Sequence[str], size: int) -> Iterator[list[str]]:
    rest = iter(names)
    while batch := list(islice(rest, size)):
        yield batch


def _join_names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
