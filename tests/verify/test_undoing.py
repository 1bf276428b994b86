"""The call that undoes another one is found by trying, and only with values that the agent has seen."""

from functools import partial

import desk
import pytest

from trajsmith.records import FunctionCall, JsonObject
from trajsmith.verify.undoing import find_undoing_call

Call = tuple[str, JsonObject]
LIST: Call = ("list_notes", {"limit": 3})


@pytest.mark.parametrize(
    ("before", "wrong", "undoing"),
    [
        pytest.param([], ("archive", {"note_id": "N3"}), ("unarchive", {"note_id": "N3"}), id="opposite"),
        pytest.param(
            [LIST],
            ("paint", {"note_id": "N3", "color": "pink"}),
            ("paint", {"note_id": "N3", "color": "red"}),
            id="old-value",
        ),
        pytest.param([], ("paint", {"note_id": "N3", "color": "pink"}), None, id="old-value-never-shown"),
        pytest.param([LIST], ("paint", {"note_id": "N3", "color": "red"}), None, id="nothing-changed"),
        pytest.param([LIST], ("add_note", {"title": "x", "color": "red"}), None, id="no-tool-does-it"),
        pytest.param([LIST], ("archive", {"note_id": "N77"}), None, id="refused"),
    ],
)
async def test_undoing_calls(before: list[Call], wrong: Call, undoing: Call | None) -> None:
    task = await desk.make_task()
    lines = [[*(("", [call]) for call in (*before, wrong)), ("Done.", [])], [("Nothing.", [])]]
    play = await desk.played(task, lines)
    message = play.events[len(before)].message
    find = partial(find_undoing_call, play, message, desk.STATE, desk.session(), desk.SPEC.tools, task.masks)
    found = await find()
    assert found == (FunctionCall(name=undoing[0], arguments=undoing[1]) if undoing else None)
    assert await find() == found


async def test_nothing_is_tried_where_nothing_can_be_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    task = await desk.make_task()
    play = await desk.played(task, [[("", [("archive", {"note_id": "N3"})]), ("Done.", [])], [("Nothing.", [])]])
    live = desk.session()
    await live.reset(desk.STATE)
    before = await live.state_hash()
    live.spec = desk.SPEC.model_copy(update={"can_restore": False})
    monkeypatch.setattr(live, "call", None)
    message = play.events[0].message
    assert await find_undoing_call(play, message, desk.STATE, live, desk.SPEC.tools, task.masks) is None
    assert await live.state_hash() == before
