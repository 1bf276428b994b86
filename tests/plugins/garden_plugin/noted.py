"""An engine: the local one, which notes the stages that it ran."""

from trajsmith.pipeline.engine import ENGINES, run_stage


@ENGINES.register("noted")
async def run_noted(stage, run, inputs=None, concurrency=8, progress=None):
    with run.file("stages.txt").open("a") as notes:
        notes.write(f"{stage.name}\n")
    return await run_stage(stage, run, inputs, concurrency, progress)
