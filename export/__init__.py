"""From accepted trajectories to a dataset with its card, and the report that shows how it came about."""

from export.card import build_card
from export.dataset import COLUMNS, DatasetWriter, features
from export.report import build_report
from export.rows import to_row
from export.statistics import Distribution, Statistics, funnel_steps, tool_coverage

__all__ = [
    "COLUMNS", "DatasetWriter", "Distribution", "Statistics", "build_card", "build_report", "features",
    "funnel_steps", "to_row", "tool_coverage",
]
