"""A benchmark: the tasks of a run that an environment variable names."""

import os
from pathlib import Path

from trajsmith.evals import BENCHMARKS
from trajsmith.pipeline.eval_contexts import open_eval_contexts, split_tasks
from trajsmith.pipeline.run_directory import RunDirectory


@BENCHMARKS.register("watering")
async def load_watering(limit):
    run = RunDirectory.open(Path(os.environ["WATERING_RUN"]))
    return list(split_tasks(run, "all", limit)), await open_eval_contexts(run)
