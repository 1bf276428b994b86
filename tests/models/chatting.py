"""Models for tests: a board on a server, requests with orders to the server in them."""

import json
from contextlib import asynccontextmanager

from trajsmith.models import BudgetSettings, ChatRequest, ModelSettings, RoleSettings, RolesSettings
from trajsmith.models.registry import ModelRegistry
from trajsmith.records import Message

QUICK = {"timeout": 5.0, "first_wait": 0.01, "longest_wait": 0.02, "attempts": 3}


def settings(url, **more):
    return ModelSettings(**{"model": "test-model", "base_url": url, **QUICK, **more})


@asynccontextmanager
async def board(folder, url, budget=None, role=None, **more):
    """A board whose agent and writer are played by one model."""
    played = RoleSettings(model="main", **(role or {}))
    opened = ModelRegistry(
        {"main": settings(url, **more)},
        RolesSettings(agent=played, writer=played),
        BudgetSettings(**(budget or {})),
        folder,
        "trajsmith resume runs/here",
    )
    try:
        yield opened
    finally:
        await opened.close()


def request(text="hello", fault=None, times=1, reply=None, **more):
    """A request; `fault` fails the first so many times that it comes, `reply` is what the server answers."""
    if fault:
        text = f"{text} [[fault:{fault}:{times}]]"
    if reply is not None:
        text = f"{text} [[reply:{json.dumps(reply)}]]"
    return ChatRequest(messages=(Message(role="user", content=text),), **more)


def calling(name, arguments):
    """A message with one call, its arguments as text."""
    call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"content": "", "tool_calls": [call]}


def usage_lines(folder):
    return [json.loads(line) for line in (folder / "usage.jsonl").read_text().splitlines()]
