"""Users' own results, as `outputs` in `result.json` has them: user, value, and that the launcher collected it.

Guarantee: values of many numbers stay arrays until somebody asks for one of them, since lists of floats take four
times the memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, overload

import numpy as np

from p2pdp.assembly.outcome import Number
from p2pdp.core.ids import Peer

_COLUMNS: Final = 4096  # whose sums are made together


class OwnResults(Sequence[dict[str, Any]]):
    """The results by user; each item is made when it is asked for."""

    def __init__(self, values: Mapping[Peer, Any]) -> None:
        self._values = sorted(values.items())

    def __len__(self) -> int:
        return len(self._values)

    @overload
    def __getitem__(self, place: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, place: slice) -> list[dict[str, Any]]: ...

    def __getitem__(self, place: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(place, slice):
            return [_item(user, plain_value(value)) for user, value in self._values[place]]
        user, value = self._values[place]
        return _item(user, plain_value(value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(dict.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"OwnResults({len(self)} users)"

    def as_arrays(self) -> list[dict[str, Any]]:
        """Return the items with the values of many numbers as they are kept, for `json_pieces`."""
        return [
            _item(user, np.asarray(value, dtype=np.float64) if hasattr(value, "__len__") else float(value))
            for user, value in self._values
        ]


def _item(user: Peer, value: Any) -> dict[str, Any]:
    return {"user": user, "value": value, "collected_by_launcher": True}


class OfUsers(NamedTuple):
    """Users' own results: their mean, and how far the one that is furthest off is from it, for each number."""

    mean: Number
    furthest: Number


def of_users(outputs: Sequence[Mapping[str, Any]]) -> OfUsers | None:
    """Summarize users' own results where nothing is published; None where nobody's result is here."""
    if not outputs:
        return None
    items = outputs.as_arrays() if isinstance(outputs, OwnResults) else outputs
    rows = [np.asarray(one["value"], dtype=np.float64) for one in items]
    if any(row.shape != rows[0].shape for row in rows):
        raise ValueError("users' results are not of one length")
    mean: list[float] = []
    furthest: list[float] = []
    for at in range(0, rows[0].size, _COLUMNS):
        block = np.stack([row.reshape(-1)[at : at + _COLUMNS] for row in rows])
        means = [math.fsum(column) / len(rows) for column in block.T.tolist()]
        mean += means
        furthest += np.abs(block - means).max(axis=0).tolist()
    return OfUsers(mean, furthest) if rows[0].shape else OfUsers(mean[0], furthest[0])


def plain_value(value: Any) -> Number:
    """Return a float, or the floats of a vector."""
    return [float(part) for part in value] if hasattr(value, "__len__") else float(value)
