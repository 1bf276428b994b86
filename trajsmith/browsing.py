"""`trajsmith report --all`: every judged conversation of a run on a page, whatever the size of the run."""

from pathlib import Path

from export import Browser
from trajectory import InputError
from trajsmith.config import load_config
from trajsmith.joined import judged
from trajsmith.journal import count
from trajsmith.progress import Progress
from trajsmith.rundir import RunDirectory, storage_boundary
from trajsmith.stages import VERDICTS

GALLERY = "gallery"


async def browse_run(run: RunDirectory, progress: Progress) -> Path:
    """Write the pages, from the records alone, and give the one to open.

    Raises:
        InputError: The run has no verdicts.
        RunError: The disk is full.
    """
    if not run.file(VERDICTS).is_file():
        raise InputError(f"{run.path} has no verdicts yet: run `trajsmith resume {run.path}`")
    run.refuse_links()
    name, folder = load_config(run.config_path).name, run.file(GALLERY)
    bar_of = progress.stage("write pages", count(run.file(VERDICTS)), 0, 0)
    with storage_boundary(folder, run.path), Browser(folder, name) as browser, bar_of as bar:
        for task, trajectory, verdict in judged(run):
            browser.add(task, trajectory, verdict)
            bar.advance(dropped=False)
    return folder / "index.html"
