"""Talking: the scripted language with its phrasebooks; language models join here."""

from chatmodel.phrasebook import EntityPhrases, ParameterPhrases, Phrasebook, ToolPhrases, load_phrasebook
from chatmodel.wording import Wording, capital, pick_text

__all__ = [
    "EntityPhrases",
    "ParameterPhrases",
    "Phrasebook",
    "ToolPhrases",
    "Wording",
    "capital",
    "load_phrasebook",
    "pick_text",
]
