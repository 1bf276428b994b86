"""Spans of OpenTelemetry for model calls, tool calls and plays, named by its conventions for generative AI.

Spans are only made where the program that runs has set a tracer provider, as `opentelemetry-instrument` does; without
one OpenTelemetry is not even imported. Texts are recorded only where the environment variable of the conventions asks
for them.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, TypeAlias

from trajsmith.records.errors import EnvironmentFault, ModelFault

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

CAPTURE_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
OPERATION = "gen_ai.operation.name"
ERROR = "error.type"

SpanAttributes: TypeAlias = Mapping[str, str | int | float | list[str] | None]


class OperationSpan:
    """Span of one operation."""

    def __init__(self, span: "Span") -> None:
        self._span = span
        self.with_content = os.environ.get(CAPTURE_CONTENT, "").lower() in ("true", "span_only", "span_and_event")
        """Texts may be recorded."""

    def set(self, attributes: SpanAttributes) -> None:
        """Set attributes; those that are None are left out."""
        self._span.set_attributes({name: value for name, value in attributes.items() if value is not None})

    def fail(self, kind: str) -> None:
        """Record that the operation failed, and the class of its error."""
        from opentelemetry.trace import StatusCode

        self._span.set_attribute(ERROR, kind)
        self._span.set_status(StatusCode.ERROR)


_NO_SPAN: AbstractContextManager[OperationSpan | None] = nullcontext()


def trace_operation(
    operation: str, subject: str, describe: Callable[[], SpanAttributes], remote: bool = False
) -> AbstractContextManager[OperationSpan | None]:
    """Open the span of an operation while the context lasts; gives None where nobody traces.

    Args:
        operation: `chat`, `execute_tool` or `invoke_agent`.
        subject: Model, tool or agent.
        describe: Gives the attributes that are known at the start; only called where there is a span.
        remote: The operation happens in another process.
    """
    tracer = _find_tracer()
    return _NO_SPAN if tracer is None else _open_span(tracer, operation, subject, describe(), remote)


@contextmanager
def _open_span(
    tracer: "Tracer", operation: str, subject: str, attributes: SpanAttributes, remote: bool
) -> Iterator[OperationSpan]:
    from opentelemetry.trace import SpanKind

    with tracer.start_as_current_span(
        f"{operation} {subject}",
        kind=SpanKind.CLIENT if remote else SpanKind.INTERNAL,
        attributes={OPERATION: operation, **{name: value for name, value in attributes.items() if value is not None}},
        record_exception=False,  # their messages may hold texts
        set_status_on_exception=False,
    ) as span:
        operation_span = OperationSpan(span)
        try:
            yield operation_span
        except (EnvironmentFault, ModelFault) as fault:
            operation_span.fail(fault.kind)
            raise
        except BaseException as error:
            operation_span.fail(type(error).__name__)
            raise


def _find_tracer() -> "Tracer | None":
    """Return the tracer, if the program has set a provider of tracers."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None or isinstance(provider := trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    return provider.get_tracer("trajsmith")  # type: ignore[no-any-return]
