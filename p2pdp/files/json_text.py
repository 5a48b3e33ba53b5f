"""The one form of JSON that p2pdp writes, made piece by piece: with many numbers the text takes more memory than they.

Guarantee: the text is that of `json.dumps` with an indentation of 1. It is strict: a number that is not finite is
refused with `ValueError`, so infinities must have become "inf" before. An array of floats is written as the list of its
numbers, and never becomes one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

_SCALAR: Final = json.JSONEncoder(allow_nan=False).encode
_RUN: Final = 4096  # floats that are written together
_PIECE_CHARS: Final = 1 << 16


def json_pieces(value: Any) -> Iterator[str]:
    """Yield the text in pieces of some size."""
    held: list[str] = []
    chars = 0
    for part in _pieces(value, "\n"):
        held.append(part)
        chars += len(part)
        if chars >= _PIECE_CHARS:
            yield "".join(held)
            held.clear()
            chars = 0
    yield "".join(held)


def _pieces(value: Any, line: str) -> Iterator[str]:
    """Yield the text of a value; `line` begins a new line where it stands."""
    if isinstance(value, dict) and value:
        inner, before = f"{line} ", "{"
        for key, one in value.items():
            name = key if isinstance(key, str) else _SCALAR(key)
            yield f"{before}{inner}{_SCALAR(name)}: "
            yield from _pieces(one, inner)
            before = ","
        yield f"{line}}}"
    elif _is_array(value) or (isinstance(value, list | tuple) and value and type(value[0]) is float):
        yield from _of_numbers(value, line)
    elif isinstance(value, list | tuple) and value:
        yield from _of_items(value, line)
    else:
        yield _SCALAR(value)


def _of_items(values: Sequence[Any], line: str) -> Iterator[str]:
    inner, before = f"{line} ", "["
    for one in values:
        yield before + inner
        yield from _pieces(one, inner)
        before = ","
    yield f"{line}]"


def _of_numbers(values: Any, line: str) -> Iterator[str]:
    """Yield the text of floats, many at a time; of a list in which other things follow, one by one."""
    inner, before = f"{line} ", "["
    for at in range(0, len(values), _RUN):
        run = values[at : at + _RUN]
        if _is_array(run):
            run = run.tolist()
        if all(type(one) is float and math.isfinite(one) for one in run):
            yield before + inner + f",{inner}".join(map(float.__repr__, run))
        else:
            for one in run:
                yield before + inner
                yield from _pieces(one, inner)
                before = ","
        before = ","
    yield f"{line}]" if len(values) else "[]"


def _is_array(value: Any) -> bool:
    return getattr(value, "ndim", 0) == 1
