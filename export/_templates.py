"""The Jinja environment of this package."""

from functools import cache
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING

from trajsmith.records import build_page_policy, escape_controls, template_environment, to_one_line

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).parent / "templates"


@cache
def create_template_environment() -> "Environment":
    """Templates of this package; HTML is escaped, an undefined name is an error."""
    from jinja2 import FileSystemLoader, select_autoescape

    jinja_environment = template_environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=select_autoescape(enabled_extensions=("html.j2", "svg.j2"), default=False),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    jinja_environment.globals["page_policy"] = build_page_policy
    jinja_environment.filters["percent"] = format_percent
    jinja_environment.filters["rate"] = format_rate
    jinja_environment.filters["number"] = format_number
    jinja_environment.filters["words"] = lambda name: str(name).replace("_", " ")
    jinja_environment.filters["cell"] = lambda text: str(text).replace("|", "\\|").replace("\n", " ")
    jinja_environment.filters["plain"] = make_plain_cell
    return jinja_environment


def render_page(template: str, **values: object) -> str:
    """Render an HTML template of this package with the style of the report, as `css`."""
    from markupsafe import Markup

    css = Markup((FOLDER / "report.css").read_text("utf-8"))
    return create_template_environment().get_template(template).render(css=css, **values)


def make_plain_cell(text: object) -> str:
    """Return a text of others for a cell of a Markdown table: one line, without markup, HTML and links."""
    line = escape_controls(to_one_line(text, 200))
    return line.translate({ord(letter): " " for letter in "|<>`[]\\"}).strip()


def format_percent(share: float) -> str:
    """A share as a percentage; small ones keep a digit."""
    value = share * 100
    return f"{value:.1f} %" if 0 < value < 10 else f"{value:.0f} %"


def format_rate(share: float) -> str:
    """A share as a percentage with a digit, rounded down: only all of it is 100 %."""
    return "100 %" if share >= 1 else f"{floor(share * 1000) / 10:.1f} %"


def format_number(value: float) -> str:
    """A count with thin thousands, or a mean with at most two digits."""
    if value == int(value):
        return f"{int(value):,}".replace(",", "\u202f")
    return f"{value:,.2f}".replace(",", "\u202f")
