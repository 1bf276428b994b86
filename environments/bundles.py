"""Installed bundles: a package that brings a folder of published environments, whose code runs in the sandbox.

The entry point of the group `trajsmith.bundles` names an `EnvironmentBundle`. It only says where the folder is:
unlike a class of the group `trajsmith.environments`, nothing of an environment is imported into this process.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from trajsmith.environments.published import (
    PUBLISHED_FOLDER,
    PublishedEnvironment,
    PublishedIndex,
    read_published_index,
)
from trajsmith.records import InputError, Registry, suggest_names

BUNDLES: Registry["EnvironmentBundle"] = Registry("bundles", {})


@dataclass(frozen=True)
class EnvironmentBundle:
    """A folder of published environments in an installed package."""

    folder: Path

    @cached_property
    def index(self) -> PublishedIndex:
        """The index of the folder.

        Raises:
            InputError: There is none.
        """
        return read_published_index(self.folder)


def list_bundled_environments() -> dict[str, PublishedEnvironment]:
    """Return the environments of all bundles, as `bundle.environment`; none of their code runs.

    Raises:
        InputError: A bundle cannot be loaded.
    """
    return {f"{name}.{one.name}": one for name in BUNDLES.names() for one in _get_bundle(name).index.environments}


def list_bundle_files(reference: str) -> list[str]:
    """List the Python files that "my_bundle.shop" or "my_bundle.*" stands for.

    Raises:
        InputError: There is no such bundle, or no such environment in it.
    """
    name, _, wanted = reference.partition(".")
    bundle = _get_bundle(name)
    names = [one.name for one in bundle.index.environments]
    if wanted != "*" and wanted not in names:
        hint = suggest_names(wanted, names) or f"list them with `trajsmith env list`; there are {len(names)}"
        raise InputError(f"the bundle {name} has no environment {wanted!r} ({hint})")
    folder = bundle.folder / PUBLISHED_FOLDER
    return [str(folder / one / f"{one}.py") for one in (names if wanted == "*" else [wanted])]


def _get_bundle(name: str) -> EnvironmentBundle:
    bundle = BUNDLES.get(name)
    if not isinstance(bundle, EnvironmentBundle):
        raise InputError(f"the entry point {name} of the group trajsmith.bundles is no bundle of environments")
    return bundle
