"""Specs of the environments that a run was made with, from its files; no environment is started."""

from trajsmith.environments.composite import CompositeLookup, compose_spec
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.records import EnvironmentSpec


def load_stored_specs(run: RunDirectory) -> CompositeLookup[EnvironmentSpec]:
    """The environments that the run was made with, by name."""
    files = (
        path
        for path in run.file("environments").glob("*.json")
        if not path.name.endswith((".phrases.json", ".scenarios.json"))
    )
    specs = (EnvironmentSpec.model_validate(run.read_json(f"environments/{path.name}")) for path in sorted(files))
    return CompositeLookup({spec.name: spec for spec in specs}, compose_spec)
