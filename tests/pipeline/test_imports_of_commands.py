"""What commands import: `trajsmith --help` and a run pay only for what they use."""

import subprocess
import sys

import pytest

HEAVY = {"asyncio", "datasets", "jinja2", "numpy", "pandas", "pyarrow", "pydantic", "torch", "transformers", "yaml"}


def list_imports(code: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter has imported after `code`."""
    script = f"import sys\n{code}\nsys.stderr.write(' '.join({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("arguments", [["--help"], ["env", "--help"], ["--version"], ["run", "--help"]], ids=" ".join)
def test_help_imports_no_models_and_no_data_libraries(arguments: list[str]) -> None:
    code = (
        f"sys.argv = ['trajsmith', *{arguments!r}]\nfrom trajsmith.cli.app import main\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code, stop.code"
    )
    by_typer = {"pydantic"} if len(arguments) > 1 else set()  # typer itself converts arguments with it
    assert list_imports(code) & HEAVY <= by_typer


def test_starting_a_run_imports_no_data_libraries() -> None:
    found = list_imports("import trajsmith.api.runs")
    assert found & {"datasets", "pandas", "pyarrow", "torch", "transformers", "scipy"} == set()
    assert found & {"jsonschema", "referencing"} == set()  # bundled environments check arguments with pydantic


def test_a_language_is_imported_when_it_is_used() -> None:
    loaded = "import sys; sys.modules.update(german=sys) if 'trajsmith.phrasing.languages.de' in sys.modules else None"
    assert "german" not in list_imports(f"import trajsmith.api.runs; {loaded}")
    assert "german" in list_imports(f"from trajsmith.phrasing import set_language; set_language('de'); {loaded}")


def test_records_are_imported_on_first_use() -> None:
    import trajsmith.records as records

    assert set(records._HOMES) == set(records.__all__)
    assert all(getattr(records, name) is not None for name in records.__all__)
    assert "pydantic" not in list_imports("from trajsmith.records import InputError")
    with pytest.raises(AttributeError, match="no attribute 'Chains'"):
        _ = records.Chains
