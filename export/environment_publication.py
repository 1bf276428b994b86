"""Publications of environments: a folder with index, card and recorded calls, for the Hub or for a package."""

import asyncio
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path

import orjson

from trajsmith.envcheck import STATES, ConformanceRecord, record_conformance
from trajsmith.envgen.generate import GenerationResult
from trajsmith.envgen.growth.model_growth import GROWN_FILE, GrowthResult
from trajsmith.environments import (
    CONFORMANCE,
    PUBLISHED_FOLDER,
    PUBLISHED_INDEX,
    PublishedEnvironment,
    PublishedIndex,
    compute_version,
)
from trajsmith.environments.sandbox.source import SandboxSource
from trajsmith.environments.sources import EnvironmentSettings, list_python_files, open_source
from trajsmith.export._templates import create_template_environment, render_page
from trajsmith.export.atomic_folder import AtomicFolder
from trajsmith.export.manifest import ENVELOPE, MANIFEST
from trajsmith.records import InputError, hash_bytes, read_stored, storage_boundary, write_whole_file

PUBLICATION = "publication"
"""Folder beside the environments in which a publication is written before it is pushed."""
CARD, PAGE = "README.md", "index.html"
OTHER_LICENCE = "other"
_FILES = (
    *("phrases*.yaml", "scenarios*.yaml", "blueprint.json", "design.json", "tests.json", "provenance.json"),
    *("check.json", GROWN_FILE, CONFORMANCE),
)
"""Files of an environment that are published, besides its code, its tests and its verdict."""
_WRITTEN = (CARD, PAGE, PUBLISHED_INDEX, MANIFEST, ENVELOPE, "__init__.py", f"{PUBLISHED_FOLDER}/*")
_BUNDLE_NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")
_VERSION = re.compile(r"\d+(\.\d+)*")
_LICENCE = re.compile(r"[a-z0-9][a-z0-9.+-]{0,60}")
_INIT = '''"""Environments for trajsmith: `library: {module}.NAME` in a configuration. Its code runs in the sandbox."""

from pathlib import Path

from trajsmith.environments.bundles import EnvironmentBundle

BUNDLE = EnvironmentBundle(Path(__file__).parent)
'''
_PROJECT = """[build-system]
requires = ["hatchling>=1.26"]
build-backend = "hatchling.build"

[project]
name = "{name}"
version = "{version}"
description = "{count} environments for trajsmith"
readme = "README.md"
requires-python = ">=3.11"
{licence}dependencies = ["trajsmith>={trajsmith}"]

[project.entry-points."trajsmith.bundles"]
{module} = "{module}:BUNDLE"

[tool.hatch.build.targets.wheel]
packages = ["src/{module}"]
"""


@dataclass(frozen=True)
class RecordedEnvironment:
    """An environment that can be published."""

    folder: Path
    verdict: GenerationResult
    record: ConformanceRecord


def find_environment_folders(source: Path) -> list[Path]:
    """Return the folders of the accepted environments of a folder: one environment, a catalogue, or a run of models.

    Raises:
        InputError: There is none, or one has no verdict.
    """
    if (source / "made.json").is_file():
        folders = [source]
    else:
        inner = source / PUBLISHED_FOLDER
        place = inner if inner.is_dir() and not (source / "catalogue.json").is_file() else source
        folders = [Path(file).parent for file in list_python_files(str(place))] if place.is_dir() else []
    if not folders:
        raise InputError(f"{source} is no folder of environments that `trajsmith env gen` made")
    for folder in folders:
        verdict = read_stored(folder / "made.json", GenerationResult)
        if not verdict.accepted:
            raise InputError(f"{folder} was rejected ({verdict.reasons[0]}): only accepted environments are published")
        if not (folder / f"{verdict.name}.py").is_file():
            raise InputError(f"{folder} has no {verdict.name}.py, which its made.json names")
    return folders


def record_environments(
    folders: Sequence[Path], report: Callable[[str], None] = lambda line: None
) -> list[RecordedEnvironment]:
    """Record calls of environments in the sandbox; what is recorded of the present code already stays.

    Raises:
        InputError: One breaks or is not deterministic.
    """
    recorded = []
    for number, folder in enumerate(folders, 1):
        verdict = read_stored(folder / "made.json", GenerationResult)
        code = hash_bytes((folder / f"{verdict.name}.py").read_bytes(), 64)
        file = folder / CONFORMANCE
        record = read_stored(file, ConformanceRecord) if file.is_file() else None
        if record is None or record.code != code:
            record = _record(folder / f"{verdict.name}.py", code)
            write_whole_file(file, orjson.dumps(record.model_dump(mode="json"), option=orjson.OPT_INDENT_2))
            report(f"{number}/{len(folders)} {record.name}: {record.calls} calls recorded")
        recorded.append(RecordedEnvironment(folder, verdict, record))
    return recorded


def open_published_source(file: Path) -> SandboxSource:
    """Return the source of a published environment, in the sandbox, with the initial states of recorded calls."""
    source = open_source(EnvironmentSettings(python=str(file), states=STATES))
    assert isinstance(source, SandboxSource)
    return source


def _record(file: Path, code: str) -> ConformanceRecord:
    source = open_published_source(file)
    try:
        return asyncio.run(record_conformance(source, code))
    finally:
        source.close()


def write_publication(
    recorded: Sequence[RecordedEnvironment],
    folder: Path,
    title: str,
    licence: str = "",
    use: str = "",
    space: bool = False,
) -> PublishedIndex:
    """Write a publication; one that is there is replaced.

    Args:
        recorded: The environments.
        folder: Where it is written.
        title: Title of the card.
        licence: Licence of the publication, as the Hub names it; that of all sources, or `other`, if empty.
        use: Line of the card that shows how a configuration names the environments.
        space: A page for a Space is written too.

    Raises:
        InputError: A name stands twice, a file is a link, or the licence is no name of one.
        RunError: It cannot be written.
    """
    if licence and not _LICENCE.fullmatch(licence):
        raise InputError(f"--licence {licence[:60]!a} is no name of a licence of the Hub, such as apache-2.0")
    with storage_boundary(folder), AtomicFolder(folder, _WRITTEN) as target:
        entries = []
        for one in sorted(recorded, key=lambda each: each.verdict.name):
            place = target.part / PUBLISHED_FOLDER / one.verdict.name
            if place.exists():
                raise InputError(f"two environments are named {one.verdict.name}: publish one of them")
            _copy_environment(one, place)
            entries.append(_describe(one, compute_version(place)))
        licences = {entry.licence for entry in entries}
        shared = next(iter(licences)).lower() if len(licences) == 1 else ""
        chosen = licence or (shared if _LICENCE.fullmatch(shared) else OTHER_LICENCE)
        index = PublishedIndex(trajsmith=version("trajsmith"), licence=chosen, environments=tuple(entries))
        target.attach(PUBLISHED_INDEX, orjson.dumps(index.model_dump(mode="json"), option=orjson.OPT_INDENT_2))
        target.attach(CARD, build_environments_card(index, title, use, space))
        if space:
            target.attach(PAGE, render_page("environments.html.j2", index=index, title=title, use=use))
    return index


def build_environments_card(index: PublishedIndex, title: str, use: str, space: bool = False) -> str:
    """Return the text of README.md of a publication."""
    import yaml

    fields: dict[str, object] = {"license": index.licence, "pretty_name": title}
    if space:
        fields = {"title": title, "sdk": "static", "app_file": PAGE, "license": index.licence}
    else:
        fields["viewer"] = False
    fields["tags"] = ["environments", "tool-use", "function-calling", "agents", "synthetic", "trajsmith"]
    front_matter = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True)
    template = create_template_environment().get_template("environments_card.md.j2")
    return str(template.render(front_matter=front_matter, index=index, title=title, use=use))


def _copy_environment(one: RecordedEnvironment, place: Path) -> None:
    """Copy the files of an environment that are published. Its verdict names no folder of this machine."""
    place.mkdir(parents=True)
    name = one.verdict.name
    patterns = (*_FILES, f"{name}.py", f"test_{name}.py")
    for path in sorted(one.folder.iterdir()):
        if any(fnmatchcase(path.name, pattern) for pattern in patterns):
            if path.is_symlink() or not path.is_file():
                raise InputError(f"{path} is no file of its own: put a copy in its place before it is published")
            (place / path.name).write_bytes(path.read_bytes())
    if (place / GROWN_FILE).is_file():
        grown = read_stored(place / GROWN_FILE, GrowthResult).model_copy(update={"directory": Path(name)})
        (place / GROWN_FILE).write_bytes(grown.model_dump_json(indent=1).encode())
    verdict = one.verdict.model_copy(update={"directory": Path(name), "seconds": 0.0})
    (place / "made.json").write_bytes(verdict.model_dump_json(indent=1).encode())


def _describe(one: RecordedEnvironment, environment_version: str) -> PublishedEnvironment:
    verdict, record = one.verdict, one.record
    source, licence, models = _read_provenance(one.folder)
    return PublishedEnvironment(
        name=verdict.name, version=environment_version, domain=record.domain, description=record.description[:300],
        tools=len(record.tools), user_tools=record.user_tools, score=verdict.score, tests=verdict.tests,
        calls=record.calls, source=source[:200], licence=licence, models=models,
    )  # fmt: skip


def _read_provenance(folder: Path) -> tuple[str, str, tuple[str, ...]]:
    """Return what an environment was made from, the licence of that, and the models that wrote it.

    Raises:
        InputError: No file says it.
    """
    for name in ("provenance.json", "blueprint.json"):
        file = folder / name
        if not file.is_file():
            continue
        try:
            content = orjson.loads(file.read_bytes())
            source = content["source"] or {"kind": "theme", "name": content["name"], "licence": ""}
            models = {str(answer["model"]) for answer in content.get("answers", {}).values()}
            return f"{source['kind']}: {source['name']}", str(source.get("licence") or ""), tuple(sorted(models))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise InputError(f"{file} was changed: it does not say what the environment was made from") from error
    raise InputError(f"{folder} has no provenance.json or blueprint.json: nothing says what it was made from")


def write_bundle(
    recorded: Sequence[RecordedEnvironment], out: Path, name: str, release: str = "0.1.0", licence: str = ""
) -> PublishedIndex:
    """Write the source of a Python package that brings environments as an installed bundle.

    Args:
        recorded: The environments.
        out: Folder of the package; it is made, and must be empty or hold an older one.
        name: Name of the distribution; with underscores the name of the module and of the bundle.
        release: Version of the distribution.
        licence: As for `write_publication`.

    Raises:
        InputError: The name or the version is none.
        RunError: It cannot be written.
    """
    module = name.replace("-", "_")
    if not _BUNDLE_NAME.fullmatch(name) or module == "trajsmith" or module in sys.stdlib_module_names:
        raise InputError(f"--name {name[:60]!a}: write a name for a package, such as my-environments")
    if not _VERSION.fullmatch(release):
        raise InputError(f"--version {release[:60]!a}: write numbers and dots, such as 0.1.0")
    package = out / "src" / module
    with storage_boundary(out):
        package.parent.mkdir(parents=True, exist_ok=True)
    index = write_publication(recorded, package, name, licence, f"library: {module}.*")
    written = f'license = "{index.licence}"\n' if index.licence != OTHER_LICENCE else ""
    project = _PROJECT.format(
        name=name, version=release, count=len(index.environments), licence=written, module=module,
        trajsmith=version("trajsmith"),
    )  # fmt: skip
    write_whole_file(package / "__init__.py", _INIT.format(module=module).encode())
    write_whole_file(out / CARD, (package / CARD).read_bytes().partition(b"---\n\n")[2])
    write_whole_file(out / "pyproject.toml", project.encode())
    return index
