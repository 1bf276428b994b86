"""Environments in repositories of the Hub: download, comparison with index and manifest, recorded calls made again."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from trajsmith.envcheck import ConformanceRecord, replay_conformance
from trajsmith.environments import (
    CONFORMANCE,
    PUBLISHED_FOLDER,
    PUBLISHED_INDEX,
    PULLED,
    HubReference,
    PublishedEnvironment,
    PulledCopy,
    check_published_version,
    get_copy_folder,
    read_published_index,
)
from trajsmith.export import ENVELOPE, MANIFEST, check_manifest, check_signature
from trajsmith.export.environment_publication import open_published_source
from trajsmith.export.hub import CARD, translate_hub_errors
from trajsmith.records import InputError, escape_controls, hash_bytes, read_stored, suggest_names, write_whole_file


class PullResult(NamedTuple):
    """Result of pulling environments."""

    folder: Path
    """The copy."""
    commit: str
    """Commit that was copied."""
    same: list[PublishedEnvironment]
    """Environments that behave as recorded."""
    different: dict[str, list[str]]
    """Environments that do not, with the differences."""
    signed_by: str
    """SHA-256 of the key; empty if no signature was asked for."""


def pull_environments(
    reference: HubReference,
    names: Sequence[str] = (),
    key: Path | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> PullResult:
    """Download environments and make their recorded calls again in the sandbox; only those that pass can be used.

    What was downloaded stays, so that the same command goes on after an interruption.

    Args:
        reference: The repository.
        names: Environments; all of it if empty.
        key: Public key that must have signed the repository.

    Raises:
        InputError: The repository is something else, or one of its files is not what index or manifest names.
        RunError: The Hub cannot be reached, the disk is full, or a signature is wrong.
    """
    from huggingface_hub import HfApi, snapshot_download

    folder, repo = get_copy_folder(reference), reference.repo
    with translate_hub_errors(repo):
        commit = str(HfApi().repo_info(repo, revision=reference.revision or None, repo_type=reference.kind).sha)

    def download(patterns: list[str]) -> None:
        with translate_hub_errors(repo):
            snapshot_download(
                repo, repo_type=reference.kind, revision=commit, allow_patterns=patterns, local_dir=folder
            )

    for old in (PUBLISHED_INDEX, MANIFEST, ENVELOPE):
        (folder / old).unlink(missing_ok=True)
    download([PUBLISHED_INDEX, MANIFEST, ENVELOPE, CARD])
    if not (folder / PUBLISHED_INDEX).is_file():
        raise InputError(
            f"{repo} holds no environments: push some with `trajsmith env push FOLDER {reference.address}`"
        )
    if not (folder / MANIFEST).is_file():
        raise InputError(f"{repo} has no {MANIFEST}: nothing says which files are its own")
    check_manifest(folder, PUBLISHED_INDEX)
    index = {one.name: one for one in read_published_index(folder).environments}
    wanted = _choose(index, names)
    download([f"{PUBLISHED_FOLDER}/{name}/*" for name in wanted])
    signed_by = ""
    for part in (PUBLISHED_INDEX, *(f"{PUBLISHED_FOLDER}/{name}" for name in wanted)):
        check_manifest(folder, part)
        if key is not None:
            signed_by = check_signature(folder, part, key, repo).key_id
    same, different = list[PublishedEnvironment](), dict[str, list[str]]()
    for number, name in enumerate(wanted, 1):
        place = check_published_version(folder, index[name])
        differences = [escape_controls(line) for line in _replay(place, name)]
        if differences:
            different[name] = differences
        else:
            same.append(index[name])
        outcome = differences[0] if differences else f"{index[name].calls} recorded calls give the same"
        report(f"{number}/{len(wanted)} {name}: {outcome}")
    _store_copy(folder, index, same, different)
    return PullResult(folder, commit, same, different, signed_by)


def _choose(index: dict[str, PublishedEnvironment], names: Sequence[str]) -> list[str]:
    for name in names:
        if name not in index:
            hint = suggest_names(name, tuple(index)) or f"there are {len(index)}"
            raise InputError(f"the repository has no environment {name[:80]!a} ({hint})")
    return list(dict.fromkeys(names)) or list(index)


def _replay(place: Path, name: str) -> list[str]:
    """Make the recorded calls of an environment again, in the sandbox."""
    record = read_stored(place / CONFORMANCE, ConformanceRecord)
    file = place / f"{name}.py"
    if record.name != name or record.code != hash_bytes(file.read_bytes(), 64):
        return [f"{CONFORMANCE} was recorded of other code"]
    source = open_published_source(file)
    try:
        return asyncio.run(replay_conformance(source, record))
    except InputError as error:
        return [str(error)]
    finally:
        source.close()


def _store_copy(
    folder: Path,
    index: dict[str, PublishedEnvironment],
    same: Sequence[PublishedEnvironment],
    different: dict[str, list[str]],
) -> None:
    """Keep which versions may be used: those of this pull, and earlier ones that are still the repository's."""
    file = folder / PULLED
    before = read_stored(file, PulledCopy).versions if file.is_file() else {}
    versions = {
        name: version
        for name, version in before.items()
        if name in index and index[name].version == version and name not in different
    }
    versions |= {one.name: one.version for one in same}
    write_whole_file(file, PulledCopy(versions=dict(sorted(versions.items()))).model_dump_json(indent=1).encode())
