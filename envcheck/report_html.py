"""The check report as one self-contained HTML file."""

from collections.abc import Sequence
from pathlib import Path

from trajsmith.envcheck.finding_replay import format_arguments
from trajsmith.envcheck.report import EnvironmentReport
from trajsmith.records.template_sandbox import template_environment

FOLDER = Path(__file__).parent / "templates"


def render_reports_html(reports: Sequence[EnvironmentReport]) -> str:
    """One HTML file for all of these reports."""
    from jinja2 import FileSystemLoader

    environment = template_environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["words"] = lambda name: str(name).replace("_", " ")
    environment.filters["score"] = lambda share: "none" if share is None else f"{share:.2f}"
    environment.filters["call"] = lambda step: f"{step.tool}({format_arguments(step)})"
    environment.filters["shade"] = lambda share: (
        "good" if (share or 0) >= 0.9 else "fair" if (share or 0) >= 0.7 else "poor"
    )
    return environment.get_template("report.html.j2").render(reports=reports)
