"""Both APIs of OpenAI-compatible servers, for tests that hold for either."""

import chatting
import pytest


@pytest.fixture(params=["chat_completions", "responses"])
def api(request, monkeypatch):
    """Let the models of `chatting` speak this API."""
    monkeypatch.setitem(chatting.QUICK, "api", request.param)
    return request.param
