"""Records of the mining of a domain, and the answers of the designer in it."""

import re
from typing import Annotated, ClassVar, Self

from pydantic import Field, StringConstraints, model_validator

from trajsmith.envgen.sources.documents import extract_html_text, join_paragraphs
from trajsmith.envgen.sources.search_hits import SearchHit, find_server_message
from trajsmith.envgen.synthesis.answer_schemas import SnakeName
from trajsmith.records import FrozenModel, JsonValue, Record

MOST_TABLES, MOST_COLUMNS = 12, 24
LONGEST_QUERY, LONGEST_VALUE = 200, 300
_SPACES = re.compile(r"\s+")

Query = Annotated[str, StringConstraints(strip_whitespace=True, min_length=3, max_length=LONGEST_QUERY)]
Value = str | int | float | bool | None


class SearchStep(FrozenModel):
    """Answer of the designer: what is done next."""

    enough: str
    """Why nothing more is needed; empty if it goes on."""
    read: tuple[int, ...] = ()
    """Numbers of results whose pages are read."""
    queries: tuple[Query, ...] = ()


class ExtractedTable(FrozenModel):
    """Rows of one kind that a page states."""

    table: SnakeName
    columns: tuple[SnakeName, ...] = Field(min_length=1, max_length=MOST_COLUMNS)
    rows: tuple[tuple[Value, ...], ...] = Field(max_length=200)
    """A value for each column; None where the page does not give it."""

    @model_validator(mode="after")
    def _fit(self) -> Self:
        if len(set(self.columns)) < len(self.columns):
            raise ValueError("two columns have one name")
        wrong = next((row for row in self.rows if len(row) != len(self.columns)), None)
        if wrong is not None:
            raise ValueError(f"a row of {self.table} has {len(wrong)} values for {len(self.columns)} columns")
        return self

    def list_rows(self) -> list[dict[str, Value]]:
        """Return the rows by column, without what a page does not give."""
        return [
            {name: value for name, value in zip(self.columns, row, strict=True) if value is not None}
            for row in self.rows
        ]


class PageExtract(FrozenModel):
    """Answer of the designer: what a page states."""

    tables: tuple[ExtractedTable, ...] = Field(default=(), max_length=MOST_TABLES)
    statements: tuple[str, ...] = Field(default=(), max_length=12)
    """Sentences of the page about records and rules, word for word."""
    licence: str = ""
    """Words of the page that state its licence; empty if it states none."""


class QueryResult(FrozenModel):
    """Results of one query."""

    query: str
    hits: tuple[SearchHit, ...]
    fault: str


class PageText(FrozenModel):
    """Text of one page."""

    page: str
    paragraphs: tuple[str, ...]
    fault: str


class MinedRow(FrozenModel):
    """A row with its origin."""

    table: str
    values: dict[str, Value]
    page: str
    query: str
    licence: str | None
    """As the page states it."""


class MinedDomain(Record):
    """Result of the rounds of one domain."""

    PREFIX: ClassVar[str] = "mined"

    name: str
    rows: tuple[MinedRow, ...]
    rounds: int
    queries: int
    pages: int
    """Pages that were read."""
    stopped: str
    """Why there was no further round."""
    left_out: dict[str, int]
    """Reasons why rows and statements were left out, with their number."""


def split_page(content: JsonValue, letters: int) -> list[str]:
    """Return the text of an answer as paragraphs of one line each, up to so many letters; none if it is a message."""
    if find_server_message(content):
        return []
    text = "\n\n".join(_find_texts(content))
    if re.search(r"</?[a-zA-Z][^<>]*>", text):
        text, _ = extract_html_text(text)
    parts = [" ".join(part.split()) for part in re.split(r"\n\s*\n|\n(?=\s*[|*\-\d])", text)]
    paragraphs, left = list[str](), letters
    for paragraph in join_paragraphs([part for part in parts if part]):
        if left <= 0:
            break
        paragraphs.append(paragraph[:left])
        left -= len(paragraph)
    return paragraphs


def find_row_fault(values: dict[str, Value], page: str) -> str:
    """Return the reason why a row is left out; empty if it stands on its page."""
    if not values:
        return "empty row"
    for value in values.values():
        if isinstance(value, bool):
            continue
        text = normalize_text(f"{value:g}" if isinstance(value, float) else str(value))
        if len(text) > LONGEST_VALUE:
            return f"value of more than {LONGEST_VALUE} letters"
        if text not in page:
            return "row with a value that is not on its page"
    return ""


def _find_texts(value: JsonValue) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict | list):
        return [text for part in (value.values() if isinstance(value, dict) else value) for text in _find_texts(part)]
    return []


def normalize_text(text: str) -> str:
    """Return a text in small letters with single spaces, as two texts are compared."""
    return _SPACES.sub(" ", text).strip().casefold()
