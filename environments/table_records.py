"""The records of one table in one episode: JSON over a shared base, and objects created at the first access.

Between calls every record is JSON: what a write changed is dumped, validated and made anew, so that nothing is shared
between two records, and a play that is saved and loaded goes on as if it had not been.

All tools that read share one set of objects per play. A tool that writes works on objects of its own, unless the
records are flat (hold nothing but scalars). What readers had is compared with its JSON too: at once after a call that
touched few records; else when somebody looks at the changes, or when the record is touched by its key.
"""

from collections.abc import Iterator, Mapping
from operator import is_
from typing import Any

from trajsmith.environments.jsontypes import JsonType, StateError, is_same_json
from trajsmith.environments.programs import StateChange

FEW = 16
"""Records that a reader touched are compared at the end of its call if they are no more than this."""
Sealed = tuple[str, bytes, Any]
"""A record after a call: its key, its JSON, and the object that this JSON stands for."""
_NOTHING: Any = object()


class CallMode:
    """State of the running call; shared by all tables of an episode."""

    __slots__ = ("touched", "writing")

    def __init__(self) -> None:
        self.writing = False
        """True if the tool declares that it writes."""
        self.touched: dict[str, TableRecords] = {}
        """Tables of which the call was given records, or in which it put some."""


class TableRecords:
    """Records of one table: their keys and JSON, and the objects that calls were given."""

    __slots__ = (
        "base",
        "complete",
        "gone",
        "kind",
        "loose",
        "loose_all",
        "mode",
        "moved",
        "name",
        "order",
        "out",
        "out_all",
        "put",
        "read",
        "tail",
        "texts",
        "told",
        "version",
        "was",
    )

    def __init__(self, name: str, kind: JsonType, base: Mapping[str, bytes], mode: CallMode) -> None:
        self.name = name
        self.kind = kind
        self.mode = mode
        self.base = base
        """JSON of the initial records; shared by all plays, never changed."""
        self.texts: dict[str, bytes] = {}
        """JSON of records that are not as in the base."""
        self.gone: dict[str, None] = {}
        """Keys of the base that are not at their place there any more."""
        self.tail: dict[str, None] = {}
        """Keys after those of the base, in order."""
        self.read: dict[str, Any] = {}
        """Objects for readers, and for writers where records are flat."""
        self.complete = False
        """True while `read` has every record, in order."""
        self.loose: dict[str, Any] = {}
        """Objects that readers had; whether they still are what their JSON says is not known."""
        self.loose_all = False
        """True if readers had all of `read`."""
        self.told: dict[str, tuple[bytes | None, bool]] = {}
        """What changed since somebody looked: the JSON then, and whether the record was inserted since."""
        self.version = 0
        """Counts insertions and deletions, for iterators."""
        # The running call
        self.out: dict[str, Any] = {}
        """Objects that it was given or has put in."""
        self.out_all = False
        """True if it was given all of `read`."""
        self.was: dict[str, tuple[Any, ...]] = {}
        """What was in the flat records that it was given to write: the very objects."""
        self.put: dict[str, None] = {}
        """Keys that it assigned or deleted."""
        self.moved: dict[str, None] = {}
        """Those of them that it inserted or deleted; the inserted ones in the order of the table."""
        self.order: tuple[dict[str, None], dict[str, None]] | None = None
        """`gone` and `tail` before, if it inserted or deleted."""

    # Which there are

    def has(self, key: object) -> bool:
        return key in self.tail or (key in self.base and key not in self.gone)

    def size(self) -> int:
        return len(self.base) - len(self.gone) + len(self.tail)

    def text(self, key: str) -> bytes:
        """JSON of a record as it was before the running call.

        Raises:
            KeyError: There is no such record.
        """
        if (self.gone or self.tail or self.moved) and not self.has(key):
            raise KeyError(key)
        return self.texts.get(key) or self.base[key]

    def keys(self, backwards: bool = False) -> Iterator[str]:
        """The keys in order; raises RuntimeError as a dict does if some are inserted or deleted meanwhile."""
        version = self.version
        halves: list[tuple[Any, Any]] = [(self.base, self.gone), (self.tail, ())]
        for keys, skipped in reversed(halves) if backwards else halves:
            for key in reversed(keys) if backwards else keys:
                if key not in skipped:
                    yield key
                    if self.version != version:
                        raise RuntimeError("dictionary changed size during iteration")

    # What a call does

    def get(self, key: str) -> Any:
        """The object of a record that the running call does not have yet.

        Raises:
            KeyError: There is no such record.
        """
        if self.loose_all or self.loose:
            self._settle_loose(key)
        return self._take(key)

    def _take(self, key: str) -> Any:
        self.mode.touched[self.name] = self
        if self.moved and not self.has(key):
            raise KeyError(key)
        writing, flat = self.mode.writing, self.kind.flat
        value = self.read.get(key) if flat or not writing else None
        if value is None:
            value = self.kind.read(self.text(key))
            if flat or not writing:
                self.read[key] = value
        if flat and writing:
            self.was[key] = tuple(value.__dict__.values())
        self.out[key] = value
        return value

    def whole(self) -> dict[str, Any] | None:
        """All records in a dict for the running call to iterate over, if it reads and they were all touched before."""
        if not self.complete or self.mode.writing:
            return None
        self.mode.touched[self.name] = self
        self.out_all = True
        return self.read

    def scan(self, backwards: bool = False) -> Iterator[tuple[str, Any]]:
        """All records in order, for the running call, made one by one."""
        out, take = self.out, self.get if self.mode.writing else self._take
        for key in self.keys(backwards):
            value = out.get(key, _NOTHING)
            yield key, take(key) if value is _NOTHING else value
        if not self.mode.writing:
            read = self.read
            self.read, self.complete = {key: read[key] for key in self.keys()}, True

    def assign(self, key: str, value: Any) -> None:
        self.mode.touched[self.name] = self
        if self.loose_all or self.loose:
            self._settle_loose(key)
        self.put[key] = None
        if not self.has(key):
            self._reorder(key)
            self.tail[key] = None
        self.out[key] = value
        if not self.mode.writing:
            self.read[key] = value  # iterators of a reader run over `read`

    def delete(self, key: str) -> None:
        self.mode.touched[self.name] = self
        if self.loose_all or self.loose:
            self._settle_loose(key)
        self.put[key] = None
        self._reorder(key)
        if key in self.tail:
            del self.tail[key]
        else:
            self.gone[key] = None
        self.out.pop(key, None)
        if not self.mode.writing:
            self.read.pop(key, None)

    def _reorder(self, key: str) -> None:
        if self.order is None:
            self.order = (dict(self.gone), dict(self.tail))
        self.moved.pop(key, None)
        self.moved[key] = None
        self.version += 1

    # The end of a call

    def seal(self) -> list[Sealed]:
        """Return the records that the running call changed, in their final form.

        Raises:
            StateError: It left what is no record of this table.
        """
        return [
            (key, *self.kind.seal(value, self.name, key))
            for key, value in self.out.items()
            if key in self.put or not self._is_untouched(key, value)
        ]

    def _is_untouched(self, key: str, value: Any) -> bool:
        """Return whether a record is as it was given. Equality is not enough where records are kept: 5 and 5.0 are
        equal.
        """
        was = self.was.get(key)
        if was is None:
            return self.kind.serializes_to(value, self.text(key))
        now = value.__dict__.values()
        return len(now) == len(was) and all(map(is_, now, was))

    def keep(self, entries: list[Sealed]) -> None:
        """Store sealed records as the new state."""
        for key in self.moved:
            self._note(key, self._text_before(key), self.has(key))
            self.read.pop(key, None)
            if not self.has(key):
                self.texts.pop(key, None)
        for sealed in entries:
            self._settle(*sealed)
        if self.out_all:
            self._doubt()
        self._end()

    def leave(self) -> None:
        """End a call that only read."""
        self._doubt()
        self._end()

    def revert(self) -> None:
        """End a call as if it had not been."""
        if self.order is not None:
            self.gone, self.tail = self.order
            self.version += 1
        for key in self.put:
            self.read.pop(key, None)
            self.complete = False
        for key, value in list((self.read if self.out_all else self.out).items()):
            if self.read.get(key) is value and not self._is_untouched(key, value):
                del self.read[key]
                self.complete = False
        self._end()

    def _end(self) -> None:
        self.out_all, self.order = False, None
        self.out.clear()
        self.was.clear()
        self.put.clear()
        self.moved.clear()

    def _doubt(self) -> None:
        """Compare what a reader had with its JSON, or remember to do so."""
        had = self.read if self.out_all else self.out
        if len(had) <= FEW:
            for key, value in list(had.items()):
                self._check(key, value)
        elif self.out_all:
            self.loose_all = True
        else:
            self.loose.update(had)

    def _settle_loose(self, key: str) -> None:
        """Compare what readers before the running call had, before it does something with it."""
        value = self.read.get(key)
        handed_out = self.out_all or key in self.out or key in self.put
        if value is not None and not handed_out and (self.loose_all or key in self.loose):
            self._check(key, value)

    def _check(self, key: str, value: Any) -> None:
        """Compare what readers had with its JSON."""
        self.loose.pop(key, None)
        if self.kind.serializes_to(value, self.text(key)):
            return
        try:
            self._settle(key, *self.kind.seal(value, self.name, key))
        except StateError:
            del self.read[key]
            self.complete = False
            raise

    def _settle(self, key: str, text: bytes, value: Any) -> None:
        if key not in self.moved and text != (known := self.text(key)):
            self._note(key, known, False)
        if key not in self.tail and text == self.base[key]:
            self.texts.pop(key, None)
        else:
            self.texts[key] = text
        self.read[key] = value

    def _text_before(self, key: str) -> bytes | None:
        gone, tail = self.order or (self.gone, self.tail)
        there = key in tail or (key in self.base and key not in gone)
        return (self.texts.get(key) or self.base[key]) if there else None

    def _note(self, key: str, before: bytes | None, inserted: bool) -> None:
        known = self.told.get(key)
        if known is None:
            self.told[key] = (before, inserted)
        elif inserted:
            del self.told[key]
            self.told[key] = (known[0], True)

    # Between calls

    def load(self, key: str, text: bytes | None) -> None:
        """Take over a change that is told already.

        Raises:
            StateError: This is no record of this table.
        """
        if text is None:
            if self.tail.pop(key, _NOTHING) is _NOTHING and key in self.base:
                self.gone[key] = None
            self.texts.pop(key, None)
            self.read.pop(key, None)
            return
        normal, value = self.kind.load(text, self.name, key)
        if not self.has(key):
            self.tail[key] = None
        self.texts[key] = normal
        self.read[key] = value
        if not is_same_json(normal, text):
            self.told[key] = (text, False)

    def changes(self) -> list[StateChange]:
        """Return the changes since the last call of this method.

        Raises:
            StateError: A tool that only reads, as it says, has left what is no record.
        """
        if self.loose or self.loose_all:
            for key, value in list((self.read if self.loose_all else self.loose).items()):
                if self.read.get(key) is value:
                    self._check(key, value)
            self.loose.clear()
            self.loose_all = False
        changes: list[StateChange] = []
        for key, (before, inserted) in self.told.items():
            now = self.text(key) if self.has(key) else None
            if before is not None and (now is None or inserted):
                changes.append((self.name, key, None))
            if now is not None and (inserted or now != before):
                changes.append((self.name, key, now))
        self.told.clear()
        return changes
