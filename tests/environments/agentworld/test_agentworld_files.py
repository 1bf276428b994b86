"""Files in memory: what foreign code does with files, and that nothing else is there."""

import csv
import io

import orjson
import pytest
from agentworld_files import called, loaded, started
from hypothesis import given
from hypothesis import strategies as st

from trajsmith.environments.adapters.agentworld.contents import parse_content, render_content
from trajsmith.records import EnvironmentFault

FILES = {"a.json": '{"x": 1}', "t/b.txt": "one\ntwo\n", "t/deep/c.csv": "k,v\n1,2\n"}


@pytest.mark.parametrize(
    ("body", "content"),
    [
        ("import json; return json.load(open('a.json'))", {"x": 1}),
        ("return open('/app/database/t/b.txt').readlines()", {"result": ["one\n", "two\n"]}),
        ("return [line for line in open('t/b.txt')]", {"result": ["one\n", "two\n"]}),
        ("return open('t/b.txt', 'rb').read().decode()", "one\ntwo\n"),
        ("import os; return os.listdir()", {"result": ["a.json", "t"]}),
        ("import os; return sorted(os.listdir('t'))", {"result": ["b.txt", "deep"]}),
        ("import os; return [os.getcwd(), os.path.exists('t')]", {"result": ["/app/database", True]}),
        ("import os; return [os.path.isfile('t'), os.path.isdir('t/deep')]", {"result": [False, True]}),
        ("import os.path; return os.path.exists('/etc/passwd')", {"result": False}),
        ("from os.path import join, abspath; return abspath(join('t', '..', 'a.json'))", "/app/database/a.json"),
        ("import os; return os.path.getsize('a.json')", {"result": 8}),
        ("import os; return os.environ.get('HOME', 'none')", "none"),
        ("import os; return [d for d, _, _ in os.walk('.')]", {"result": [".", "./t", "./t/deep"]}),
        ("from pathlib import Path; return Path('t/b.txt').read_text()", "one\ntwo\n"),
        ("from pathlib import Path; return [p.name for p in Path('t').iterdir()]", {"result": ["b.txt", "deep"]}),
        ("from pathlib import Path; return [str(p) for p in Path('.').glob('*.json')]", {"result": ["a.json"]}),
        ("from pathlib import Path; return [p.name for p in Path('t').rglob('*.*')]", {"result": ["b.txt", "c.csv"]}),
        ("import pathlib; return str(pathlib.Path(__file__).parent / 'a.json')", "/app/database/a.json"),
        ("import pathlib; return pathlib.Path('a.json').stat().st_size", {"result": 8}),
        ("import glob; return glob.glob('t/**/*.csv', recursive=True)", {"result": ["t/deep/c.csv"]}),
        ("import glob; return glob.glob('/app/database/*.json')", {"result": ["/app/database/a.json"]}),
        ("import csv; return list(csv.DictReader(open('t/deep/c.csv')))", {"result": [{"k": "1", "v": "2"}]}),
        ("import io; return io.open('t/b.txt').readline()", "one\n"),
    ],
)  # fmt: skip
def test_reading(body, content):
    assert called(body, FILES).content == content


@pytest.mark.parametrize(
    ("body", "changes"),
    [
        ("open('n.txt', 'w').write('x')", {"n.txt": "x"}),
        ("with open('t/b.txt', 'a') as f: f.write('three')", {"t/b.txt": "one\ntwo\nthree"}),
        ("with open('t/b.txt', 'r+') as f: f.read(); f.write('3')", {"t/b.txt": "one\ntwo\n3"}),
        ("with open('n.txt', 'xb') as f: f.write(b'x')", {"n.txt": "x"}),
        ("from pathlib import Path; Path('t/n.json').write_text('[1]')", {"t/n.json": [1]}),
        ("import os; os.remove('a.json')", {"a.json": None}),
        ("import os; os.makedirs('u/v'); open('u/v/w', 'w').close()", {"u/v/w": ""}),
        ("import os; os.makedirs('u/v', exist_ok=True)", {"u/v/": ""}),
        ("import os; os.replace('a.json', 't/a.json')", {"a.json": None, "t/a.json": {"x": 1}}),
        ("import os; os.remove('t/deep/c.csv')", {"t/deep/c.csv": None, "t/deep/": ""}),
        ("import os; os.remove('t/deep/c.csv'); os.rmdir('t/deep')", {"t/deep/c.csv": None}),
        ("import shutil; shutil.copy('a.json', 't')", {"t/a.json": {"x": 1}}),
        ("import shutil; shutil.move('a.json', 'b.json')", {"a.json": None, "b.json": {"x": 1}}),
        ("import json; json.dump({'y': 2}, open('a.json', 'w'))", {"a.json": {"y": 2}}),
        ("open('a.json', 'w').write('{')", {"a.json": {"$text": "{"}}),
        ("open('t/deep/c.csv', 'w').write('k,v\\n')", {"t/deep/c.csv": {"$text": "k,v\n"}}),
        ("f = open('n.txt', 'w'); f.write('x'); f.flush(); return open('n.txt').read()", {"n.txt": "x"}),
    ],
)
def test_writing(body, changes):
    indented = "\n".join(f"    {line}" for line in body.splitlines())
    play = started(loaded(f"def tool():\n{indented}", FILES))
    assert play.call("tool", {}).ok
    found = {name: text if text is None else orjson.loads(text) for name, _, text in play.changes()}
    assert found == changes


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("open('gone.txt')", "FileNotFoundError: [Errno 2] No such file or directory"),
        ("open('/etc/passwd')", "FileNotFoundError"),
        ("open('../../etc/passwd')", "FileNotFoundError"),
        ("open('t')", "IsADirectoryError"),
        ("open('nowhere/x', 'w')", "FileNotFoundError"),
        ("open('a.json', 'x')", "FileExistsError"),
        ("open('a.json', 'rw')", "ValueError: invalid mode: 'rw'"),
        ("open('a.json').write('x')", "UnsupportedOperation: not writable"),
        ("open('a.json', 'w').read()", "UnsupportedOperation: not readable"),
        ("import os; os.mkdir('t')", "FileExistsError"),
        ("import os; os.rmdir('t')", "OSError"),
        ("import os; os.listdir('a.json')", "NotADirectoryError"),
        ("import os; os.system('true')", "AttributeError: module 'os' has no attribute 'system'"),
        ("f = open('n.bin', 'wb'); f.write(b'\\xff'); f.close()", "UnicodeDecodeError"),
    ],
)
def test_what_fails_fails_as_usual(body, error):
    with pytest.raises(EnvironmentFault) as caught:
        called(body, FILES)
    assert caught.value.kind == "crash"
    assert caught.value.message.startswith(error)


def test_files_outside_are_never_touched(tmp_path):
    target = tmp_path / "x.txt"
    with pytest.raises(EnvironmentFault):
        called(f"open({str(target)!r}, 'w').write('x')")
    assert not target.exists()


@given(
    st.lists(
        st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\x00\r\n")), min_size=2, max_size=2),
        max_size=5,
    )
)
def test_tables_come_back(rows):
    out = io.StringIO(newline="")
    csv.writer(out).writerows([["a", "b"], *rows])
    content = parse_content("t.csv", out.getvalue())
    again = render_content("t.csv", content)
    assert list(csv.reader(io.StringIO(again, newline=""))) == [["a", "b"], *rows]
    assert parse_content("t.csv", again) == content


@pytest.mark.parametrize(
    ("name", "text", "content"),
    [
        ("a.json", '"text"', "text"),
        ("a.json", "[NaN]", {"$text": "[NaN]"}),
        ("a.json", '{"$text": "x"}', {"$text": '{"$text": "x"}'}),
        ("a.csv", "", {"$text": ""}),
        ("a.csv", "a,a\n1,2\n", {"$text": "a,a\n1,2\n"}),
        ("a.csv", "a,b\n1\n", {"$text": "a,b\n1\n"}),
        ("a.md", "x", "x"),
    ],
)
def test_contents(name, text, content):
    assert parse_content(name, text) == content
    assert parse_content(name, render_content(name, content)) == content
