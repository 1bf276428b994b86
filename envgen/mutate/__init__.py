"""Mutation of environment source code: seeded faults that the environment checker must find.

A mutant is a copy of one module's source with one fault. Nothing is written to files: `loaded` makes the import system
serve the mutated text in place of the module's own.
"""

from trajsmith.envgen.mutate.mutants import ModuleMutant, build_mutants, load_overridden, override_modules
from trajsmith.envgen.mutate.mutation_kinds import KINDS

__all__ = ["KINDS", "ModuleMutant", "build_mutants", "load_overridden", "override_modules"]
