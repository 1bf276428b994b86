"""What servers of every kind stand on: a listening socket, and uvicorn without its signal handling."""

import contextlib
import socket
from collections.abc import Iterator

import uvicorn

from trajsmith.records import InputError


def listen(host: str, port: int) -> socket.socket:
    """A socket to serve on; port 0 takes any free one.

    Raises:
        InputError: The address cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns Nagle's delay off only where the protocol is named; without that every answer takes 40 ms more.
    where = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        where.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        where.bind((host, port))
        where.listen()
        return where
    except OSError as error:
        where.close()
        raise InputError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error


class UvicornWithoutSignals(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to whoever runs us: uvicorn would raise them again and so end the process mid-way."""
        yield
