"""An environment that does to its state whatever Python lets it do; for tests of tables and native plays."""

from collections import OrderedDict
from datetime import datetime
from typing import Any

from trajsmith.environments import Environment, EnvironmentState, StateModel, ToolError, tool


class Coin(StateModel):
    """A flat record."""

    coin_id: str
    worth: float
    seen: int | None = None


class Box(StateModel):
    """A nested record."""

    box_id: str
    coins: list[Coin] = []
    tags: list[str] = []


class DrawersState(EnvironmentState):
    coins: dict[str, Coin] = {}
    boxes: dict[str, Box] = {}
    notes: list[Box] = []
    """A part that is no table, but nested."""


class Drawers(Environment[DrawersState]):
    """Coins and boxes."""

    # Reading

    @tool(effect="read")
    def coin(self, key: str) -> Coin:
        """One coin."""
        return self.lookup(self.state.coins, key, "coin")

    @tool(effect="read")
    def box(self, key: str) -> Box:
        """One box."""
        return self.state.boxes[key]

    @tool(effect="read")
    def table(self) -> dict[str, Coin]:
        """All coins, as they are kept."""
        return self.state.coins

    @tool(effect="read")
    def everything(self) -> DrawersState:
        """The state."""
        return self.state

    @tool(effect="read")
    def first(self, worth: float) -> Coin:
        """The first coin that is worth so much; a scan that may end early."""
        for coin in self.state.coins.values():
            if coin.worth >= worth:
                return coin
        raise ToolError("no such coin")

    @tool(effect="read")
    def orders(self) -> list[list[str]]:
        """Keys in all the ways in which one can go through a table."""
        coins, boxes = self.state.coins, self.state.boxes
        return [
            list(coins),
            [*reversed(coins)],
            [key for key, _ in boxes.items()],
            [box.box_id for box in boxes.values()],
            [box.box_id for box in reversed(boxes.values())],
            sorted(coins.keys() & boxes.keys()),
            [key for key, _ in reversed(coins.items())],
            [f"{len(coins)}", f"{'a' in coins}", f"{coins == dict(coins)}", f"{bool(boxes)}"],
        ]

    # Writing

    @tool(effect="write")
    def add(self, key: str, worth: float) -> Coin:
        """Add or replace a coin."""
        self.state.coins[key] = coin = Coin(coin_id=self.new_id("coin", "C{:d}"), worth=worth)
        return coin

    @tool(effect="write")
    def pack(self, key: str, coin: str) -> Box:
        """Put a coin into a box, which may be new; the box then shares the coin with the table."""
        box = self.state.boxes.setdefault(key, Box(box_id=key))
        box.coins.append(self.state.coins[coin])
        return box

    @tool(effect="write")
    def spend(self, key: str, number: int) -> Coin:
        """Take from a coin, one by one, until it is worth nothing."""
        coin = self.lookup(self.state.coins, key, "coin")
        for _ in range(number):
            if coin.worth < 1:
                raise ToolError("worth nothing")
            coin.worth -= 1
        return coin

    @tool(effect="write")
    def share(self, key: str, other: str) -> Box:
        """Let two boxes have the same tags, which are then one list."""
        self.state.boxes[key].tags = self.state.boxes[other].tags
        return self.state.boxes[key]

    @tool(effect="write")
    def tag(self, key: str, text: str) -> Box:
        """Tag a box."""
        self.state.boxes[key].tags.append(text)
        return self.state.boxes[key]

    @tool(effect="write")
    def same(self, key: str, other: str) -> int:
        """Keep one box under two keys, and look at all of them."""
        self.state.boxes[key] = self.state.boxes[other]
        return sum(len(box.tags) for box in self.state.boxes.values())

    @tool(effect="write")
    def remove(self, key: str) -> str:
        """Remove a coin."""
        del self.state.coins[key]
        return key

    @tool(effect="write")
    def to_the_end(self, key: str) -> list[str]:
        """Take a box out and put it in again."""
        self.state.boxes[key] = self.state.boxes.pop(key)
        return list(self.state.boxes)

    @tool(effect="write")
    def last_out(self) -> Coin:
        """Remove the coin that came last."""
        return self.state.coins.popitem()[1]

    @tool(effect="write")
    def keep_dear(self, worth: float) -> list[str]:
        """Put another dict in place of the table."""
        self.state.coins = {key: coin for key, coin in self.state.coins.items() if coin.worth >= worth}
        return list(self.state.coins)

    @tool(effect="write")
    def sort(self) -> list[str]:
        """Put the same records in another order."""
        dear = sorted(self.state.coins.items(), key=lambda item: (-item[1].worth, item[0]))
        self.state.coins = OrderedDict(dear)
        return list(self.state.coins)

    @tool(effect="write")
    def empty(self, key: str) -> int:
        """Clear a table but for one coin."""
        coin = self.state.coins[key]
        self.state.coins.clear()
        self.state.coins |= {"z": coin}
        return len(self.state.coins)

    @tool(effect="write")
    def renew(self) -> str:
        """Put a copy in place of the state."""
        self.state = self.state.model_copy(deep=True)
        self.state.seed += 1
        return "new"

    @tool(effect="write")
    def note(self, key: str) -> int:
        """Note a box, in a part that is no table; the note is the box itself."""
        self.state.notes.append(self.state.boxes[key])
        self.state.notes[0].tags.append("noted")
        return len(self.state.notes)

    @tool(effect="write")
    def raw(self, key: str) -> str:
        """Put plain data where a record should be; what it says is what counts."""
        plain: Any = {"coin_id": key, "worth": 3}
        self.state.coins[key] = plain
        return key

    @tool(effect="write")
    def swap(self, key: str, worth: float) -> Coin:
        """Change a coin, then put another one in its place that is as the first was."""
        coin = self.state.coins[key]
        before = coin.model_copy()
        coin.worth = worth
        self.state.coins[key] = before
        return before

    @tool(effect="write")
    def round(self, key: str) -> str:
        """Make a number of another type that is equal to what was there; how it is shown depends on the type."""
        coin = self.state.coins[key]
        shown = str(coin.worth)
        coin.worth = int(coin.worth)
        return shown

    # Refusing and breaking, half way

    @tool(effect="write")
    def refuse(self, key: str) -> str:
        """Do a lot, then refuse."""
        self._mess(key)
        raise ToolError("no")

    @tool(effect="write")
    def crash(self, key: str) -> str:
        """Do a lot, then break."""
        self._mess(key)
        raise KeyError(key)

    @tool(effect="write")
    def nonsense(self, key: str) -> str:
        """Leave a record that is none."""
        self._mess(key)
        for coin in self.state.coins.values():
            coin.worth = None  # type: ignore[assignment]
        return key

    @tool(effect="write")
    def shrink(self) -> str:
        """Delete while iterating, as Python forbids."""
        for key in self.state.coins:
            del self.state.coins[key]
        return "done"

    def _mess(self, key: str) -> None:
        for coin in self.state.coins.values():
            coin.worth += 1
        self.state.coins[key] = Coin(coin_id=key, worth=0)
        self.state.coins.pop("a", None)
        self.state.boxes.update({key: Box(box_id="mess", tags=["x"])})
        self.state.notes.clear()
        self.state.counters["mess"] = 1
        self.state.now = datetime(2030, 1, 1)

    # Lying: these say that they read

    @tool(effect="read")
    def count_views(self, key: str) -> Coin:
        """Changes the coin that it shows."""
        coin = self.state.coins[key]
        coin.seen = (coin.seen or 0) + 1
        return coin

    @tool(effect="read")
    def leave_trace(self, key: str) -> str:
        """Inserts, deletes, and changes a list."""
        self.state.coins.pop(key, None)
        self.state.coins[f"{key}{len(self.state.coins)}"] = Coin(coin_id=key, worth=1)
        for box in self.state.boxes.values():
            box.tags.append("seen")
        self.state.notes.append(Box(box_id=key))
        return key

    @tool(effect="read")
    def peek_and_refuse(self, key: str) -> str:
        """Does what no tool may do, then refuses."""
        self._mess(key)
        raise ToolError("peeked")


def drawers_state(coins: int = 4, boxes: int = 3) -> DrawersState:
    """A state with coins "a", "b", ... and boxes of the same keys."""
    letters = "abcdefghijklmnopqrst"
    return DrawersState(
        now=datetime(2026, 3, 2, 9),
        coins={key: Coin(coin_id=key, worth=2.5 * number) for number, key in enumerate(letters[:coins])},
        boxes={key: Box(box_id=key, coins=[Coin(coin_id="in", worth=1)], tags=[key]) for key in letters[:boxes]},
        notes=[Box(box_id="note")],
    )
