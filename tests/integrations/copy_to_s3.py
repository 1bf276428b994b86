"""Make a run that keeps its copy in a bucket of moto's server, go on from the copy, and print what came back.

Usage: copy_to_s3.py RUN FOLDER
"""

import json
import os
import sys
from importlib.metadata import version
from pathlib import Path

from moto.server import ThreadedMotoServer
from s3fs import S3FileSystem

import trajsmith
from trajsmith.pipeline.run_copies import fetch_copy, push_copy
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.records import RunError

RECORDS = ("chains", "grounded", "tasks", "trajectories", "verdicts")
CONFIG = {
    "name": "bucket",
    "environments": [{"library": "bank", "states": {"small": 1}}],
    "sample": {"count": 30, "length": [2, 3]},
    "engine": {"workers": 1, "copy_to": "s3://bucket/runs/live", "copy_every": 0.5},
}


def main() -> None:
    made, folder = Path(sys.argv[1]), Path(sys.argv[2])
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    os.environ |= {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}
    os.environ["AWS_ENDPOINT_URL"] = f"http://{host}:{port}"
    S3FileSystem().mkdir("bucket")
    copied = push_copy(RunDirectory(made), "s3://bucket/runs/made")
    again = push_copy(RunDirectory(made), "s3://bucket/runs/made")
    back = fetch_copy("s3://bucket/runs/made", folder / "made")
    equal = sum(read(made, name) == read(back, name) for name in RECORDS)
    sys.stdout.write(json.dumps({"version": version("s3fs"), "copied": copied, "again": again, "equal": equal}) + "\n")
    live = trajsmith.run(CONFIG, run=folder / "live").path
    other = trajsmith.resume(fetch_copy("s3://bucket/runs/live", folder / "other")).path
    try:
        trajsmith.resume(live)
        refused = ""
    except RunError as error:
        refused = str(error)
    equal = sum(read(live, name) == read(other, name) for name in RECORDS)
    sys.stdout.write(json.dumps({"equal": equal, "refused": refused}) + "\n")
    server.stop()


def read(run: Path, name: str) -> bytes:
    return (run / f"{name}.jsonl").read_bytes()


if __name__ == "__main__":
    main()
