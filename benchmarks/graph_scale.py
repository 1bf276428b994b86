"""What a graph of very many tools costs: the whole command, an update after one server changed, and queries.

    .venv/bin/python benchmarks/graph_scale.py                  # 100,000 tools: some three minutes
    .venv/bin/python benchmarks/graph_scale.py --tools 20000

The tools are those of the public lists in the shared data (`TRAJSMITH_DATA`, or ../shared/data), and copies of them
under other server names until there are enough. CPU is user plus system time; memory is the highest resident size of
the command. The graph after the update is compared with a full build of the same tools. Where Chromium is installed,
the page of the graph is opened in it, searched, and drawn around the first tool found.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _toolgraph_sets import SCALE, data_folder
from rich.console import Console
from rich.table import Table

from trajsmith.toolgraph import GraphIndex, GraphSettings, ToolGraph, find_prerequisites, read_tool_list
from trajsmith.toolgraph.html_page import write_page
from trajsmith.toolgraph.incremental_build import compute_part_digests, update_graph

QUERIES = 5000
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
USER = """<script>{
const opened = performance.now(), box = document.getElementById("search"), times = [];
const measure = (act) => {
  const start = performance.now();
  act(); document.body.offsetHeight;
  times.push(performance.now() - start);
};
measure(() => { box.value = "search_flights"; box.dispatchEvent(new Event("input")); });
measure(() => box.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" })));
const drawn = document.querySelectorAll("#detail h2").length;
document.body.dataset.said = [opened, ...times].map(Math.round).join(" ") + " " + drawn;
}</script>"""
"""What a person does, run in the page; it stands for a script that the page's policy would not let in."""


def write_tools(path: Path, count: int) -> None:
    """Write that many tools, one a line; servers of the second and later rounds have a number behind their name."""
    files = [data_folder() / "scale" / f"{name}.tools.jsonl" for name in SCALE]
    rows = [json.loads(line) for file in files for line in file.read_bytes().splitlines()]
    with path.open("w") as out:
        for number in range(count):
            copy, row = number // len(rows), rows[number % len(rows)]
            server = row.get("server", "functions")
            out.write(json.dumps(row | {"server": f"{server}_{copy}" if copy else server}) + "\n")


def run_command(tools: Path, graph: Path) -> tuple[float, float]:
    """CPU seconds and highest memory in GB of `trajsmith graph build`."""
    command = [sys.executable, "-m", "trajsmith", "graph", "build", "--tools", str(tools), "--out", str(graph)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"the build failed with status {status}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**20


def measure_page(graph: ToolGraph, folder: Path) -> tuple[float, str]:
    """CPU seconds of writing the page, and how long Chromium takes with it."""
    path = folder / "graph.html"
    start = time.process_time()
    write_page(graph, path, "graph")
    cpu, size = time.process_time() - start, f"{path.stat().st_size / 1e6:.0f} MB"
    if CHROMIUM is None:
        return cpu, f"{size}; no Chromium to open it in"
    page = re.sub(r"<meta http-equiv=\"Content-Security-Policy\"[^>]*>", "", path.read_text("utf-8"))
    path.write_text(page.replace("</body>", USER + "</body>"), "utf-8")
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--dump-dom", "--window-size=1400,900")
    command = [CHROMIUM, *flags, f"--user-data-dir={folder / 'profile'}", path.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout
    times = re.search(r'data-said="([^"]*)"', shown)
    if times is None or times[1].endswith(" 0"):
        raise SystemExit("the page did not draw what was searched")
    opened, searched, drawn, _ = times[1].split()
    return (
        cpu,
        f"{size}; Chromium opens it in {opened} ms, searches in {searched} ms, draws around a tool in {drawn} ms",
    )


def main() -> None:
    """Measure each step, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=int, default=100_000)
    parser.add_argument("--check-update", action="store_true", help="build the changed tools anew, too, and compare")
    options = parser.parse_args()
    clock, settings = time.process_time, GraphSettings()
    table = Table("step", "CPU s", "")
    with tempfile.TemporaryDirectory() as scrap:
        listed, path = Path(scrap) / "tools.jsonl", Path(scrap) / "graph.json"
        write_tools(listed, options.tools)
        cpu, peak = run_command(listed, path)
        size = f"reads {listed.stat().st_size / 1e6:.0f} MB, writes {path.stat().st_size / 1e6:.0f} MB"
        table.add_row("the whole command", f"{cpu:.1f}", f"{size}; peak {peak:.2f} GB")
        start = clock()
        graph = ToolGraph.load(path)
        size = f"{len(graph.edges):,} edges, {len(graph.parameters):,} parameters"
        table.add_row("read the file", f"{clock() - start:.1f}", size)
        tools = read_tool_list(listed)
        cpu, text = measure_page(graph, Path(scrap))
        table.add_row("write the page", f"{cpu:.1f}", text)
    start = clock()
    compute_part_digests(tools, settings)
    table.add_row("digests of all servers", f"{clock() - start:.1f}", "part of every build and update")
    last = tools[-1].server
    changed = [
        tool.model_copy(update={"description": f"{tool.description} Anew."}) if tool.server == last else tool
        for tool in tools
    ]
    start = clock()
    updated = update_graph(graph, changed, settings)
    cpu, text = clock() - start, f"cross_server: {settings.cross_server}"
    if options.check_update:
        text += f"; the bytes of a full build: {updated.to_bytes() == update_graph(None, changed, settings).to_bytes()}"
    table.add_row("update after one server changed", f"{cpu:.1f}", text)
    start = clock()
    index = GraphIndex(updated)
    table.add_row("index for queries", f"{clock() - start:.1f}", "once per process")
    names = sorted(index.specs)[:: max(1, len(index.specs) // QUERIES)]
    start = clock()
    for name in names:
        find_prerequisites(index, name)
    each = (clock() - start) / len(names)
    table.add_row("find_prerequisites", f"{each:.6f}", f"{1000 * each:.3f} ms a tool, over {len(names):,} tools")
    Console().print(table)


if __name__ == "__main__":
    main()
