"""Facts: relations between values that hold in all initial states, mined from them."""

from typing import Annotated

from pydantic import Field, TypeAdapter

from trajsmith.envcheck.facts.amounts import (
    CoveredDeficit,
    ListLengthColumn,
    NonNegative,
    OrderedColumns,
    ProductOfColumns,
    SumOfRows,
)
from trajsmith.envcheck.facts.base import BrokenFact, Fact
from trajsmith.envcheck.facts.identifiers import (
    ColumnType,
    ExclusiveMembership,
    ForeignKeyFact,
    IdentifierFormat,
    KeyColumn,
    UniquePair,
)
from trajsmith.envcheck.facts.related_rows import (
    AgreeingPaths,
    ConditionalPresence,
    IndexMap,
    ListedMember,
    MirroredReference,
)
from trajsmith.envcheck.facts.state_columns import ColumnReference, StateColumns

AnyFact = (
    KeyColumn
    | ForeignKeyFact
    | IdentifierFormat
    | UniquePair
    | ColumnType
    | NonNegative
    | CoveredDeficit
    | OrderedColumns
    | SumOfRows
    | ProductOfColumns
    | ListLengthColumn
    | AgreeingPaths
    | ListedMember
    | MirroredReference
    | IndexMap
    | ConditionalPresence
    | ExclusiveMembership
)
FAMILIES: tuple[type[Fact], ...] = (
    KeyColumn,
    ForeignKeyFact,
    IdentifierFormat,
    UniquePair,
    ColumnType,
    NonNegative,
    CoveredDeficit,
    OrderedColumns,
    SumOfRows,
    ProductOfColumns,
    ListLengthColumn,
    AgreeingPaths,
    ListedMember,
    MirroredReference,
    IndexMap,
    ConditionalPresence,
    ExclusiveMembership,
)
FACT: TypeAdapter[AnyFact] = TypeAdapter(Annotated[AnyFact, Field(discriminator="kind")])
"""Reads a fact back from the JSON of a finding."""


def mine_facts(data: StateColumns) -> list[Fact]:
    """All facts that hold in every initial state."""
    return [fact for family in FAMILIES for fact in family.mine(data)]


__all__ = ["FACT", "AnyFact", "BrokenFact", "ColumnReference", "Fact", "StateColumns", "mine_facts"]
