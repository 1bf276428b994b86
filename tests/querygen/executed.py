"""Small chains of the bundled environments, executed, with the provenance of every argument."""

from trajsmith.environments import NativeSession
from trajsmith.environments.library import ENVIRONMENTS, get_phrases_path
from trajsmith.grounding import build_selector_key
from trajsmith.grounding.paths import get_value
from trajsmith.grounding.user_facts import collect_user_facts
from trajsmith.phrasing import Wording, load_phrasebook
from trajsmith.phrasing.value_formatting import find_clock_date
from trajsmith.records import FromOutput, FromUser, GoldCall, Selector, canonical_json


def said(value, key):
    """An argument that the user says."""
    return value, FromUser(known=key)


class Chain:
    """Calls that are made one by one on one state."""

    def __init__(self, name, state=None):
        self.cls = ENVIRONMENTS.get(name)
        self.spec = self.cls.describe()
        self.state = state or self.cls.seed_state("small", 1).model_dump(mode="json")
        self.wording = Wording(load_phrasebook(get_phrases_path(self.cls)), self.spec.tools)
        self.session = NativeSession(self.cls, self.spec)
        self.calls = []

    async def start(self):
        await self.session.reset(self.state)
        return self

    async def call(self, tool, **arguments):
        """Make a call; arguments are (value, provenance)."""
        values = {name: value for name, (value, _) in arguments.items()}
        before = await self.session.state_hash()
        result = await self.session.call(tool, values)
        assert result.ok, result.text
        effect = "read" if await self.session.state_hash() == before else "write"
        sources = {name: source for name, (_, source) in arguments.items()}
        self.calls.append(
            GoldCall(tool=tool, arguments=values, provenance=sources, effect=effect, result=result.content)
        )
        return result.content

    def take(self, call, path, row=None, how="equals", field="", value=None):
        """An argument from an earlier result: of a row, which is selected by a field."""
        result = self.calls[call].result
        if row is None:
            return get_value(result, path), FromOutput(call=call, path=path)
        shown = get_value(row, field)
        selector = Selector(rows="$.result", how=how, field=field, value=shown) if field else None
        selectors = (selector,) if selector else (Selector(rows="$.result", how="only"),)
        return row[path.rpartition(".")[2]], FromOutput(call=call, path=path, selectors=selectors)

    @property
    def known(self):
        facts = collect_user_facts(self.calls, {tool.name: tool for tool in self.spec.tools}, self.wording.phrasebook)
        return {fact.key: fact for fact in facts}

    @property
    def initial(self):
        return canonical_json(self.state).decode()

    @property
    def now(self):
        return find_clock_date(self.state)


__all__ = ["Chain", "build_selector_key", "said"]
