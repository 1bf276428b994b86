"""Spans of OpenTelemetry, as its SDK exports them: model calls, tool calls and plays of a run."""

import json
import time
from collections import Counter
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from running_server import RunningServer

from trajsmith.records import EnvironmentFault, trace_operation

CONFIGS = Path(__file__).parents[2] / "configs"
SPEAKING = Path(__file__).parents[1] / "language_server" / "speaking.py"
SMALL = (
    "sample.count=2", "sample.length=[3, 4]", 'environments=[{"library": "bank", "states": {"small": 1}}]',
    "engine.workers=1", "models.teacher.wire_names={}", "models.helper.wire_names={}",
)  # fmt: skip
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


@pytest.fixture
def exporter(monkeypatch):
    """Spans of a program that has set a tracer provider."""
    memory = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    monkeypatch.delenv(CONTENT, raising=False)
    return memory


def run(trajsmith, tmp_path, monkeypatch, **faults):
    """Run the pipeline with every role played by a model, and return its folder."""
    folder = tmp_path / "run"
    monkeypatch.setenv("TRAJSMITH_SPOKEN_RUN", str(folder))
    monkeypatch.setenv("OPENAI_API_KEY", "sesame-4711")
    with RunningServer(script=str(SPEAKING), key="sesame-4711", faults=faults) as server:
        overrides = [*SMALL, "models.teacher.api=responses"]
        for name in ("teacher", "helper"):
            ours = {"base_url": server.url, "model": "test-model", "first_wait": 0.01, "longest_wait": 0.02}
            overrides += [
                f"models.{name}.{key}={value}" for key, value in {**ours, "key_env": "OPENAI_API_KEY"}.items()
            ]
        options = [part for override in overrides for part in ("--set", override)]
        found = trajsmith("run", CONFIGS / "openai.yaml", "--run", folder, *options)
    assert found.code == 0, found.err
    return folder


def test_a_run_has_a_span_for_each_model_call_tool_call_and_play(trajsmith, tmp_path, monkeypatch, exporter):
    folder = run(trajsmith, tmp_path, monkeypatch, server_error=0.1)
    spans = exporter.get_finished_spans()
    by_id = {span.context.span_id: span for span in spans}
    kinds = Counter(span.attributes["gen_ai.operation.name"] for span in spans)
    paid = [json.loads(line) for line in (folder / "usage.jsonl").read_text().splitlines()]
    plays = [json.loads(line) for line in (folder / "trajectories.jsonl").read_text().splitlines()]
    assert kinds == {
        "chat": len(paid),
        "invoke_agent": len(plays),
        "execute_tool": sum(len(play["events"]) for play in plays),
    }
    chats = [span for span in spans if span.attributes["gen_ai.operation.name"] == "chat"]
    for key, usage in [("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens")]:
        assert sum(span.attributes[f"gen_ai.usage.{usage}"] for span in chats) == sum(row[key] for row in paid)
    for span in chats:
        assert span.name == "chat test-model" and span.kind is trace.SpanKind.CLIENT
        assert span.attributes["server.address"] == "127.0.0.1" and span.attributes["server.port"] > 0
        assert span.attributes["gen_ai.response.finish_reasons"] in (("stop",), ("tool_calls",))
        if span.attributes["trajsmith.purpose"] == "agent":
            assert span.attributes["openai.api.type"] == "responses"
            assert by_id[span.parent.span_id].name == "invoke_agent test-model"
    tools = [span for span in spans if span.attributes["gen_ai.operation.name"] == "execute_tool"]
    for span in tools:
        assert span.name == f"execute_tool {span.attributes['gen_ai.tool.name']}"
        assert by_id[span.parent.span_id].name == "invoke_agent test-model"
    assert {span.attributes["gen_ai.provider.name"] for span in spans if "gen_ai.provider.name" in span.attributes} == {
        "openai", "trajsmith",
    }  # fmt: skip


def test_names_are_those_of_the_conventions(trajsmith, tmp_path, monkeypatch, exporter):
    monkeypatch.setenv(CONTENT, "true")
    run(trajsmith, tmp_path, monkeypatch)
    known = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}
    known |= {"gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.reasoning.output_tokens"}  # since 1.41
    used = {name for span in exporter.get_finished_spans() for name in span.attributes if name.startswith("gen_ai.")}
    assert used - known == set() and len(used) > 15


def test_texts_are_recorded_only_where_they_are_asked_for(trajsmith, tmp_path, monkeypatch, exporter):
    folder = run(trajsmith, tmp_path, monkeypatch)
    play = json.loads((folder / "trajectories.jsonl").read_text().splitlines()[0])
    words = [message["content"] for message in play["messages"] if len(message["content"]) > 20]
    written = json.dumps([dict(span.attributes) for span in exporter.get_finished_spans()])
    assert words and not [text for text in words if json.dumps(json.dumps(text))[2:-2] in written or text in written]
    exporter.clear()
    monkeypatch.setenv(CONTENT, "span_only")
    again = run(trajsmith, tmp_path / "with", monkeypatch)
    first = json.loads((again / "trajectories.jsonl").read_text().splitlines()[0])["messages"][1]["content"]
    spans = exporter.get_finished_spans()
    asked = [
        json.loads(span.attributes["gen_ai.input.messages"])
        for span in spans
        if "gen_ai.input.messages" in span.attributes
    ]
    assert {"role": "user", "parts": [{"type": "text", "content": first}]} in [one for many in asked for one in many]
    tool = next(span for span in spans if span.name.startswith("execute_tool"))
    assert isinstance(json.loads(tool.attributes["gen_ai.tool.call.arguments"]), dict)
    assert "sesame-4711" not in json.dumps([dict(span.attributes) for span in spans])


def test_a_failure_is_named_by_its_class_and_not_by_its_words(exporter):
    with pytest.raises(EnvironmentFault), trace_operation("execute_tool", "pay", dict):
        raise EnvironmentFault("crash", "shop", "a secret text")
    (span,) = exporter.get_finished_spans()
    assert span.attributes["error.type"] == "crash"
    assert span.status.status_code is trace.StatusCode.ERROR
    assert "secret" not in span.to_json()


def test_without_a_provider_there_is_no_span_and_hardly_a_cost():
    began = time.process_time()
    for _ in range(10_000):
        with trace_operation("execute_tool", "pay", lambda: pytest.fail("described")) as span:
            assert span is None
    assert time.process_time() - began < 0.5
