"""Facts: relations between values that hold in all initial states, mined from them."""

from typing import Annotated

from pydantic import Field, TypeAdapter

from envgen.doctor.facts.apart import Apart
from envgen.doctor.facts.data import Data, Reference
from envgen.doctor.facts.fact import Broken, Fact
from envgen.doctor.facts.keys import Formed, Named, Once, Refers, Typed
from envgen.doctor.facts.numbers import Adds, Counts, Covered, Floor, Multiplies, Ordered
from envgen.doctor.facts.paths import Agrees, Indexes, Member, Mirrors, When

AnyFact = (
    Named | Refers | Formed | Once | Typed | Floor | Covered | Ordered | Adds | Multiplies | Counts
    | Agrees | Member | Mirrors | Indexes | When | Apart
)  # fmt: skip
FAMILIES: tuple[type[Fact], ...] = (
    Named, Refers, Formed, Once, Typed, Floor, Covered, Ordered, Adds, Multiplies, Counts,
    Agrees, Member, Mirrors, Indexes, When, Apart,
)  # fmt: skip
FACT: TypeAdapter[AnyFact] = TypeAdapter(Annotated[AnyFact, Field(discriminator="kind")])
"""Reads a fact back from the JSON of a finding."""


def mine(data: Data) -> list[Fact]:
    """All facts that hold in every initial state."""
    return [fact for family in FAMILIES for fact in family.mine(data)]


__all__ = ["FACT", "AnyFact", "Broken", "Data", "Fact", "Reference", "mine"]
