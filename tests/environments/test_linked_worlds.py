"""Linked worlds: one clock, equal values, and what happens where a link does not fit."""

from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from trajsmith.environments.library import ENVIRONMENTS, get_phrases_path
from trajsmith.environments.linked import LinkedSource, list_worlds
from trajsmith.environments.linked_states import BrokenLinkError, StateLink, link_states, set_clock
from trajsmith.environments.sources import EnvironmentSettings, expand_settings, open_source
from trajsmith.grounding import check_scenarios
from trajsmith.phrasing import load_phrasebook, render_clock
from trajsmith.records import InputError, content_hash

SHOP = {
    "now": "2026-05-10T09:30:00",
    "customers": {
        "C1": {"name": "Ana Ruiz", "email": "ana@example.com"},
        "C2": {"name": "Bo Lind", "email": "bo@x.com"},
    },
    "orders": {
        "O1": {"placed_at": "2026-05-08T22:15:00", "buyer": "Ana Ruiz", "total": 12.5, "note": "for Ana Ruiz's mum"}
    },
}
DIARY = {"now": "2026-03-01T17:00:00", "owner": {"name": "Cleo Vance", "email": "cleo@example.com"}, "limit": 3}


def open_worlds(*names: str) -> list[LinkedSource]:
    entries = [EnvironmentSettings(linked=name, states={"small": 1, "medium": 1}) for name in names]
    sources = [open_source(each) for entry in entries for each in expand_settings(entry)]
    assert all(isinstance(source, LinkedSource) for source in sources)
    return sources  # type: ignore[return-value]


def link(**values: Any) -> StateLink:
    return StateLink.model_validate({"from": "diary.owner", "to": "shop.customers", **values})


def test_a_value_that_has_words_of_its_own_gets_no_unit_behind_it() -> None:
    """ "Half an hour minutes" was said where only numbers take their unit."""
    worded = {
        name.partition(".")[2] or name
        for environment in ENVIRONMENTS.names()
        for name, phrases in load_phrasebook(get_phrases_path(ENVIRONMENTS.get(environment))).parameters.items()
        if any(value.isdecimal() for value in phrases.values)
    }
    assert "minutes" in worded
    for source in open_worlds(*list_worlds()):
        texts = [text for story in source.world.scenarios for step in story.steps for text in (*step.ask, *step.say)]
        wrong = [text for text in texts if any(f"{{{name}}} minutes" in text for name in worded)]
        assert not wrong, wrong


def test_all_states_get_one_clock_and_keep_their_distances() -> None:
    states = set_clock({"shop": SHOP, "diary": DIARY}, "diary")
    assert states["shop"]["now"] == states["diary"]["now"] == "2026-03-01T17:00:00", "the later time of day"
    assert states["shop"]["orders"]["O1"]["placed_at"] == "2026-02-27T22:15:00", "two days before, as it was"
    assert SHOP["now"] == "2026-05-10T09:30:00", "the given state is unchanged"


def test_a_name_is_exchanged_wherever_it_stands_as_a_word() -> None:
    names = link(names={"name": "name", "email": "email"}, rows=1)
    shop = link_states({"shop": SHOP, "diary": DIARY}, [names], "shop")["shop"]
    assert shop["customers"]["C1"] == {"name": "Cleo Vance", "email": "cleo@example.com"}
    assert shop["orders"]["O1"]["buyer"] == "Cleo Vance"
    assert shop["orders"]["O1"]["note"] == "for Cleo Vance's mum"
    assert shop["customers"]["C2"] == SHOP["customers"]["C2"]  # type: ignore[index]


def test_a_name_that_the_other_state_has_already_changes_places() -> None:
    diary = DIARY | {"owner": {"name": "Bo Lind", "email": "cleo@example.com"}}
    shop = link_states({"shop": SHOP, "diary": diary}, [link(names={"name": "name"}, rows=1)], "shop")["shop"]
    assert [row["name"] for row in shop["customers"].values()] == ["Bo Lind", "Ana Ruiz"]


def test_a_value_changes_in_its_row_only() -> None:
    amount = link(**{"to": "shop.orders", "from": "diary", "values": {"limit": "total"}, "rows": 1})
    shop = link_states({"shop": SHOP, "diary": DIARY}, [amount], "shop")["shop"]
    assert shop["orders"]["O1"]["total"] == 3


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"to": "shop.clients", "names": {"name": "name"}}, "the state has no shop.clients"),
        ({"names": {"phone": "name"}}, "a row has no phone"),
        ({"names": {"name": "name"}, "rows": 2}, "there are 1 and 2 rows, and 2 must be in both"),
        ({"to": "shop.orders", "names": {"name": "total"}}, "write the field under `values`"),
        ({"to": "shop.now", "names": {"name": "name"}}, "neither a table nor an object"),
    ],
    ids=["no table", "no field", "too few rows", "no text", "no rows"],
)
def test_a_link_that_does_not_fit_says_why(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(BrokenLinkError, match=r"link from diary\.owner to shop") as caught:
        link_states({"shop": SHOP, "diary": DIARY}, [link(**given)], "shop")
    assert reason in str(caught.value)


@pytest.mark.parametrize("name", list_worlds())
async def test_bundled_worlds_are_whole(name: str) -> None:
    (source,) = open_worlds(name)
    spec = await source.spec()
    check_scenarios(source.scenarios, spec)
    states = await source.states(5)
    assert source.broken == {}
    (clock,) = {part["now"] for part in states[0].values()}
    assert render_clock(states[0]) == clock.replace("T", " ")[:16], "the agent is told the time that all share"
    assert states == await open_worlds(name)[0].states(5)
    homes = source.composite.homes
    for scenario in source.scenarios.scenarios:
        assert len({homes[step.tool][0] for step in scenario.steps}) > 1, scenario.id
        crossing = [
            reference
            for step in scenario.steps
            for reference in step.same_as.values()
            if homes[scenario.find_step(reference.split(".")[0]).tool][0] != homes[step.tool][0]  # type: ignore[union-attr]
        ]
        assert crossing, f"{scenario.id}: no value crosses"


@pytest.mark.parametrize("name", list_worlds())
def test_nobody_books_a_trip_that_an_event_could_come_too_early_for(name: str) -> None:
    """The user had to be in another town at nine and was given a ferry at 17:20."""
    (source,) = open_worlds(name)
    for scenario in source.world.scenarios:
        tools = {step.name: step.tool for step in scenario.steps}
        for step in scenario.steps:
            if step.tool in ("travel.search_connections", "travel.book_trip", "travel.move_trip"):
                givers = [tools[reference.split(".")[0]] for reference in step.same_as.values()]
                assert not any(tool.startswith("calendar.") for tool in givers), f"{scenario.id}: {step.name}"


@pytest.mark.parametrize("name", list_worlds())
def test_nobody_pays_for_a_purchase_twice(name: str) -> None:
    """The shop charged the user, who then sent the same amount to a friend."""
    charged = ("retail.place_order", "travel.book_trip", "travel.reserve_room")
    (source,) = open_worlds(name)
    for scenario in source.world.scenarios:
        tools = {step.name: step.tool for step in scenario.steps}
        for step in scenario.steps:
            amount = step.same_as.get("amount", "").split(".")[0]
            if step.tool == "bank.pay_payee" and tools[amount] in charged:
                assert all("card" in text for text in step.say), f"{scenario.id}: say that somebody else was charged"


WORLD = """
name: broken
description: A test.
environments: [bank, calendar]
links:
  - {from: calendar.owner, to: bank.accounts, values: {name: balance}}
scenarios:
  - id: remind
    motives: ["I forget things."]
    steps:
      - tool: bank.list_standing_orders
      - tool: calendar.add_task
        same_as: {due_date: list_standing_orders.next_on}
"""


async def test_a_state_that_an_environment_refuses_is_a_broken_link(tmp_path: Path) -> None:
    (tmp_path / "world.yaml").write_text(WORLD)
    (source,) = open_worlds(str(tmp_path / "world.yaml"))
    states = await source.states(5)
    assert [content_hash(state) for state in states] == list(source.broken)
    assert all("bank refuses its linked state" in reason for reason in source.broken.values())


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("tool: calendar.add_task", "tool: diary.add_task", "there is no environment 'diary'"),
        ("to: bank.accounts", "to: till.accounts", "there is no environment 'till'"),
        ("tool: calendar.add_task", "tool: add_task", "write the tool 'add_task' as environment.tool"),
        ("[bank, calendar]", "[bank, {linked: trips}]", "a world cannot be part of another"),
        ("[bank, calendar]", "[bank]", "environments"),
    ],
    ids=["step", "link", "plain name", "world in a world", "one environment"],
)
async def test_a_world_that_cannot_be_used_is_one_line(tmp_path: Path, old: str, new: str, reason: str) -> None:
    (tmp_path / "world.yaml").write_text(WORLD.replace(old, new))
    with pytest.raises(InputError, match=reason):
        (source,) = open_worlds(str(tmp_path / "world.yaml"))
        await source.spec()
        check_scenarios(source.scenarios, await source.spec())


LIBRARY = '''
from datetime import date, datetime

from trajsmith import Environment, EnvironmentState, tool


class LibraryState(EnvironmentState):
    readers: dict[str, dict[str, str]] = {}
    loans: dict[str, date] = {}


class Library(Environment[LibraryState]):
    """A library."""

    @classmethod
    def seed_state(cls, size: str, seed: int) -> LibraryState:
        return LibraryState(
            now=datetime(2026, 2, 1, 10),
            seed=seed,
            readers={"R1": {"full_name": "Ida Holm", "email": "ida@example.com"}},
            loans={"The Lighthouse": date(2026, 2, 15)},
        )

    @tool(effect="read")
    def get_due_day(self, book: str) -> dict[str, date]:
        """Return the day by which a book has to be back.

        Args:
            book: Title of the book.
        """
        return {"due_on": self.state.loans[book]}
'''


async def test_an_environment_of_the_users_own_can_be_part_of_a_world(tmp_path: Path) -> None:
    (tmp_path / "library.py").write_text(LIBRARY)
    world = WORLD.replace("[bank, calendar]", "[{python: library.py}, calendar]")
    world = world.replace(
        "to: bank.accounts, values: {name: balance}", "to: library.readers, names: {name: full_name, email: email}"
    )
    world = world.replace("bank.list_standing_orders", "library.get_due_day").replace(
        "list_standing_orders.next_on", "get_due_day.due_on"
    )
    (tmp_path / "world.yaml").write_text(world.replace("links:", "clock: calendar\nlinks:"))
    (source,) = open_worlds(str(tmp_path / "world.yaml"))
    spec = await source.spec()
    check_scenarios(source.scenarios, spec)
    state, *_ = await source.states(5)
    assert source.broken == {}
    library, calendar = state["library"], state["calendar"]
    assert library["readers"]["R1"] == {"full_name": calendar["owner"]["name"], "email": calendar["owner"]["email"]}
    due, now = date.fromisoformat(library["loans"]["The Lighthouse"]), datetime.fromisoformat(calendar["now"])
    assert library["now"] == calendar["now"] and (due - now.date()).days == 14


def test_a_text_that_looks_like_a_date_stays_as_it_is() -> None:
    shop = SHOP | {"orders": {"O1": {"code": "2026-99-99", "until": "2026-05-11"}}}
    states = set_clock({"shop": shop, "diary": DIARY}, "diary")
    assert states["shop"]["orders"]["O1"] == {"code": "2026-99-99", "until": "2026-03-02"}


def test_a_date_that_would_leave_the_calendar_is_said() -> None:
    shop = SHOP | {"now": "2020-01-01T09:00:00", "orders": {"O1": {"until": "9999-12-31"}}}
    with pytest.raises(BrokenLinkError, match="9999-12-31 cannot be moved by"):
        set_clock({"shop": shop, "diary": DIARY}, "diary")
