"""The manifest of a dataset: every file by its hash, and a signature that anybody with the public key can check."""

import base64
import json
import os
import subprocess
import sys

import pytest

from trajsmith.export.manifest import (
    ENVELOPE,
    MANIFEST,
    check_manifest,
    check_signature,
    encode_for_signing,
    write_manifest,
)
from trajsmith.records import InputError, RunError

REPO = "me/rows"


@pytest.fixture
def folder(tmp_path):
    target = tmp_path / "dataset"
    for name, text in {"data/train.jsonl": "{}\n", "run/tasks.jsonl": "1\n", "run/states/a.json": "{}"}.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text)
    return target


def statement(subject):
    types = '"_type": "https://in-toto.io/Statement/v1", "predicateType": "urn:trajsmith:dataset:v1"'
    return f'{{{types}, "subject": {subject}}}'


def make_key(folder, name, algorithm="ed25519"):
    private, public = folder / f"{name}.pem", folder / f"{name}.pub"
    subprocess.run(["openssl", "genpkey", "-algorithm", algorithm, "-out", str(private)], check=True)
    subprocess.run(["openssl", "pkey", "-in", str(private), "-pubout", "-out", str(public)], check=True)
    return private, public


def test_the_manifest_is_a_statement_of_all_files(folder):
    assert write_manifest(folder, REPO) == 3
    assert write_manifest(folder, REPO) == 3  # itself is not among them
    statement = json.loads((folder / MANIFEST).read_text())
    assert [one["name"] for one in statement["subject"]] == ["data/train.jsonl", "run/states/a.json", "run/tasks.jsonl"]
    assert check_manifest(folder, "run") == 2
    assert not (folder / ENVELOPE).exists()


def test_a_changed_or_missing_file_is_named(folder):
    write_manifest(folder, REPO)
    (folder / "run/tasks.jsonl").write_text("2\n")
    with pytest.raises(RunError, match=r"run/tasks\.jsonl is not the file that the manifest names"):
        check_manifest(folder, "run")
    (folder / "run/tasks.jsonl").unlink()
    with pytest.raises(RunError, match=r"run/tasks\.jsonl is missing"):
        check_manifest(folder, "run")


def test_a_file_that_nobody_vouches_for_is_removed(folder):
    write_manifest(folder, REPO)
    for name in ("run/more.py", "run/.hidden.py", "run/.git/hooks/pre-commit"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    (folder / "run/link").symlink_to("/etc")
    assert check_manifest(folder, "run") == 2
    names = {path.relative_to(folder).as_posix() for path in (folder / "run").rglob("*")}
    assert names == {"run/tasks.jsonl", "run/states", "run/states/a.json"}


def test_without_a_manifest_nothing_is_checked(folder):
    assert check_manifest(folder, "run") is None


def test_a_signature_holds_for_its_key_and_its_manifest(folder, tmp_path):
    private, public = make_key(tmp_path, "own")
    _, other = make_key(tmp_path, "other")
    write_manifest(folder, REPO, private)
    signature = check_signature(folder, "run", public)
    assert len(signature.key_id) == 64 and signature.repository == REPO
    with pytest.raises(RunError, match="not signed by the key"):
        check_signature(folder, "run", other)
    envelope = (folder / ENVELOPE).read_bytes()
    (folder / "run/tasks.jsonl").write_text("2\n")
    write_manifest(folder, REPO)
    with pytest.raises(RunError, match="is not signed: there is no"):
        check_signature(folder, "run", public)
    (folder / ENVELOPE).write_bytes(envelope)
    with pytest.raises(RunError, match="signs another manifest"):
        check_signature(folder, "run", public)


def test_openssl_alone_verifies_the_signature(folder, tmp_path):
    private, public = make_key(tmp_path, "own")
    write_manifest(folder, REPO, private)
    envelope = json.loads((folder / ENVELOPE).read_text())
    (tmp_path / "sig").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
    (tmp_path / "text").write_bytes(encode_for_signing(envelope["payloadType"], base64.b64decode(envelope["payload"])))
    command = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", public, "-rawin", "-in", "text", "-sigfile", "sig"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "Signature Verified Successfully" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"subject": 1}', "no manifest"),
        ("[", "no manifest"),
        ('{"subject": [{"name": "a"}]}', "no manifest"),
        (statement('[{"name": "a"}]'), "no manifest"),
        (statement("[]").replace("Statement/v1", "Statement/v2"), "Statement/v2', not https://in-toto.io/Statement/v1"),
        (statement("[]").replace("dataset:v1", "model:v1"), "urn:trajsmith:model:v1', not urn:trajsmith:dataset:v1"),
        (statement('[{"name": "run/../../passwd", "digest": {"sha256": "0"}}]'), "no file inside the dataset"),
        (statement('[{"name": "/etc/passwd", "digest": {"sha256": "0"}}]'), "no file inside the dataset"),
    ],
)
def test_what_is_no_manifest_is_refused(folder, text, reason):
    (folder / MANIFEST).write_text(text)
    with pytest.raises(RunError, match=reason):
        check_manifest(folder, "run")


def test_a_wrong_key_is_refused_before_anything_is_written(folder, tmp_path):
    private, public = make_key(tmp_path, "other", "x25519")
    (tmp_path / "text").write_text("key")
    os.mkfifo(tmp_path / "pipe")
    for key, reason in (
        (private, "no Ed25519 key"),
        (tmp_path / "text", "no key in PEM"),
        (tmp_path / "no", "cannot be read"),
    ):
        with pytest.raises(InputError, match=reason):
            write_manifest(folder, REPO, key)
    assert not (folder / MANIFEST).exists()
    with pytest.raises(InputError, match="no public Ed25519 key"):
        check_signature(folder, "run", public)


UNKNOWN_KIND = bytes.fromhex("302a3005" + "06032b657f" + "032100" + "00" * 32)
"""A public key of an algorithm that nobody knows."""


def test_a_key_of_an_unknown_algorithm_is_refused_in_one_line(folder, tmp_path):
    (tmp_path / "odd.pub").write_text(
        f"-----BEGIN PUBLIC KEY-----\n{base64.b64encode(UNKNOWN_KIND).decode()}\n-----END PUBLIC KEY-----\n"
    )
    with pytest.raises(InputError, match="no key in PEM"):
        check_signature(folder, "run", tmp_path / "odd.pub")


def test_a_signature_holds_for_every_file_of_the_part(folder, tmp_path):
    private, public = make_key(tmp_path, "own")
    write_manifest(folder, REPO, private)
    (folder / "run/.more.py").write_text("x")
    with pytest.raises(RunError, match=r"run/\.more\.py is not signed"):
        check_signature(folder, "run", public)
    assert (folder / "run/.more.py").exists(), "a local copy is not changed"
    (folder / "run/.more.py").unlink()
    with pytest.raises(RunError, match="names no file of other"):
        check_signature(folder, "other", public)
    (folder / "run/states/a.json").write_text("[]")
    with pytest.raises(RunError, match=r"run/states/a\.json is not the file that the manifest names"):
        check_signature(folder, "run", public)


def test_a_signature_holds_for_one_repository(folder, tmp_path):
    private, public = make_key(tmp_path, "own")
    write_manifest(folder, REPO, private)
    assert check_signature(folder, "run", public, "Me/Rows").repository == REPO  # the Hub ignores case
    with pytest.raises(RunError, match="the signature is for 'me/rows', not for me/others"):
        check_signature(folder, "run", public, "me/others")


def test_an_envelope_of_another_type_or_alone_is_refused(folder, tmp_path):
    private, public = make_key(tmp_path, "own")
    write_manifest(folder, REPO, private)
    envelope = json.loads((folder / ENVELOPE).read_text())
    (folder / ENVELOPE).write_text(json.dumps(envelope | {"payloadType": "text/plain"}))
    with pytest.raises(RunError, match=r"holds 'text/plain', not application/vnd\.in-toto\+json"):
        check_signature(folder, "run", public)
    (folder / MANIFEST).unlink()
    with pytest.raises(RunError, match=r"the dataset is not signed: there is no manifest\.json"):
        check_signature(folder, "run", public)


def test_without_cryptography_the_command_that_installs_it_is_named(folder, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(InputError, match="signatures need the package cryptography: pip install"):
        check_signature(folder, "run", tmp_path / "own.pub")
