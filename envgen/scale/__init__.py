"""Many environments from many tool lists without a model: selection, generation in parallel, catalogue, splits."""

from trajsmith.envgen.scale.catalogue import CatalogueEntry, render_catalogue, write_catalogue
from trajsmith.envgen.scale.documents import SourceRejection, read_documents
from trajsmith.envgen.scale.runner import MassPlan, MassResult, generate_environments
from trajsmith.envgen.scale.selection import Selection, select_services
from trajsmith.envgen.scale.splits import Split, read_environments, split_environments, write_split

__all__ = [
    "CatalogueEntry",
    "MassPlan",
    "MassResult",
    "Selection",
    "SourceRejection",
    "Split",
    "generate_environments",
    "read_documents",
    "read_environments",
    "render_catalogue",
    "select_services",
    "split_environments",
    "write_catalogue",
    "write_split",
]
