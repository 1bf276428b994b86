"""Export formats by name: one file is one format."""

from trajsmith.export.formats._base import FORMATS, ExportItem, Format, FormatName, FormatSettings

__all__ = ["FORMATS", "ExportItem", "Format", "FormatName", "FormatSettings"]
