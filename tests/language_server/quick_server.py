"""An OpenAI-compatible server that costs next to nothing: every request gets the same answer after the same time.

    python quick_server.py '{"latency": 0.2}'

For measuring clients, so that the server needs next to nothing of the machine (70 µs of CPU a request). The first line
on standard output is its address. GET /stats counts requests.
"""

import asyncio
import json
import re
import sys

LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
ANSWER = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "test-model",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "It is on its way, and will be with you on Tuesday."},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 2300, "completion_tokens": 14, "total_tokens": 2314},
}


def packed(content):
    data = json.dumps(content).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(data), data)


class Connection(asyncio.Protocol):
    """One connection that is kept open; requests come one after another."""

    count = 0
    most = flying = 0
    answer = packed(ANSWER)

    def __init__(self, latency):
        self.latency = latency
        self.parts = []
        self.missing = -1

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.parts.append(data)
        if self.missing < 0:
            data = b"".join(self.parts)
            end = data.find(b"\r\n\r\n")
            if end < 0:
                return
            length = LENGTH.search(data, 0, end)
            self.missing = (int(length[1]) if length else 0) + end + 4
            if data.startswith(b"GET"):
                self.missing = len(data)
        self.missing -= len(data)
        if self.missing > 0:
            return
        self.missing, stats = -1, self.parts[0].startswith(b"GET /stats")
        self.parts.clear()
        if stats:
            self.transport.write(packed({"requests": Connection.count, "most_in_flight": Connection.most}))
            return
        Connection.count += 1
        Connection.flying += 1
        Connection.most = max(Connection.most, Connection.flying)
        asyncio.get_running_loop().call_later(self.latency, self.reply)

    def reply(self):
        Connection.flying -= 1
        self.transport.write(self.answer)


async def serve(latency):
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(lambda: Connection(latency), "127.0.0.1", 0, backlog=1024)
    port = listening.sockets[0].getsockname()[1]
    sys.stdout.write(f"http://127.0.0.1:{port}/v1\n")
    sys.stdout.flush()
    await listening.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(**json.loads(sys.argv[1])))
