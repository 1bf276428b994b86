"""What the tests of the command line share."""

import sys
from types import SimpleNamespace

import pytest

from trajsmith.cli import app


@pytest.fixture
def trajsmith(monkeypatch, capsys):
    """Run a command in this process as the console script does; gives exit code, standard output and standard error."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["trajsmith", *map(str, arguments)])
        capsys.readouterr()
        code = 0
        try:
            app.main()
        except SystemExit as stop:
            code = stop.code or 0
        said = capsys.readouterr()
        return SimpleNamespace(code=code, out=said.out, err=said.err)

    return call
