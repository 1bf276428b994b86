"""Lists of MCP servers as clients have them are environments as they are."""

import json

import pytest

from trajsmith.environments.adapters.mcp.client_files import read_client_file
from trajsmith.environments.sources import EnvironmentSettings, expand_settings
from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.environment_references import find_named_entries
from trajsmith.records import InputError

DESKTOP = {
    "mcpServers": {
        "memory": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"], "env": {"LEVEL": "1"}},
        "off": {"command": "npx", "disabled": True},
        "remote": {"url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${env:REMOTE_TOKEN}"}},
    }
}
VSCODE = {
    "inputs": [],
    "servers": {"files": {"type": "stdio", "command": "mcp-files", "args": ["${workspaceFolder}/data"]}},
}


def write(folder, document, name="mcp.json"):
    path = folder / name
    path.write_text(json.dumps(document))
    return path


def test_servers_of_claude_desktop_and_cursor(tmp_path):
    memory, remote = read_client_file(write(tmp_path, DESKTOP))
    assert (memory.name, memory.command) == ("memory", ["npx", "-y", "@modelcontextprotocol/server-memory"])
    assert memory.env == {"LEVEL": "1"}
    assert (remote.url, remote.headers) == ("https://example.org/mcp", {"Authorization": "Bearer ${REMOTE_TOKEN}"})


def test_servers_of_vs_code_have_the_workspace_of_each_session(tmp_path):
    (files,) = read_client_file(write(tmp_path, VSCODE))
    assert files.command == ["mcp-files", "{workspace}/data"]


def test_a_path_is_an_entry_a_reference_and_a_configuration(tmp_path, monkeypatch):
    path = write(tmp_path, DESKTOP)
    entries = expand_settings(EnvironmentSettings.model_validate({"mcp": str(path)}))
    assert [entry.mcp.name for entry in entries] == ["memory", "remote"]
    assert find_named_entries(str(path)) == entries
    assert find_named_entries(f"{path}:memory") == entries[:1]
    (one,) = expand_settings(EnvironmentSettings.model_validate({"mcp": {"file": str(path), "name": "remote"}}))
    assert one == entries[1]
    monkeypatch.chdir(tmp_path)
    config = load_config(path, ["sample.count=40"])
    assert (config.name, config.sample.count, list(config.environments)) == ("mcp", 40, entries)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"command": "a", "env": {"API_KEY": "value"}}, r"API_KEY holds a secret, .* write \$\{env:API_KEY\}"),
        ({"command": "a", "args": ["${input:key}"]}, "the client asks for 'key'"),
        ({"url": "https://example.org/sse", "type": "sse"}, "SSE transport"),
    ],
    ids=["secret", "input", "sse"],
)
def test_what_cannot_be_used_says_what_to_do(tmp_path, entry, says):
    with pytest.raises(InputError, match=says):
        read_client_file(write(tmp_path, {"mcpServers": {"one": entry}}))


def test_a_file_without_servers_and_a_wrong_name_are_refused(tmp_path):
    with pytest.raises(InputError, match="lists no MCP servers"):
        read_client_file(write(tmp_path, {"mcpServers": {}}))
    with pytest.raises(InputError, match="has no server 'x'; it has memory, off, remote"):
        read_client_file(write(tmp_path, DESKTOP), "x")
