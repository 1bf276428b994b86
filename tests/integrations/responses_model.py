"""A server of OpenAI's Responses API that says what transcripts say: the request's metadata name the transcript."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def serve_transcripts(transcripts):
    """Serve a model and yield its base URL."""

    class Model(BaseHTTPRequestHandler):
        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            lines = transcripts[int(request["metadata"]["transcript"])]["lines"]
            said = sum(is_of_model(item) for item in request["input"])
            body = json.dumps(build_response(lines, said)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            """Write no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()


def is_of_model(item):
    return item.get("type") == "function_call" or item.get("role") == "assistant"


def build_response(lines, said):
    """Return the response for line number `said`; the last line, if it is said to the user, is plain text."""
    line = lines[said] if said < len(lines) else {"tool": "message_user", "arguments": {"text": ""}}
    if line["tool"] == "message_user" and said >= len(lines) - 1:
        text = {"type": "output_text", "text": line["arguments"]["text"], "annotations": []}
        item = {"type": "message", "id": f"m{said}", "role": "assistant", "status": "completed", "content": [text]}
    else:
        item = {
            "type": "function_call", "id": f"f{said}", "call_id": f"call_{said}", "name": line["tool"],
            "arguments": json.dumps(line["arguments"]), "status": "completed",
        }  # fmt: skip
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return {
        "id": f"r{said}", "object": "response", "created_at": 0, "model": "model", "output": [item], "tools": [],
        "parallel_tool_calls": False, "tool_choice": "auto",
        "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, **details},
    }  # fmt: skip
