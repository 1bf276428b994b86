"""Environments without a model: from an OpenAPI document, a tool list or tables to a native environment."""

from envgen.generate.blueprint import Blueprint, Column, Entity, LeftOut, Operation, Source
from envgen.generate.making import Made, make

__all__ = ["Blueprint", "Column", "Entity", "LeftOut", "Made", "Operation", "Source", "make"]
