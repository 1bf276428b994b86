"""A good server: notes in memory and in its working directory, structured and text tools. Over stdio or HTTP."""

import os
import sys
from pathlib import Path

from mcp.server import MCPServer
from mcp_types import ToolAnnotations
from pydantic import BaseModel

server = MCPServer("notes", version="1.2")
notes: dict[str, str] = {}


class Note(BaseModel):
    title: str
    text: str


@server.tool()
def add_note(title: str, text: str) -> Note:
    """Keep a note."""
    notes[title] = text
    return Note(title=title, text=text)


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def list_notes() -> list[Note]:
    """All notes."""
    return [Note(title=title, text=text) for title, text in sorted(notes.items())]


@server.tool(structured_output=False)
def note_json(title: str) -> str:
    """A note as JSON text."""
    return Note(title=title, text=notes[title]).model_dump_json()


@server.tool(structured_output=False)
def shout(text: str) -> str:
    """Give a text back, loudly."""
    return text.upper()


@server.tool(structured_output=False)
def save(path: str, text: str) -> str:
    """Write a file."""
    Path(path).write_text(text)
    return f"saved {Path(path).resolve()} and {path} with {text}"


@server.tool()
def tag(note: Note, tags: list[str]) -> Note:
    """Tag a note."""
    return Note(title=note.title, text=f"{note.text} {' '.join(tags)}")


@server.tool()
def environment() -> dict[str, str]:
    """What this process sees."""
    return dict(os.environ)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run()
