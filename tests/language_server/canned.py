"""What the server says when it plays no role: what the last message tells it to, else an echo."""

import json


def answer(request):
    said = str(request["messages"][-1].get("content"))
    start = said.rfind("[[reply:")
    if start >= 0:
        told, _ = json.JSONDecoder().raw_decode(said[start + len("[[reply:") :])
        return told
    return f"You said: {said}"
