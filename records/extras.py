"""The command that installs what is missing."""

import re

_REQUIREMENT = re.compile(r"(?P<requirement>[^;]+?)\s*;.*\bextra\s*==\s*['\"](?P<extra>[^'\"]+)['\"]")


def install_command(extra: str) -> str:
    """Return the command that installs an optional dependency group (extra).

    It names the requirements themselves, so it works for an installation from a checkout, from a wheel or from an
    index alike. Without the distribution's metadata it is the command for a checkout.
    """
    from importlib import metadata

    try:
        lines = metadata.requires("trajsmith") or []
    except metadata.PackageNotFoundError:
        lines = []
    matches = (_REQUIREMENT.fullmatch(line) for line in lines)
    needed = [match["requirement"] for match in matches if match and match["extra"] == extra]
    return "pip install " + (" ".join(f"'{one}'" for one in needed) or f"-e '.[{extra}]'")
