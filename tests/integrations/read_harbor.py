"""Load Harbor tasks with Harbor's own classes, and print what they hold.

python read_harbor.py FOLDER
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path

from harbor.models.task.task import Task

for folder in sorted(Path(sys.argv[1]).iterdir()):
    task = Task(folder)
    found = {
        "valid": Task.is_valid_dir(folder)
        and task.paths.discovered_solve_path_for(task.config.environment.os) is not None,
        "instruction": task.instruction,
        "metadata": task.config.metadata,
        "servers": [server.url for server in task.config.environment.mcp_servers],
    }
    sys.stdout.write(json.dumps(found) + "\n")
sys.stdout.write(json.dumps({"version": version("harbor")}) + "\n")
