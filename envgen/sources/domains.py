"""Domains by name: one, or a file with many."""

from pathlib import Path
from typing import Any

import yaml

from envgen.generate.blueprint import LeftOut
from envgen.sources import Source
from envgen.sources.licences import licence_in
from envgen.sources.reading import Reading
from environments.reading import read_json, read_text
from trajectory import InputError

LONGEST = 80
"""Letters of a domain's name."""
_SUMMARIES = ("summary", "description", "about")
_FORM = "give names, one a line, or a YAML or JSON list of names or of {name, summary}"


def domain_source(name: str, summary: str = "", origin: str = "command line", licence: str | None = None) -> Source:
    """A domain of which only the name is known, or a sentence or two as well.

    Raises:
        InputError: The name says nothing, or is no name.
    """
    tidy = " ".join(name.split())
    fault = _fault(tidy)
    if fault:
        raise InputError(f"domain {name[:60]!r}: {fault}")
    return Source(kind="domain", name=tidy, summary=" ".join(summary.split()), origin=origin, licence=licence)


def read_domains(path: Path) -> Reading:
    """The domains that a file lists; two of one name count once.

    Raises:
        InputError: It cannot be read, has another shape, or lists no domain.
    """
    entries, sources, left_out = _entries(path), dict[str, Source](), list[LeftOut]()
    licence = licence_in(path.parent)
    for number, entry in enumerate(entries, 1):
        name, summary = _named(entry)
        fault = _fault(name) or ("named twice" if name.lower() in sources else "")
        if fault:
            left_out.append(LeftOut(what=f"entry {number} {name[:60]!r}", reason=fault))
        else:
            sources[name.lower()] = domain_source(name, summary, path.name, licence)
    if not sources:
        raise InputError(f"{path}: no domain in it: {left_out[0].reason if left_out else 'it is empty'}; {_FORM}")
    return Reading(sources=tuple(sources.values()), left_out=tuple(left_out), read=len(entries))


def _entries(path: Path) -> list[Any]:
    if path.suffix in (".json", ".jsonl"):
        found = read_json(path)
    elif path.suffix in (".yaml", ".yml"):
        try:
            found = yaml.safe_load(read_text(path))
        except (yaml.YAMLError, RecursionError) as error:
            raise InputError(f"{path}: no YAML: {' '.join(str(error).split())[:200]}") from error
    else:
        found = [line.strip("-* \t") for line in read_text(path).splitlines() if not line.startswith("#")]
        found = [line for line in found if line]
    if isinstance(found, dict) and isinstance(found.get("domains"), list):
        found = found["domains"]
    if isinstance(found, dict) and all(isinstance(value, str) for value in found.values()):
        found = [{"name": name, "summary": summary} for name, summary in found.items()]
    if not isinstance(found, list):
        raise InputError(f"{path}: no list of domains: {_FORM}")
    return found


def _named(entry: Any) -> tuple[str, str]:
    if isinstance(entry, str):
        name, _, summary = entry.partition(": ")
        return " ".join(name.split()), " ".join(summary.split())
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        return "", ""
    summary = next((str(entry[key]) for key in _SUMMARIES if entry.get(key)), "")
    return " ".join(entry["name"].split()), " ".join(summary.split())


def _fault(name: str) -> str:
    """Why something is no name of a domain; empty if it is one."""
    if not any(letter.isalpha() for letter in name):
        return "no name"
    return f"a name has at most {LONGEST} letters; put what it is about into its summary" if len(name) > LONGEST else ""
