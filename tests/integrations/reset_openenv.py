"""Reset the environment of a run by split, and print the task or the error.

python reset_openenv.py RUN
"""

import asyncio
import json
import sys
from itertools import count
from pathlib import Path

from trajsmith.pipeline.openenv_tasks import TaskEnvironment
from trajsmith.pipeline.task_server import keep_tasks_open
from trajsmith.records import InputError

environment = TaskEnvironment(lambda: keep_tasks_open(Path(sys.argv[1])), "accepted", count())
for options in ({}, {"split": "all"}, {"split": "test"}, {"split": "test", "index": 0}, {"split": "all", "index": 0}):
    try:
        answer = asyncio.run(environment.reset_async(**options)).metadata["task_id"]
    except InputError as error:
        answer = str(error)
    sys.stdout.write(json.dumps({"answer": answer}) + "\n")
environment.close()
