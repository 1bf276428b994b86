"""The sources of a domain, run as modules of this process under their own names."""

import sys
from types import ModuleType

from trajsmith.environments.adapters.tau2.arithmetic import evaluate
from trajsmith.environments.adapters.tau2.module_stubs import DataFiles, build_modules
from trajsmith.environments.foreign import LOADED, execute_source


def run_modules(sources: list[list[str]], files: DataFiles) -> dict[str, ModuleType]:
    """Run them in their order; gives the modules by name.

    What they open are the domain's own data files, and what they evaluate are sums.

    Args:
        sources: Name, file and source of each.
        files: The data.

    Raises:
        InputError: One does not run; the text names file and line.
    """
    for name in [name for name in sys.modules if name.partition(".")[0] == "tau2"]:
        del sys.modules[name]
    for name, module in build_modules(files).items():
        if name != "loguru" or name not in sys.modules:
            _register(name, module)
    modules = {name: _module(name, file, files) for name, file, _ in sources}
    for name, file, _ in sources:
        if file.endswith("/__init__.py"):  # what is in a package may be run before it
            _register(name, modules[name])
    for name, file, source in sources:
        _register(name, modules[name])
        execute_source(modules[name], source, file)
    return modules


def _module(name: str, file: str, files: DataFiles) -> ModuleType:
    module = ModuleType(name)
    package = file.endswith("/__init__.py")
    module.__file__ = file
    module.__package__ = name if package else name.rpartition(".")[0]
    if package:
        module.__path__ = []
    vars(module).update(open=files.open, eval=evaluate)
    return module


def _register(name: str, module: ModuleType) -> None:
    sys.modules[name] = module
    if name not in LOADED:
        LOADED.append(name)
    above, _, last = name.rpartition(".")
    if above:
        if above not in sys.modules:
            package = ModuleType(above)
            package.__path__ = []
            _register(above, package)
        setattr(sys.modules[above], last, module)
