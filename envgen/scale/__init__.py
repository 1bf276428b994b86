"""Many environments from many tool lists without a model: selection, generation in parallel, catalogue."""

from trajsmith.envgen.scale.catalogue import CatalogueEntry, render_catalogue, write_catalogue
from trajsmith.envgen.scale.runner import MassPlan, MassResult, generate_environments
from trajsmith.envgen.scale.selection import Selection, SourceRejection, select_services

__all__ = [
    "CatalogueEntry",
    "MassPlan",
    "MassResult",
    "Selection",
    "SourceRejection",
    "generate_environments",
    "render_catalogue",
    "select_services",
    "write_catalogue",
]
