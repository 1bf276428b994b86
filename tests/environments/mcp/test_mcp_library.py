"""Where another package keeps mcp old, the line says which version is there and how to get the one that is needed."""

from importlib import metadata

import pytest

from trajsmith.environments.mcp_library import require_mcp
from trajsmith.records import InputError


@pytest.mark.parametrize("version", ["1.30.0", "2.0.0", "2.1.1", "2.1rc1", "2", "unknown"])
def test_an_old_version_is_refused_with_the_command(monkeypatch, version):
    monkeypatch.setattr(metadata, "version", lambda name: version)
    with pytest.raises(InputError) as error:
        require_mcp("`trajsmith task serve`")
    assert str(error.value) == (
        f"`trajsmith task serve` needs mcp 2.2 or newer, and mcp {version} is installed: pip install 'mcp>=2.2,<3'"
    )


def test_a_missing_package_is_refused_with_the_command(monkeypatch):
    def miss(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", miss)
    with pytest.raises(InputError, match=r"needs mcp 2\.2 or newer, and the package mcp is missing"):
        require_mcp("the MCP server files")


@pytest.mark.parametrize("version", ["2.2.0", "2.10.0", "3.0.0rc1", "2.2rc1", "2.3.dev0+local"])
def test_newer_versions_pass(monkeypatch, version):
    asked = []

    def answer(name):
        asked.append(name)
        return version

    monkeypatch.setattr(metadata, "version", answer)
    require_mcp("x")
    assert asked == ["mcp"]
