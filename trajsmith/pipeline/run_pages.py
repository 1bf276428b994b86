"""Pages of the conversations of a run, beside its records."""

import time
from collections.abc import Iterable

from trajsmith.export import INDEX, ConversationBrowser
from trajsmith.pipeline.export_chunks import PageEntry
from trajsmith.pipeline.run_directory import VERDICTS, RunDirectory
from trajsmith.records import find_form

GALLERY = "gallery"
"""Folder of the pages of all conversations."""


def write_pages(run: RunDirectory, name: str, entries: Iterable[PageEntry]) -> None:
    """Write the pages of all conversations, in the order of the run."""
    with ConversationBrowser(run.file(GALLERY), name, prefix=0) as browser:
        for entry in sorted(entries):
            browser.add_entry(entry.group, entry.trajectory_id, entry.data)


def is_outdated(run: RunDirectory) -> bool:
    """Return True if there are no pages of all conversations, or older ones than the verdicts or the configuration.

    Pages of a later time than now were written before the clock was set back, and tell nothing.
    """
    overview = run.file(GALLERY) / INDEX
    if not overview.is_file():
        return True
    written, sources = overview.stat().st_mtime, filter(None, (find_form(run.file(VERDICTS)), run.config_path))
    return written > time.time() or any(source.stat().st_mtime > written for source in sources)
