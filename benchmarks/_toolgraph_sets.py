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

from trajsmith.environments.blocking import run_blocking
from trajsmith.environments.native_source import build_library_source
from trajsmith.records import ToolSpec
from trajsmith.toolgraph.match import sort_by_server

FLOW = ("tau2_airline", "bfcl_public", "nestful_sgd", "nestful_glaive", "apibank")
"""Sets of values that were really passed on."""
OTHER = ("restbench_tmdb", "taskbench_multimedia", "taskbench_multimedia_blind")
SCALE = ("toucan_live", "livemcpbench", "toucan_crawled", "bfcl_functions", "acebench_functions")
"""Lists of tools without gold."""
SMALL = ("tau2_mock",)
"""Too few edges and parameters to learn from; only scored."""
FAMILY = {
    "tau2_mock": "tau2",
    "tau2_airline": "tau2",
    "bfcl_public": "bfcl",
    "nestful_sgd": "nestful",
    "nestful_glaive": "nestful",
    "apibank": "apibank",
    "restbench_tmdb": "restbench",
    "taskbench_multimedia": "taskbench",
    "taskbench_multimedia_blind": "taskbench",
}
"""Source of a set: sets of one source are left out together."""
BUNDLED = ("bank", "calendar", "file_store", "helpdesk", "mobile_care", "retail", "smart_home", "travel")
"""Bundled environments: edges that execution proved, kinds after execution (`bundled_labels.json`)."""
FAMILY |= dict.fromkeys(BUNDLED, "bundled")
DIALOGUES = ("sgd", "sgd_v1", "sgd_v2", "sgd_v3", "sgd_v4", "sgd_v5")
"""Sets that `sgd_sets.py` makes of recorded dialogues; nestful_sgd was made of the same ones."""
FAMILY |= dict.fromkeys(DIALOGUES, "nestful")
BARE = " bare"
"""Ending of the name of a set whose tools declare no outputs: name, description and input schema only."""
_ID_NAME = re.compile(r"(^|[_\-. ]|(?<=[a-z]))(ids?|Ids?|IDs?|uuid|guid|key|token)$")


def data_folder() -> Path:
    """The folder of shared data."""
    return Path(os.environ.get("TRAJSMITH_DATA", Path(__file__).parents[2] / "shared" / "data"))


def find_set_folder(name: str) -> Path:
    """Return where a set lies: with the open sets, or among those that TRAJSMITH_SETS adds."""
    added = Path(os.environ.get("TRAJSMITH_SETS", "")) / name
    return added if os.environ.get("TRAJSMITH_SETS") and added.is_dir() else data_folder() / "sets" / name


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


def family(name: str) -> str:
    """Return the source of a set, bare or not."""
    return FAMILY[name.removesuffix(BARE)]


def id_rule(gold: GoldSet) -> list[dict[str, Any]]:
    """Label every parameter by the one-line rule: a name that ends like an id is internal."""
    return [
        {"tool": tool.full_name, "param": name, "label": "internal" if _ID_NAME.search(name) else "user"}
        for tool in gold.tools
        for name in tool.input_schema.get("properties") or {}
    ]


@lru_cache(maxsize=64)
def gold_set(name: str) -> GoldSet:
    """A set by name; with the ending `BARE`, its tools declare no outputs."""
    if name.removesuffix(BARE) in BUNDLED:
        return _bundled(name)
    folder = find_set_folder(name.removesuffix(BARE))
    tools = {tool.full_name: tool for tool in reversed(read_tools(folder / "tools.jsonl"))}
    if name.endswith(BARE):
        tools = {key: tool.model_copy(update={"output_schema": None}) for key, tool in tools.items()}
    rows, universe, known = scorer("score_edges").load_gold(str(folder))
    labels = folder / "gold_params.jsonl"
    parameters = read_rows(labels) if labels.is_file() else []
    ordered = sort_by_server(list(reversed(tools.values())))
    return GoldSet(name, ordered, rows, parameters, universe, known)


def _bundled(name: str) -> GoldSet:
    """A bundled environment, with what execution said of it."""
    environment = name.removesuffix(BARE)
    stored = json.loads((Path(__file__).parent / "bundled_labels.json").read_text("utf-8"))[environment]
    tools = sort_by_server(list(run_blocking(build_library_source(environment, {}).spec()).tools))
    if name.endswith(BARE):
        tools = [tool.model_copy(update={"output_schema": None}) for tool in tools]
    edges = [
        {"set": name, "source": source, "target": target, "tier": tier}
        for key, tier in (("proved", "core"), ("open", "extra"))
        for source, target in stored[key]
    ]
    kinds: dict[tuple[str, str], str] = {}
    for leaf, kind in stored["kinds"].items():
        tool, path = leaf.split(" ", 1)
        label = {"internal": "internal", "external": "user", "other": "other"}[kind]
        if kinds.get((tool, top_level(path))) != "internal":
            kinds[tool, top_level(path)] = label
    parameters = [{"set": name, "tool": tool, "param": param, "label": label} for (tool, param), label in kinds.items()]
    return GoldSet(name, tools, edges, parameters, None, None)


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
