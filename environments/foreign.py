"""Running source text that came from outside. Only worker processes call this; see `trajsmith.environments.sandbox`."""

import sys
import traceback
from types import ModuleType

from pydantic import ValidationError

from trajsmith.records import InputError, format_first_error, to_one_line

_LONGEST = 500
"""Characters of an exception that are shown."""
LOADED: list[str] = []
"""Names of the modules that were made of source text in this process."""


def run_source(source: str, file: str, module: str = "environment_code") -> ModuleType:
    """Execute source text as a fresh module, registered under `module`.

    Args:
        source: Python source.
        file: File name that error texts show.
        module: Name of the module; a name that is taken is replaced.

    Raises:
        InputError: It does not parse or does not run; the text is "file:line: Error: message".
    """
    loaded = ModuleType(module)
    loaded.__file__ = file
    sys.modules[module] = loaded
    if module not in LOADED:
        LOADED.append(module)
    execute_source(loaded, source, file)
    return loaded


def execute_source(module: ModuleType, source: str, file: str) -> None:
    """Execute source text in a module.

    Raises:
        InputError: It does not parse or does not run; the text is "file:line: Error: message".
    """
    try:
        exec(compile(source, file, "exec", dont_inherit=True), module.__dict__)
    except (Exception, SystemExit) as error:
        raise InputError(f"{file}:{_line(error, file)}: {type(error).__name__}: {format_error(error)}") from error


def format_error(error: BaseException) -> str:
    """Return the message of an exception on one line; the name of its class where it has none."""
    text = format_first_error(error) if isinstance(error, ValidationError) else str(error)
    return to_one_line(text, _LONGEST) or type(error).__name__


def _line(error: BaseException, file: str) -> int:
    frames = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    line = frames[-1] if frames else getattr(error, "lineno", None)
    return line or 1
