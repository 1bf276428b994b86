"""The three servers that the configurations name, as they come from npm and PyPI."""

import asyncio
import functools
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from trajsmith.environments.adapters.mcp import McpSettings, McpSource
from trajsmith.phrasing import Wording
from trajsmith.phrasing.templates import list_slots

ROOT = Path(__file__).parents[3]
INSTALLED = (ROOT / ".servers/.installed").exists()
pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(not INSTALLED, reason="the MCP servers are not installed: make servers"),
]


@functools.cache
def configured(name: str) -> McpSource:
    entry = yaml.safe_load((ROOT / f"configs/mcp_{name}.yaml").read_text())["environments"][0]["mcp"]
    settings = McpSettings.model_validate(entry | {"phrases": ROOT / "configs" / entry["phrases"]})
    return McpSource(settings, ROOT)


def relation(**names: str) -> dict[str, Any]:
    return {"relations": [{key.rstrip("_"): value for key, value in names.items()}]}


REPO = {"repo_path": "/workspace"}
SCRIPTS: dict[str, list[tuple[str, dict[str, Any], str]]] = {
    "memory": [
        ("search_nodes", {"query": "Priya"}, "Priya Nair"),
        ("open_nodes", {"names": ["Tom Alvarez"]}, "on-call rota"),
        ("create_entities", {"entities": [{"name": "Yuki", "entityType": "person", "observations": ["New"]}]}, "Yuki"),
        ("create_relations", relation(from_="Yuki", to="Tom Alvarez", relationType="supports"), "supports"),
        ("add_observations", {"observations": [{"entityName": "Yuki", "contents": ["Left-handed"]}]}, "Left-handed"),
        (
            "delete_observations",
            {"deletions": [{"entityName": "Tom Alvarez", "observations": ["Is on the on-call rota"]}]},
            "deleted",
        ),
        ("delete_relations", relation(from_="Yuki", to="Tom Alvarez", relationType="supports"), "deleted"),
        ("delete_entities", {"entityNames": ["Lena Hoffmann"]}, "deleted"),
        ("read_graph", {}, "Left-handed"),
    ],
    "filesystem": [
        ("list_directory", {"path": "/workspace"}, "README.md"),
        ("directory_tree", {"path": "/workspace"}, "plan.md"),
        ("read_text_file", {"path": "/workspace/notes/plan.md"}, "Status: draft"),
        ("read_multiple_files", {"paths": ["/workspace/todo.txt", "/workspace/README.md"]}, "Status: draft"),
        ("search_files", {"path": "/workspace", "pattern": "**/*.csv"}, "/workspace/lists/contacts.csv"),
        ("create_directory", {"path": "/workspace/archive"}, "/workspace/archive"),
        ("move_file", {"source": "/workspace/todo.txt", "destination": "/workspace/archive/todo.txt"}, "moved"),
        ("write_file", {"path": "/workspace/notes/ideas.md", "content": "One.\n"}, "/workspace/notes/ideas.md"),
        (
            "edit_file",
            {"path": "/workspace/README.md", "edits": [{"oldText": "Status: draft", "newText": "Status: final"}]},
            "final",
        ),
    ],
    "git": [
        ("git_status", REPO, "docs/guide.md"),
        ("git_branch", {**REPO, "branch_type": "local"}, "feature/search"),
        ("git_diff_unstaged", REPO, "docs/guide.md"),
        ("git_add", {**REPO, "files": ["README.md", "docs/guide.md"]}, "staged"),
        ("git_reset", REPO, "reset"),
        ("git_add", {**REPO, "files": ["docs/guide.md"]}, "staged"),
        ("git_diff_staged", REPO, "docs/guide.md"),
        ("git_commit", {**REPO, "message": "Update the guide"}, "committed"),
        ("git_log", {**REPO, "max_count": 2}, "Update the guide"),
        ("git_show", {**REPO, "revision": "HEAD"}, "Robin Keller"),
        ("git_diff", {**REPO, "target": "HEAD~1"}, "docs/guide.md"),
        ("git_create_branch", {**REPO, "branch_name": "fix/typo", "base_branch": "main"}, "fix/typo"),
        ("git_checkout", {**REPO, "branch_name": "fix/typo"}, "fix/typo"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", SCRIPTS)
async def test_every_tool_works_effects_are_as_declared_and_replay_gives_the_same_hashes(name):
    source = configured(name)
    spec = await source.spec()
    assert {tool for tool, *_ in SCRIPTS[name]} == {tool.name for tool in spec.tools}
    wording = Wording(source.phrasebook, spec.tools)
    first, second = await source.open(), await source.open()
    try:
        states = await source.states(7)
        for state in (states[0], states[-1]):
            await asyncio.gather(first.reset(state), second.reset(state))
            before, again = await asyncio.gather(first.state_hash(), second.state_hash())
            assert again == before
            for tool, arguments, expected in SCRIPTS[name]:
                result, other = await asyncio.gather(first.call(tool, arguments), second.call(tool, arguments))
                assert result.ok, (tool, result.text)
                assert expected in result.text
                told = wording.results(source.phrasebook.tools[tool].done, result.content, arguments, random.Random(1))
                assert told, tool
                assert other.hash == result.hash
                after, again = await asyncio.gather(first.state_hash(), second.state_hash())
                assert (after != before) == spec.tool(tool).declares_write, tool
                assert again == after
                before = after
    finally:
        await first.close()
        await second.close()


@pytest.mark.parametrize("name", SCRIPTS)
async def test_the_phrasebook_speaks_of_what_the_server_has(name):
    source = configured(name)
    spec = await source.spec()
    book = source.phrasebook
    assert book.tools.keys() == {tool.name for tool in spec.tools}
    for tool in spec.tools:
        phrases = book.tools[tool.name]
        for template in (*phrases.ask, *phrases.say, *phrases.narrate, *phrases.confirm):
            assert list_slots(template) <= tool.parameters.keys(), (tool.name, template)
        assert bool(phrases.confirm) == tool.declares_write
    assert len(await source.states(1)) >= 3
