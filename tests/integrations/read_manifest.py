"""Check the manifest of a dataset with in-toto's and securesystemslib's own classes. Prints a JSON line."""

import hashlib
import importlib.metadata
import json
import sys
from pathlib import Path

from cryptography.hazmat.primitives.serialization import load_pem_public_key
from google.protobuf.json_format import Parse
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as Message
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey


def main(folder, public):
    document = json.loads((folder / "manifest.dsse.json").read_text())
    key = SSlibKey.from_crypto(load_pem_public_key(public.read_bytes()), document["signatures"][0]["keyid"])
    envelope = Envelope.from_dict(document)
    verified = envelope.verify([key], 1)
    statement = Statement.copy_from_pb(Parse(envelope.payload, Message()))
    statement.validate()
    subjects = {one.name: one.digest["sha256"] for one in statement.pb.subject}
    equal = sum(hashlib.sha256((folder / name).read_bytes()).hexdigest() == sha for name, sha in subjects.items())
    versions = f"{importlib.metadata.version('securesystemslib')}, {importlib.metadata.version('in-toto-attestation')}"
    sys.stdout.write(
        json.dumps({"signed": len(verified), "files": len(subjects), "equal": equal, "version": versions}) + "\n"
    )


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
