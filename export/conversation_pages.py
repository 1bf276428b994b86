"""All conversations of a run as pages that open from the disk: small ones, by environment and outcome, and found by id.

The report shows a choice on one page. Here every conversation stands on some page of `PER_PAGE`; an overview leads to
the pages, and an id to its conversation. Memory holds one page for each environment and outcome.
"""

import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Self

import orjson

from trajsmith.export._templates import FOLDER, create_template_environment
from trajsmith.export.gallery import escape_embedded_json, serialize_entry
from trajsmith.records import Task, TaskHeader, Trajectory, Verdict

PER_PAGE = 100
"""Conversations on a page: about one MiB."""
PREFIX = 2
"""Last characters of an id by which ids are looked up, a page of links for each."""
ALL_IDS = "all"
INDEX = "index.html"
REPORT = "../report.html"

Group = tuple[str, str]
"""Environment and outcome."""


class ConversationBrowser:
    """Writes the pages as the records stream by. Use it as a context manager; an older folder is replaced at the end.

    Args:
        directory: Folder of the pages.
        name: What the run is called.
        prefix: Last characters of an id by which ids are looked up; 0 puts all ids on one page.
        report: Page that the overview leads back to, seen from its folder; empty for none.
    """

    def __init__(self, directory: Path, name: str, prefix: int = PREFIX, report: str = REPORT) -> None:
        self.prefix = prefix
        self.report = report
        self.directory = directory
        self.name = name
        self.counts: dict[Group, int] = defaultdict(int)
        """Conversations of each group so far."""
        self._part = directory.with_name(f".{directory.name}.part")
        self._open: dict[Group, list[bytes]] = defaultdict(list)
        self._places: dict[str, IO[bytes]] = {}
        self._templates = create_template_environment()
        self._parts = {name: (FOLDER / f"report.{name}").read_text("utf-8") for name in ("css", "js")}

    def add(self, task: Task | TaskHeader, trajectory: Trajectory, verdict: Verdict) -> None:
        """Put one conversation on the open page of its group."""
        self.add_entry(find_group(trajectory, verdict), trajectory.id, serialize_entry(task, trajectory, verdict))

    def add_entry(self, group: Group, trajectory_id: str, entry: bytes) -> None:
        """Put one conversation on the open page of its group, of which the entry is there already."""
        if len(self._open[group]) == PER_PAGE:
            self._write_page(group, more=True)
        self._open[group].append(entry)
        self.counts[group] += 1
        self._note(trajectory_id, _file(group, self._pages(group)))

    def __enter__(self) -> Self:
        shutil.rmtree(self._part, ignore_errors=True)
        (self._part / "ids").mkdir(parents=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            for handle in self._places.values():
                handle.close()
            shutil.rmtree(self._part, ignore_errors=True)

    def _finish(self) -> None:
        for group in sorted(group for group, entries in self._open.items() if entries):
            self._write_page(group, more=False)
        for handle in self._places.values():
            handle.close()
        for places in sorted((self._part / "ids").glob("*.jsonl")):
            self._write_ids(places)
        groups = [(*group, self.counts[group], list(self._files(group))) for group in sorted(self.counts)]
        total = sum(self.counts.values())
        self._write(
            INDEX,
            "browse_index.html.j2",
            total=total,
            groups=groups,
            prefix=self.prefix,
            command="",
            report=self.report,
        )
        shutil.rmtree(self.directory, ignore_errors=True)
        self._part.replace(self.directory)

    def _pages(self, group: Group) -> int:
        """Pages that the conversations so far take."""
        return -(-self.counts[group] // PER_PAGE)

    def _files(self, group: Group) -> Iterator[str]:
        return (_file(group, number) for number in range(1, self._pages(group) + 1))

    def _write_page(self, group: Group, more: bool) -> None:
        from markupsafe import Markup

        entries, number = self._open.pop(group), self._pages(group)
        last = self.counts[group]
        self._write(
            _file(group, number),
            "browse_page.html.j2",
            note=f"{last - len(entries) + 1} to {last} of {group[0]}, {group[1].replace('_', ' ')}.",
            before=_file(group, number - 1) if number > 1 else "",
            after=_file(group, number + 1) if more else "",
            pages="",
            items=Markup(escape_embedded_json(entries)),
            js=Markup(self._parts["js"]),
        )

    def _note(self, name: str, file: str) -> None:
        """Keep on which page an id stands; 256 files stay open."""
        key = name[-self.prefix :] if self.prefix else ALL_IDS
        if key not in self._places:
            self._places[key] = (self._part / "ids" / f"{key}.jsonl").open("wb")
        self._places[key].write(orjson.dumps([name, file], option=orjson.OPT_APPEND_NEWLINE))

    def _write_ids(self, places: Path) -> None:
        rows = sorted(orjson.loads(line) for line in places.read_bytes().splitlines())
        self._write(f"ids/{places.stem}.html", "browse_ids.html.j2", rows=rows)
        places.unlink()

    def _write(self, file: str, template: str, **values: object) -> None:
        from markupsafe import Markup

        text = self._templates.get_template(template).render(name=self.name, css=Markup(self._parts["css"]), **values)
        (self._part / file).write_text(text, encoding="utf-8")


def find_group(trajectory: Trajectory, verdict: Verdict) -> Group:
    """Return the environment and the outcome by which conversations are put on pages."""
    return trajectory.environment, "accepted" if verdict.accepted else verdict.outcome


def write_overview(directory: Path, name: str, counts: Mapping[Group, int], command: str) -> None:
    """Write the overview of a run whose pages are not written, with the command that writes them.

    Pages of an older state of the run are removed.
    """
    from markupsafe import Markup

    groups: list[tuple[str, str, int, list[str]]] = [(*group, count, []) for group, count in sorted(counts.items())]
    text = (
        create_template_environment()
        .get_template("browse_index.html.j2")
        .render(
            name=name,
            css=Markup((FOLDER / "report.css").read_text("utf-8")),
            total=sum(counts.values()),
            groups=groups,
            prefix=0,
            command=command,
            report=REPORT,
        )
    )
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    (directory / INDEX).write_text(text, encoding="utf-8")


def _file(group: Group, number: int) -> str:
    return f"{group[0]}-{group[1]}-{number:05d}.html"
