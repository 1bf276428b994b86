"""The expert as the model of all roles in this process, and loops that it drives."""

import json
import sys
from pathlib import Path

from chatmodel.prompts import Prompts
from chatmodel.settings import ModelSettings
from chatmodel.wire import read_reply, to_body
from envgen.sources import Source
from envgen.synthesis import Loop, SynthesisSettings
from envgen.synthesis.desk import Desk
from envgen.synthesis.examining import Bench
from envgen.synthesis.prompting import SPECS
from envgen.synthesis.records import Theme
from envgen.synthesis.settings import ROLES
from envgen.synthesis.store import Store
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
