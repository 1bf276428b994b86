"""The one way to make a Jinja2 environment: sandboxed, so that a template of a user or an environment runs no code."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

RENDER_ERRORS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError, MemoryError)
"""What a template of others may raise while it is rendered, beside Jinja2's own `TemplateError`."""


def template_environment(bounded: bool = False, **options: Any) -> "ImmutableSandboxedEnvironment":
    """Build a Jinja2 environment whose templates reach no internals of Python and change nothing that they are given.

    Args:
        bounded: For templates of others, see `bounded_templates`.
        **options: Those of `jinja2.Environment`. By default an undefined name is an error and nothing is escaped.
    """
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    chosen = {"undefined": StrictUndefined, "autoescape": False} | options
    if not bounded:
        return ImmutableSandboxedEnvironment(**chosen)
    from trajsmith.records.bounded_templates import BoundedEnvironment

    return BoundedEnvironment(**chosen)
