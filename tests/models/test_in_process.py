"""vLLM in process, with a stand-in for vLLM itself: what goes in, what is made of what comes out."""

import sys
from types import ModuleType, SimpleNamespace

import pytest
from chatting import request

from trajsmith.models import ModelSettings, function_tool
from trajsmith.models.failures import FailedAttempt
from trajsmith.models.vllm_engine import VllmProvider
from trajsmith.records import InputError, RunError

TOOL = function_tool("look_up", "Look up a word.", {"type": "object"})


class EngineDeadError(Exception):
    pass


class EngineGenerateError(Exception):
    pass


class Parameters(SimpleNamespace):
    """Stands for vLLM's SamplingParams and StructuredOutputsParams."""


class Engine:
    """Stands for vLLM's AsyncLLM."""

    model_config = SimpleNamespace(max_model_len=100)
    template = "<tool_call>"

    def __init__(self, arguments):
        self.arguments = arguments
        self.asked = []
        self.open = True
        self.says = "hello"
        self.finish = "stop"

    @classmethod
    def from_engine_args(cls, arguments):
        if arguments.values["model"] == "missing":
            raise ValueError("no such folder")
        cls.last = cls(arguments)
        return cls.last

    def get_tokenizer(self):
        template = self.template
        return SimpleNamespace(apply_chat_template=self.render, get_chat_template=lambda tools: template)

    def render(self, messages, tools, **more):
        self.rendered = {"messages": messages, "tools": tools, **more}
        return [1] * (20 if len(messages) == 1 else 200)

    async def generate(self, prompt, parameters, identity):
        self.asked.append((prompt, parameters, identity))
        if isinstance(self.says, Exception):
            raise self.says
        made = SimpleNamespace(text=self.says, token_ids=[1, 2, 3], finish_reason=self.finish)
        yield SimpleNamespace(outputs=[made], num_cached_tokens=16)

    def shutdown(self):
        self.open = False


@pytest.fixture
def vllm(monkeypatch):
    modules = {
        "vllm": {
            "AsyncEngineArgs": lambda **values: SimpleNamespace(values=values),
            "TokensPrompt": lambda **values: values,
            "SamplingParams": Parameters,
        },
        "vllm.v1": {},
        "vllm.v1.engine": {},
        "vllm.v1.engine.async_llm": {"AsyncLLM": Engine},
        "vllm.v1.engine.exceptions": {
            "EngineDeadError": EngineDeadError,
            "EngineGenerateError": EngineGenerateError,
        },
        "vllm.sampling_params": {
            "RequestOutputKind": SimpleNamespace(FINAL_ONLY="final"),
            "StructuredOutputsParams": Parameters,
        },
    }
    for name, content in modules.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)


def model(**more):
    return VllmProvider("main", ModelSettings(**{"provider": "vllm", "model": "tiny", **more}))


async def test_a_request_goes_through_the_models_own_template(vllm):
    served = model(engine={"max_model_len": 100}, extra_body={"enable_thinking": False})
    reply = await served.send(request("hi", tools=(TOOL,), temperature=0.5, seed=3, stop=("end",)))
    engine = Engine.last
    assert engine.arguments.values == {"model": "tiny", "max_model_len": 100}
    assert engine.rendered["messages"] == [{"role": "user", "content": "hi"}]
    assert engine.rendered["tools"] == [TOOL]
    assert engine.rendered["enable_thinking"] is False
    ((prompt, parameters, _),) = engine.asked
    assert prompt == {"prompt_token_ids": [1] * 20}
    wanted = {"max_tokens": 80, "output_kind": "final", "temperature": 0.5, "seed": 3, "stop": ["end"]}
    assert vars(parameters) == {**wanted, "skip_special_tokens": False}
    assert reply.message.content == "hello"
    assert (reply.usage.prompt_tokens, reply.usage.cached_tokens, reply.usage.completion_tokens) == (20, 16, 3)
    await served.close()
    assert not engine.open
    await served.close()


@pytest.mark.parametrize("structured", ["auto", "prompt"])
async def test_a_schema_binds_the_sampling_or_stands_in_the_prompt(vllm, structured):
    served = model(structured=structured, engine={})
    Engine.model_config = SimpleNamespace(max_model_len=1000)
    await served.send(request("hi", reply_schema={"type": "object"}))
    Engine.model_config = SimpleNamespace(max_model_len=100)
    ((_, parameters, _),) = Engine.last.asked
    if structured == "auto":
        assert vars(parameters.structured_outputs) == {"json": {"type": "object"}}
    else:
        assert "structured_outputs" not in vars(parameters)
        assert Engine.last.rendered["messages"][-1]["content"].endswith('{"type":"object"}')


async def test_calls_and_reasoning_are_read_from_the_text(vllm):
    served = model()
    await served.send(request("start"))
    Engine.last.says = (
        'I should look.\n</think>\n\nOne moment.\n<tool_call>\n{"name": "look_up", "arguments": {"word": "tree"}}\n'
        '</tool_call>\n<tool_call>\n{"name": "look_up", "arg'
    )
    reply = await served.send(request("hi", tools=(TOOL,)))
    assert reply.message.reasoning_content == "I should look."
    assert reply.message.content == "One moment."
    assert [call.function.arguments for call in reply.message.tool_calls] == [{"word": "tree"}]
    assert [call.text for call in reply.malformed] == ['{"name": "look_up", "arg']


@pytest.mark.parametrize(
    ("says", "error", "said"),
    [
        (EngineDeadError("cuda"), RunError, "the engine died"),
        (EngineGenerateError("oops"), FailedAttempt, "the engine failed"),
        (ValueError("bad top_p"), FailedAttempt, "bad top_p"),
        ("", FailedAttempt, "the answer is empty"),
    ],
    ids=["dead", "failed", "refused", "empty"],
)
async def test_failures_of_the_engine_are_told_apart(vllm, says, error, said):
    served = model()
    await served.send(request("start"))
    Engine.last.says = says
    with pytest.raises(error) as caught:
        await served.send(request("hi"))
    assert said in str(caught.value) + str(vars(caught.value))


async def test_a_prompt_that_does_not_fit_is_an_overflow(vllm):
    long = request("a").model_copy(update={"messages": request("a").messages * 2})
    with pytest.raises(FailedAttempt) as caught:
        await model().send(long)
    assert caught.value.kind == "context_overflow"
    assert "200 tokens and the model takes 100" in caught.value.message


async def test_an_engine_that_does_not_start_is_wrong_input(vllm):
    with pytest.raises(InputError, match=r"models\.main.*the engine does not start: no such folder"):
        await model(model="missing").send(request("hi"))


def test_without_vllm_the_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(InputError, match=r"pip install 'vllm<.+'$"):
        model()


async def test_calls_are_read_as_the_models_own_template_has_them_written(vllm, monkeypatch):
    monkeypatch.setattr(Engine, "template", "[TOOL_CALLS]")
    served = model()
    await served.send(request("start"))
    Engine.last.says = '[TOOL_CALLS]look_up[ARGS]{"word": "tree"}'
    (call,) = (await served.send(request("hi", tools=(TOOL,)))).message.tool_calls
    assert (call.function.name, call.function.arguments) == ("look_up", {"word": "tree"})


async def test_a_template_whose_calls_cannot_be_read_is_refused_where_there_are_tools(vllm, monkeypatch):
    monkeypatch.setattr(Engine, "template", "<|channel|>commentary")
    served = model()
    assert (await served.send(request("hi"))).message.content == "hello"
    with pytest.raises(InputError, match=r"a format that is not known here \(deepseek, .*start it with vllm serve"):
        await served.send(request("hi", tools=(TOOL,)))
