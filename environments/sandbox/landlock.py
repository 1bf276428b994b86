"""Landlock with no rule: no file opens, no TCP port, no abstract socket and no signal out of the worker."""

import os
import struct

from trajsmith.environments.sandbox.syscalls import LayerMissing, syscall

_VERSION = 1
"""Flag of `landlock_create_ruleset` that asks for the ABI."""
_FILES = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""How many rights to files each ABI knows; later ones know as many as the last."""


def get_landlock_abi() -> int:
    """The Landlock ABI of this kernel.

    Raises:
        OSError: There is none; `ENOSYS`: not built, `EOPNOTSUPP`: not switched on.
    """
    return syscall("landlock_create_ruleset", 0, 0, _VERSION)


def build_ruleset(abi: int) -> bytes:
    """The `landlock_ruleset_attr` that handles everything the ABI knows, so that all of it is denied."""
    files = (1 << _FILES[min(abi, max(_FILES))]) - 1
    words = [files]
    if abi >= 4:
        words.append(0b11)  # bind and connect of TCP
    if abi >= 6:
        words.append(0b11)  # abstract unix sockets and signals out of the domain
    return struct.pack(f"={len(words)}Q", *words)


def restrict() -> None:
    """Deny this process, and all that it forks, everything that Landlock knows. It cannot be taken back.

    Needs `limits.no_new_privileges` before it, but for root.

    Raises:
        LayerMissing: The kernel has no Landlock, or something forbids it.
    """
    try:
        attributes = build_ruleset(get_landlock_abi())
        descriptor = syscall("landlock_create_ruleset", attributes, len(attributes), 0)
        try:
            syscall("landlock_restrict_self", descriptor, 0)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise LayerMissing("landlock", describe_missing(error)) from error


def describe_missing(error: OSError) -> str:
    """One line for a Landlock that does not answer."""
    return (
        f"Landlock is missing ({os.strerror(error.errno or 0)}): workers would have one wall fewer around files; use "
        "a kernel >= 5.13 with 'landlock' in its lsm= list, and a container that allows the landlock system calls"
    )
