"""The rows that are left of a view when uniform masks, which the observer does not know, have cancelled.

A row that contains a uniform word modulo 2^k tells nothing by itself: whatever else is in it, the row is uniform. What
an observer can tell are the combinations of rows in which every mask cancels. Each mask here is in one or two rows,
with weight 1 or -1, as masks between two users are. Then a row that alone holds some mask tells nothing and is left
out, which may leave another mask in one row only, and so on; and rows that share masks tell one combination, with
weights 1 and -1, in which all of them cancel. The matrix of such masks is that of a network (totally unimodular), so
there are no further combinations modulo 2^k than these.

A mask that appears otherwise (in three rows, with another weight, or with signs that contradict each other) is taken to
be known to the observer, which can only raise leaks.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import NamedTuple

import numpy as np

from p2pdp.core.arrays import Floats, Ints

_ROWS_MAX = 2


class Combined(NamedTuple):
    """The combination to which each row belongs, -1 for none, and its weight in it."""

    rows: int
    of_row: Ints
    sign: Floats


def combined(rows: int, row: Ints, mask: Ints, weight: Floats) -> Combined:
    """Return the combinations of rows in which all masks cancel; entries of one mask in one row are added up."""
    held = _usable(_entries(rows, row, mask, weight))
    hidden = _hidden(held)
    sign = np.zeros(rows)
    of_row = np.full(rows, -1, dtype=np.int64)
    links: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for places in held.values():
        if len(places) == _ROWS_MAX and not hidden & places.keys():
            (one, first), (other, second) = places.items()
            links[one].append((other, -first / second))
            links[other].append((one, -second / first))
    count = 0
    for start in range(rows):
        if of_row[start] < 0 and start not in hidden:
            of_row[start], sign[start] = count, 1.0
            _follow(start, links, of_row, sign)
            count += 1
    return Combined(count, of_row, sign)


def _entries(rows: int, row: Ints, mask: Ints, weight: Floats) -> dict[int, dict[int, float]]:
    """Return the weights of each mask by row, without those that cancel within a row."""
    places, inverse = np.unique(mask * rows + row, return_inverse=True)
    amounts = np.bincount(inverse, weights=weight, minlength=len(places))
    found: dict[int, dict[int, float]] = defaultdict(dict)
    left = np.nonzero(amounts)[0]
    for place, amount in zip(places[left].tolist(), amounts[left].tolist(), strict=True):
        one, at = divmod(place, rows)
        found[one][at] = amount
    return found


def _usable(held: dict[int, dict[int, float]]) -> dict[int, dict[int, float]]:
    """Return the masks of one or two rows, without those whose signs contradict the others."""
    found: dict[int, dict[int, float]] = {}
    parent: dict[int, tuple[int, float]] = {}  # a forest of rows: the row above, and the sign relative to it

    def root(row: int) -> tuple[int, float]:
        path = [row]
        while (above := parent.get(path[-1])) is not None:
            path.append(above[0])
        top, sign = path.pop(), 1.0
        for one in reversed(path):  # which is one step below the root from now on
            sign *= parent[one][1]
            parent[one] = top, sign
        return top, sign

    for mask, places in held.items():
        if not 1 <= len(places) <= _ROWS_MAX or any(abs(amount) != 1.0 for amount in places.values()):
            continue
        if len(places) == _ROWS_MAX:
            (one, first), (other, second) = places.items()
            (top, sign), (other_top, other_sign) = root(one), root(other)
            wanted = -first * second  # of one row relative to the other
            if top == other_top:
                if sign * other_sign != wanted:
                    continue
            else:
                parent[top] = other_top, sign * other_sign * wanted
        found[mask] = places
    return found


def _hidden(held: dict[int, dict[int, float]]) -> set[int]:
    """Return the rows that tell nothing: alone, or once others are left out, they hold some mask."""
    of_row: dict[int, list[int]] = defaultdict(list)
    left = {}
    for mask, places in held.items():
        left[mask] = len(places)
        for row in places:
            of_row[row].append(mask)
    hidden: set[int] = set()
    alone = deque(mask for mask, count in left.items() if count == 1)
    while alone:
        for row in held[alone.popleft()]:
            if row in hidden:
                continue
            hidden.add(row)
            for mask in of_row[row]:
                left[mask] -= 1
                if left[mask] == 1:
                    alone.append(mask)
    return hidden


def _follow(start: int, links: dict[int, list[tuple[int, float]]], of_row: Ints, sign: Floats) -> None:
    pending = [start]
    while pending:
        row = pending.pop()
        for other, ratio in links.get(row, ()):
            if of_row[other] < 0:
                of_row[other], sign[other] = of_row[start], sign[row] * ratio
                pending.append(other)
