"""The one way to make a Jinja2 environment: sandboxed, so that a template of a user or an environment runs no code."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2.sandbox import ImmutableSandboxedEnvironment


def template_environment(**options: Any) -> "ImmutableSandboxedEnvironment":
    """Build a Jinja2 environment whose templates reach no internals of Python and change nothing that they are given.

    Args:
        **options: Those of `jinja2.Environment`. By default an undefined name is an error and nothing is escaped.
    """
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(**({"undefined": StrictUndefined, "autoescape": False} | options))
