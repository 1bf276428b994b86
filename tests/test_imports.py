"""Rules for imports beyond the layers that import-linter checks: no circles, and packages through their `__init__`.

Imports inside functions and under TYPE_CHECKING count.
"""

from collections import Counter
from collections.abc import Iterator

import grimp
import networkx as nx
import pytest

ROOT = "trajsmith"
INSIDE_ALLOWED = {
    "__main__": 1, "api": 41, "cli": 181, "envcheck": 7, "envgen": 65, "environments": 1, "evals": 9, "export": 6,
    "grounding": 6, "pipeline": 156, "querygen": 37, "toolgraph": 11, "train_grpo": 16,
    "train_sft": 11, "trajsmith": 8, "usersim": 19, "verify": 39,
}  # fmt: skip
"""Imports of each package that name a module inside another package, counted as pairs of modules; the design wants 0.

To lower a number, import from the package where its `__init__` exports the name (`from trajsmith.records import Task`,
not `from trajsmith.records.task import Task`). Where it does not, export the name if it belongs to the package's public
API and costs no heavy import, or move the code to the package that owns it. Then write the new number here.
"""


@pytest.fixture(scope="module")
def imports() -> nx.DiGraph:
    """The modules of the code, with an edge to each module that one imports."""
    graph = grimp.build_graph(ROOT, exclude_type_checking_imports=False, cache_dir=None)
    modules = nx.DiGraph()
    modules.add_nodes_from(graph.modules)
    modules.add_edges_from(
        (module, other) for module in graph.modules for other in graph.find_modules_directly_imported_by(module)
    )
    return modules


def get_package(module: str) -> str:
    """Return the part after `trajsmith.` that names the package; `trajsmith` for the root itself."""
    return module.split(".")[1] if "." in module else module


def find_inside_imports(modules: nx.DiGraph) -> Iterator[tuple[str, str]]:
    """Yield (importing module, imported module) where the latter is no package's `__init__` and of another package."""
    for module, other in modules.edges:
        if get_package(module) != get_package(other) and other.count(".") > 1:
            yield module, other


def test_no_modules_import_each_other(imports: nx.DiGraph) -> None:
    circles = [sorted(group) for group in nx.strongly_connected_components(imports) if len(group) > 1]
    assert circles == [], "move what both need to a module below both"


def test_imports_past_a_public_init_do_not_grow(imports: nx.DiGraph) -> None:
    pairs = sorted(find_inside_imports(imports))
    counts = Counter(get_package(module) for module, _ in pairs)
    grown = {
        package: [f"{module} -> {other}" for module, other in pairs if get_package(module) == package]
        for package, count in counts.items()
        if count > INSIDE_ALLOWED.get(package, 0)
    }
    assert grown == {}, "import from the package, see INSIDE_ALLOWED"
    fallen = {package: counts[package] for package, most in INSIDE_ALLOWED.items() if counts[package] < most}
    assert fallen == {}, "fewer than INSIDE_ALLOWED says, well done: write these numbers there"


@pytest.mark.parametrize(
    ("edges", "inside"),
    [
        pytest.param([("trajsmith.evals.scores", "trajsmith.records")], [], id="through_init"),
        pytest.param([("trajsmith.evals.scores", "trajsmith.evals.text")], [], id="same_package"),
        pytest.param([("trajsmith", "trajsmith.api.runs")], [("trajsmith", "trajsmith.api.runs")], id="from_root"),
        pytest.param(
            [("trajsmith.evals.scores", "trajsmith.records.task")],
            [("trajsmith.evals.scores", "trajsmith.records.task")],
            id="past_init",
        ),
    ],
)
def test_inside_imports_are_those_past_an_init(edges: list[tuple[str, str]], inside: list[tuple[str, str]]) -> None:
    assert list(find_inside_imports(nx.DiGraph(edges))) == inside
