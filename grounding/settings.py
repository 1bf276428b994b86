"""How hard grounding tries."""

from pydantic import Field, NonNegativeInt, PositiveInt

from trajsmith.records import FrozenModel


class GroundSettings(FrozenModel):
    """Limits of the search for arguments."""

    tries: PositiveInt = 10
    """Argument sets per step before it counts as hopeless."""
    jumps: NonNegativeInt = 24
    """Jumps back per chain."""
    jumps_per_step: NonNegativeInt = 6
    budget: PositiveInt = 120
    """Calls per chain."""
    optional: float = Field(0.35, ge=0, le=1)
    """Probability that an optional argument is given."""
    rows: PositiveInt = 1
    """Most rows of an argument that is a list of objects; a task then has two quantities to tell apart."""
    min_calls: PositiveInt = 3
    """A chain with fewer calls left is dropped."""
    wide: NonNegativeInt = 6
    """More argument sets for a step whose likely values are missing, or whose refusals taught something: from names
    alike, descriptions and what refusals said."""
    guess: bool = False
    """Whether every step gets the second look, and the user may say ids that no earlier call gave; for environments
    whose tools do not declare what they return."""
    repairs: NonNegativeInt = 4
    """Times that a chain with too few calls is tried again with one more tool before the step that failed: one that
    gives what it lacks, that its refusal names, or that makes what it reads."""
    faults: NonNegativeInt = 0
    """Faults of the environment that a search survives, as if the calls had been refused."""
