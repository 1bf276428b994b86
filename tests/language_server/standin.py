"""The scripted roles of `speaking.py` as a model in this process, for tests that need no server."""

import json

import speaking

from trajsmith.models.serialization import build_request_body, parse_reply
from trajsmith.models.settings import ModelSettings


class StandIn:
    """Says what the server would say. `spoil` may change a reply, given the number of the request."""

    name = "stand-in"

    def __init__(self, spoil=None):
        self.settings = ModelSettings(model="stand-in")
        self.spoil = spoil
        self.requests = []

    async def complete(self, request):
        self.requests.append(request)
        said = speaking.answer(build_request_body(request, self.settings, native=True))
        message = {"role": "assistant", **({"content": said} if isinstance(said, str) else said)}
        if self.spoil:
            message = self.spoil(len(self.requests), message)
        return parse_reply(json.dumps({"choices": [{"message": message}]}).encode())

    async def close(self):
        """Nothing to close."""
