"""Dialogues recorded elsewhere: read from the usual formats, made again on an environment, judged like our own."""

from verify.outside.belonging import misfits
from verify.outside.playing import make_task, play_outside
from verify.outside.read import FORMATS, read_outside

__all__ = ["FORMATS", "make_task", "misfits", "play_outside", "read_outside"]
