"""YAML that would never end, or grow without end, is refused with a reason."""

import pytest
import yaml

from trajsmith.records.yaml_text import compose_yaml

LAUGHS = "x0: &x0 [a]\n" + "".join(f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 10)}]\n" for n in range(1, 8))
LOADERS = [yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)]


@pytest.mark.parametrize("loader", LOADERS, ids=["python", "libyaml"])
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 100_000, "nested deeper|maximum nesting depth"),
        ("[" * 101 + "]" * 101, "nested deeper"),
        ("a: &a [*a]", "inside what it is an alias of"),
        ("a: &a {b: {c: *a}}", "inside what it is an alias of"),
        (LAUGHS, "aliases make"),
        ("x: " + "9" * 5000, "Exceeds the limit"),
        ('x: "\\ud800"', "half a character|invalid Unicode"),
        ('x: "a\\0b"', "NUL"),
        ("x: a\0b", "not allowed"),
        ("a: 2024-99-99", "month must be"),
        ("a: !!timestamp x", "."),
        ("? [a]\n: b", "unhashable"),
        ("a: !!python/name:os.system x", "could not determine a constructor"),
    ],
    ids=["unclosed", "deep", "itself", "itself inside", "laughs", "digits", "surrogate", "NUL escaped", "NUL", "date",
         "timestamp", "key", "python"],
)  # fmt: skip
def test_harmful_yaml_is_refused(loader, text: str, reason: str) -> None:
    with pytest.raises(yaml.YAMLError, match=reason):
        compose_yaml(text, loader)


def test_aliases_that_stay_small_are_read() -> None:
    root, data = compose_yaml("a: &a {x: 1}\nb: [*a, *a]\nc: " + "[" * 90 + "]" * 90, yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    assert data["b"] == [{"x": 1}, {"x": 1}]
    assert compose_yaml("", yaml.SafeLoader) == (None, None)
