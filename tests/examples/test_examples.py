"""Every example runs as it stands, in a temporary folder, and prints what its docstring promises."""

import re
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
RUNS = {
    "evaluate.py": "pass@1 0.0 %",
    "filter_trajectories.py": "reasons: {'not the best candidate'}",
    "grpo.py": "first request:",
    "import_dialogues.py": "Please water the rose. -> ('recorded results differ',)",
    "mcp_server/run.py": "set_amount",
    "own_environment.py": "'accepted': 8",
    "own_reward.py": "rewards: ['few_calls']",
    "push.py": "would upload README.md",
    "run_and_load.py": "verdict: completed",
    "sft.py": re.compile(r"fine-tune on (3[5-9]|40) rows"),
    "tool_graph.py": "before retail.",
}
"""Script to a part of its output, or its pattern."""
PROJECT = EXAMPLES / "garden"  # `trajsmith init` copies it; tests/pipeline runs it
SCRIPTS = sorted(str(file.relative_to(EXAMPLES)) for file in EXAMPLES.rglob("*.py") if PROJECT not in file.parents)


@pytest.fixture
def example(tmp_path, monkeypatch, capsys):
    """Run a script as `python SCRIPT ARGUMENTS` would, in a temporary folder; gives its output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "huggingface"))

    def call(script: str, *arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", [script, *arguments])
        runpy.run_path(str(EXAMPLES / script), run_name="__main__")
        return capsys.readouterr().out

    return call


@pytest.mark.parametrize(("script", "text"), RUNS.items(), ids=RUNS)
def test_an_example_runs(example, script, text):
    pattern = text if isinstance(text, re.Pattern) else re.compile(re.escape(text))
    assert pattern.search(example(script))


@pytest.mark.parametrize("script", SCRIPTS)
def test_an_example_is_short_and_says_how_to_run_it(script):
    text = (EXAMPLES / script).read_text()
    assert text.startswith('"""') and len(text.splitlines()) < 60
    if script in RUNS:
        assert f"python examples/{script}" in text.split('"""')[1]
        assert f"]({script})" in (EXAMPLES / "README.md").read_text()


def test_every_script_is_run():
    assert set(SCRIPTS) - {"mcp_server/server.py"} == set(RUNS)


@pytest.mark.train
def test_the_training_examples_train(example):
    for module in ("torch", "trl"):
        pytest.importorskip(module, reason=f"{module} is missing: pip install -e '.[train]'")
    assert re.search(r"trained on (3[5-9]|40) rows", example("sft.py", "--train"))
    assert "steps: 2" in example("grpo.py", "--train", "models/sft")
