"""The one way to make a Jinja2 environment: sandboxed, so that a template of a user or an environment runs no code."""

import base64
import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from markupsafe import Markup

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


def build_page_policy(scripts: Sequence[str] = (), styles: Sequence[str] = ()) -> "Markup":
    """Build the Content-Security-Policy of a page: these scripts and styles work, and nothing else runs or is loaded.

    Args:
        scripts: Texts of the page's script elements, letter by letter; data in JSON is none.
        styles: Texts of its style elements. Attributes named style have no effect.
    """
    from markupsafe import Markup

    rules = ["default-src 'none'", "base-uri 'none'", "form-action 'none'", "img-src data:"]
    for directive, texts in (("script-src", scripts), ("style-src", styles)):
        digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
        rules.append(
            " ".join([directive, *(f"'sha256-{digest}'" for digest in digests)] if digests else (directive, "'none'"))
        )
    rules.append("require-trusted-types-for 'script'; trusted-types 'none'")
    return Markup("; ".join(rules))
