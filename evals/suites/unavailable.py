"""Benchmarks that cannot be played here, each with what is missing."""

UNAVAILABLE = {
    "acebench": "no package holds it, and no suite here reads its repository (ACEBench on GitHub)",
    "mcp_universe": "its tasks ask live services (maps, GitHub, finance, browser) with accounts and keys of your own; "
    "its package mcpuniverse plays them",
    "mcpmark": "its tasks need accounts and servers of your own (Notion, GitHub, PostgreSQL, a browser); its "
    "repository eval-sys/mcpmark plays them",
    "mcp_atlas": "its tasks ask 36 live MCP servers with keys of your own, and no package holds them",
}
"""Name to the reason."""
