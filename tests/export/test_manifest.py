"""The manifest of a dataset: every file by its hash, and a signature that anybody with the public key can check."""

import base64
import json
import os
import subprocess

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


@pytest.fixture
def folder(tmp_path):
    target = tmp_path / "dataset"
    for name, text in {"data/train.jsonl": "{}\n", "run/tasks.jsonl": "1\n", "run/states/a.json": "{}"}.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text)
    return target


def make_key(folder, name, algorithm="ed25519"):
    private, public = folder / f"{name}.pem", folder / f"{name}.pub"
    subprocess.run(["openssl", "genpkey", "-algorithm", algorithm, "-out", str(private)], check=True)
    subprocess.run(["openssl", "pkey", "-in", str(private), "-pubout", "-out", str(public)], check=True)
    return private, public


def test_the_manifest_is_a_statement_of_all_files(folder):
    assert write_manifest(folder) == 3
    assert write_manifest(folder) == 3  # itself is not among them
    statement = json.loads((folder / MANIFEST).read_text())
    assert [one["name"] for one in statement["subject"]] == ["data/train.jsonl", "run/states/a.json", "run/tasks.jsonl"]
    assert check_manifest(folder, "run") == 2
    assert not (folder / ENVELOPE).exists()


def test_a_changed_or_missing_file_is_named(folder):
    write_manifest(folder)
    (folder / "run/tasks.jsonl").write_text("2\n")
    with pytest.raises(RunError, match=r"run/tasks\.jsonl is not the file that the manifest names"):
        check_manifest(folder, "run")
    (folder / "run/tasks.jsonl").unlink()
    with pytest.raises(RunError, match=r"run/tasks\.jsonl is missing"):
        check_manifest(folder, "run")


def test_a_file_that_nobody_vouches_for_is_removed(folder):
    write_manifest(folder)
    (folder / "run/more.py").write_text("x")
    assert check_manifest(folder, "run") == 2
    assert not (folder / "run/more.py").exists()


def test_without_a_manifest_nothing_is_checked(folder):
    assert check_manifest(folder, "run") is None


def test_a_signature_holds_for_its_key_and_its_manifest(folder, tmp_path):
    private, public = make_key(tmp_path, "own")
    _, other = make_key(tmp_path, "other")
    write_manifest(folder, private)
    assert len(check_signature(folder, public)) == 64
    with pytest.raises(RunError, match="not signed by the key"):
        check_signature(folder, other)
    envelope = (folder / ENVELOPE).read_bytes()
    (folder / "run/tasks.jsonl").write_text("2\n")
    write_manifest(folder)
    with pytest.raises(RunError, match="is not signed: there is no"):
        check_signature(folder, public)
    (folder / ENVELOPE).write_bytes(envelope)
    with pytest.raises(RunError, match="signs another manifest"):
        check_signature(folder, public)


def test_openssl_alone_verifies_the_signature(folder, tmp_path):
    private, public = make_key(tmp_path, "own")
    write_manifest(folder, private)
    envelope = json.loads((folder / ENVELOPE).read_text())
    (tmp_path / "sig").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
    (tmp_path / "text").write_bytes(encode_for_signing(envelope["payloadType"], base64.b64decode(envelope["payload"])))
    command = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", public, "-rawin", "-in", "text", "-sigfile", "sig"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "Signature Verified Successfully" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("text", "reason"),
    [('{"subject": 1}', "no manifest"), ("[", "no manifest"), ('{"subject": [{"name": "a"}]}', "no manifest")],
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
            write_manifest(folder, key)
    assert not (folder / MANIFEST).exists()
    with pytest.raises(InputError, match="no public Ed25519 key"):
        check_signature(folder, public)
