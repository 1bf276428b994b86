"""Environments from recordings: tables, tools and rules are inferred from calls and their results."""

from trajsmith.envgen.traces.pipeline import ClonedTool, CloneReport, CloneResult, describe_tool, generate_clone

__all__ = ["CloneReport", "CloneResult", "ClonedTool", "describe_tool", "generate_clone"]
