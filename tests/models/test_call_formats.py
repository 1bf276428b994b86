"""Tool calls in the text of models: each family's own way, whole, several, cut off and wrong."""

import itertools
import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajsmith.models import function_tool
from trajsmith.models.call_formats import FORMATS, find_call_format, split_calls, split_reasoning

TOOL = function_tool(
    "book_room",
    "Book a room.",
    {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "nights": {"type": "integer"},
            "extras": {"type": "array", "items": {"type": "string"}},
            "guest": {"anyOf": [{"type": "object"}, {"type": "null"}]},
            "code": {"type": ["string", "null"]},
            "late": {"type": "boolean"},
        },
    },
)
ARGUMENTS = {
    "name": "007", "nights": 3, "extras": ["tea", "a {b} ]"], "guest": {"age": 4.5}, "code": None, "late": False,
}  # fmt: skip
TEXTS = {key: value if isinstance(value, str) else json.dumps(value) for key, value in ARGUMENTS.items()}
BARE = json.dumps(ARGUMENTS)
HERMES = f'<tool_call>\n{{"name": "book_room", "arguments": {BARE}}}\n</tool_call>'
CODER = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in TEXTS.items())
CODER = f"<tool_call>\n<function=book_room>\n{CODER}</function>\n</tool_call>"
GLM = "".join(f"<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n" for key, value in TEXTS.items())
GLM = f"<tool_call>book_room\n{GLM}</tool_call>"
LLAMA = f'{{"name": "book_room", "parameters": {BARE}}}'
MISTRAL = f'{{"name": "book_room", "arguments": {BARE}, "id": "abcdefghi"}}'
DEEPSEEK = f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>book_room\n```json\n{BARE}\n```<｜tool▁call▁end｜>"
DEEPSEEK_31 = f"<｜tool▁call▁begin｜>book_room<｜tool▁sep｜>{BARE}<｜tool▁call▁end｜>"
BEGIN, END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
CALL, ENDED, SEP = "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>"

SAMPLES = {
    "hermes": ("hermes", HERMES, 1),
    "hermes, two": ("hermes", f"{HERMES}\n{HERMES}", 2),
    "qwen3-coder": ("qwen3_coder", CODER, 1),
    "qwen3-coder, two": ("qwen3_coder", f"{CODER}\n{CODER}", 2),
    "glm": ("glm", GLM, 1),
    "glm, two": ("glm", f"{GLM}\n{GLM}", 2),
    "llama": ("llama3_json", LLAMA, 1),
    "llama, with its tag": ("llama3_json", f"<|python_tag|>{LLAMA}", 1),
    "llama, two": ("llama3_json", f"{LLAMA}; {LLAMA}", 2),
    "mistral, a list": ("mistral", f"[TOOL_CALLS] [{MISTRAL}, {MISTRAL}]", 2),
    "mistral, names": ("mistral", f"[TOOL_CALLS]book_room[ARGS]{BARE}[TOOL_CALLS]book_room{BARE}", 2),
    "mistral, an id": ("mistral", f"[TOOL_CALLS]book_room[CALL_ID]a1b2c3d4e[ARGS]{BARE}", 1),
    "deepseek": ("deepseek", f"{BEGIN}{DEEPSEEK}{END}", 1),
    "deepseek, two": ("deepseek", f"{BEGIN}{DEEPSEEK}\n{DEEPSEEK}{END}", 2),
    "deepseek 3.1": ("deepseek", f"{BEGIN}{DEEPSEEK_31}{DEEPSEEK_31}{END}", 2),
}


def named(name):
    return next(form for form in FORMATS if form.name == name)


@pytest.mark.parametrize(("name", "text", "count"), SAMPLES.values(), ids=list(SAMPLES))
def test_calls_are_read_with_the_types_of_their_schemas(name, text, count):
    content, calls, malformed = split_calls(text, named(name), [TOOL])
    assert (content, malformed) == ("", [])
    assert [(call.function.name, call.function.arguments) for call in calls] == [("book_room", ARGUMENTS)] * count
    assert len({call.id for call in calls}) == count


@pytest.mark.parametrize(
    ("name", "text", "count"), [one for one in SAMPLES.values() if one[0] != "llama3_json"], ids=lambda value: None
)
def test_text_before_calls_stays(name, text, count):
    content, calls, _ = split_calls(f"One moment.\n{text}", named(name), [TOOL])
    assert (content, len(calls)) == ("One moment.", count)


@pytest.mark.parametrize(("name", "text", "count"), SAMPLES.values(), ids=list(SAMPLES))
def test_a_call_that_was_cut_off_is_malformed(name, text, count):
    cut = text[: text.rindex('"tea"') + 2]
    _, calls, malformed = split_calls(cut, named(name), [TOOL])
    whole = 0 if "list" in name or "[{" in text or name == "llama3_json" else count - 1
    assert (len(calls), len(malformed)) == (whole, 1)
    assert malformed[0].error and malformed[0].text


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
@pytest.mark.parametrize("text", [" a < b ", "", "{}", "No call here [1]."])
def test_text_without_calls_stays(form, text):
    assert split_calls(text, form, [TOOL]) == (text.strip(), [], [])


def coder(inner):
    return f"<tool_call>\n<function=book_room>{inner}</function>\n</tool_call>"


def glm(inner):
    return f"<tool_call>book_room\n{inner}</tool_call>"


NAME, NIGHTS = "<parameter=name>\nA1\n</parameter>\n", "<parameter=nights>\n3\n</parameter>\n"
KEY, VALUE = "<arg_key>name</arg_key>", "<arg_value>A1</arg_value>"
WRONG = {
    "coder, two functions": ("qwen3_coder", coder(f"{NAME}</function>\n<function=book_room>{NIGHTS}")),
    "coder, an open function": ("qwen3_coder", coder(f"{NAME}<function=book_room>{NIGHTS}")),
    "coder, an open parameter": ("qwen3_coder", coder(f"{NAME}<parameter=nights>3")),
    "coder, an open parameter first": ("qwen3_coder", coder(f"<parameter=nights>3\n{NAME}")),
    "coder, twice": ("qwen3_coder", coder(f"{NAME}{NIGHTS}{NAME}")),
    "coder, an open name": ("qwen3_coder", coder("<parameter=name")),
    "coder, JSON": ("qwen3_coder", coder(BARE)),
    "coder, text between": ("qwen3_coder", coder(f"{NAME}nights=3\n{NIGHTS}")),
    "glm, twice": ("glm", glm(f"{KEY}{VALUE}{KEY}{VALUE}")),
    "glm, no value": ("glm", glm(f"{KEY}{KEY}{VALUE}")),
    "glm, an open value": ("glm", glm(f"{KEY}<arg_value>A1{KEY}{VALUE}")),
    "glm, text between": ("glm", glm(f"{KEY}{VALUE}A2{KEY.replace('name', 'code')}{VALUE}")),
    "glm, two values": ("glm", glm(f"{KEY}{VALUE}{VALUE}")),
    "hermes, no arguments": ("hermes", '<tool_call>{"name": "book_room"}</tool_call>'),
    "hermes, a list": ("hermes", '<tool_call>{"name": "book_room", "arguments": []}</tool_call>'),
    "hermes, two words": ("hermes", '<tool_call>{"name": "book room", "arguments": {}}</tool_call>'),
    "mistral, no arguments": ("mistral", '[TOOL_CALLS][{"name": "book_room"}]'),
    "mistral, no call": ("mistral", "[TOOL_CALLS][]"),
    "llama, text behind": ("llama3_json", f"{LLAMA} Done."),
    "deepseek, no arguments": ("deepseek", f"{CALL}book_room{SEP}"),
    "deepseek, an empty block": ("deepseek", f"{CALL}function{SEP}book_room\n```json\n```{ENDED}"),
    "deepseek, two words": ("deepseek", f"{CALL}book room{SEP}{{}}{ENDED}"),
    "glm, an answer": ("glm", "<tool_call>Sure, I will search</tool_call>"),
}


@pytest.mark.parametrize(("name", "text"), WRONG.values(), ids=list(WRONG))
def test_a_call_that_was_not_written_so_is_malformed(name, text):
    _, calls, malformed = split_calls(text, named(name), [TOOL])
    assert (calls, len(malformed)) == ([], 1)


@pytest.mark.parametrize("text", ['{"name": "Bob", "age": 3}', '{"name": "Bob"}', '{"name": "a"}; {"name": "b"}'])
def test_an_answer_in_json_is_no_call_of_llama(text):
    assert split_calls(text, named("llama3_json"), [TOOL]) == (text, [], [])


@pytest.mark.parametrize("arguments", ["null", '""', "{}"])
def test_arguments_may_be_empty(arguments):
    _, calls, malformed = split_calls(
        f'<tool_call>{{"name": "book_room", "arguments": {arguments}}}</tool_call>', named("hermes"), [TOOL]
    )
    assert ([call.function.arguments for call in calls], malformed) == ([{}], [])


MARKS = '};{ <tool_call></tool_call> [TOOL_CALLS] [ARGS] ``` \\"'
MARKED = json.dumps({"name": MARKS})


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        ("hermes", f'<tool_call>\n{{"name": "book_room", "arguments": {MARKED}}}\n</tool_call>\n', 2),
        ("llama3_json", f'{{"name": "book_room", "parameters": {MARKED}}}', 1),
        ("llama3_json", f'{{"name": "book_room", "parameters": {MARKED}}} ;\n{LLAMA}', 1),
        ("mistral", f'[TOOL_CALLS] [{{"name": "book_room", "arguments": {MARKED}}}]', 1),
        ("mistral", f"[TOOL_CALLS]book_room[ARGS]{MARKED}", 2),
        ("mistral", f"[TOOL_CALLS]book_room[CALL_ID]a1b2c3d4e[ARGS]{MARKED}", 2),
        ("deepseek", f"{CALL}function{SEP}book_room\n```json\n{MARKED}\n```{ENDED}", 2),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isalnum() else "",
)
def test_marks_inside_a_value_split_nothing(name, text, count):
    content, calls, malformed = split_calls(text * count, named(name), [TOOL])
    assert (content, malformed) == ("", [])
    assert [call.function.arguments for call in calls[:count]] == [{"name": MARKS}] * count


@given(st.sampled_from(FORMATS), st.sampled_from(list(SAMPLES.values())), st.data())
def test_whatever_is_written_is_text_or_calls_or_malformed(form, sample, data):
    written = sample[1]
    start = data.draw(st.integers(0, len(written)))
    stop = data.draw(st.integers(start, len(written)))
    text = written[:start] + data.draw(st.text(max_size=3)) + written[stop:]
    _, calls, malformed = split_calls(text, form, [TOOL])
    assert all(call.model_dump_json() for call in (*calls, *malformed))


PIECES = {
    "hermes": ("<tool_call>", "</tool_call>", "{", "[", '"', "\\", "\n", '{"name": "f", "arguments": {}}'),
    "qwen3_coder": (
        "<tool_call>",
        "</tool_call>",
        "<function=f>",
        "</function>",
        "<parameter=a>",
        "</parameter>",
        "\n",
    ),
    "glm": ("<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "\n"),
    "llama3_json": ('{"name":', "<|python_tag|>", "{", "}", "};{", '"', "; ", '{"name": "f", "parameters": {}};'),
    "mistral": ("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]", "f", "{", "[", '"', " ", '{"name": "f", "arguments": {}}'),
    "deepseek": (BEGIN, END, CALL, ENDED, SEP, "f", "```json", "```", "{", '"', "\n", "function"),
}


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_a_long_message_is_read_at_once(form):
    pieces = PIECES[form.name]
    opening = CALL if form.name == "deepseek" else pieces[0]
    lengths = {"".join(pieces): 48_000, "".join(reversed(pieces)): 48_000}
    for count, length in ((3, 12_000), (2, 48_000), (1, 48_000)):
        lengths |= {"".join(part): length for part in itertools.product(pieces, repeat=count)}
    for filler, length in lengths.items():
        for start in ("", opening):
            text = start + filler * (length // len(filler)) + "x"
            began = time.process_time()
            split_calls(text, form, [TOOL])
            assert time.process_time() - began < 3, (start, filler)


@pytest.mark.parametrize(
    ("text", "reasoning", "rest"),
    [
        ("<think>\na\n</think>\n\nb", "a", "b"),
        ("a</think>b", "a", "b"),
        ("<think>\n\n</think>\n\nb", "", "b"),
        ("just text", "", "just text"),
    ],
)
def test_reasoning_is_split_off(text, reasoning, rest):
    assert split_reasoning(text) == (reasoning, rest)


# Chat templates of the families, as TRL has them


def build_tokenizer(template, end):
    from byte_tokenizer import build_tokenizer as build

    tokenizer = build()
    tokenizer.chat_template = template
    tokenizer.add_special_tokens({"eos_token": end})
    tokenizer.bos_token = "<s>"
    return tokenizer


FAMILIES = {
    "qwen3": ("hermes", "<|im_end|>", 2),
    "qwen2_5": ("hermes", "<|im_end|>", 2),
    "qwen3_6": ("qwen3_coder", "<|im_end|>", 2),
    "glm4moe": ("glm", "<|user|>", 2),
    "llama3_1": ("llama3_json", "<|eot_id|>", 1),
    "llama3_2": ("llama3_json", "<|eot_id|>", 1),
    "deepseekv3": ("deepseek", "<｜end▁of▁sentence｜>", 2),
}


@pytest.mark.train
@pytest.mark.parametrize("changed", [False, True], ids=["as it is", "changed"])
@pytest.mark.parametrize("family", FAMILIES)
def test_what_a_chat_template_renders_is_read_back(family, changed, monkeypatch):
    pytest.importorskip("torch")
    import trl.chat_template_utils

    from trajsmith.models.transformers_engine import add_response_template, parse_generated_ids

    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "integrations"))
    name, end, count = FAMILIES[family]
    template = (Path(trl.chat_template_utils.__file__).parent / "chat_templates" / f"{family}.jinja").read_text()
    template += "{# changed #}" if changed else ""
    assert find_call_format(template).name == name
    tokenizer = add_response_template(build_tokenizer(template, end), family)
    assert (getattr(tokenizer, "response_template", None) is None) is (changed or family == "deepseekv3")
    arguments = json.dumps(ARGUMENTS) if family == "deepseekv3" else ARGUMENTS
    calls = [{"type": "function", "function": {"name": "book_room", "arguments": arguments}}] * count
    asked = [{"role": "user", "content": "Book it."}]
    text = "One moment." if family == "deepseekv3" else ""
    said = {"role": "assistant", "content": text, "tool_calls": calls}
    prompt = tokenizer.apply_chat_template(asked, tools=[TOOL], add_generation_prompt=True, tokenize=False)
    whole = tokenizer.apply_chat_template([*asked, said], tools=[TOOL], tokenize=False)
    common = next((at for at, (a, b) in enumerate(zip(prompt, whole, strict=False)) if a != b), len(prompt))
    generated = whole[common:].removesuffix("\n").removesuffix(end) + end
    prefix, ids = (tokenizer.encode(part, add_special_tokens=False) for part in (prompt, generated))
    reply = parse_generated_ids(tokenizer, prefix, ids, [TOOL])
    assert [call.function.arguments for call in reply.message.tool_calls] == [ARGUMENTS] * count
    assert (reply.malformed, reply.finish_reason, reply.message.content) == ((), "tool_calls", text)
    cut = parse_generated_ids(tokenizer, prefix, ids[: -len(ids) // 3], [TOOL])
    assert cut.finish_reason == "length" and cut.malformed


@pytest.mark.train
@pytest.mark.parametrize("family", ["qwen3", "qwen3_6", "glm4moe"])
def test_a_call_that_was_not_written_so_is_malformed_in_transformers(family, monkeypatch):
    pytest.importorskip("torch")
    import trl.chat_template_utils

    from trajsmith.models.transformers_engine import add_response_template, parse_generated_ids

    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "integrations"))
    name, end, _ = FAMILIES[family]
    template = (Path(trl.chat_template_utils.__file__).parent / "chat_templates" / f"{family}.jinja").read_text()
    tokenizer = add_response_template(build_tokenizer(template, end), family)
    asked = [{"role": "user", "content": "Book it."}]
    prompt = tokenizer.apply_chat_template(asked, tools=[TOOL], add_generation_prompt=True, tokenize=False)
    thought = "</think>\n\n" if prompt.rstrip().endswith("<think>") else ""
    for text in (text for form, text in WRONG.values() if form == name):
        written = (tokenizer.encode(part, add_special_tokens=False) for part in (prompt, thought + text + end))
        reply = parse_generated_ids(tokenizer, *written, [TOOL])
        assert (reply.message.tool_calls, len(reply.malformed)) == (None, 1), text
