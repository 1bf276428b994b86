"""What the tests of live servers share: servers written for them, and what a leaked one looks like."""

import sys
from pathlib import Path
from typing import Any

import psutil

from trajsmith.environments.adapters.mcp import McpSettings

SERVERS = Path(__file__).parent / "servers"


def settings(program: str, *arguments: str, **more: Any) -> McpSettings:
    return McpSettings(name="trial", command=[sys.executable, str(SERVERS / program), *arguments], **more)


def left_in(directory: str) -> list[str]:
    return [entry.name for entry in Path(directory).iterdir()]


def processes_in(directory: str) -> list[int]:
    """Processes that work below a directory; they are what a leaked server looks like."""
    found = []
    for process in psutil.process_iter(["cwd"]):
        if (process.info["cwd"] or "").startswith(directory):
            found.append(process.pid)
    return found
