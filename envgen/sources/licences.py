"""What a folder says of the licence of what lies in it."""

import re
from pathlib import Path

LICENCE_FILES = ("LICENSE", "LICENCE", "LICENSE.txt", "LICENCE.txt", "LICENSE.md", "LICENCE.md", "COPYING")
_KNOWN = (
    (r"apache license.{0,40}version 2\.0", "Apache-2.0"),
    (r"mit license|permission is hereby granted, free of charge", "MIT"),
    (r"gnu affero general public license.{0,40}version 3", "AGPL-3.0"),
    (r"gnu lesser general public license.{0,40}version 3", "LGPL-3.0"),
    (r"gnu general public license.{0,40}version 3", "GPL-3.0"),
    (r"gnu general public license.{0,40}version 2", "GPL-2.0"),
    (r"mozilla public license.{0,20}2\.0", "MPL-2.0"),
    (r"redistribution and use in source and binary forms.{0,1200}neither the name", "BSD-3-Clause"),
    (r"redistribution and use in source and binary forms", "BSD-2-Clause"),
    (r"cc0 1\.0", "CC0-1.0"),
    (r"attribution-sharealike 4\.0|cc[ -]by[ -]sa 4\.0", "CC-BY-SA-4.0"),
    (r"attribution-noncommercial 4\.0|cc[ -]by[ -]nc 4\.0", "CC-BY-NC-4.0"),
    (r"attribution 4\.0 international|cc[ -]by 4\.0", "CC-BY-4.0"),
)
_READ = 4000
"""Letters of a licence's text that are looked at."""


def find_licence(folder: Path) -> str | None:
    """Return the licence that a file in a folder states: its SPDX name, else its first line; None without a file."""
    file = next((folder / name for name in LICENCE_FILES if (folder / name).is_file()), None)
    if file is None:
        return None
    return identify_licence(file.read_text(encoding="utf-8", errors="replace")[:_READ])


def identify_licence(text: str) -> str | None:
    """Return the short name of a licence, from its text."""
    flat = " ".join(text.lower().split())
    known = next((name for pattern, name in _KNOWN if re.search(pattern, flat)), None)
    first = next((line.strip() for line in text.splitlines() if line.strip()), None)
    return known or (first[:80] if first else None)
