"""Whatever is wrong, the user gets one line that says what to do, the right exit code, and a run that can go on."""

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import orjson
import pytest

from trajsmith.export.atomic_folder import AtomicFolder
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.records import InputError, Summary

PROGRESS = re.compile(
    r"(sample chains|ground by execution|write tasks|play dialogues|verify by replay|export dataset|replay|audit \w+): "
)
TINY = """\
name: tiny
seed: 1
environments:
  - {library: bank, states: {small: 1}}
sample: {count: 5, length: [3, 4]}
"""
SHOP = '''\
"""A shop whose till breaks."""
from trajsmith.environments.native import Environment, EnvironmentState, StateModel, tool

calls = 0


class Item(StateModel):
    item_id: str
    title: str
    price: float


class ItemName(StateModel):
    item_id: str
    title: str


class ShopState(EnvironmentState):
    items: dict[str, Item]


class Shop(Environment[ShopState]):
    """A shop."""

    @classmethod
    def seed_state(cls, size, seed):
        items = [Item(item_id=f"I{n:03d}", title=f"thing {n}", price=n + 0.5) for n in range(1, 8)]
        return ShopState(now="2026-01-01T09:00:00", items={item.item_id: item for item in items})

    @tool(effect="read")
    def list_items(self) -> list[ItemName]:
        """List all items of the shop."""
        return [ItemName(item_id=item.item_id, title=item.title) for item in self.state.items.values()]

    @tool(effect="read")
    def get_item(self, item_id: str) -> Item:
        """Get one item.

        Args:
            item_id: Item number.
        """
        return self.lookup(self.state.items, item_id, "item")

    @tool(effect="write")
    def set_price(self, item_id: str, price: float) -> Item:
        """Set the price of an item.

        Args:
            item_id: Item number.
            price: New price.
        """
        global calls
        calls += 1
        if calls > WORKING_CALLS:
            raise RuntimeError("the till\\nis on fire")
        item = self.lookup(self.state.items, item_id, "item")
        item.price = price
        return item
'''


def one_line(said, code):
    """The one line that is left of standard error without the progress."""
    assert said.code == code, said.err
    assert "Traceback" not in said.err
    lines = [line for line in said.err.splitlines() if not PROGRESS.match(line)]
    assert len(lines) == 1, said.err
    return lines[0]


def process(*arguments, **more):
    command = [sys.executable, "-m", "trajsmith", *map(str, arguments)]
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)  # a job in the background of a shell has it ignored
    try:
        return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
    finally:
        signal.signal(signal.SIGINT, before)


def ended(process):
    out, err = process.communicate()
    return SimpleNamespace(code=process.returncode, out=out, err=err)


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "line.yaml"
    path.write_text(TINY)
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run, made once; tests take a copy."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "line.yaml").write_text(TINY)
    said = ended(process("run", folder / "line.yaml", "--run", folder / "run"))
    assert said.code == 0, said.err
    return folder / "run"


@pytest.fixture
def copied(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


def records(path):
    files = [*path.glob("*.jsonl"), *path.glob("ledger/*.jsonl"), *path.glob("states/*"), path / "graph.json"]
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


# The configuration


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TINY.replace("count", "cuont"), ['line.yaml:5: sample.cuont: unknown key; did you mean "count"?']),
        (TINY.replace("states", "state"), ['line.yaml:4: environments.0.state: unknown key; did you mean "states"?']),
        (TINY.replace("count: 5", "count: many"), ["line.yaml:5: sample.count:", "'many'"]),
        (TINY.replace("count: 5", "count: 0"), ["line.yaml:5: sample.count:"]),
        (TINY.replace("count: 5", "count: -3"), ["line.yaml:5: sample.count:"]),
        (TINY.replace("[3, 4]", "[4, 3]"), ["line.yaml:5: sample.length:"]),
        (f"{TINY}play: {{candidates: 0}}", ["line.yaml:6: play.candidates:"]),
        (f"{TINY}write: {{direct: 7}}", ["line.yaml:6: write.direct:"]),
        ("name: [oh", ["line.yaml:1", "not valid YAML"]),
        ("- a\n- b\n", ["line.yaml:1", "keys and values"]),
        ("", ["line.yaml", "required"]),
        (TINY.replace("library: bank", "library: bnak"), ["line.yaml:4: environments.0.library:", "'bnak'", "bank"]),
        (TINY.replace("library: bank", "python: shop.py, sandbox: loose"), ["sandbox"]),
        (TINY.replace("library: bank", "python: shop.py"), ["line.yaml:4: environments.0.python: env", "shop.py"]),
        (TINY.replace("library: bank", "library: bank, python: x.py"), ["exactly one of library, python, linked"]),
        (TINY.replace("{library: bank, states: {small: 1}}", "{states: {small: 1}}"), ["exactly one of library"]),
    ],
    ids=[
        "misspelt key", "misspelt key inside a list", "no number", "no chains",
        "fewer than no chains", "length from more to less", "no candidates", "no probability", "not YAML",
        "a list", "empty",
        "unknown library environment", "no such mode of the sandbox", "python file missing", "two kinds", "no kind",
    ],
)  # fmt: skip
@pytest.mark.parametrize("dry", [False, True], ids=["run", "dry run"])
def test_a_wrong_configuration_starts_nothing(trajsmith, config, tmp_path, monkeypatch, text, said, dry):
    monkeypatch.chdir(tmp_path)
    config.write_text(text)
    found = trajsmith("run", config, "--run", tmp_path / "run", *["--dry-run"] * dry)
    line = one_line(found, 2)
    assert line.startswith("error: ")
    for part in said:
        assert part in line
    assert found.out == ""
    assert not (tmp_path / "run" / "chains.jsonl").exists()


@pytest.mark.parametrize(
    "wrong",
    ["python: gardn.py", "library: bnak", "python: broken.py", "mcp: {command: [no-such-server]}"],
    ids=["missing file", "misspelt library", "syntax error", "missing command"],
)
def test_a_start_that_failed_does_not_block_the_mended_configuration(trajsmith, config, tmp_path, monkeypatch, wrong):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text("def f(:\n")
    config.write_text(TINY.replace("library: bank, states: {small: 1}", wrong))
    assert trajsmith("run", config, "--run", "run").code in (1, 2)
    config.write_text(TINY)
    assert trajsmith("run", config, "--run", "run").code == 0
    assert (tmp_path / "run" / "summary.json").is_file()


def test_a_missing_configuration_is_named(trajsmith, tmp_path):
    assert one_line(trajsmith("run", tmp_path / "no.yaml"), 2) == f"error: no such file: {tmp_path / 'no.yaml'}"


def test_a_wrong_override_is_named_as_it_was_given(trajsmith, config):
    line = one_line(trajsmith("run", config, "--set", "sample.lenght=[2, 3]"), 2)
    assert line.startswith("error: --set sample.lenght=[2, 3]: ")
    assert '"length"' in line


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import os\n\nraise ValueError('no\\nlicence')\n", "shop.py:3: ValueError: no licence"),
        ("def broken(:\n", "shop.py:1: SyntaxError"),
        ("\nimport not_installed_anywhere\n", "shop.py:2: ModuleNotFoundError"),
        ("x = 1\n", "expected one Environment class, found none"),
    ],
    ids=["raises", "syntax", "missing module", "no environment in it"],
)
def test_an_environment_file_that_does_not_import_is_named_with_its_line(trajsmith, config, tmp_path, code, said):
    (tmp_path / "shop.py").write_text(code)
    config.write_text(TINY.replace("library: bank", f"python: {tmp_path / 'shop.py'}"))
    assert said in one_line(trajsmith("run", config, "--run", tmp_path / "run"), 2)


# Environments that break while they work


SHOP_FAULT = "shop.set_price: crash: RuntimeError: the till is on fire (shop.py:55)"


@pytest.mark.parametrize("working", [0, 1], ids=["at once", "after a while"])
def test_a_tool_that_crashes_costs_only_its_own_dialogues(config, tmp_path, working):
    (tmp_path / "shop.py").write_text(SHOP.replace("WORKING_CALLS", str(working)))
    entry = f"  - {{python: {tmp_path / 'shop.py'}, states: {{small: 1}}}}\n"
    config.write_text(TINY.replace("sample:", f"{entry}sample:").replace("count: 5", "count: 16"))
    said = ended(process("run", config, "--run", tmp_path / "run"))
    assert said.code == 0, said.err
    assert [line for line in said.err.splitlines() if not PROGRESS.match(line)] == []
    summary = Summary(**orjson.loads((tmp_path / "run" / "summary.json").read_bytes()))
    reasons = [reason for stage in summary.stages for reason in stage.dropped] + list(summary.rejected)
    assert any(reason.startswith("environment_fault") for reason in reasons)
    if not working:
        assert summary.stages[1].dropped["environment_fault:crash"] > 0
    drops = [orjson.loads(line).get("drop") for file in tmp_path.glob("run/ledger/*.jsonl") for line in file.open()]
    assert {drop["detail"] for drop in drops if drop and "fault" in drop["reason"]} <= {SHOP_FAULT}
    if not working:
        assert f"environment_fault:crash: {summary.stages[1].dropped['environment_fault:crash']}\n" in said.out
        assert f"\n  first: {SHOP_FAULT}\n" in said.out
        assert f"first: {SHOP_FAULT}" in (tmp_path / "run" / "report.html").read_text()
    chains = [orjson.loads(line)["environment"] for line in (tmp_path / "run" / "chains.jsonl").open()]
    others = [drop["reason"] for drop in drops if drop and "fault" not in drop["reason"]]  # a request that is unclear
    others += [reason for reason, number in summary.rejected.items() if "fault" not in reason for _ in range(number)]
    assert summary.environments["bank"] + len(others) == chains.count("bank") > 2 * len(others)


def test_a_run_that_comes_to_nothing_says_why(trajsmith, config, tmp_path):
    (tmp_path / "shop.py").write_text(SHOP.replace("WORKING_CALLS", "0"))
    entry = f"{{python: {tmp_path / 'shop.py'}, states: {{small: 1}}}}"
    config.write_text(TINY.replace("{library: bank, states: {small: 1}}", entry))
    line = one_line(trajsmith("run", config, "--run", tmp_path / "run", "--set", "ground.min_calls=2"), 1)
    assert line.startswith("error: no trajectory was accepted (ground: ")
    assert f"; first: {SHOP_FAULT})" in line
    assert (tmp_path / "run" / "report.html").is_file()
    assert Summary(**orjson.loads((tmp_path / "run" / "summary.json").read_bytes())).funnel["accepted"] == 0


# Files of tools

GOOD = '{"server": "s", "name": "a", "inputSchema": {"type": "object", "properties": {}}}'


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([GOOD, '{"server": "s", "name": '], ["tools.jsonl:2: ", "JSON"]),
        ([GOOD, "", '{"server": "s"}'], ["tools.jsonl:3: ", "name"]),
    ],
    ids=["bad JSON", "no name"],
)
def test_a_line_that_is_no_tool_is_named(trajsmith, tmp_path, lines, said):
    (tmp_path / "tools.jsonl").write_text("\n".join(lines) + "\n")
    line = one_line(trajsmith("graph", "build", "--tools", tmp_path / "tools.jsonl", "--out", tmp_path / "g.json"), 2)
    for part in said:
        assert part in line
    assert not (tmp_path / "g.json").exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (GOOD.replace('"object"', '"objekt"'), "tool s.a: its input schema is no JSON Schema"),
        (GOOD.replace('"object"', '"array"'), "tool s.a: its input schema is not of type object"),
        (GOOD.replace('"properties": {}', '"properties": {"x": {"type": 5}}'), "tool s.a: its input schema is no JSON"),
        (GOOD.replace('"properties": {}', '"properties": {"x": 5}'), "tool s.a: its input schema is no JSON Schema"),
    ],
    ids=["unknown type", "no object", "bad property", "property no schema"],
)
def test_a_tool_with_a_bad_schema_is_a_note_and_the_build_goes_on(trajsmith, tmp_path, line, said):
    (tmp_path / "tools.jsonl").write_text("\n".join([line, GOOD.replace('"a"', '"b"')]) + "\n")
    found = trajsmith("graph", "build", "--tools", tmp_path / "tools.jsonl", "--out", tmp_path / "g.json")
    assert found.code == 0
    assert f"note: {said}" in found.err
    assert found.err.splitlines()[-1].startswith("2 tools, ")


# Runs that are disturbed


@pytest.mark.parametrize("command", ["resume", "export", "play", "fresh"])
def test_a_second_writer_is_refused(trajsmith, config, copied, command):
    before = records(copied)
    arguments = ["run", config, "--run", copied, "--fresh"] if command == "fresh" else [command, copied]
    with RunDirectory.open(copied).lock():
        line = one_line(trajsmith(*arguments), 1)
    assert f"is being written by process {os.getpid()}" in line
    assert records(copied) == before


def limited(bytes_per_file):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_per_file, resource.RLIM_INFINITY))


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """A run of 16 chains that nothing disturbed; its configuration lies beside it."""
    folder = tmp_path_factory.mktemp("calm")
    (folder / "line.yaml").write_text(TINY.replace("count: 5", "count: 16"))
    said = ended(process("run", folder / "line.yaml", "--run", folder / "run"))
    assert said.code == 0, said.err
    return folder / "run"


@pytest.mark.parametrize("when", ["records", "export"])
def test_a_full_disk_ends_the_run_and_resume_completes_it(calm, tmp_path, when):
    config = calm.with_name("line.yaml")
    sizes = {path.name: path.stat().st_size for path in calm.rglob("*") if path.is_file()}
    largest = max(sizes["tasks.jsonl"], sizes["trajectories.jsonl"], sizes["graph.json"])
    limit = sizes["tasks.jsonl"] - 10 if when == "records" else largest + 10
    assert sizes["graph.json"] < limit < sizes["report.html"], sizes
    full = ended(process("run", config, "--run", tmp_path / "full", preexec_fn=limited(limit)))
    line = one_line(full, 1)
    assert "disk full" in line
    assert f"trajsmith resume {tmp_path / 'full'}" in line
    assert ended(process("resume", tmp_path / "full")).code == 0
    assert records(tmp_path / "full") == records(calm)
    left = {path.name for path in (tmp_path / "full").rglob("*")}
    assert left == {path.name for path in calm.rglob("*")}


def test_ctrl_c_says_how_to_go_on(config, tmp_path):
    config.write_text(TINY.replace("count: 5", "count: 400"))
    run = tmp_path / "run"
    started = process("run", config, "--run", run)
    while started.poll() is None and not (run / "tasks.jsonl").exists():
        time.sleep(0.01)
    started.send_signal(signal.SIGINT)
    line = one_line(ended(started), 1)
    assert line == f"error: stopped; nothing is lost, resume with: trajsmith resume {run}"
    kept = records(run)
    resumed = process("resume", run)
    while resumed.poll() is None and len((run / "tasks.jsonl").read_bytes()) <= len(kept["tasks.jsonl"]):
        time.sleep(0.01)
    resumed.send_signal(signal.SIGINT)
    one_line(ended(resumed), 1)
    grown = records(run)
    assert all(grown[name].startswith(data) for name, data in kept.items())
    assert len(grown["tasks.jsonl"]) > len(kept["tasks.jsonl"])


# Runs that were changed by hand


@pytest.mark.parametrize("name", ["tasks.jsonl", "trajectories.jsonl", "verdicts.jsonl", "ledger/play.jsonl"])
@pytest.mark.parametrize("damage", [b'{"id": "', b"\x00\xff", b"{}"], ids=["torn", "bytes", "empty"])
def test_a_damaged_record_is_named_with_file_and_line(trajsmith, copied, name, damage):
    lines = (copied / name).read_bytes().splitlines(keepends=True)
    lines[2] = damage.ljust(len(lines[2]) - 1) + b"\n"
    (copied / name).write_bytes(b"".join(lines))
    found = trajsmith("resume", copied)
    line = one_line(found, 1 if name.startswith("ledger") else 2)
    assert f"{copied / name}:3: " in line


@pytest.mark.parametrize("command", [["report"], ["audit"], ["filter", "--out", "OUT"]], ids=lambda one: one[0])
def test_a_line_after_the_last_verdict_is_named_unless_it_is_torn(trajsmith, copied, tmp_path, command):
    file, number = copied / "verdicts.jsonl", len((copied / "verdicts.jsonl").read_bytes().splitlines())
    whole = file.read_bytes()
    name, *options = [str(tmp_path / "out") if word == "OUT" else word for word in command]
    file.write_bytes(whole + b"garbage\n")
    found = trajsmith(name, copied, *options)
    assert found.code == 2 and f"{file}:{number + 1}: " in found.err
    file.write_bytes(whole + b'{"id": "verdict_')
    assert trajsmith(name, copied, *options).code == 0
    file.write_bytes(whole + whole.splitlines(keepends=True)[0])
    found = trajsmith(name, copied, *options)
    assert found.code == 1 and "verdicts.jsonl: " in found.err and "trajectories.jsonl" in found.err


def test_a_damaged_last_record_is_named_with_its_place(trajsmith, copied):
    file = copied / "verdicts.jsonl"
    *lines, last = file.read_bytes().splitlines(keepends=True)
    start = sum(map(len, lines))
    file.write_bytes(b"".join(lines) + b"garbage".ljust(len(last) - 1) + b"\n")
    line = one_line(trajsmith("resume", copied), 1)
    assert f"error: {file}: the run was changed by hand: no records at byte {start}" in line


def test_a_record_that_was_cut_out_is_noticed(trajsmith, copied):
    lines = (copied / "trajectories.jsonl").read_bytes().splitlines(keepends=True)
    (copied / "trajectories.jsonl").write_bytes(b"".join(lines[:1] + lines[2:]))
    line = one_line(trajsmith("export", copied), 1)
    assert "verdicts.jsonl" in line or "tasks.jsonl" in line


def test_a_missing_state_is_made_again(trajsmith, copied):
    before = records(copied)
    for state in copied.glob("states/*"):
        state.unlink()
    assert trajsmith("resume", copied).code == 0
    assert records(copied) == before


def test_replay_without_its_state_names_the_file(trajsmith, copied):
    (state,) = copied.glob("states/*")
    state.unlink()
    assert str(state) in one_line(trajsmith("replay", copied), 1).replace("error: ", "")


def test_replay_on_a_changed_state_is_refused(trajsmith, copied):
    (state,) = copied.glob("states/*")
    state.write_bytes(state.read_bytes().replace(b"1", b"2"))
    line = one_line(trajsmith("replay", copied), 1)
    assert str(state) in line
    assert "was changed" in line


def test_replay_of_a_run_that_has_not_played_yet_names_the_way_on(trajsmith, copied):
    for name in ("trajectories.jsonl", "summary.json"):
        (copied / name).unlink()
    line = one_line(trajsmith("replay", copied), 2)
    assert line == f"error: {copied}: there is nothing to replay yet: trajsmith resume {copied}"


@pytest.mark.parametrize("command", ["resume", "export", "replay", "verify", "report", "audit"])
@pytest.mark.parametrize("name", ["trajectories.jsonl", "tasks.jsonl", "verdicts.jsonl"])
def test_a_record_that_was_edited_is_noticed(trajsmith, copied, command, name):
    lines = (copied / name).read_bytes().splitlines(keepends=True)
    old, new = {
        "trajectories.jsonl": (b"a", b"e"),
        "tasks.jsonl": (b"Please", b"plEase"),
        "verdicts.jsonl": (b"1.0", b"0.5"),
    }[name]
    at = lines[1].rindex(b'"content":"') + 11 if name == "trajectories.jsonl" else 0
    edited = lines[1][:at] + lines[1][at:].replace(old, new, 1)
    if edited == lines[1]:
        edited = lines[1].replace(b"a ", b"e ", 1)
    assert len(edited) == len(lines[1]) and edited != lines[1]
    (copied / name).write_bytes(b"".join([lines[0], edited, *lines[2:]]))
    found = trajsmith(command, copied)
    if command in {"replay", "verify"} and name == "verdicts.jsonl":
        return  # neither reads verdicts that are there
    assert f"{copied / name}:2: changed by hand: " in one_line(found, 2)
    assert (copied / name).read_bytes() == b"".join([lines[0], edited, *lines[2:]])


@pytest.mark.parametrize("name", [".", "..", "/", "a/.."])
def test_a_folder_without_a_name_is_not_written(name):
    with pytest.raises(InputError, match="is no name of a folder"):
        AtomicFolder(name, ())
