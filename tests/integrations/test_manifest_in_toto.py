"""The signed manifest of a dataset is read by in-toto's own classes, and its signature holds for securesystemslib."""

import subprocess

from other_side import run_script

from trajsmith.api.datasets import export_dataset
from trajsmith.api.runs import load_run
from trajsmith.export.manifest import write_manifest


def test_the_statement_and_its_signature_hold(run, tmp_path, checked):
    private, public = tmp_path / "key.pem", tmp_path / "key.pub"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(private)], check=True)
    subprocess.run(["openssl", "pkey", "-in", str(private), "-pubout", "-out", str(public)], check=True)
    export_dataset(load_run(run.path), out=tmp_path / "rows", format="trl")
    files = write_manifest(tmp_path / "rows", "me/rows", private)
    (about,) = run_script("in_toto", "read_manifest.py", tmp_path / "rows", public)
    assert about["files"] == files and about["signed"] == 1
    checked("manifest", about["version"], "`dsse.Envelope.verify`, `Statement.validate`", about["equal"], files)
