"""Sentences of a request for what its wishes have not said: a value, or which thing is meant."""

from collections.abc import Sequence

from trajsmith.grounding import build_selector_key, iterate_leaves
from trajsmith.phrasing import UserVoice, capitalize_first, fill_pattern
from trajsmith.querygen.entity_references import ReferenceTracker
from trajsmith.records import FromOutput, FromUser, GoldCall


class FactSentences:
    """Sentences for facts of calls, one by one.

    Args:
        references: What is spoken of, and the words and facts of the task.
        voice: How the user speaks.
        frames: Frames that the user has spoken in; those that are used are added.
    """

    def __init__(self, references: ReferenceTracker, voice: UserVoice, frames: set[str]) -> None:
        self.references = references
        self.voice = voice
        self.frames = frames

    def list_for(self, call: GoldCall, index: int, keys: Sequence[str], stated: set[str]) -> list[str]:
        """List sentences for what one call needs and nothing has said.

        Args:
            index: Number of the call.
            keys: Keys of the facts that may be said.
            stated: Keys that were said; those of the sentences are added.
        """
        sentences: list[str] = []
        references = self.references
        references.model.horizon = index
        for path, source, value in iterate_leaves(call):
            if isinstance(source, FromUser) and source.known in keys and source.known not in stated:
                sentences.append(references.wording.tell(call.tool, references.known[source.known], references.rng))
                stated.add(source.known)
            elif isinstance(source, FromOutput) and (path, str(value)) not in references.things:
                picks = self._tell_picks(path, source, keys, stated)
                if picks:
                    references.spoke_of(call, (path,))
                sentences += picks
            elif isinstance(source, FromOutput) and path in call.arguments:
                narrows = call.effect == "read" and path not in references.wording.tools[call.tool].required
                if narrows or call.effect == "write":
                    sentences += self._point_back(call, path, source, narrows)
        return sentences

    def _point_back(self, call: GoldCall, name: str, source: FromOutput, narrows: bool) -> list[str]:
        """Return a sentence that says which thing known from before a call takes, if nothing has said it: one of
        several, or the only one, where it narrows down what is looked for."""
        references = self.references
        if not references.is_open(name, call.arguments[name], source, 1 if narrows else 2):
            return []
        phrase, _ = references.refer(name, call.arguments[name], source, set())
        references.spoke_of(call, (name,))
        belongs = call.effect == "write" and name not in references.wording.tools[call.tool].required
        return [f"It's for {phrase}." if belongs else f"I mean {phrase}."]

    def _tell_picks(self, path: str, source: FromOutput, keys: Sequence[str], stated: set[str]) -> list[str]:
        sentences = []
        references = self.references
        for selector in source.selectors:
            key = build_selector_key(source.call, selector)
            if key in keys and key not in stated:
                stated.add(key)
                name = path.split(".")[-1]
                description = references.describe(name, references.known[key])
                sentence = fill_pattern(self.voice.mentions, description, references.rng, self.frames)
                sentences.append(capitalize_first(sentence))
        return sentences
