"""Words about a whole batch speak of fields that its results have: one that they lack is never said."""

import re
from pathlib import Path

import pytest

from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.environments.library import __file__ as library_file
from trajsmith.phrasing.scenarios import load_scenarios

FIELD = re.compile(r"\bout\.(\w+)|attribute='(\w+)'")
NAMES = sorted(path.parent.name for path in Path(library_file).parent.glob("*/scenarios.yaml"))


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_tells_fields_that_its_results_have(name):
    tools = {tool.name: tool for tool in ENVIRONMENTS.get(name).describe().tools}
    book = load_scenarios(Path(library_file).parent / name / "scenarios.yaml")
    for batch in book.batches:
        spoken = " ".join((*batch.done, *batch.opening, *batch.each, *batch.closing))
        fields = {one or other for one, other in FIELD.findall(spoken)}
        schema = str(tools[batch.tool].output_schema)
        assert not [field for field in fields if f"'{field}'" not in schema], f"{batch.tool}: {schema[:400]}"
