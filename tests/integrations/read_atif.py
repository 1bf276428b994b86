"""Validate ATIF documents with the models of `atif` or of Harbor, and print them as these write them.

python read_atif.py FILE (atif | harbor)
"""

import json
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

file, package = sys.argv[1:]
Trajectory = import_module({"atif": "atif", "harbor": "harbor.models.trajectories"}[package]).Trajectory
for line in Path(file).read_text("utf-8").splitlines():
    document = Trajectory.model_validate(json.loads(line))
    sys.stdout.write(json.dumps(document.model_dump(mode="json", exclude_none=True)) + "\n")
client = f"{Trajectory.__module__.split('.')[0]}.{Trajectory.__name__}"
sys.stdout.write(json.dumps({"version": version(package), "client": client}) + "\n")
