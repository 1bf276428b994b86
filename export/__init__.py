"""From accepted trajectories to a dataset with its card, and the report that shows how it came about."""

from export.browse import Browser
from export.card import build_card
from export.dataset import COLUMNS, DatasetWriter, features
from export.formats import FormatSettings, all_formats, format_named
from export.matrix import Matrix
from export.plots import build_plots
from export.report import Report, build_report
from export.rows import to_row
from export.splits import SPLITS, SplitSettings
from export.statistics import Distribution, Statistics, funnel_steps, tool_coverage

__all__ = [
    "COLUMNS",
    "SPLITS",
    "Browser",
    "DatasetWriter",
    "Distribution",
    "FormatSettings",
    "Matrix",
    "Report",
    "SplitSettings",
    "Statistics",
    "all_formats",
    "build_card",
    "build_plots",
    "build_report",
    "features",
    "format_named",
    "funnel_steps",
    "to_row",
    "tool_coverage",
]
