"""The hardening of a process that holds keys and values: no core dump, and no look inside for its own user.

Guarantee: after `harden`, this process and what it forks leave no core dump and, on Linux, cannot be traced or read
through `/proc` by another process of the same user; root can do all of it. A program that is started anew has to
harden itself. Where the system knows no such thing, nothing changes.

Inside `stay_open`, this process and those forked from it stay readable: for measurements of memory.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_PR_SET_DUMPABLE: Final = 4
_open: Final = ContextVar("_open", default=False)


@contextmanager
def stay_open() -> Iterator[None]:
    """Let `harden` leave this process, and those forked inside the context, as they are."""
    before = _open.set(True)
    try:
        yield
    finally:
        _open.reset(before)


def harden() -> None:
    if _open.get():
        return
    with suppress(ImportError, OSError, ValueError):  # a system without limits, or one that forbids to set them
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):  # a C library without it
            ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
