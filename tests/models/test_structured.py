"""JSON from models: by response_format, by words, found in prose, repaired with the fault fed back."""

import json
from typing import Literal

import pytest
from chatting import board, request
from pydantic import BaseModel, Field
from running_server import RunningServer

from trajsmith.models import CallableModel, ChatReply
from trajsmith.models.structured import build_strict_schema, complete_structured, narrow_schema, parse_answer
from trajsmith.records import InputError, Message, ModelFault


class Line(BaseModel):
    name: str
    number: int = 1


class Order(BaseModel):
    """An order."""

    kind: Literal["new", "old"]
    lines: list[Line] = Field(min_length=1)
    note: str | None = None


GOOD = {"kind": "new", "lines": [{"name": "tree", "number": 2}], "note": None}

SPY = """
import json

asked = []

def answer(request):
    asked.append(request)
    said = str(request["messages"][0]["content"])
    seen = {"format": request.get("response_format"), "said": request["messages"][-1]["content"]}
    return {"content": json.dumps({"kind": "new", "lines": [{"name": json.dumps(seen), "number": 1}], "note": None})}
"""


@pytest.mark.usefixtures("api")
async def test_a_good_answer_becomes_an_object(language_server, tmp_path):
    async with board(tmp_path, language_server.url) as models:
        order = await complete_structured(
            models.role_model("writer"), request("order", reply={"content": json.dumps(GOOD)}), Order
        )
    assert order == Order(**GOOD)


@pytest.mark.usefixtures("api")
@pytest.mark.parametrize(
    ("refuses", "structured", "native"),
    [((), "auto", True), ((), "native", True), ((), "prompt", False), (("response_format",), "auto", False)],
    ids=["taken", "wanted", "not wanted", "refused"],
)
async def test_the_schema_reaches_the_model(tmp_path, refuses, structured, native):
    (tmp_path / "spy.py").write_text(SPY)
    with RunningServer(script=str(tmp_path / "spy.py"), refuses=refuses) as server:
        async with board(tmp_path, server.url, structured=structured) as models:
            for text in ("one", "two"):
                seen = json.loads(
                    (await complete_structured(models.role_model("writer"), request(text), Order)).lines[0].name
                )
        requests = server.stats()["requests"]
    if native:
        assert seen["format"]["json_schema"]["name"] == "Order"
        assert seen["format"]["json_schema"]["schema"] == build_strict_schema(Order)
        assert seen["said"] == "two"
    else:
        assert seen["format"] is None
        assert seen["said"].startswith("two\n")
        assert json.dumps(build_strict_schema(Order), separators=(",", ":")) in seen["said"]
    assert requests == (3 if refuses else 2)  # a refusal is remembered


@pytest.mark.usefixtures("api")
async def test_a_server_that_must_take_the_format_and_does_not_is_named(tmp_path):
    with RunningServer(refuses=("response_format",)) as server:
        async with board(tmp_path, server.url, structured="native") as models:
            with pytest.raises(InputError, match=r"does not take (response_|text\.)format .*structured: auto"):
                await complete_structured(models.role_model("writer"), request("x"), Order)


@pytest.mark.usefixtures("api")
async def test_a_wrong_answer_goes_back_with_its_fault(tmp_path):
    (tmp_path / "mends.py").write_text(f"""
import json

def answer(request):
    last = request["messages"][-1]["content"]
    if "lines: Field required" in last:
        assert request["messages"][-2]["role"] == "assistant"
        return json.dumps({GOOD!r})
    return '{{"kind": "new"}}'
""")
    with RunningServer(script=str(tmp_path / "mends.py")) as server:
        async with board(tmp_path, server.url) as models:
            assert await complete_structured(models.role_model("writer"), request("mend"), Order) == Order(**GOOD)
        assert server.stats()["requests"] == 2


@pytest.mark.usefixtures("api")
@pytest.mark.parametrize("rounds", [0, 2])
async def test_what_stays_wrong_is_a_fault_with_the_reply(tmp_path, rounds):
    with RunningServer(faults={"bad_schema": 1.0}) as server:
        async with board(tmp_path, server.url) as models:
            with pytest.raises(ModelFault, match=f"no valid Order in {rounds + 1} answers: kind: Field") as caught:
                await complete_structured(models.role_model("writer"), request("hopeless"), Order, rounds=rounds)
        assert server.stats()["requests"] == rounds + 1
    assert caught.value.kind == "bad_reply"
    assert caught.value.reply == '{"surprise": true}'


GOOD_TEXT = json.dumps(GOOD)


@pytest.mark.parametrize(
    "text",
    [
        GOOD_TEXT,
        f"\n {GOOD_TEXT}\n",
        f"Here it is:\n```json\n{GOOD_TEXT}\n```\nAnything else?",
        f"```\n{GOOD_TEXT}\n```",
        f"Sure {{as you wish}}:\n```json\n{GOOD_TEXT}\n```",
        f'First try: ```json\n{{"kind": 1}}\n``` no, better: ```json\n{GOOD_TEXT}\n```',
        f"The answer is {GOOD_TEXT}, I think.",
    ],
    ids=["bare", "spaces", "fenced", "plain fence", "braces before", "second fence", "prose"],
)
def test_the_answer_is_found_in_the_text(text):
    assert parse_answer(text, Order) == Order(**GOOD)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "no JSON in the answer"),
        ("I cannot do that.", "no JSON in the answer"),
        ('{"kind": "new", ', "this is no JSON"),
        ('{"kind": "odd", "lines": [{"name": "a"}]}', "kind"),
        ("[1, 2]", "Order"),
    ],
)
def test_what_is_wrong_with_an_answer_is_said(text, fault):
    with pytest.raises(ValueError, match=fault):
        parse_answer(text, Order)


def test_the_schema_is_closed():
    schema = build_strict_schema(Order)
    assert schema["required"] == ["kind", "lines", "note"]
    assert schema["additionalProperties"] is False
    line = schema["properties"]["lines"]["items"]
    assert line["required"] == ["name", "number"]
    assert "$ref" not in json.dumps(schema), "a weak model gives references back"
    assert "default" not in json.dumps(schema)


def test_a_property_may_be_called_default():
    class Odd(BaseModel):
        default: int
        properties: str = ""

    assert build_strict_schema(Odd)["properties"].keys() == {"default", "properties"}


def test_titles_and_docstrings_of_classes_are_no_part_of_the_schema():
    class Book(BaseModel):
        """Reply schema of a test."""

        title: str = Field(description="As it stands on the cover.")
        description: str

    assert build_strict_schema(Book) == {
        "properties": {
            "title": {"description": "As it stands on the cover.", "type": "string"},
            "description": {"type": "string"},
        },
        "required": ["title", "description"],
        "type": "object",
        "additionalProperties": False,
    }


class Branch(BaseModel):
    name: str
    parts: list["Branch"]


def test_a_schema_that_uses_itself_keeps_its_definitions():
    schema = build_strict_schema(Branch)
    assert schema["$defs"]["Branch"]["required"] == ["name", "parts"]


async def test_a_narrow_schema_lists_what_exists_and_the_class_decides_what_is_accepted():
    schema = narrow_schema(Order, "lines", {"name": ["pen", "cup"], "number": []})
    fields = schema["properties"]["lines"]["items"]["properties"]
    assert fields["name"]["enum"] == ["cup", "pen"]
    assert "enum" not in fields["number"]
    assert "enum" not in json.dumps(build_strict_schema(Order)["properties"]["lines"]), (
        "the shared schema is not changed"
    )
    assert "enum" not in json.dumps(
        narrow_schema(Order, "lines", {"name": map(str, range(1000))})["properties"]["lines"]
    )
    shown = []

    async def reply(request):
        shown.append(request.reply_schema)
        return ChatReply(message=Message(role="assistant", content='{"kind": "new", "lines": [{"name": "a"}]}'))

    answer = await complete_structured(CallableModel("fixed", reply), request("order", reply_schema=schema), Order)
    assert shown == [schema]
    assert answer.lines[0].name == "a"
