"""Programmatic tasks (Agent-World, section 3.1.1): programs over tools, composed, proved and asked for in English."""

from trajsmith.querygen.programs.composition import ComposedProgram, ProgramSettings
from trajsmith.querygen.programs.grounding import ground_program, load_composed
from trajsmith.querygen.programs.write import ProgramTaskParts, prove_python, write_program_parts

__all__ = [
    "ComposedProgram",
    "ProgramSettings",
    "ProgramTaskParts",
    "ground_program",
    "load_composed",
    "prove_python",
    "write_program_parts",
]
