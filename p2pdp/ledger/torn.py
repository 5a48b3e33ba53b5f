"""Bytes behind the last whole entry of a file: a torn tail, or damage.

Behind the last whole entry there may be anything that a crash or a power cut left there, a *torn tail*. Where a whole
entry follows bytes that are none, the file is damaged. But what follows may be inside the torn entry: a curator's
ledger holds pieces of users' skeletons, which have entries of their own. So an entry that by its own length and by
those of its parts is the last of the file is a torn tail whatever is in it. One changed bit cannot make an entry in the
middle look like that: it changes one of these lengths and not the others.
"""

from __future__ import annotations

import re
from typing import Final

from p2pdp.ledger.entries import ENTRY_RECORDS_MAX, ENVELOPE, content_at

_ENTRY_START: Final = re.compile(rb"(?:[\x93-\x9f]|\xdc..)\xc4\x20", re.DOTALL)  # an array that begins with a hash
_BYTES_LENGTH: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4}  # of MessagePack's byte strings: how many bytes their length has
_PLACE_MAX: Final = ENTRY_RECORDS_MAX - 1  # of an equal part before, which is one byte
_SEARCH_FACTOR: Final = 8  # how often a file may be read while whole entries are looked for behind bytes that are none


def entry_follows(data: bytes, at: int, file_bytes: int) -> bool:
    """Return whether a whole entry begins behind what begins here; also where that would take too long to find out."""
    if _is_last(data, at):
        return False
    left = _SEARCH_FACTOR * file_bytes
    for found in _ENTRY_START.finditer(data, at + 1 + ENVELOPE.size):
        start = found.start() - ENVELOPE.size
        length = ENVELOPE.unpack_from(data, start)[0]
        if length <= len(data) - found.start():
            left -= length
            if left < 0 or content_at(data, start) is not None:
                return True
    return False


def _is_last(data: bytes, at: int) -> bool:
    """Return whether a part of an entry begins here that leaves no room for another one but zeros."""
    end, start = len(data.rstrip(b"\0")), at + ENVELOPE.size
    found = _ENTRY_START.match(data, start)
    if found is None or start + ENVELOPE.unpack_from(data, at)[0] < end:
        return False
    parts = data[start] & 0x0F if data[start] != 0xDC else int.from_bytes(data[start + 1 : start + 3], "big")
    place = found.end() - 2
    for _ in range(parts):
        if place >= end:
            break
        if data[place] <= _PLACE_MAX:
            place += 1
            continue
        digits = _BYTES_LENGTH.get(data[place])
        if digits is None:
            return False
        place += 1 + digits + int.from_bytes(data[place + 1 : place + 1 + digits], "big")
    return place >= end
