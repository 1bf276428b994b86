"""Published environments: the index of a folder of them, and the copies of Hub repositories on this machine.

Code of a published environment is a file like any other: it runs in the sandbox only. Nothing here asks the network.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, StringConstraints, ValidationError

from trajsmith.records import (
    HUB,
    FrozenModel,
    InputError,
    content_hash,
    format_first_error,
    hash_bytes,
    read_stored,
    shorten_name,
    storage_boundary,
)

PUBLISHED_FOLDER = "environments"
"""Folder of a publication that holds the environments."""
PUBLISHED_INDEX = "environments.json"
CONFORMANCE = "conformance.json"
"""File of an environment: calls with their results, which a copy must give too."""
PULLED = "pulled.json"
"""File of a copy that was examined: which versions gave the recorded results on this machine."""
_REFERENCE = re.compile(
    r"(spaces/)?([\w.\-]{1,96}/[\w.\-]{1,96})(?:@([\w.\-/]{1,200}))?(?::([a-z]\w{0,119}))?", re.ASCII
)
_SPACES = "spaces/"

EnvironmentName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,119}$")]
"""Name of an environment, of its folder and of its file."""


class PublishedEnvironment(FrozenModel):
    """One environment of a publication, as the index and the card show it."""

    name: EnvironmentName
    version: str
    """Hash of all its files."""
    domain: str = ""
    description: str = ""
    """First line of what it says of itself."""
    tools: int
    user_tools: int = 0
    """Tools that only the user calls."""
    score: float | None = None
    """Score of the environment checker, 0 to 1."""
    tests: str = ""
    """Outcome of its own tests."""
    calls: int
    """Recorded calls."""
    source: str
    """What it was made from."""
    licence: str = ""
    """Licence of that source; empty if it is not known."""
    models: tuple[str, ...] = ()
    """Models that wrote it; none if it was generated without one."""


class PublishedIndex(FrozenModel):
    """Content of `environments.json`."""

    form: Literal["trajsmith environments 1"] = "trajsmith environments 1"
    trajsmith: str
    licence: str
    """Licence of the publication, as the Hub names it."""
    environments: Annotated[tuple[PublishedEnvironment, ...], Field(min_length=1)]


class PulledCopy(FrozenModel):
    """Content of `pulled.json`."""

    versions: dict[EnvironmentName, str]
    """Environments whose recorded calls gave the same results here, with the version that did."""


class HubReference(NamedTuple):
    """Parts of `hub:owner/name@revision:environment`, or of `hub:spaces/owner/name`."""

    kind: Literal["dataset", "space"]
    repo: str
    revision: str
    """Empty for the main branch."""
    environment: str
    """Empty for all of the repository."""

    @property
    def address(self) -> str:
        """Repository and revision, as the command line takes them."""
        revision = f"@{self.revision}" if self.revision else ""
        return f"{_SPACES if self.kind == 'space' else ''}{self.repo}{revision}"


def parse_hub_reference(reference: str) -> HubReference:
    """Split a reference to environments of the Hub; `hub:` may be left out.

    Raises:
        InputError: It is none.
    """
    match = _REFERENCE.fullmatch(reference.removeprefix(HUB))
    if match is None or any(".." in part for part in match.groups("")) or match[2].startswith((".", "-")):
        shown = shorten_name(reference)
        raise InputError(
            f"{shown}: write a repository of environments as owner/name, spaces/owner/name or with @REVISION"
        )
    return HubReference("space" if match[1] else "dataset", match[2], match[3] or "", match[4] or "")


def get_copy_folder(reference: HubReference) -> Path:
    """Return the folder of this machine that holds the copy of a repository."""
    from huggingface_hub import constants

    name = f"{reference.kind}--{reference.repo}@{reference.revision or 'main'}".replace("/", "--")
    return Path(constants.HF_HOME) / "trajsmith" / "environments" / name


def read_published_index(folder: Path) -> PublishedIndex:
    """Read the index of a publication.

    Raises:
        InputError: There is none, or it is not one.
    """
    file = folder / PUBLISHED_INDEX
    if not file.is_file():
        raise InputError(f"{folder} holds no published environments: there is no {PUBLISHED_INDEX}")
    try:
        index = PublishedIndex.model_validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        reason = format_first_error(error) if isinstance(error, ValidationError) else error.strerror
        raise InputError(f"{file} is no index of published environments: {reason}") from error
    names = [one.name for one in index.environments]
    if len(set(names)) < len(names):
        raise InputError(f"{file} lists {next(name for name in names if names.count(name) > 1)} twice")
    return index


def compute_version(folder: Path) -> str:
    """Return the hash of all files of an environment's folder, by their names."""
    return content_hash({path.name: hash_bytes(path.read_bytes(), 64) for path in list_environment_files(folder)})


def list_environment_files(folder: Path) -> Iterator[Path]:
    """Yield the files that belong to an environment, by name: those directly in its folder that are not hidden."""
    yield from (path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith("."))


def check_published_version(folder: Path, entry: PublishedEnvironment) -> Path:
    """Return the folder of an environment of a publication, after a look at whether its files are those of the index.

    Raises:
        InputError: A file was changed, taken away or added, or the file of its recorded calls is missing.
    """
    place = folder / PUBLISHED_FOLDER / entry.name
    if not (place / f"{entry.name}.py").is_file():
        raise InputError(f"{place} holds no {entry.name}.py, which {PUBLISHED_INDEX} lists")
    if not (place / CONFORMANCE).is_file():
        raise InputError(f"{place} has no {CONFORMANCE}: without recorded calls nothing shows that it behaves the same")
    with storage_boundary(place):
        version = compute_version(place)
    if version != entry.version:
        raise InputError(
            f"{place} has the version {version}, and {PUBLISHED_INDEX} names {entry.version}: a file was changed"
        )
    return place


def list_pulled_files(reference: str) -> list[str]:
    """List the Python files that `hub:owner/name` stands for: environments whose recorded calls gave the same here.

    Raises:
        InputError: It was not pulled, or a file was changed since.
    """
    parsed = parse_hub_reference(reference)
    folder, command = get_copy_folder(parsed), f"trajsmith env pull {parsed.address}"
    if not (folder / PULLED).is_file():
        raise InputError(f"{reference} is not on this machine: get it with `{command}`")
    pulled = read_stored(folder / PULLED, PulledCopy).versions
    if parsed.environment and parsed.environment not in pulled:
        raise InputError(f"{reference}: there is no {parsed.environment}; there are: {', '.join(sorted(pulled))}")
    names = [parsed.environment] if parsed.environment else sorted(pulled)
    for name in names:
        place = folder / PUBLISHED_FOLDER / name
        if not place.is_dir() or compute_version(place) != pulled[name]:
            raise InputError(f"{place} was changed after it was examined: repeat `{command}`")
    return [str(folder / PUBLISHED_FOLDER / name / f"{name}.py") for name in names]
