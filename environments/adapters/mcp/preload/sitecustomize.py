"""Give a Python server that runs beside its workspace the same random numbers and ids at every start.

Python imports a module of this name by itself when it starts; nothing of trajsmith is imported here.
"""

import os
import random
import uuid

_SHARED = random.Random(20260302)


def _read_bytes(size: int) -> bytes:
    return _SHARED.randbytes(size)


def _make_uuid() -> uuid.UUID:
    return uuid.UUID(bytes=_read_bytes(16), version=4)


random.seed(20260302)
os.urandom = _read_bytes
random._urandom = _read_bytes  # type: ignore[attr-defined]
uuid.uuid4 = _make_uuid
