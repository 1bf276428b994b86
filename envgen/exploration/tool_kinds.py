"""What a tool does, by its hints, its name and its description: before a call shows it."""

import re
from typing import Literal

from trajsmith.grounding import split_name
from trajsmith.phrasing.words import word_set
from trajsmith.records import ToolSpec

ToolKind = Literal["read", "create", "change", "destroy"]
_READS = word_set(
    "get list find search show check view read count describe calculate compute estimate preview lookup query "
    "fetch is has can compare convert summarize summary status stats statistics echo export overdue open board "
    "why history trace "
)
_OPENINGS = word_set(
    "return get list show find search check view read count describe calculate compute convert retrieve look display "
    "fetch execute evaluate echo summarize"
)
_CREATES = word_set(
    "create add new insert append store save register record log capture make write put post book schedule track"
)
_DESTROYS = word_set("delete remove clear reset drop purge destroy erase wipe undo cancel revert truncate uninstall")
_WORLD = word_set(
    "fetch crawl scrape browse download upload web http internet email sync publish deploy webhook notify online"
)
_ADDRESS = re.compile(r"\b(?:url|uri|webpage|website|https?)\b", re.IGNORECASE)


def classify_tool(tool: ToolSpec) -> ToolKind:
    """Return what kind of tool it is; a hint of the server counts more than words."""
    if tool.annotations.read_only_hint is True:
        return "read"
    name = split_name(tool.name)
    opening = split_name("_".join(re.findall(r"[A-Za-z]+", tool.description)[:1]))
    if set(name) & _DESTROYS:
        return "destroy"
    if set(name[:2]) & _CREATES:
        return "create"
    if set(name) & _READS:
        return "read"
    if set(opening) & _CREATES:
        return "create"
    return "read" if set(opening) & _OPENINGS else "change"


def find_open_world(tool: ToolSpec) -> str:
    """Return why a tool reaches beyond this machine; empty if nothing says so."""
    if tool.annotations.open_world_hint is True and set(split_name(tool.name)) & _WORLD:
        return "it says that it reaches other systems (openWorldHint)"
    if set(split_name(tool.name)) & _WORLD:
        return "its name says that it reaches other systems"
    required = tool.required
    address = next((name for name in required if _ADDRESS.fullmatch(name)), None)
    return f"it needs the address of another system ({address})" if address else ""
