"""Transcripts of a run with the verdicts that every framework must give: right ones, and six kinds of wrong ones."""

from trajsmith.pipeline.record_joins import join_verdicts
from trajsmith.pipeline.task_server import MESSAGE_USER, build_transcript, judge_transcript, open_tasks


def build_transcripts(run):
    """Return transcripts with the task, what is wrong with them, and whether the pipeline accepts them."""
    found = []
    judged_plays = list(join_verdicts(run))
    with open_tasks(run) as source:
        for task, trajectory, verdict in judged_plays:
            if task.id not in source.tasks:
                continue
            lines = build_transcript(trajectory.messages)
            kinds = {"right" if verdict.accepted else "mistake": lines}
            if verdict.accepted:
                foreign = [
                    {"tool": call.tool, "arguments": call.arguments}
                    for other, *_ in judged_plays
                    if other.environments == task.environments and other.id != task.id
                    for call in other.gold_calls[-1:]
                ]
                said = [line for line in lines if line["tool"] == MESSAGE_USER.name]
                kinds |= {
                    "wrong answer": [*lines[:-1], {"tool": MESSAGE_USER.name, "arguments": {"text": "It is 123456."}}],
                    "wrong state": said,
                    "forbidden": [*lines[:-1], *foreign[:1], *lines[-1:]],
                    "silence": [],
                    "broken format": [{"tool": "no_such_tool", "arguments": {}}, *lines],
                }
            for kind, transcript in kinds.items():
                played, judged = judge_transcript(source, task, transcript)
                found.append(
                    {"task_id": task.id, "kind": kind, "lines": transcript, "accepted": judged.accepted,
                     "rewards": dict(judged.rewards),
                     "messages": [message.model_dump(mode="json") for message in played.messages]}
                )  # fmt: skip
    return found
