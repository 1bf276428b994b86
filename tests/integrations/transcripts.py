"""Transcripts of a run with the verdicts that every framework must give: right ones, and five kinds of wrong ones."""

from trajsmith.pipeline.record_joins import join_verdicts
from trajsmith.pipeline.task_server import MESSAGE_USER, build_transcript, judge_transcript, open_tasks


def build_transcripts(run):
    """Return transcripts with the task, what is wrong with them, and whether the pipeline accepts them."""
    found = []
    with open_tasks(run) as source:
        for task, trajectory, verdict in join_verdicts(run):
            if task.id not in source.tasks:
                continue
            lines = build_transcript(trajectory.messages)
            kinds = {"right" if verdict.accepted else "mistake": lines}
            if verdict.accepted:
                said = [line for line in lines if line["tool"] == MESSAGE_USER.name]
                kinds |= {
                    "wrong answer": [*lines[:-1], {"tool": MESSAGE_USER.name, "arguments": {"text": "It is 123456."}}],
                    "wrong state": said,
                    "silence": [],
                    "broken format": [{"tool": "no_such_tool", "arguments": {}}, *lines],
                }
            for kind, transcript in kinds.items():
                judged = judge_transcript(source, task, transcript)[1]
                found.append(
                    {"task_id": task.id, "kind": kind, "lines": transcript, "accepted": judged.accepted,
                     "rewards": dict(judged.rewards)}
                )  # fmt: skip
    return found
