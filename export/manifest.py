"""Manifest of a dataset: an in-toto statement that names every file by its SHA-256, and its signature.

`manifest.json` is the statement; `manifest.dsse.json` is the same statement in a DSSE envelope, signed with Ed25519. No
network and no service takes part: whoever has the public key can check a copy.
"""

import base64
import hashlib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from trajsmith.records import InputError, JsonObject, RunError, install_command, to_one_line

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

MANIFEST = "manifest.json"
ENVELOPE = "manifest.dsse.json"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:trajsmith:dataset:v1"
PAYLOAD = "application/vnd.in-toto+json"
"""Type of what a DSSE envelope of a statement holds."""
READ = 1 << 20


class ManifestSignature(NamedTuple):
    """Signature of a manifest."""

    key_id: str
    """SHA-256 of the public key."""
    repository: str
    """Repository for which the dataset was signed, as owner/name."""


def write_manifest(folder: Path, repository: str, key: Path | None = None) -> int:
    """Write the manifest of a dataset beside its files, and return how many files it names.

    Args:
        folder: Dataset, complete but for the manifest.
        repository: Repository that it is for, as owner/name.
        key: Private key (PEM, Ed25519) that signs it; without one an older signature is removed.

    Raises:
        InputError: The key cannot be read, or the package that signs is missing.
    """
    names = [name for name in sorted(list_files(folder)) if name not in (MANIFEST, ENVELOPE)]
    subject = [{"name": name, "digest": {"sha256": _hash_file(folder / name)}} for name in names]
    statement = orjson.dumps(
        {
            "_type": STATEMENT,
            "subject": subject,
            "predicateType": PREDICATE,
            "predicate": {"trajsmith": version("trajsmith"), "repository": repository},
        },
        option=orjson.OPT_INDENT_2,
    )
    envelope = None if key is None else _sign(statement, key)
    (folder / MANIFEST).write_bytes(statement)
    if envelope is None:
        (folder / ENVELOPE).unlink(missing_ok=True)
    else:
        (folder / ENVELOPE).write_bytes(envelope)
    return len(names)


def check_manifest(folder: Path, part: str) -> int | None:
    """Compare a part of a downloaded dataset with its manifest, and return how many files are equal.

    Files that the manifest does not name are removed: they are leftovers of another revision, or nobody vouches for
    them.

    Args:
        folder: Download, with the manifest if there is one.
        part: Folder or file in it that was downloaded.

    Returns:
        None if there is no manifest.

    Raises:
        RunError: A file is missing or differs.
    """
    if not (folder / MANIFEST).is_file():
        return None
    named = _compare_files(folder, part, "; delete the folder to fetch it anew")
    for name in _list_unnamed(folder, part, named):
        (folder / name).unlink()
    for path in sorted((folder / part).rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
    return len(named)


def check_signature(folder: Path, part: str, key: Path, repository: str = "") -> ManifestSignature:
    """Check who signed a part of a dataset, every file of it; nothing is changed.

    Args:
        folder: Dataset with manifest and envelope.
        part: Folder in it that is read.
        key: Public key (PEM, Ed25519).
        repository: Repository that it was read from, as owner/name; empty for a folder of this machine.

    Raises:
        InputError: The key cannot be read, or the package that checks is missing.
        RunError: There is no signature, it is of another key, manifest or repository, or a file differs or is not
            named.
    """
    public = _load_public_key(key)
    from cryptography.exceptions import InvalidSignature

    for name in (ENVELOPE, MANIFEST):
        if not (folder / name).is_file():
            raise RunError(f"{folder}: the dataset is not signed: there is no {name}")
    try:
        envelope = orjson.loads((folder / ENVELOPE).read_bytes())
        payload = base64.b64decode(envelope["payload"], validate=True)
        signatures = [base64.b64decode(one["sig"], validate=True) for one in envelope["signatures"]]
        kind = str(envelope["payloadType"])
    except (LookupError, TypeError, ValueError) as error:
        raise RunError(f"{folder}: {ENVELOPE} is no DSSE envelope: {error!r}") from error
    if kind != PAYLOAD:
        raise RunError(f"{folder}: {ENVELOPE} holds {kind!r}, not {PAYLOAD}")
    if payload != (folder / MANIFEST).read_bytes():
        raise RunError(f"{folder}: {ENVELOPE} signs another manifest")
    for signature in signatures:
        try:
            public.verify(signature, encode_for_signing(kind, payload))
            break
        except InvalidSignature:
            continue
    else:
        raise RunError(f"{folder}: the manifest is not signed by the key {key}")
    signed = _read_repository(folder)
    if repository and signed.casefold() != repository.casefold():
        raise RunError(f"{folder}: the signature is for {signed!r}, not for {repository}")
    named = _compare_files(folder, part)
    if not named:
        raise RunError(f"{folder}: the manifest names no file of {part}")
    for name in _list_unnamed(folder, part, named):
        raise RunError(f"{folder}: {name} is not signed: the manifest does not name it")
    return ManifestSignature(compute_key_id(public), signed)


def encode_for_signing(kind: str, payload: bytes) -> bytes:
    """Return what DSSE signs: type and content with their lengths (its pre-authentication encoding)."""
    return b"DSSEv1 %d %b %d %b" % (len(kind.encode()), kind.encode(), len(payload), payload)


def compute_key_id(key: "Ed25519PublicKey") -> str:
    """Return the SHA-256 of a public key (DER), as a name for it."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def _sign(statement: bytes, file: Path) -> bytes:
    key = _load_private_key(file)
    signature = key.sign(encode_for_signing(PAYLOAD, statement))
    envelope: JsonObject = {
        "payloadType": PAYLOAD,
        "payload": base64.b64encode(statement).decode(),
        "signatures": [{"keyid": compute_key_id(key.public_key()), "sig": base64.b64encode(signature).decode()}],
    }
    return orjson.dumps(envelope, option=orjson.OPT_INDENT_2)


def _load_private_key(file: Path) -> "Ed25519PrivateKey":
    serialization = _import_serialization()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = _parse_key(file, lambda text: serialization.load_pem_private_key(text, None))
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(f"{file} is no Ed25519 key: make one with `openssl genpkey -algorithm ed25519 -out {file}`")
    return key


def _load_public_key(file: Path) -> "Ed25519PublicKey":
    serialization = _import_serialization()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    key = _parse_key(file, serialization.load_pem_public_key)
    if not isinstance(key, Ed25519PublicKey):
        raise InputError(f"{file} is no public Ed25519 key: write it with `openssl pkey -in KEY -pubout -out {file}`")
    return key


def _import_serialization() -> Any:
    try:
        from cryptography.hazmat.primitives import serialization
    except ImportError as error:
        raise InputError(f"signatures need the package cryptography: {install_command('sign')}") from error
    return serialization


def _parse_key(file: Path, parse: Any) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm

    if file.exists() and not file.is_file():  # a pipe would be waited for
        raise InputError(f"{file} cannot be read: it is no file")
    try:
        return parse(file.read_bytes())
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from error
    except (TypeError, ValueError, UnsupportedAlgorithm) as error:
        reason = to_one_line(error, 200)
        raise InputError(f"{file} is no key in PEM without a password: {reason}") from error


def _compare_files(folder: Path, part: str, remedy: str = "") -> set[str]:
    """Return the names of the files of a part, after a look at whether each is the one that the manifest names.

    Raises:
        RunError: A file is missing or differs; `remedy` is what to do about one that differs.
    """
    digests = _read_subjects(folder)
    named = {name for name in digests if name == part or name.startswith(f"{part}/")}
    for name in sorted(named):
        if not (folder / name).is_file():
            raise RunError(f"{folder}: {name} is missing, which the manifest names")
        if _hash_file(folder / name) != digests[name]:
            raise RunError(f"{folder}: {name} is not the file that the manifest names{remedy}")
    return named


def _list_unnamed(folder: Path, part: str, named: set[str]) -> list[str]:
    """List the files and links of a part, hidden ones too, that are not among those named."""
    paths = [path for path in (folder / part).rglob("*") if path.is_symlink() or not path.is_dir()]
    return sorted(name for path in paths if (name := path.relative_to(folder).as_posix()) not in named)


def _read_statement(folder: Path) -> JsonObject:
    try:
        statement: JsonObject = orjson.loads((folder / MANIFEST).read_bytes())
        types = statement["_type"], statement["predicateType"]
    except (LookupError, TypeError, ValueError) as error:
        raise RunError(f"{folder}: {MANIFEST} is no manifest of a dataset: {error!r}") from error
    for actual, wanted in zip(types, (STATEMENT, PREDICATE), strict=True):
        if actual != wanted:
            raise RunError(f"{folder}: {MANIFEST} is no manifest of a dataset: it is {actual!r}, not {wanted}")
    return statement


def _read_repository(folder: Path) -> str:
    try:
        return str(_read_statement(folder)["predicate"]["repository"])
    except (LookupError, TypeError) as error:
        raise RunError(f"{folder}: {MANIFEST} names no repository: push the dataset again with --sign") from error


def _read_subjects(folder: Path) -> dict[str, str]:
    try:
        subjects = {str(one["name"]): str(one["digest"]["sha256"]) for one in _read_statement(folder)["subject"]}
    except (LookupError, TypeError) as error:
        raise RunError(f"{folder}: {MANIFEST} is no manifest of a dataset: {error!r}") from error
    for name in subjects:
        if not _is_inside(name):
            raise RunError(f"{folder}: {MANIFEST} names {name[:200]!a}, which is no file inside the dataset")
    return subjects


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return name == path.as_posix() and name.isprintable() and not path.is_absolute() and ".." not in path.parts


def list_files(folder: Path) -> Iterator[str]:
    """Yield the names of a folder's files, hidden ones left out."""
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in name.parts):
            yield name.as_posix()


def _hash_file(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(READ):
            digest.update(part)
    return digest.hexdigest()
