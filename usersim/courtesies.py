"""What an agent says out of courtesy: a word on why the user came, before anything else, and a good wish at the end."""

import random
from dataclasses import dataclass

from trajsmith.phrasing import DECLINES, AgentVoice, Wording, capitalize_first, draw_pattern, get_language
from trajsmith.records import Task, derive_seed

REACTIONS, CLOSINGS = 0.8, 0.5
"""Shares of dialogues with a word on why the user came, unless that is trouble, which always gets one, and with a good
wish, where the story has any."""
OFFERS = 0.12
"""Share of dialogues whose last answer ends with an offer of more help, where it does not with a good wish."""
KNOWN_BY = 16
"""Letters of a motive by which a request that tells it is known."""


@dataclass
class Courtesies:
    """Words of courtesy of one dialogue; empty for none."""

    reaction: str = ""
    """Said once, before the agent's first words."""
    closing: str = ""
    """Said after the last answer: a good wish, or an offer of more help."""

    def add_to(self, text: str) -> str:
        """Return what the agent says with the reaction before it, if these are its first words and no refusal."""
        if not self.reaction or not text:
            return text
        reaction, self.reaction = self.reaction, ""
        refused = DECLINES.search(text) is not None and reaction not in get_language().agent.sympathy
        return text if refused else f"{reaction} {capitalize_first(get_language().agent.eager.sub('', text))}"


def draw_courtesies(task: Task, wording: Wording, voice: AgentVoice, candidate: int) -> Courtesies:
    """Draw what an agent says out of courtesy: of a story only to a user who tells its motive.

    Nobody passes over an illness or a death, whatever the request is; a user who answers no questions is asked none.

    Args:
        task: The task; in a variant things do not go as wished, so that there are no good wishes.
        wording: Words of the environment, with its stories.
        voice: The agent's style.
        candidate: Number of the play.
    """
    rng = random.Random(derive_seed(task.seed, "courtesies", candidate))
    offer = draw_pattern(voice.endings, rng) if rng.random() < OFFERS and task.mode != "direct" else ""
    words = get_language().agent
    grave = words.grave.search(task.turns[0].query) is not None
    story = wording.scenarios.find(task.scenario_id) if task.scenario_id else None
    if story is None or task.motive[:KNOWN_BY].lower() not in task.turns[0].query.lower():
        return Courtesies(rng.choice(words.sympathy) if grave else "", offer)
    reacts = rng.random() < REACTIONS or story.trouble
    reaction = rng.choice(story.reactions) if story.reactions and reacts else ""
    wish = rng.choice(story.closings) if story.closings and rng.random() < CLOSINGS and task.twist is None else ""
    return Courtesies(rng.choice(words.sympathy) if grave else reaction, wish or offer)
