"""`trajsmith report --all`: every judged conversation of a run on a page, whatever the size of the run."""

from pathlib import Path

from trajsmith.export import ConversationBrowser
from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.progress import RunProgress
from trajsmith.pipeline.record_joins import join_verdicts
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.stages import VERDICTS
from trajsmith.records import InputError
from trajsmith.records.journal import count_records
from trajsmith.records.storage import storage_boundary

GALLERY = "gallery"


async def browse_run(run: RunDirectory, progress: RunProgress) -> Path:
    """Write the pages, from the records alone, and give the one to open.

    Raises:
        InputError: The run has no verdicts.
        RunError: The disk is full.
    """
    if not run.file(VERDICTS).is_file():
        raise InputError(f"{run.path} has no verdicts yet: run `trajsmith resume {run.path}`")
    run.refuse_links()
    name, folder = load_config(run.config_path).name, run.file(GALLERY)
    bar_of = progress.stage("write pages", count_records(run.file(VERDICTS)), 0, 0)
    with storage_boundary(folder, run.again), ConversationBrowser(folder, name) as browser, bar_of as bar:
        for task, trajectory, verdict in join_verdicts(run):
            browser.add(task, trajectory, verdict)
            bar.advance(dropped=False)
    return folder / "index.html"
