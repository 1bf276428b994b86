"""Public MCP servers that no configuration describes: from a client's file to accepted rows, by one run each."""

import json
from importlib.metadata import version
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / ".integrations/mcp_servers"
pytestmark = pytest.mark.skipif(
    not (FOLDER.parent / ".mcp_servers").exists(), reason="the MCP servers are not installed: make integrations"
)
SERVERS = {
    "calculator": ("mcp-server-calculator/bin/mcp-server-calculator", []),
    "everything": ("node_modules/.bin/mcp-server-everything", []),
    "finamatik": ("finamatik-ops-mcp/bin/finamatik-ops-mcp", []),
    "memo": ("memo-mcp/bin/memo-mcp", ["serve"]),
    "sqlite": ("mcp-server-sqlite/bin/mcp-server-sqlite", ["--db-path", "${workspaceFolder}/data.db"]),
    "time": ("mcp-server-time/bin/mcp-server-time", []),
}


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", SERVERS)
def test_a_run_of_a_clients_file_gives_rows(name, tmp_path, monkeypatch, checked, full):
    import trajsmith

    program, arguments = SERVERS[name]
    entry = {"command": str(FOLDER / program), "args": arguments}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {name: entry}}))
    monkeypatch.chdir(tmp_path)
    chains, wanted = (60, 40) if full else (16, 8)
    run = trajsmith.run("mcp.json", overrides={"sample.count": chains})
    accepted = sum(verdict.accepted for verdict in run.verdicts)
    server = next(iter(run.specs.values())).source.rpartition("(")[2].rstrip(")")
    checked(
        "mcp.json",
        f"{server}, trajsmith {version('trajsmith')}",
        f"rows accepted of {chains}",
        min(accepted, wanted),
        wanted,
    )
