"""Domains by name: one, or a file with many."""

from pathlib import Path
from typing import Any

import yaml

from trajsmith.envgen.generate.blueprint import SkippedItem
from trajsmith.envgen.sources import ThemeSource
from trajsmith.envgen.sources.licences import find_licence
from trajsmith.envgen.sources.read_result import SourceReadResult
from trajsmith.environments.file_reading import read_json, read_text
from trajsmith.records import InputError, compose_yaml

MAX_NAME_CHARACTERS = 80
"""Letters of a domain's name."""
_SUMMARIES = ("summary", "description", "about")
_FORM = "give names, one a line, or a YAML or JSON list of names or of {name, summary}"


def build_domain_source(
    name: str, summary: str = "", origin: str = "command line", licence: str | None = None
) -> ThemeSource:
    """Return a source for a domain of which only the name, or a sentence or two, is known.

    Raises:
        InputError: The name says nothing, or is no name.
    """
    tidy = " ".join(name.split())
    fault = find_name_fault(tidy)
    if fault:
        raise InputError(f"domain {name[:60]!r}: {fault}")
    return ThemeSource(kind="domain", name=tidy, summary=" ".join(summary.split()), origin=origin, licence=licence)


def read_domains(path: Path) -> SourceReadResult:
    """Read the domains that a file lists; two of one name count once.

    Raises:
        InputError: It cannot be read, has another shape, or lists no domain.
    """
    entries, sources, left_out = _read_entries(path), dict[str, ThemeSource](), list[SkippedItem]()
    licence = find_licence(path.parent)
    for number, entry in enumerate(entries, 1):
        name, summary = _parse_entry(entry)
        fault = find_name_fault(name) or ("named twice" if name.lower() in sources else "")
        if fault:
            left_out.append(SkippedItem(what=f"entry {number} {name[:60]!r}", reason=fault))
        else:
            sources[name.lower()] = build_domain_source(name, summary, path.name, licence)
    if not sources:
        raise InputError(f"{path}: no domain in it: {left_out[0].reason if left_out else 'it is empty'}; {_FORM}")
    return SourceReadResult(sources=tuple(sources.values()), left_out=tuple(left_out), read=len(entries))


def read_domain_categories(path: Path) -> dict[str, str]:
    """Return the categories that a file of domains names, by name in small letters."""
    return {
        " ".join(str(entry["name"]).split()).lower(): " ".join(entry["category"].lower().split())[:40]
        for entry in _read_entries(path)
        if isinstance(entry, dict) and "name" in entry and isinstance(entry.get("category"), str)
    }


def _read_entries(path: Path) -> list[Any]:
    if path.suffix in (".json", ".jsonl"):
        content = read_json(path)
    elif path.suffix in (".yaml", ".yml"):
        try:
            content = compose_yaml(read_text(path), yaml.SafeLoader)[1]
        except yaml.YAMLError as error:
            raise InputError(f"{path}: no YAML: {' '.join(str(error).split())[:200]}") from error
    else:
        content = [line.strip("-* \t") for line in read_text(path).splitlines() if not line.startswith("#")]
        content = [line for line in content if line]
    if isinstance(content, dict) and isinstance(content.get("domains"), list):
        content = content["domains"]
    if isinstance(content, dict) and all(isinstance(value, str) for value in content.values()):
        content = [{"name": name, "summary": summary} for name, summary in content.items()]
    if not isinstance(content, list):
        raise InputError(f"{path}: no list of domains: {_FORM}")
    return content


def _parse_entry(entry: Any) -> tuple[str, str]:
    if isinstance(entry, str):
        name, _, summary = entry.partition(": ")
        return " ".join(name.split()), " ".join(summary.split())
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        return "", ""
    summary = next((str(entry[key]) for key in _SUMMARIES if entry.get(key)), "")
    return " ".join(entry["name"].split()), " ".join(summary.split())


def find_name_fault(name: str) -> str:
    """Return the reason why a text is no name of a domain; empty if it is one."""
    if not any(letter.isalpha() for letter in name):
        return "no name"
    return (
        f"a name has at most {MAX_NAME_CHARACTERS} letters; put what it is about into its summary"
        if len(name) > MAX_NAME_CHARACTERS
        else ""
    )
