"""Audit of a running OpenEnv server. Imports `openenv`, so import it only where it is used.

Every play is an episode of OpenEnv's own generic client. A call of a tool is OpenEnv's own action for it; where a
server takes actions of another form, a call of `step` gives the fields of one. The reward is that of the last step.
"""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
from openenv import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient

from trajsmith.pipeline.live_audit import LiveAudit, LiveResult, LiveTask, read_golds, say
from trajsmith.pipeline.progress import RunProgress
from trajsmith.pipeline.suite_counts import SuiteAudit, SuiteCall
from trajsmith.records import EnvironmentFault, InputError, JsonObject, canonical_json
from trajsmith.train_grpo import MESSAGE_USER

STEP = "step"
"""Tool of a call whose arguments are the fields of an action."""
SILENT_STEPS = 100
"""Empty messages to the user that end an episode, on a server with a user."""
NO_STATE = ("episode_id", "step_count", "reward", "score")
"""Fields of observations that tell the play or its reward, not the state that it led to."""
TIMEOUT = 60.0
"""Seconds that a server may take for a request."""


async def audit_openenv(
    url: str,
    gold: Path | None,
    mutants: int,
    limit: int | None,
    seed: int,
    passes: float,
    progress: RunProgress | None = None,
) -> SuiteAudit:
    """Audit the tasks of a server.

    Args:
        url: Address of the server.
        gold: Gold plays, as `read_golds` takes them. A task is an id, or the options of `reset` as a JSON object.
        mutants: Wrong plays of each task at most.
        limit: Tasks at most.
        seed: Of the choice of mutants.
        passes: Reward from which a play passes.
        progress: Told about each task.

    Raises:
        InputError: There is no OpenEnv server.
    """
    golds = read_golds(gold) if gold else {}
    about = _read_json(url, "/metadata")
    name = str(about.get("name") or url) if isinstance(about, dict) else url
    audit = SuiteAudit(f"openenv {name}")
    names = _list_tasks(url, golds)[:limit]
    live = [LiveTask(task, (golds[task],) if task in golds else ()) for task in names]
    player = _OpenEnvPlayer(url, await _has_user(url))
    await LiveAudit(audit, player, live, mutants, seed, passes).examine(progress)
    return audit


def _list_tasks(url: str, golds: Mapping[str, Any]) -> list[str]:
    """List the tasks that the server names, else those with a gold play, else the one that `reset` gives."""
    names: dict[str, None] = {}
    for env in _read_json(url, "/list_environments", missing=[]):
        place = f"/{quote(str(env))}"
        for split in _read_json(url, f"{place}/splits", missing=[]):
            tasks = _read_json(url, f"{place}/tasks", {"split": split["name"]}, missing={}).get("tasks", [])
            for index, task in enumerate(tasks):
                options = {"split": split["name"], "index": index}
                own = task.get("id") if isinstance(task, dict) else None
                names[str(own) if str(own) in golds else json.dumps(options)] = None
    return list(names) or list(golds) or ["{}"]


def _read_json(url: str, path: str, body: JsonObject | None = None, missing: Any = None) -> Any:
    """Read JSON from the server.

    Raises:
        InputError: It does not answer, or not as an OpenEnv server does.
    """
    data = None if body is None else orjson.dumps(body)
    try:
        request = urllib.request.Request(f"{url.rstrip('/')}{path}", data, {"Content-Type": "application/json"})
        if request.type not in ("http", "https"):
            raise InputError(f"{url}: the address of an OpenEnv server begins with http:// or https://")
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            return orjson.loads(answer.read())
    except urllib.error.HTTPError as error:
        if missing is not None and error.code in (404, 405, 501):  # a server without OpenEnv's task API
            return missing
        raise InputError(f"{url}{path}: {error}: no OpenEnv server answers there") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{url}{path}: {error}: no OpenEnv server answers there") from error


async def _has_user(url: str) -> bool:
    """Return True if the server has the tool by which trajsmith's tasks talk with the user."""
    try:
        async with MCPToolClient(base_url=url) as client:
            await client.reset()
            tools = await client.list_tools()
    except (RuntimeError, OSError, ValueError):  # it takes actions of another form
        return False
    return MESSAGE_USER.name in {tool.name for tool in tools}


class _OpenEnvPlayer:
    """Plays by episodes of the generic client."""

    def __init__(self, url: str, has_user: bool) -> None:
        self._url = url
        self._silence = [say("")] * SILENT_STEPS if has_user else []

    async def validate(self, task: str) -> bool | None:
        """Return None: OpenEnv's tasks bring no test of a solution."""
        return None

    async def play(self, task: str, calls: Sequence[SuiteCall]) -> LiveResult:
        """Play an episode.

        Raises:
            EnvironmentFault: The server refused an action, or broke.
        """
        results: list[str] = []
        try:
            async with GenericEnvClient(base_url=self._url, message_timeout_s=TIMEOUT) as client:
                step = await client.reset(**read_reset(task))
                for call in (*calls, *self._silence):
                    if step.done:
                        break
                    step = await client.step(build_action(call))
                    if len(results) < len(calls):
                        results.append(canonical_json(_keep_state(step.observation)).decode())
        except Exception as error:  # the client raises errors of many kinds, for refusals of the server too
            reason = str(error).split("\n")[0]
            raise EnvironmentFault("crash", self._url, f"{type(error).__name__}: {reason}") from error
        return LiveResult(step.reward, tuple(results))


def read_reset(task: str) -> JsonObject:
    """Return the options of a reset that a task's name stands for: those of a JSON object, or the id of a task."""
    try:
        options = orjson.loads(task)
    except orjson.JSONDecodeError:
        options = None
    return options if isinstance(options, dict) else {"task_id": task}


def build_action(call: SuiteCall) -> JsonObject:
    """Return a call as an action of OpenEnv."""
    if call.tool == STEP:
        return call.arguments
    return {"type": "call_tool", "tool_name": call.tool, "arguments": call.arguments}


def _keep_state(value: Any) -> Any:
    """Return an observation without what is not of the state."""
    if isinstance(value, dict):
        return {name: _keep_state(one) for name, one in value.items() if name not in NO_STATE}
    return value
