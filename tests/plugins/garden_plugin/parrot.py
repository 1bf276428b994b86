"""A model provider that knows one sentence."""

from trajsmith.models import ChatReply
from trajsmith.models.settings import PROVIDERS
from trajsmith.records import Message


@PROVIDERS.register("parrot")
class ParrotProvider:
    def __init__(self, entry, settings, folder):
        self.sentence = settings.model

    async def send(self, request):
        return ChatReply(message=Message(role="assistant", content=self.sentence))

    async def check(self):
        return True

    async def close(self):
        pass
