"""Words about tables: the lists that tools return, what can be asked about their rows, and what can be done to them.

Programmatic tasks (Agent-World, section 3.1.1) ask about many rows at once: which of them, how many, how much in all.
The phrases stand in the phrasebook under `tables`, one entry per tool that lists rows.
"""

from collections.abc import Collection, Mapping
from typing import Literal, Self

from pydantic import Field, model_validator

from trajsmith.records import FrozenModel, JsonValue

ValueForm = Literal["plain", "money"]


class MeasurePhrases(FrozenModel):
    """Words about a numeric field: "total", "price"."""

    noun: str
    """What a person calls it, without an article: "refund"."""
    form: ValueForm = "plain"
    """How its values are told."""
    unit: str = ""
    """Unit behind a plain value: "GB"."""
    sums: bool = True
    """False for fields whose sum means nothing, such as temperatures."""
    of: str = "of"
    """Preposition between the noun and the rows: "to" in "the number of people with access to my files"."""
    span: str = ""
    """Time that the values are about, said behind the rows: "over the last four weeks"."""
    most: str = ""
    """What a person says of the row with the highest value, as predicate: "costs the most"; "has the highest" and the
    noun if left out."""
    least: str = ""
    """The same for the lowest value."""
    extremes: tuple[str, str] = ("highest", "lowest")
    """Adjectives of the highest and of the lowest value."""


class BoundPhrases(FrozenModel):
    """Clauses that compare a numeric field with a bound: "that cost more than {value}"."""

    above: str
    below: str


class LookUpPhrases(FrozenModel):
    """A tool that shows more of one row: the rows are joined with what it returns."""

    tool: str
    parameter: str
    """Its parameter that takes the row, and the name of the row's field."""
    where: dict[str, dict[str, str]] = {}
    """Field of the result to value to clause, as `TablePhrases.where`; "*" for a clause that holds `{value}`."""
    measures: dict[str, MeasurePhrases] = {}
    """Fields of the result."""


class JoinPhrases(FrozenModel):
    """Another list whose rows refer to rows of this table by a shared field."""

    tool: str
    parameter: str
    """Its parameter that takes the owner of the table."""
    shared: str
    """Field that both have."""
    present: str
    """Clause for rows that the other list refers to: "from which I have sent something back"."""
    absent: str
    """Clause for the others."""


class WritePhrases(FrozenModel):
    """A tool that is called for each row that is meant."""

    tool: str
    parameter: str
    where: dict[str, tuple[JsonValue, ...]] = {}
    """Field to the values that rows must have so that the call makes sense."""
    whole: str = ""
    """All rows of this kind, with `clause` in place of the words of `where`: "all the lights in my home"."""
    clause: str = ""
    """What `where` says of them: "that are on and online"."""
    arguments: dict[str, tuple[JsonValue, ...]] = {}
    """Other arguments, the same for every row: one of the values is drawn."""
    ask: tuple[str, ...] = Field(min_length=1)
    """Verb phrases after "please": "cancel {rows}"; slots are `rows` and the arguments."""
    done: tuple[str, ...] = Field(min_length=1)
    """Sentences that report it, over `names` (the labels of the rows) and the arguments."""
    measures: dict[str, MeasurePhrases] = {}
    """Numeric fields of the result that can be summed: the refund."""

    @model_validator(mode="after")
    def _says_what_it_keeps(self) -> Self:
        if bool(self.whole) != bool(self.clause) or any("{" in text for text in (self.whole, self.clause)):
            raise ValueError("whole and clause come together, and have no slots")
        if self.whole and any(len(values) != 1 for values in self.where.values()):
            raise ValueError("clause can only say what one value of each field in `where` means")
        return self


class TablePhrases(FrozenModel):
    """Words about the rows that one tool lists."""

    singular: str
    plural: str
    whole: str
    """All rows, as a phrase that clauses follow: "my orders"."""
    how_many: str
    """Opening of a question for their number, before clauses: "How many orders do I have"."""
    key: str
    """Field that identifies a row."""
    label: str
    """Field by which a row is told; rows with equal labels are not asked for."""
    labels: str
    """What a person calls this field of several rows: "order numbers"."""
    alone: str = ""
    """How one row is told alone where the label says little of it: "{transaction_id} ({description})"."""
    opening: str = ""
    """Tool that finds the user's account before; empty if the list needs nothing."""
    owner: str = ""
    """Parameter that takes the account, and the field of the opening's result."""
    arguments: dict[str, JsonValue] = {}
    """Further arguments that `whole` tells in words, such as the number of days."""
    parent: str = ""
    """Table whose rows this tool is called for, one by one: a nested loop."""
    parent_key: str = ""
    """Parameter that takes the row of the parent."""
    page: str = ""
    """Parameter that turns pages."""
    where: dict[str, dict[str, str]] = {}
    """Field to value to clause: {"status": {"shipped": "that have been shipped"}}."""
    bounds: dict[str, BoundPhrases] = {}
    measures: dict[str, MeasurePhrases] = {}
    lookups: tuple[LookUpPhrases, ...] = ()
    joins: tuple[JoinPhrases, ...] = ()
    writes: tuple[WritePhrases, ...] = ()


def select_tables(tables: Mapping[str, TablePhrases], tools: Collection[str]) -> dict[str, TablePhrases]:
    """Return the tables that can be listed with some tools alone, and of their operations those that can be done."""

    def is_listed(name: str) -> bool:
        phrases = tables[name]
        opened = not phrases.opening or phrases.opening in tools
        return name in tools and opened and (not phrases.parent or is_listed(phrases.parent))

    return {
        name: phrases.model_copy(
            update={
                "lookups": tuple(each for each in phrases.lookups if each.tool in tools),
                "joins": tuple(each for each in phrases.joins if each.tool in tools),
                "writes": tuple(each for each in phrases.writes if each.tool in tools),
            }
        )
        for name, phrases in tables.items()
        if is_listed(name)
    }


def allows_shape(phrases: TablePhrases, shape: str) -> bool:
    """Return True if a table has phrases for a kind of programs."""
    needed = {"look_up": phrases.lookups, "join": phrases.joins, "write": phrases.writes, "branch": phrases.writes}
    sums = any(measure.sums for measure in phrases.measures.values())
    return bool(needed.get(shape, True)) and (shape != "branch" or sums)
