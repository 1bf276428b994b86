"""Environments without a model: from an OpenAPI document, a tool list or tables to a native environment."""

from trajsmith.envgen.generate.blueprint import (
    Blueprint,
    BlueprintSource,
    Entity,
    SkippedItem,
    TableColumn,
    ToolBlueprint,
)
from trajsmith.envgen.generate.pipeline import GenerationResult, generate_environment

__all__ = [
    "Blueprint",
    "BlueprintSource",
    "Entity",
    "GenerationResult",
    "SkippedItem",
    "TableColumn",
    "ToolBlueprint",
    "generate_environment",
]
