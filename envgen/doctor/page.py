"""The report as a page: one file, nothing to load."""

from collections.abc import Sequence
from pathlib import Path

from chatmodel.sandboxed import template_environment
from envgen.doctor.replay import short_arguments
from envgen.doctor.report import Report

FOLDER = Path(__file__).parent / "templates"


def page(reports: Sequence[Report]) -> str:
    """One HTML file for all of these reports."""
    from jinja2 import FileSystemLoader

    made = template_environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["words"] = lambda name: str(name).replace("_", " ")
    made.filters["score"] = lambda share: "none" if share is None else f"{share:.2f}"
    made.filters["call"] = lambda step: f"{step.tool}({short_arguments(step)})"
    made.filters["shade"] = lambda share: "good" if (share or 0) >= 0.9 else "fair" if (share or 0) >= 0.7 else "poor"
    return made.get_template("doctor.html.j2").render(reports=reports)
