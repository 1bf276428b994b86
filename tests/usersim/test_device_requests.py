"""Requests for steps on the user's own device: what they are good for is the tool's own purpose, or is not said."""

import random
from functools import partial
from types import SimpleNamespace

import pytest

from trajsmith.environments import ToolResult
from trajsmith.environments.library import ENVIRONMENTS, get_phrases_path
from trajsmith.phrasing import Phrasebook, ToolPhrases, Wording, load_phrasebook
from trajsmith.phrasing.voices import load_voices
from trajsmith.records import GoldCall, JsonObject, ToolSpec
from trajsmith.usersim import ScriptedAgent, ScriptedUser
from trajsmith.usersim.announcements import render_call_phrase

TOOL = ToolSpec(server="line", name="read_sim", description="Read the SIM.", input_schema={"type": "object"})


@pytest.mark.parametrize("purpose", ["", "get the right SIM"])
@pytest.mark.parametrize("style", load_voices().agents)
def test_a_request_gives_the_purpose_of_its_tool(style: str, purpose: str) -> None:
    phrases = ToolPhrases(purpose=purpose, request=["read out the number"])
    book = Phrasebook(tools={"read_sim": phrases})
    texts = set()
    for seed in range(60):
        agent = SimpleNamespace(
            wording=Wording(book, [TOOL]), voice=load_voices().agents[style], rng=random.Random(seed), frames=set(),
        )  # fmt: skip
        texts.add(ScriptedAgent._request(agent, GoldCall(tool="read_sim", arguments={}, provenance={}, effect="read")))
    assert all("read out the number" in text and "{" not in text for text in texts)
    assert not [text for text in texts if "see what's wrong" in text]
    told = [text for text in texts if text.startswith("To get the right SIM, could you")]
    assert bool(told) is bool(purpose and style == "explanatory")


@pytest.mark.parametrize(
    ("arguments", "request_text"),
    [
        ({"line": "blue"}, "set up the line blue"),
        ({"line": "blue", "speed": 3}, "set the line blue to 3"),
        ({"speed": 3}, "read the SIM"),
    ],
)
def test_a_request_without_words_of_its_own_names_what_it_is_about(arguments: JsonObject, request_text: str) -> None:
    asks = ["set it up", "set up the line {line}", "set the line {line} to {speed}", "call the line {line} {name}"]
    if "line" not in arguments:
        asks = []
    schema = {"type": "object", "properties": {"line": {"type": "string"}, "speed": {"type": "integer"}}}
    tool = TOOL.model_copy(update={"input_schema": schema})
    wording = Wording(Phrasebook(tools={"read_sim": ToolPhrases(ask=asks)}), [tool])
    call = GoldCall(tool="read_sim", arguments=arguments, provenance={}, effect="write", actor="user")
    assert {render_call_phrase(call, "request", wording, random.Random(seed)) for seed in range(20)} == {request_text}


def test_every_tool_of_a_user_says_its_purpose() -> None:
    cls = ENVIRONMENTS.get("mobile_care")
    book = load_phrasebook(get_phrases_path(cls))
    tools = [tool.name for tool in cls.describe().tools if tool.actor == "user"]
    assert tools
    assert [name for name in tools if not book.tools[name].purpose] == []


@pytest.mark.parametrize(("style", "lower"), [("casual", True), ("plain", False)])
async def test_what_a_device_shows_is_told_as_the_user_speaks(style: str, lower: bool) -> None:
    book = Phrasebook(tools={"read_sim": ToolPhrases(report=["The SIM shows {out.number} and Tidewell."])})
    call = GoldCall(tool="read_sim", arguments={}, provenance={}, effect="read")
    user = SimpleNamespace(
        wording=Wording(book, [TOOL]), voice=load_voices().users[style], rng=random.Random(4), known={}, slipped=set(),
        last_calls=[call], task=SimpleNamespace(gold_calls=[call]),
    )  # fmt: skip
    user._report = partial(ScriptedUser._report, user)
    user._type = partial(ScriptedUser._type, user)
    told = await ScriptedUser.report(user, [], [ToolResult({"number": "AB-12"})])
    assert "AB-12" in told, "a code stays letter by letter"
    assert (told.replace("AB-12", "").islower(), "The SIM" in told) == (lower, not lower)
