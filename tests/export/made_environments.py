"""A folder of accepted environments, as `trajsmith env gen --count` leaves it, without the minutes that it takes."""

import json

CODE = '''
from pydantic import Field

from trajsmith import Environment, EnvironmentState, StateModel, ToolError, tool


class Item(StateModel):
    item_id: str
    name: str
    stock: int


class State(EnvironmentState):
    items: dict[str, Item] = Field(default_factory=dict)


class {cls}(Environment[State]):
    """A {name} with items. <b>Cheap</b> | prices."""

    domain = "commerce/{name}"

    @classmethod
    def seed_state(cls, size, seed):
        count = {{"small": 3, "medium": 6, "large": 9}}[size]
        items = [Item(item_id=f"I{{n}}", name=f"{name} item {{n}}", stock=n) for n in range(1, count + 1)]
        return State(now="2026-05-04T09:00:00", items={{item.item_id: item for item in items}})

    @tool(effect="read")
    def get_item(self, item_id: str) -> Item:
        """Show an item.

        Args:
            item_id: Identifies the item.
        """
        return self._find(item_id)

    @tool(effect="read")
    def list_items(self) -> list[Item]:
        """List all items."""
        return list(self.state.items.values())

    @tool(effect="write")
    def take_item(self, item_id: str) -> Item:
        """Take one of an item.

        Args:
            item_id: Identifies the item.
        """
        item = self._find(item_id)
        if item.stock < {least}:
            raise ToolError("none left")
        item.stock -= {step}
        return item

    def _find(self, item_id):
        if item_id not in self.state.items:
            raise ToolError(f"there is no item {{item_id}}")
        return self.state.items[item_id]
'''
SOURCE = {"kind": "mcp", "name": "x/shop", "digest": "ab", "title": "shop", "licence": "MIT"}


def write_environment(folder, name, accepted=True, step=1, least=1, source=SOURCE):
    """One environment in its folder."""
    place = folder / name
    place.mkdir(parents=True)
    code = CODE.format(cls=name.title(), name=name, step=step, least=least)
    (place / f"{name}.py").write_text(code)
    (place / f"test_{name}.py").write_text("def test_it():\n    pass\n")
    (place / "blueprint.json").write_text(json.dumps({"name": name, "source": source}))
    (place / "stages.jsonl").write_text("{}\n")
    verdict = {
        "name": name, "accepted": accepted, "directory": str(place), "score": 0.97, "tests": "9 passed", "entities": 1,
        "tools": 3, "left_out": 0, "reasons": [] if accepted else ["too few tools"], "seconds": 3.5,
    }  # fmt: skip
    (place / "made.json").write_text(json.dumps(verdict))
    return place


def write_catalogue(folder, *names, **settings):
    """A catalogue with these accepted environments, and one that was rejected."""
    for name in names:
        write_environment(folder, name, **settings)
    entries = [{"name": name, "accepted": True} for name in names] + [{"name": "bad", "accepted": False}]
    (folder / "catalogue.json").write_text(json.dumps({"entries": entries}))
    return folder
