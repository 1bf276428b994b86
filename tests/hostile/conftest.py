"""What the campaigns share: a finished run of which cases take copies."""

import subprocess
import sys
from pathlib import Path

import pytest

CONFIG = (
    "name: tiny\nseed: 1\nenvironments:\n  - {library: bank, states: {small: 1}}\nsample: {count: 4, length: [3, 4]}\n"
)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, made once; cases take copies of it."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "line.yaml").write_text(CONFIG)
    command = [sys.executable, "-m", "trajsmith", "run", folder / "line.yaml", "--run", folder / "run"]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "run"
