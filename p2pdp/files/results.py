"""Reads `result.json`, in which results may be millions of numbers.

Long vectors become arrays of floats, which take a fifth of the memory of lists, and their text is not held. That works
on files as p2pdp writes them, a number a line; any others are read as they are.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TextIO

from p2pdp.crypto.entropy import random_bytes
from p2pdp.files.folder import RESULT_FILE, read_json
from p2pdp.files.reading import in_folder

LONG: Final = 1024  # numbers; shorter vectors stay lists
_BEGIN: Final = '": [\n'
_END: Final = ("]", "],")


def read_result(folder: Path) -> dict[str, Any]:
    """Read the result in this folder; the long vectors of its objects are arrays."""
    return read_json(in_folder(folder, RESULT_FILE), _load)


def _load(file: TextIO) -> Any:
    vectors: dict[str, array[float]] = {}
    marker = f"vector {random_bytes(16).hex()} "  # which no file holds

    def with_vectors(read: dict[str, Any]) -> dict[str, Any]:
        return {key: vectors.get(value, value) if isinstance(value, str) else value for key, value in read.items()}

    try:
        return json.loads("".join(_without(file, vectors, marker)), object_hook=with_vectors)
    except ValueError:  # it is laid out in another way
        file.seek(0)
        return json.load(file)


def _without(file: TextIO, vectors: dict[str, array[float]], marker: str) -> Iterator[str]:
    """Yield the text with a name in place of each long vector."""
    begun, first, numbers = "", list[str](), array("d")  # a list: its first line, its first numbers as text, and all
    for line in file:
        if begun:
            number = _number(line)
            if number is not None:
                numbers.append(number)
                if len(numbers) <= LONG:
                    first.append(line)
                continue
            if len(numbers) > LONG and line.strip() in _END:
                name = f"{marker}{len(vectors)}"
                vectors[name] = numbers
                yield f"{begun.rstrip()[:-1]}{json.dumps(name)}{line.strip()[1:]}\n"
                begun, first, numbers = "", [], array("d")
                continue
            yield begun
            yield from first if len(numbers) <= LONG else (f"{one!r},\n" for one in numbers)
            begun, first, numbers = "", [], array("d")
        if line.endswith(_BEGIN):
            begun = line
        else:
            yield line
    yield begun


def _number(line: str) -> float | None:
    """Return the number in a line; None if there is something else, such as an infinity, which is told in words."""
    try:
        return float(line.rstrip(",\n"))
    except ValueError:
        return None
