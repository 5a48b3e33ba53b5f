"""Reads `result.json`, in which users' own results may be millions of numbers.

Those of vectors become arrays of floats, which take a fifth of the memory of lists, and their text is not held. That
works on files as p2pdp writes them, a number a line; any others are read as they are.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TextIO

from p2pdp.files.folder import RESULT_FILE, read_json
from p2pdp.files.reading import in_folder

_BEGIN: Final = '"value": [\n'
_END: Final = ("]", "],")


def read_result(folder: Path) -> dict[str, Any]:
    """Read the result in this folder; vectors that are a `value` are arrays."""
    return read_json(in_folder(folder, RESULT_FILE), _load)


def _load(file: TextIO) -> Any:
    vectors: dict[str, array[float]] = {}

    def with_vector(read: dict[str, Any]) -> dict[str, Any]:
        value = read.get("value")
        return {**read, "value": vectors[value]} if isinstance(value, str) and value in vectors else read

    return json.loads("".join(_without(file, vectors)), object_hook=with_vector)


def _without(file: TextIO, vectors: dict[str, array[float]]) -> Iterator[str]:
    """Yield the text with a name in place of each vector."""
    for line in file:
        if not line.endswith(_BEGIN):
            yield line
            continue
        inside, end = list[str](), ""
        for end in file:
            if end.strip() in _END:
                break
            inside.append(end)
        try:
            vector = array("d", (float(number.rstrip(",\n")) for number in inside))
        except ValueError:  # infinities are told in words
            yield "".join((line, *inside, end))
            continue
        name = f"vector {len(vectors)}"
        vectors[name] = vector
        yield f'"value": "{name}"{end.strip()[1:]}\n'
