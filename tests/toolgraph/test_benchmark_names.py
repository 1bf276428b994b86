"""The folder of a script stands first where Python looks for modules: no script may bear the name of a package."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_no_script_has_the_name_of_a_package() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert {"toolgraph", "grounding"} <= packages
    assert not packages & {path.stem for path in (ROOT / "benchmarks").glob("*.py")}
