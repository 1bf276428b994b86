"""The expert as the model of all roles in this process, and loops that it drives."""

import json
import sys
from pathlib import Path

from trajsmith.envgen.sources import ThemeSource
from trajsmith.envgen.synthesis import SynthesisLoop, SynthesisSettings
from trajsmith.envgen.synthesis.acceptance import write_accepted
from trajsmith.envgen.synthesis.answer_schemas import Repair, UnitTestSuite
from trajsmith.envgen.synthesis.code_assembly import fix_and_format_code, remove_tools
from trajsmith.envgen.synthesis.design_stages import write_first_draft
from trajsmith.envgen.synthesis.examination import DraftRunner
from trajsmith.envgen.synthesis.loop import ThemeProgress
from trajsmith.envgen.synthesis.prompt_specs import SPECS
from trajsmith.envgen.synthesis.prompted_generation import PromptedGenerator
from trajsmith.envgen.synthesis.records import EnvironmentDraft, Examination, Theme
from trajsmith.envgen.synthesis.repair_stage import merge_tests
from trajsmith.envgen.synthesis.settings import ROLES
from trajsmith.environments.sandbox.settings import SandboxSettings
from trajsmith.models.prompts import Prompts
from trajsmith.models.serialization import build_request_body, parse_reply
from trajsmith.models.settings import ModelSettings
from trajsmith.models.structured import parse_answer
from trajsmith.records.journal import StepJournal

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
        said = self.answer(build_request_body(request, self.settings, native=True))
        message = {"role": "assistant", "content": said}
        return parse_reply(json.dumps({"choices": [{"message": message}]}).encode())

    async def close(self):
        """Nothing to close."""


def domain(name):
    return ThemeSource(kind="domain", name=name, summary="", origin="command line", licence=None)


def loop_in(folder, model=None, **settings):
    """A loop that keeps its records in a folder."""
    chosen = SynthesisSettings(**{"trial_rounds": 1, "check_starts": 1, "themes_at_once": 1, **settings})
    model = model or Expert()
    desk = PromptedGenerator(dict.fromkeys(ROLES, model), Prompts(), SPECS)
    bench = DraftRunner(folder / "drafts", chosen, SandboxSettings())
    return SynthesisLoop(desk, bench, StepJournal(folder), "expert", f"{chosen.rounds}")


def theme_of(loop, name):
    """A theme, kept as the command line keeps it."""
    theme = Theme(source=domain(name))
    loop.store.put("themes", theme.id, theme)
    return theme


async def score_library(folder):
    """The folder of the expert's accepted environment, without the rounds in which it came about."""
    loop, files = loop_in(folder), expert.HERE / "score_library"
    theme = theme_of(loop, "score lending")
    design = await loop._design(theme, await loop.propose(theme), ThemeProgress())
    draft = await write_first_draft(loop.generator, design)
    code, tests = draft.code, parse_answer((files / "test.md").read_text(), UnitTestSuite).tests
    for number in range(1, 5):
        said = (files / f"repair-{number}.md").read_text()
        for old, new in expert.EDIT.findall(said):
            assert code.count(old.rstrip("\n")) == 1
            code = code.replace(old.rstrip("\n"), new.rstrip("\n"))
        tests = merge_tests(tests, parse_answer(expert.EDIT.sub("", said).replace("EVERY", "[]"), Repair).tests)
    tests = tuple(test for test in tests if test.tool != "suggest_score")
    last = EnvironmentDraft(
        theme=theme.id,
        design=design.id,
        number=4,
        code=remove_tools(fix_and_format_code(code), ["suggest_score"]),
        tests=tests,
    )
    exam = Examination(
        theme=theme.id, draft=last.id, loads=True, tests_passed=len(tests), tests=len(tests), rules_bound=8, rules=8,
        check_score=1.0, score=1.0, complaints=(),
    )  # fmt: skip
    await write_accepted(loop.generator, loop.bench, loop.store, design, last, exam, None)
    return folder / "environments" / "score_library"
