"""The scenarios of the bundled environments speak of tools, parameters, fields and slots that exist."""

import pytest

from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.environments.native_source import build_library_source
from trajsmith.grounding import check_scenarios


@pytest.mark.parametrize("name", ENVIRONMENTS.names())
def test_the_scenarios_fit_the_tools(name: str) -> None:
    source = build_library_source(name, {})
    check_scenarios(source.scenarios, ENVIRONMENTS.get(name).describe())
