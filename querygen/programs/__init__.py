"""Programmatic tasks (Agent-World, section 3.1.1): programs over tools, composed or written by a model, and proved."""

from trajsmith.querygen.programs.composition import ComposedProgram, ProgramSettings
from trajsmith.querygen.programs.grounding import ground_program, load_composed
from trajsmith.querygen.programs.write import ProgramTaskParts, prove_python, write_program_parts
from trajsmith.querygen.programs.written import WRITE_PROGRAM, ProgramWriter, ground_written_program

__all__ = [
    "WRITE_PROGRAM",
    "ComposedProgram",
    "ProgramSettings",
    "ProgramTaskParts",
    "ProgramWriter",
    "ground_program",
    "ground_written_program",
    "load_composed",
    "prove_python",
    "write_program_parts",
]
