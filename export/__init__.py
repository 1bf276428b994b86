"""From accepted trajectories to a dataset with its card, and the report that shows how it came about."""

from trajsmith.export._templates import render_page
from trajsmith.export.card import build_card
from trajsmith.export.conversation_pages import INDEX, ConversationBrowser, find_group, write_overview
from trajsmith.export.dataset import COLUMNS, DatasetWriter, build_dataset_features
from trajsmith.export.formats import FORMATS, ExportItem, Format, FormatName, FormatSettings
from trajsmith.export.gallery import serialize_entry
from trajsmith.export.history import find_context_messages
from trajsmith.export.manifest import ENVELOPE, MANIFEST, check_manifest, check_signature, write_manifest
from trajsmith.export.multi_format import FormatRows, FormatTargets, MultiFormatWriter, WrittenRows
from trajsmith.export.plots import build_plots
from trajsmith.export.report import VARIETY_SAMPLE, DialogueFaults, ReportBuilder, build_report
from trajsmith.export.report_counts import ReportCounts, list_agent_tools
from trajsmith.export.rows import build_row
from trajsmith.export.splits import SPLITS, SplitSettings
from trajsmith.export.statistics import Distribution, Statistics, build_funnel_steps, compute_tool_coverage

__all__ = [
    "COLUMNS",
    "ENVELOPE",
    "FORMATS",
    "INDEX",
    "MANIFEST",
    "SPLITS",
    "VARIETY_SAMPLE",
    "ConversationBrowser",
    "DatasetWriter",
    "DialogueFaults",
    "Distribution",
    "ExportItem",
    "Format",
    "FormatName",
    "FormatRows",
    "FormatSettings",
    "FormatTargets",
    "MultiFormatWriter",
    "ReportBuilder",
    "ReportCounts",
    "SplitSettings",
    "Statistics",
    "WrittenRows",
    "build_card",
    "build_dataset_features",
    "build_funnel_steps",
    "build_plots",
    "build_report",
    "build_row",
    "check_manifest",
    "check_signature",
    "compute_tool_coverage",
    "find_context_messages",
    "find_group",
    "list_agent_tools",
    "render_page",
    "serialize_entry",
    "write_manifest",
    "write_overview",
]
