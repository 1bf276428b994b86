"""The failing server as tests and benchmarks use it: started in a process of its own, asked what it counted."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

SERVER = Path(__file__).with_name("faulty_server.py")


class RunningServer:
    """A server process. Use it as a context manager; settings are those of the server's file.

    Args:
        file: The server; the one that fails if not given.
    """

    def __init__(self, file=SERVER, **settings):
        self.file = file
        self.settings = settings

    def __enter__(self):
        command = [sys.executable, str(self.file), json.dumps(self.settings)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        assert self.url, "the server did not start"
        return self

    def __exit__(self, *error):
        self.stop()

    def stop(self):
        """Safe to call twice."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def stats(self):
        return self._call("/stats")

    def change(self, **settings):
        self._call("/settings", settings)

    def _call(self, path, body=None):
        address = self.url.removesuffix("/v1") + path
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(address, data=data), timeout=10) as answer:
            return json.load(answer)
