"""The event loop of live processes, chosen in this one place: uvloop's where it is installed, else asyncio's own.

It is imported with this module, before processes are forked, so that all of them share its memory. uvloop makes hops
cheaper; nothing needs it.
"""

from __future__ import annotations

import asyncio

try:
    import uvloop
except ImportError:
    _fast = None
else:
    _fast = uvloop.new_event_loop


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a new event loop of the best kind that there is here."""
    return asyncio.new_event_loop() if _fast is None else _fast()
