"""The open benchmark sets of the tool graph: tools, gold edges, gold parameters, and their scorers.

Where they are: `../shared/data` beside the checkout, or the folder that TRAJSMITH_DATA names.
"""

import importlib.util
import json
import os
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from trajsmith.records import ToolSpec
from trajsmith.toolgraph.match import sort_by_server

FLOW = ("tau2_airline", "bfcl_public", "nestful_sgd", "nestful_glaive", "apibank")
"""Sets of values that were really passed on."""
OTHER = ("restbench_tmdb", "taskbench_multimedia", "taskbench_multimedia_blind")
SCALE = ("toucan_live", "livemcpbench", "toucan_crawled", "bfcl_functions", "acebench_functions")
"""Lists of tools without gold."""
FAMILY = {"taskbench_multimedia_blind": "taskbench_multimedia"}
"""Sets that are left out together: the same tools, the same gold."""


def data_folder() -> Path:
    """The folder of shared data."""
    return Path(os.environ.get("TRAJSMITH_DATA", Path(__file__).parents[2] / "shared" / "data"))


@lru_cache(maxsize=4)
def scorer(name: str) -> ModuleType:
    """`score_edges` or `score_params`, as they lie beside the data."""
    spec = importlib.util.spec_from_file_location(name, data_folder() / f"{name}.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(f"{data_folder()} has no {name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_tools(path: Path) -> list[ToolSpec]:
    """Tools of a JSON Lines file."""
    return [ToolSpec.model_validate_json(line) for line in path.read_bytes().splitlines() if line.strip()]


def read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines() if line.strip()]


@dataclass(frozen=True)
class GoldSet:
    """One set with its gold."""

    name: str
    tools: list[ToolSpec]
    """Each full name once, those of a server together."""
    edges: list[dict[str, Any]]
    parameters: list[dict[str, Any]]
    universe: Any
    known: Any

    @property
    def core(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Edges that must be found."""
        return {(row["source"], row["target"]): row for row in self.edges if row.get("tier", "core") == "core"}

    @property
    def spared(self) -> set[tuple[str, str]]:
        """Edges that are neither right nor wrong."""
        return {(row["source"], row["target"]) for row in self.edges} - self.core.keys()

    def edge_figures(self, predicted: list[dict[str, Any]], sweep: bool = False) -> dict[str, Any]:
        """Score rows with source, target and score."""
        result: dict[str, Any] = scorer("score_edges").score(
            self.edges, predicted, self.universe, self.known, sweep=sweep
        )
        return result

    def parameter_figures(self, predicted: list[dict[str, Any]], three: bool = False) -> dict[str, Any]:
        """Score rows with tool, param and label."""
        result: dict[str, Any] = scorer("score_params").score(self.parameters, predicted, three)
        return result


@lru_cache(maxsize=16)
def gold_set(name: str) -> GoldSet:
    """A set by name."""
    folder = data_folder() / "sets" / name
    tools = {tool.full_name: tool for tool in reversed(read_tools(folder / "tools.jsonl"))}
    rows, universe, known = scorer("score_edges").load_gold(str(folder))
    labels = folder / "gold_params.jsonl"
    parameters = read_rows(labels) if labels.is_file() else []
    ordered = sort_by_server(list(reversed(tools.values())))
    return GoldSet(name, ordered, rows, parameters, universe, known)


def scale_tools(number: int) -> list[ToolSpec]:
    """So many tools of the scale files, with renamed copies where they do not suffice."""
    every = [tool for name in SCALE for tool in read_tools(data_folder() / "scale" / f"{name}.tools.jsonl")]
    tools = list(every)
    while len(tools) < number:
        copy = len(tools) // len(every)
        tools += [tool.model_copy(update={"server": f"{tool.server}~{copy}"}) for tool in every]
    return tools[:number]


def top_level(path: str) -> str:
    """Name of the argument that a leaf belongs to."""
    return re.split(r"[.\[]", path)[0]


def same_path(schema_path: str, gold_path: str) -> bool:
    """Return True if a path of a schema and a path of a recorded value are the same place."""
    ours = schema_path.removeprefix("$").lstrip(".").replace("[*]", "[]")
    theirs = gold_path.replace("[0]", "[]")
    if ours.rstrip("[]") == theirs.rstrip("[]{}"):
        return True
    return ".*" in ours and bool(re.fullmatch(re.escape(ours).replace(r"\*", r"[^.]+"), theirs))
