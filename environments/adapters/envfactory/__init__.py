"""Environments in the form of EnvFactory: a FastMCP file, metadata, scenarios."""
