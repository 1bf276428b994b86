"""Python functions as tools."""

from typing import Any, Dict, List, Optional  # noqa: UP035 - foreign code writes these

import pytest
from pydantic import BaseModel, Field, ValidationError

from trajsmith.environments.signatures import read_signature
from trajsmith.records import InputError


class Book(BaseModel):
    title: str
    pages: int = 1


def find(
    title: str,
    limit: int = 5,
    author: Optional[str] = None,  # noqa: UP045
    book: Book | None = None,
    schema: Dict[str, Any] = {},  # noqa: B006, UP006
    tags: List[str] = Field(default=["new"], description="Labels"),  # noqa: UP006, B008
) -> dict:
    """Find books.

    On the shelf only.

    Args:
        title (str): What the book is called.
        limit: How many.

    Returns:
        books: those found
    """
    return {}


def test_schema_defaults_and_descriptions():
    signature = read_signature(find, "f")
    assert signature.description == "Find books.\nOn the shelf only."
    properties = signature.input_schema["properties"]
    assert signature.input_schema["required"] == ["title"]
    assert properties["title"] == {"type": "string", "description": "What the book is called."}
    assert properties["limit"] == {"type": "integer", "default": 5, "description": "How many."}
    assert properties["schema"]["type"] == "object"
    assert properties["tags"]["description"] == "Labels"
    assert properties["book"]["anyOf"][0]["properties"]["pages"] == {"type": "integer", "default": 1}
    assert signature.result is None and signature.output_schema is None


def test_arguments_are_converted_to_the_hints():
    parsed = read_signature(find, "f").parse_arguments({"title": "A", "book": {"title": "B"}})
    assert parsed == {
        "title": "A", "limit": 5, "author": None, "book": Book(title="B"), "schema": {}, "tags": ["new"],
    }  # fmt: skip
    with pytest.raises(ValidationError, match="title"):
        read_signature(find, "f").parse_arguments({})


def test_mutable_defaults_are_fresh_each_time():
    signature = read_signature(find, "f")
    first = signature.parse_arguments({"title": "A"})
    first["schema"]["x"] = 1
    first["tags"].append("old")
    assert signature.parse_arguments({"title": "A"})["schema"] == {}
    assert signature.parse_arguments({"title": "A"})["tags"] == ["new"]


@pytest.mark.parametrize(
    ("hint", "output", "text"),
    [
        (dict, None, False),
        (Dict, None, False),  # noqa: UP006
        (str, None, True),
        (Any, None, False),
        (int, {"type": "integer"}, False),
        (List[Book], {"type": "array"}, False),  # noqa: UP006
    ],
)
def test_results(hint, output, text):
    def tool():
        return None

    tool.__annotations__["return"] = hint
    signature = read_signature(tool, "f")
    assert signature.text == text
    if output is None:
        assert signature.output_schema is None
    else:
        assert signature.output_schema["properties"]["result"]["type"] == output["type"]


def test_a_model_as_result_has_its_own_schema():
    def tool() -> Book: ...

    assert read_signature(tool, "f").output_schema["properties"]["title"] == {"type": "string"}


def test_guessed_types():
    def tool(page=1, folder=None, deep=False): ...

    properties = read_signature(tool, "f", guess=True).input_schema["properties"]
    assert properties["page"] == {"type": "integer", "default": 1}
    assert "type" not in properties["folder"]
    assert properties["deep"]["type"] == "boolean"
    assert "type" not in read_signature(tool, "f").input_schema["properties"]["page"]


class Opaque:
    pass


def spread(*values): ...
def keyed(**values): ...
def odd(thing: "Nowhere"): ...  # noqa: F821
def opaque(thing: Opaque): ...


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (spread, "f: parameter *values cannot be given by name"),
        (keyed, "f: parameter **values cannot be given by name"),
        (odd, "f: its type hints cannot be read: NameError"),
        (opaque, "f: its parameters have no JSON Schema"),
    ],
)
def test_functions_that_no_tool_can_be(function, reason):
    with pytest.raises(InputError) as caught:
        read_signature(function, "f")
    assert str(caught.value).startswith(reason)
