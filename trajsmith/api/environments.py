"""Environments: open one, check one, and the graph of its tools."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from trajsmith.envcheck import CheckPlan, CloseableSource, EnvironmentReport
from trajsmith.envcheck import check_environment as check_source
from trajsmith.environments import Environment, EnvironmentSource
from trajsmith.environments.blocking import EnvironmentSession, run_blocking
from trajsmith.environments.native_source import NativeSource
from trajsmith.environments.sources import Size
from trajsmith.pipeline.environment_references import open_named_source
from trajsmith.records import InputError, JsonObject, ToolSpec, format_first_error
from trajsmith.toolgraph import GraphSettings, ToolGraph
from trajsmith.toolgraph import build_graph as build_tool_graph

EnvironmentInput = str | Path | type[Environment[Any]] | EnvironmentSource
"""Name of a bundled environment, path of anything that `trajsmith env check` takes, class, or source."""


def open_environment(
    environment: EnvironmentInput, *, seed: int = 0, state: JsonObject | None = None
) -> EnvironmentSession:
    """Open an environment at an initial state, to call its tools one after the other.

    Works from scripts and inside a running event loop: the environment runs in a thread of its own. Code from files
    runs in the sandbox; a class that is passed runs in this process.

    Args:
        environment: Name of a bundled environment, a path (Python file, OpenAPI document, configuration, foreign form;
            `file.py:Class` and `run.yaml:name` choose one of several), or an `Environment` class.
        seed: Seed of the initial state.
        state: Initial state in place of the environment's own.

    Raises:
        InputError: There is no such environment, or it cannot be used as it is.
        EnvironmentFault: It does not start.

    Example:
        >>> with trajsmith.open_environment("retail") as retail:
        ...     [tool.name for tool in retail.tools][:2]
        ...     result = retail.call("get_order", order_id="W0000")
        ...     result.ok, result.content
        ['find_customer_by_email', 'list_customer_orders']
        (False, {'error': 'order W0000 not found'})
    """
    return EnvironmentSession(_open_source(environment, "small"), seed, state)


def check_environment(environment: EnvironmentInput, *, seed: int = 0, seconds: float = 120.0) -> EnvironmentReport:
    """Examine an environment without a model, as `trajsmith env check` does, and return the report.

    Args:
        environment: As for `open_environment`.
        seed: Seed of the initial states and of the arguments.
        seconds: Time after which the examination ends with what it has.

    Raises:
        InputError: It cannot be loaded.

    Example:
        >>> report = trajsmith.check_environment("retail")
        >>> report.score, [(finding.severity, finding.message) for finding in report.findings]
        (1.0, [])
    """
    source = _open_source(environment)
    try:
        return run_blocking(check_source(source, CheckPlan(seed=seed, seconds=seconds)))
    finally:
        if isinstance(source, CloseableSource):
            source.close()


def build_graph(
    tools: EnvironmentInput | Sequence[ToolSpec | JsonObject], *, settings: GraphSettings | None = None
) -> ToolGraph:
    """Build the graph of which tool gives what another needs, from the schemas alone; nothing is called.

    `ToolGraph.to_networkx` gives it as a `networkx.MultiDiGraph`. The graph of a run (`graph.json`, `ToolGraph.load`)
    also has the evidence of execution.

    Args:
        tools: Tools as `ToolSpec` or as an MCP server lists them, with `server`; or an environment as for
            `open_environment`.
        settings: Threshold, edges between servers, and so on.

    Raises:
        InputError: There is no such environment, or one of the tools is none.

    Example:
        >>> graph = trajsmith.build_graph("retail").to_networkx(parameters=False)
        >>> sorted(graph.predecessors("retail.get_order"))
    """
    if not isinstance(tools, str) and isinstance(tools, Sequence):
        return build_tool_graph([_parse_tool(tool, number) for number, tool in enumerate(tools)], settings)
    source = _open_source(tools)
    try:
        return build_tool_graph(run_blocking(source.spec()).tools, settings)
    finally:
        if isinstance(source, CloseableSource):
            source.close()


def _parse_tool(tool: ToolSpec | JsonObject | str, number: int) -> ToolSpec:
    try:
        return ToolSpec.model_validate(tool)
    except ValidationError as error:
        raise InputError(f"tools[{number}]: no tool: {format_first_error(error)}") from error


def _open_source(environment: EnvironmentInput, size: Size | None = None) -> EnvironmentSource:
    """Return the source that a name, a path or a class stands for; nothing runs yet.

    Args:
        environment: Name, path, class or source.
        size: Size of the one initial state; None gives the states that a run would use.
    """
    if isinstance(environment, str | Path):
        return open_named_source(str(environment), size)
    if isinstance(environment, type):
        return NativeSource(environment, {size: 1} if size else {"small": 2, "medium": 1})
    return environment
