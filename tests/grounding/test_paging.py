"""Who wants one thing does not say how many things are to be listed on the way to it."""

import random

import pytest

from trajsmith.grounding.assign import Assigner, AssignmentContext
from trajsmith.grounding.names import is_paging
from trajsmith.grounding.value_source import ValueSource
from trajsmith.phrasing import Phrasebook
from trajsmith.records import ToolSpec

LIST = ToolSpec(
    name="list_bookings",
    description="List bookings.",
    server="inn",
    input_schema={
        "type": "object",
        "properties": {
            "limit": {"type": "integer", "minimum": 1, "maximum": 50},
            "status": {"type": "string", "enum": ["open", "paid"]},
        },
    },
)


@pytest.mark.parametrize("name", ["limit", "page_size", "maxResults", "per_page", "offset", "page"])
def test_names_that_say_how_much_is_shown(name):
    assert is_paging(name)


@pytest.mark.parametrize("name", ["credit", "pageant", "top_speed", "max_price", "result"])
def test_names_that_say_something_else(name):
    assert not is_paging(name)


@pytest.mark.parametrize("lookup", [True, False])
def test_a_limit_is_only_said_of_a_list_that_is_wanted(lookup):
    assigner = Assigner({LIST.name: LIST}, ValueSource({}), Phrasebook(), 1.0)
    plan = assigner.plan(LIST.name, {}, AssignmentContext(), random.Random(1), lookup)
    assert set(plan.optional) == ({"status"} if lookup else {"limit", "status"})
