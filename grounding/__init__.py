"""Finding arguments that make calls succeed, by execution; provenance of every argument."""

from grounding.grounder import Grounder
from grounding.known import leaves, needed, selector_key
from grounding.lessons import Lessons
from grounding.programming import ProgramSettings, make_programs
from grounding.programs import Program, ProgramFailed, ProgramRun, run_program
from grounding.references import Unresolved, resolve
from grounding.repair import Givers
from grounding.search import is_empty
from grounding.settings import GroundSettings

__all__ = [
    "Givers",
    "GroundSettings",
    "Grounder",
    "Lessons",
    "Program",
    "ProgramFailed",
    "ProgramRun",
    "ProgramSettings",
    "Unresolved",
    "is_empty",
    "leaves",
    "make_programs",
    "needed",
    "resolve",
    "run_program",
    "selector_key",
]
