"""The expert as the model of all roles in this process, and loops that it drives."""

import json
import sys
from pathlib import Path

from chatmodel.prompts import Prompts
from chatmodel.settings import ModelSettings
from chatmodel.structured import read_answer
from chatmodel.wire import read_reply, to_body
from envgen.sources import Source
from envgen.synthesis import Loop, SynthesisSettings
from envgen.synthesis.acceptance import accept
from envgen.synthesis.designing import first_draft
from envgen.synthesis.desk import Desk
from envgen.synthesis.examining import Bench
from envgen.synthesis.loop import Progress
from envgen.synthesis.parts import Repair, Suite
from envgen.synthesis.prompting import SPECS
from envgen.synthesis.records import Draft, Examination, Theme
from envgen.synthesis.repairing import merged
from envgen.synthesis.settings import ROLES
from envgen.synthesis.store import Store
from envgen.synthesis.tidy import tidied, without_tools
from environments.sandbox.settings import SandboxSettings

sys.path.insert(0, str(Path(__file__).parent / "expert"))
import expert


class Expert:
    """Says what the server would say; keeps the purposes of what it was asked."""

    name = "expert"

    def __init__(self, answer=expert.answer):
        self.settings = ModelSettings(model="expert")
        self.answer = answer
        self.asked = []

    async def complete(self, request):
        self.asked.append(request.purpose.split(".")[-1])
        said = self.answer(to_body(request, self.settings, native=True))
        message = {"role": "assistant", "content": said}
        return read_reply(json.dumps({"choices": [{"message": message}]}).encode())

    async def close(self):
        """Nothing to close."""


def domain(name):
    return Source(kind="domain", name=name, summary="", origin="command line", licence=None)


def loop_in(folder, model=None, **settings):
    """A loop that keeps its records in a folder."""
    chosen = SynthesisSettings(**{"trial_rounds": 1, "doctor_starts": 1, "themes_at_once": 1, **settings})
    model = model or Expert()
    desk = Desk(dict.fromkeys(ROLES, model), Prompts(), SPECS)
    bench = Bench(folder / "drafts", chosen, SandboxSettings())
    return Loop(desk, bench, Store(folder), "expert", f"{chosen.rounds}")


def theme_of(loop, name):
    """A theme, kept as the command line keeps it."""
    theme = Theme(source=domain(name))
    loop.store.put("themes", theme.id, theme)
    return theme


async def score_library(folder):
    """The folder of the expert's accepted environment, without the rounds in which it came about."""
    loop, files = loop_in(folder), expert.HERE / "score_library"
    theme = theme_of(loop, "score lending")
    design = await loop._design(theme, await loop.propose(theme), Progress())
    draft = await first_draft(loop.desk, design)
    code, tests = draft.code, read_answer((files / "test.md").read_text(), Suite).tests
    for number in range(1, 5):
        said = (files / f"repair-{number}.md").read_text()
        for old, new in expert.EDIT.findall(said):
            assert code.count(old.rstrip("\n")) == 1
            code = code.replace(old.rstrip("\n"), new.rstrip("\n"))
        tests = merged(tests, read_answer(expert.EDIT.sub("", said).replace("EVERY", "[]"), Repair).tests)
    tests = tuple(test for test in tests if test.tool != "suggest_score")
    last = Draft(
        theme=theme.id, design=design.id, number=4, code=without_tools(tidied(code), ["suggest_score"]), tests=tests
    )
    exam = Examination(
        theme=theme.id, draft=last.id, loads=True, tests_passed=len(tests), tests=len(tests), rules_bound=8, rules=8,
        doctor=1.0, score=1.0, complaints=(),
    )  # fmt: skip
    await accept(loop.desk, loop.bench, loop.store, design, last, exam, None)
    return folder / "environments" / "score_library"
