"""What the tests of OpenAPI environments share: loading, an independent look at answers, random valid calls."""

import json
import random
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from trajsmith.environments.adapters.openapi import OpenApiSettings, build_payload
from trajsmith.environments.adapters.openapi.argument_sampling import sample_arguments
from trajsmith.environments.adapters.openapi.document_references import UnsupportedFeature
from trajsmith.environments.adapters.openapi.program import OpenApiProgram, OpenApiSession, load
from trajsmith.environments.adapters.openapi.store import ResourceStore, find_dangling
from trajsmith.environments.programs import apply_changes

SPECS = Path(__file__).parent / "specs"


def program(name: str, **settings: Any) -> OpenApiProgram:
    return load(build_payload(OpenApiSettings(spec=SPECS / name, **settings)))


def program_of(document: dict[str, Any]) -> OpenApiProgram:
    return load(
        {
            "file": "made.json",
            "name": "made",
            "text": json.dumps({"openapi": "3.1.0", "info": {"title": "Made"}, **document}),
            "domain": "",
            "policy": "",
            "states": {"small": 1},
            "include": None,
            "exclude": [],
            "user": None,
        }
    )


def state_of(play: OpenApiSession, start: bytes) -> dict[str, Any]:
    """The state as its owner knows it: the start, and every change told."""
    return apply_changes(start, play.changes())


def lost_references(made: OpenApiProgram, state: dict[str, Any]) -> list[str]:
    return list(find_dangling(made.built.model.tables.values(), state))


def random_call(made: OpenApiProgram, state: dict[str, Any], number: int) -> tuple[str, dict[str, Any]] | None:
    """A valid call for a state, by a number; None where the state has nothing to call it with."""
    rng = random.Random(number)
    tool = rng.choice(sorted(made.built.derived))
    try:
        return tool, sample_arguments(
            made.built.derived[tool], made.built.model, ResourceStore(made.built.model.tables, state), rng
        )
    except (UnsupportedFeature, IndexError):
        return None


class Judge:
    """Validates answers against the document itself (3.1), with another library and without our reading of it."""

    def __init__(self, name: str) -> None:
        self._document = yaml.safe_load((SPECS / name).read_text())
        resource: Resource[Any] = Resource.from_contents(self._document, default_specification=DRAFT202012)
        self._registry: Registry[Any] = Registry().with_resource("urn:doc", resource)

    def find_fault(self, label: str, content: Any) -> str | None:
        method, path = label.lower().split(" ")[0], label.split(" ")[1]
        responses = self._document["paths"][path][method]["responses"]
        for status, response in responses.items():
            if status.startswith("2") and "content" in response:
                place = f"/paths/{quote(path.replace('~', '~0').replace('/', '~1'))}/{method}/responses/{status}"
                schema = {"$ref": f"urn:doc#{place}/content/application~1json/schema"}
                value = content
                if isinstance(content, dict) and content.keys() == {"result"}:
                    value = content["result"]
                errors = Draft202012Validator(schema, registry=self._registry).iter_errors(value)
                return next((error.message for error in errors), None)
        return None if isinstance(content, str) else "an answer where none is declared"
