"""The scripted roles of `speaking.py` as a model in this process, for tests that need no server."""

import json

import speaking

from chatmodel.settings import ModelSettings
from chatmodel.wire import read_reply, to_body


class StandIn:
    """Says what the server would say. `spoil` may change a reply, given the number of the request."""

    name = "stand-in"

    def __init__(self, spoil=None):
        self.settings = ModelSettings(model="stand-in")
        self.spoil = spoil
        self.requests = []

    async def complete(self, request):
        self.requests.append(request)
        said = speaking.answer(to_body(request, self.settings, native=True))
        message = {"role": "assistant", **({"content": said} if isinstance(said, str) else said)}
        if self.spoil:
            message = self.spoil(len(self.requests), message)
        return read_reply(json.dumps({"choices": [{"message": message}]}).encode())

    async def close(self):
        """Nothing to close."""
