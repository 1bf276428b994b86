"""Seeding faults into the source of an environment: what the doctor must find.

A mutant is a copy of one module's source with one fault. Nothing is written to files: `loaded` makes the import system
serve the mutated text in place of the module's own.
"""

from envgen.mutate.kinds import KINDS
from envgen.mutate.mutants import Mutant, loaded, mutants, overridden

__all__ = ["KINDS", "Mutant", "loaded", "mutants", "overridden"]
