"""Look-ups of a scenario take nothing from the user that they do not require; goals, what their words name."""

from collections import Counter
from typing import Literal

import pytest
from cellar import chain_of

from trajsmith.environments import Environment, EnvironmentState, NativeSession, StateModel, tool
from trajsmith.environments.library import ENVIRONMENTS, get_phrases_path
from trajsmith.grounding import Grounder, GroundSettings
from trajsmith.phrasing import Phrasebook, Scenario, ScenarioBook, load_phrasebook
from trajsmith.phrasing.phrasebook import ParameterPhrases, ToolPhrases
from trajsmith.records import Chain, Dependency, FromOutput, FromUser, GroundedChain, RecordDropped, content_hash
from trajsmith.toolgraph import GraphIndex, Sampler, SampleSettings, build_graph, sample_chains


async def ground(environment: str, *steps: dict, count: int = 12, optional: float = 1.0) -> list[GroundedChain]:
    cls = ENVIRONMENTS.get(environment)
    spec, state = cls.describe(), cls.seed_state("small", 1).model_dump(mode="json")
    story = Scenario.model_validate({"id": "story", "motives": ["It is urgent."], "steps": steps})
    book = ScenarioBook(scenarios=(story,))
    settings = SampleSettings(count=count, scenarios=1.0, length=(2, 11))
    sampler = Sampler(GraphIndex(build_graph(spec.tools), environment), settings, book)
    phrases = load_phrasebook(get_phrases_path(cls))
    grounder = Grounder(spec, state, phrases, GroundSettings(optional=optional), scenarios=book)
    chains = sample_chains({environment: sampler}, {environment: [content_hash(state)]}, settings, 3)
    return [await grounder.ground(chain, NativeSession(cls, spec)) for chain in chains]


@pytest.mark.parametrize(
    ("environment", "steps", "lookup"),
    [
        ("calendar", ({"tool": "complete_task"}, {"tool": "list_invitations"}), "list_tasks"),
        ("smart_home", ({"tool": "set_temperature"}, {"tool": "list_locks"}), "list_rooms"),
    ],
    ids=["priority", "floor"],
)
async def test_a_look_up_has_no_filter_that_must_be_said(
    environment: str, steps: tuple[dict, ...], lookup: str
) -> None:
    calls = [
        call
        for grounded in await ground(environment, *steps)
        for call, step in zip(grounded.calls, grounded.steps, strict=True)
        if not step and call.tool == lookup
    ]
    assert calls
    assert all(call.arguments == {} for call in calls)


async def test_a_goal_has_the_filters_that_one_of_its_sentences_names() -> None:
    step = {"tool": "search_rooms", "say": ["Which rooms for {guests} has {city}?", "What is there in {city}?"]}
    arguments = {
        frozenset(call.arguments)
        for grounded in await ground("travel", step, {"tool": "search_hotels"})
        for call, name in zip(grounded.calls, grounded.steps, strict=True)
        if name == "search_rooms"
    }
    assert arguments == {frozenset({"city"}), frozenset({"city", "guests"})}


async def test_an_order_is_looked_up_among_the_orders() -> None:
    for grounded in await ground("retail", {"tool": "list_returns"}, {"tool": "get_order"}):
        used = [
            grounded.calls[source.call].tool
            for call in grounded.calls
            for name, source in call.provenance.items()
            if name == "order_id" and isinstance(source, FromOutput)
        ]
        assert set(used) <= {"list_customer_orders"}


async def test_no_user_names_a_page() -> None:
    drawn = await ground("retail", {"tool": "search_products"})
    calls = [call for grounded in drawn for call in grounded.calls if call.tool == "search_products"]
    assert calls and any("category" in call.arguments for call in calls)
    assert not any("page" in call.arguments for call in calls)


async def test_a_customer_is_not_asked_for_a_category_on_the_way_to_an_order() -> None:
    for grounded in await ground("retail", {"tool": "cancel_order"}, {"tool": "get_customer_details"}):
        assert "search_products" not in [call.tool for call in grounded.calls]


async def test_what_an_earlier_call_has_shown_is_not_asked_again() -> None:
    same = {"same_as": {"booking_id": "add_extra.booking_id"}}
    steps = {"tool": "add_extra"}, {"tool": "get_trip", **same}, {"tool": "upgrade_trip", **same}
    for grounded in await ground("travel", *steps, {"tool": "get_trip", "id": "again", **same}, {"tool": "list_trips"}):
        names = [name for name in grounded.steps if name]
        assert "get_trip" not in names and "again" not in names
        if names[-1] == "list_trips":  # the price has changed since the trip was looked up
            assert sum(call.tool == "list_trips" for call in grounded.calls) == 2


async def test_a_story_that_only_repeats_itself_is_dropped() -> None:
    with pytest.raises(RecordDropped) as dropped:
        await ground("smart_home", {"tool": "list_locks"}, {"tool": "list_locks", "id": "again"}, count=1)
    assert dropped.value.reason == "scenario_repeated"


async def test_what_all_sentences_of_a_story_say_is_always_given() -> None:
    """Who wants several says how many, where every sentence of the story does."""
    counted = await ground("retail", {"tool": "place_order", "ask": ["order {sku}, {quantity} of them"]}, optional=0.0)
    calls = [call for grounded in counted for call in grounded.calls if call.tool == "place_order"]
    assert len(calls) > 5 and all("quantity" in call.arguments for call in calls)


async def test_a_list_has_a_filter_in_half_of_the_requests_however_few_sentences_name_it() -> None:
    """One sentence of nine does here; drawn by sentences, 8 of 9 lists would show everything."""
    cls = ENVIRONMENTS.get("calendar")
    spec, state = cls.describe(), cls.seed_state("small", 1).model_dump(mode="json")
    phrases = load_phrasebook(get_phrases_path(cls))
    plain = [f"see my tasks, {word}" for word in ("all", "now", "again", "today", "here", "soon", "first", "last")]
    words = type(phrases.tools["list_tasks"])(ask=[*plain, "see my tasks of {priority} priority"])
    book = phrases.model_copy(update={"tools": {**phrases.tools, "list_tasks": words}})
    grounder = Grounder(spec, state, book, GroundSettings(min_calls=1))
    arguments = Counter()
    for seed in range(60):
        chain = Chain(
            index=seed,
            environment=spec.name,
            tools=("list_tasks",),
            dependencies=(),
            state=content_hash(state),
            sampler={},
            seed=seed,
        )
        grounded = await grounder.ground(chain, NativeSession(cls, spec))
        arguments[tuple(grounded.calls[0].arguments)] += 1
    assert set(arguments) == {(), ("priority",)}
    assert 20 <= arguments["priority",] <= 40


class Box(StateModel):
    box_id: str
    box_name: str


class Thing(StateModel):
    thing_id: str
    box_id: str


class StoreState(EnvironmentState):
    boxes: dict[str, Box] = {}
    things: dict[str, Thing] = {}


class Store(Environment[StoreState]):
    """A store room."""

    @tool(effect="read")
    def list_boxes(self) -> list[Box]:
        """List the boxes."""
        return list(self.state.boxes.values())

    @tool(effect="read")
    def list_things(self, box_id: str | None = None) -> list[Thing]:
        """List the things.

        Args:
            box_id: Only those in this box.
        """
        return [one for one in self.state.things.values() if box_id in (None, one.box_id)]


async def test_a_list_is_mostly_asked_for_by_what_an_earlier_call_gave() -> None:
    state = {
        "now": "2026-03-01T09:00:00",
        "boxes": {name: {"box_id": name, "box_name": f"Box {name}"} for name in ("B1", "B2")},
        "things": {f"T{n}": {"thing_id": f"T{n}", "box_id": f"B{1 + n % 2}"} for n in range(6)},
    }
    spec = Store.describe()
    plain = [f"see the things, {word}" for word in ("all", "now", "again", "today", "here", "soon", "first", "last")]
    words = ToolPhrases(ask=[*plain, "see the things in {box_id}"])
    grounder = Grounder(spec, state, Phrasebook(tools={"list_things": words}), GroundSettings(min_calls=1))
    link = Dependency(consumer=1, parameter="box_id", producer=0, output="$.result[*].box_id")
    linked = 0
    for seed in range(60):
        chain = Chain(
            index=seed,
            environment=spec.name,
            tools=("list_boxes", "list_things"),
            dependencies=(link,),
            state=content_hash(state),
            sampler={},
            seed=seed,
        )
        grounded = await grounder.ground(chain, NativeSession(Store, spec))
        linked += isinstance(grounded.calls[1].provenance.get("box_id"), FromOutput)
    assert 42 <= linked <= 58


class Parcel(StateModel):
    parcel_id: str
    weight: int
    status: str


class DepotState(EnvironmentState):
    parcels: dict[str, Parcel] = {}


class ParcelDepot(Environment[DepotState]):
    """A depot whose list shows all that there is to know."""

    @tool(effect="read")
    def list_parcels(self) -> list[Parcel]:
        """List the parcels."""
        return list(self.state.parcels.values())

    @tool(effect="read")
    def count_parcels(self) -> dict[str, int]:
        """Count the parcels."""
        return {"count": len(self.state.parcels)}

    @tool(effect="read")
    def count_new_parcels(self) -> dict[str, int]:
        """Count the parcels that were not sent."""
        return {"count": sum(parcel.status == "new" for parcel in self.state.parcels.values())}

    @tool(effect="read")
    def search_parcels(self, weight: int) -> list[Parcel]:
        """Find parcels of a weight.

        Args:
            weight: What they weigh.
        """
        return [parcel for parcel in self.state.parcels.values() if parcel.weight == weight]

    @tool(effect="read")
    def get_parcel(self, parcel_id: str) -> Parcel:
        """Show a parcel.

        Args:
            parcel_id: The parcel.
        """
        return self.lookup(self.state.parcels, parcel_id, "parcel")

    @tool(effect="write")
    def send_parcel(self, parcel_id: str) -> Parcel:
        """Send a parcel.

        Args:
            parcel_id: The parcel.
        """
        parcel = self.lookup(self.state.parcels, parcel_id, "parcel")
        parcel.status = "sent"
        return parcel


@pytest.mark.parametrize(
    ("tools", "made"),
    [
        (("list_parcels", "get_parcel"), ["list_parcels"]),
        (("list_parcels", "send_parcel"), ["list_parcels", "send_parcel"]),
        (("send_parcel", "get_parcel", "get_parcel"), ["send_parcel"]),
        (("get_parcel", "send_parcel"), ["get_parcel", "send_parcel"]),
        (("list_parcels", "search_parcels"), ["list_parcels"]),
        (("count_parcels", "count_new_parcels"), ["count_parcels", "count_new_parcels"]),
        (("list_parcels", "send_parcel", "search_parcels"), ["list_parcels", "send_parcel", "search_parcels"]),
    ],
)
async def test_what_a_result_has_shown_is_not_looked_up_again(tools: tuple[str, ...], made: list[str]) -> None:
    parcel = {"parcel_id": "P1", "weight": 3, "status": "new"}
    state = {"now": "2026-03-01T09:00:00", "parcels": {"P1": parcel}}
    spec = ParcelDepot.describe()
    grounder = Grounder(spec, state, Phrasebook(), GroundSettings(min_calls=1))
    for seed in range(5):
        chain = chain_of(*tools, seed=seed, environment=ParcelDepot)
        grounded = await grounder.ground(chain, NativeSession(ParcelDepot, spec))
        assert [call.tool for call in grounded.calls] == made


class Sheet(StateModel):
    path: str
    owner: str


class ShelfState(EnvironmentState):
    sheets: dict[str, Sheet] = {}


class Shelf(Environment[ShelfState]):
    """A shelf with sheets."""

    @tool(effect="read")
    def search_sheets(self, query: str) -> list[Sheet]:
        """Search the sheets.

        Args:
            query: Text to look for.
        """
        return [one for one in self.state.sheets.values() if query in one.path]

    @tool(effect="read")
    def find_sheets(self, owner: Literal["Ines", "Omar"]) -> list[Sheet]:
        """Find the sheets of somebody.

        Args:
            owner: Whose sheets.
        """
        return [one for one in self.state.sheets.values() if one.owner == owner]

    @tool(effect="write")
    def sign_sheet(self, path: str) -> Sheet:
        """Sign a sheet.

        Args:
            path: Path of the sheet.
        """
        sheet = self.lookup(self.state.sheets, path, "sheet")
        sheet.owner = f"signed by {sheet.owner}"
        return sheet


@pytest.mark.parametrize(("lookup", "source"), [("search_sheets", FromUser), ("find_sheets", FromOutput)])
async def test_who_looks_for_a_path_knows_it(lookup: str, source: type) -> None:
    sheets = {path: {"path": path, "owner": owner} for path, owner in (("/a/one.pdf", "Ines"), ("/b/two.pdf", "Omar"))}
    state = {"now": "2026-03-01T09:00:00", "sheets": sheets}
    spec = Shelf.describe()
    grounder = Grounder(spec, state, Phrasebook(), GroundSettings(min_calls=1))
    link = Dependency(consumer=1, parameter="path", producer=0, output="$.result[*].path")
    for seed in range(6):
        chain = chain_of(lookup, "sign_sheet", seed=seed, environment=Shelf)
        grounded = await grounder.ground(chain.model_copy(update={"dependencies": (link,)}), NativeSession(Shelf, spec))
        sought, signed = grounded.calls
        assert isinstance(signed.provenance["path"], source)
        assert (signed.arguments["path"] in sought.arguments.values()) is (source is FromUser)


@pytest.mark.parametrize(("words", "least", "most"), [((), 0, 0), (('the sheet "{value}"',), 20, 36)])
async def test_what_has_a_name_for_a_key_is_mostly_called_by_it(words: tuple[str, ...], least: int, most: int) -> None:
    sheets = {path: {"path": path, "owner": "Ines"} for path in ("/a/one.pdf", "/b/two.pdf", "/c/three.pdf")}
    state = {"now": "2026-03-01T09:00:00", "sheets": sheets}
    spec = Shelf.describe()
    book = Phrasebook(parameters={"sign_sheet.path": ParameterPhrases(label="path", mention=words)})
    grounder = Grounder(spec, state, book, GroundSettings(min_calls=1))
    link = Dependency(consumer=1, parameter="path", producer=0, output="$.result[*].path")
    spoken = 0
    for seed in range(40):
        chain = chain_of("find_sheets", "sign_sheet", seed=seed, environment=Shelf)
        grounded = await grounder.ground(chain.model_copy(update={"dependencies": (link,)}), NativeSession(Shelf, spec))
        spoken += isinstance(grounded.calls[-1].provenance["path"], FromUser)
    assert least <= spoken <= most
