"""Dialogues recorded elsewhere: read from the usual formats, made again on an environment, judged like our own."""

from trajsmith.verify.traces.reading import FORMATS, load_documents, read_dialogues
from trajsmith.verify.traces.replaying import build_task, replay_dialogue
from trajsmith.verify.traces.task_matching import find_mismatched_tasks

__all__ = ["FORMATS", "build_task", "find_mismatched_tasks", "load_documents", "read_dialogues", "replay_dialogue"]
