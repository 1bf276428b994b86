"""Which modules of a package some modules need, found by reading."""

import ast
from collections.abc import Iterator
from pathlib import Path

from trajsmith.environments.adapters.tau2.module_stubs import STUBBED_MODULES
from trajsmith.records import InputError

Sources = dict[str, tuple[str, str]]
"""File and source of modules by name, in an order in which they can be run."""


def collect_sources(package: Path, wanted: list[str]) -> Sources:
    """The wanted modules, and what they import of their package when they are run; not what stand-ins are there for.

    Raises:
        InputError: A file is missing or does not parse.
    """
    sources: Sources = {}
    for name in wanted:
        _add(package, name, sources, ())
    return sources


def _add(package: Path, name: str, sources: Sources, above: tuple[str, ...]) -> None:
    if name in sources or name in STUBBED_MODULES or name in above:
        return
    file = _file(package, name)
    if file is None:
        raise InputError(f"{package}: no module {name}, which {above[-1] if above else 'the domain'} needs")
    where = file.relative_to(package.parent).as_posix()
    try:
        source = file.read_text(encoding="utf-8")
        tree = ast.parse(source)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read: {error}") from error
    except (SyntaxError, ValueError) as error:
        raise InputError(f"{file}:{getattr(error, 'lineno', None) or 1}: it does not parse: {error}") from error
    for module in _imports(package, tree):
        _add(package, module, sources, (*above, name))
    sources[name] = (where, source)


def _imports(package: Path, tree: ast.Module) -> Iterator[str]:
    """Modules of the package that are imported when the module is run.

    A package that only contains what is imported is not among them: what its own file imports is far more than is
    needed here.
    """
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] == "tau2")
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "tau2":
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            modules = [name for name in inner if _file(package, name) is not None]
            yield from modules
            if len(modules) < len(inner):
                yield node.module


def _file(package: Path, name: str) -> Path | None:
    if name.partition(".")[0] != "tau2":
        return None
    base = package.joinpath(*name.split(".")[1:])
    return next((file for file in (base.with_suffix(".py"), base / "__init__.py") if file.is_file()), None)
