"""An export format."""

from trajsmith.export import FORMATS, Format


def rows(item, settings):
    yield {"id": item.trajectory.id, "speakers": [message.role for message in item.trajectory.messages]}


FORMATS.register("speakers")(Format("who speaks, message by message", rows, columns=None))
