"""The conformance kit: transcripts of five kinds with the verdicts that every framework must give.

One set for all frameworks, drawn from a run with a fixed seed: for each task a right play, one that leaves a change
out, one with a wrong last answer, one with a change that nobody asked for, and one with calls that no tool takes.
"""

from trajsmith.pipeline.record_joins import join_verdicts
from trajsmith.pipeline.task_server import (
    MESSAGE_USER,
    build_solution,
    is_moved_by_calls,
    iter_solutions,
    judge_transcript,
    open_tasks,
)

KINDS = ("right", "wrong state", "wrong answer", "forbidden call", "broken format")


def build_transcripts(run, tasks):
    """Return the transcripts of so many tasks: task, kind, what is called and said, and the pipeline's verdict."""
    found = []
    changes = {one.task.environments[0]: [] for one in join_verdicts(run)}
    for one in iter_solutions(run):
        changes[one.task.environments[0]] += [(one.task.id, change) for change in list_changes(one.trajectory)]
    with open_tasks(run) as source:
        for judged in iter_solutions(run):
            task, own = judged.task, list_changes(judged.trajectory)
            others = [change for name, change in changes[task.environments[0]] if name != task.id]
            if task.id not in source.tasks or not is_moved_by_calls(task) or not own:
                continue
            lines = build_solution(judged)
            foreign = find_change(source, task, lines, others[len(found) % (len(others) or 1) :] + others)
            if foreign is None:
                continue
            for kind in KINDS:
                transcript = write_transcript(kind, lines, own[-1], foreign)
                played, verdict = judge_transcript(source, task, transcript)
                assert kind != "right" or verdict.accepted
                found.append(
                    {"task_id": task.id, "kind": kind, "lines": transcript, "accepted": verdict.accepted,
                     "rewards": dict(verdict.rewards),
                     "messages": [message.model_dump(mode="json") for message in played.messages]}
                )  # fmt: skip
            if len(found) == tasks * len(KINDS):
                return found
    raise AssertionError(f"{len(found)} transcripts: the run has too few tasks that change something")


def find_change(source, task, lines, others):
    """Return the first of some calls that changes something before the last message of a play, or None."""
    for change in others:
        played, _ = judge_transcript(source, task, write_transcript("forbidden call", lines, None, change))
        if change in list_changes(played):
            return change
    return None


def list_changes(trajectory):
    """Return the calls of a play that changed the state."""
    return [
        {"tool": event.tool, "arguments": dict(event.arguments)}
        for event in trajectory.events
        if event.ok and event.effect and event.actor == "assistant"
    ]


def write_transcript(kind, lines, change, foreign):
    """Return the lines of a right play, made wrong in one way."""
    at = next((at for at, line in reversed(list(enumerate(lines))) if line == change), len(lines) - 1)
    last = {"tool": MESSAGE_USER.name, "arguments": {"text": "It is 123456."}}
    if kind == "wrong state":
        return [*lines[:at], *lines[at + 1 :]]
    if kind == "wrong answer":
        return [*lines[:-1], last]
    if kind == "forbidden call":
        return [*lines[:-1], foreign, lines[-1]]
    if kind == "broken format":
        broken = {name + "_": value for name, value in change["arguments"].items()}
        unknown = {"tool": "no_such_tool", "arguments": {}}
        return [unknown, *lines[:at], {"tool": change["tool"], "arguments": broken}, *lines[at + 1 :]]
    return lines
