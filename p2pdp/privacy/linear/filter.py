"""Leaks of layered gossip whose messages carry noise of their own, in time proportional to the number of layers.

This is a square-root Kalman filter. Users' noised values, the values of the current layer and the draws that a later
layer still needs are the rows of a matrix over independent unit sources, so that row products are covariances. A layer
replaces the middle rows; each value that the observer saw is a direction that is known from then on and is projected
out of all rows. What a direction adds to the leak of a user is the squared share of that user's row in it. These
shares only add up, so a small leak keeps its relative accuracy. Where users' noised values have a covariance C of their
own, the rows of values begin with a root A of it, C = A A', and those of users with C^-1 A.

`layers.layered_span` whitens all rows that were seen at once, which takes the cube of their number; it is the
oracle of this module, and quicker where few rows were seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.privacy.linear.krylov import Span
from p2pdp.privacy.linear.layers import Layers, View

_DROPPED_BELOW: Final = 1e-10  # deviation of what is new in a value, relative to the largest row there ever was


def filter_is_quicker(layers: Layers, view: View) -> bool:
    """Return whether a pass over the layers takes fewer operations than whitening all rows at once."""
    seen = sum(len(values) for values in view.seen.values())
    widths = [step.parents.shape[0] for step in layers.steps]
    at_once = seen * seen * (layers.users + layers.noises + seen)
    layer_by_layer: int = sum((layers.users + width) ** 3 for width in widths)
    return bool(layer_by_layer < at_once)


def filtered_span(layers: Layers, view: View) -> Span:
    """Return the leaks of one view, as `layered_span` does."""
    return _Filter(layers, view).span()


class _Filter:
    """The state of one pass: what is not known yet of users, of the current layer and of draws used again."""

    def __init__(self, layers: Layers, view: View) -> None:
        self._layers = layers
        self._view = view
        self._members = sorted(view.members)
        self._known_draws = frozenset(view.drawn)
        self._last_use = _last_uses(layers)
        root: Any = np.eye(layers.users) if view.spread is None else np.linalg.cholesky(view.spread)
        self._users: Floats = root.copy() if view.spread is None else np.linalg.inv(root).T.copy()
        self._values: Floats = root.copy()
        self._users[self._members] = self._values[self._members] = 0.0
        self._draws: dict[int, Floats] = {}
        self._leaks = np.zeros(layers.users)
        self._rank = 0
        self._largest, self._kept, self._dropped = float(np.linalg.norm(root, axis=1).max(initial=1.0)), 1.0, 0.0

    def span(self) -> Span:
        for number in range(1 + max(self._view.seen, default=0)):
            if number:
                self._advance(number)
            for place in self._view.seen.get(number, ()):
                self._see(place)
            self._compress()
        self._leaks[self._members] = 1.0
        count = len(self._members) + sum(len(places) for places in self._view.seen.values())
        return Span(self._leaks, self._rank + len(self._members), count, self._kept, self._dropped)

    def _advance(self, number: int) -> None:
        step = self._layers.steps[number - 1]
        values: Floats = step.parents @ self._values
        if step.noise is not None and step.noise.nnz:
            used = sorted(set(step.noise.indices.tolist()) - self._known_draws)
            fresh = [draw for draw in used if draw not in self._draws]
            values = self._widened(values, fresh)
            if used:
                values = values + step.noise[:, used] @ np.stack([self._draws[draw] for draw in used])
            self._draws = {draw: row for draw, row in self._draws.items() if self._last_use[draw] > number}
        self._values = values
        lengths = np.einsum("ij,ij->i", values, values)
        self._largest = max(self._largest, float(np.sqrt(lengths.max(initial=0.0))))

    def _widened(self, values: Floats, fresh: list[int]) -> Floats:
        """Add a unit source for each fresh draw, and return the values over all sources."""
        before, more = values.shape[1], len(fresh)
        if not more:
            return values
        self._users = np.pad(self._users, ((0, 0), (0, more)))
        self._draws = {draw: np.pad(row, (0, more)) for draw, row in self._draws.items()}
        for at, draw in enumerate(fresh):
            row = np.zeros(before + more)
            row[before + at] = self._layers.deviation
            self._draws[draw] = row
        return np.pad(values, ((0, 0), (0, more)))

    def _see(self, place: int) -> None:
        """Project what a value adds to what is known out of all rows."""
        row = self._values[place]
        length = float(np.linalg.norm(row))
        relative = length / self._largest
        if relative <= _DROPPED_BELOW:
            self._dropped = max(self._dropped, relative)
            return
        self._kept = min(self._kept, relative)
        self._rank += 1
        direction = row / length
        shares = self._users @ direction
        self._leaks += shares * shares
        self._users = self._users - np.outer(shares, direction)
        self._values = self._values - np.outer(self._values @ direction, direction)
        self._values[place] = 0.0
        self._draws = {draw: one - (one @ direction) * direction for draw, one in self._draws.items()}

    def _compress(self) -> None:
        """Turn the sources, so that there are no more of them than rows."""
        rows = np.concatenate([self._users, self._values, *(row[None, :] for row in self._draws.values())])
        if rows.shape[1] <= rows.shape[0]:
            return
        triangle: Floats = np.linalg.qr(rows.T, mode="r")  # type: ignore[assignment]
        turned = triangle.T
        users, values = len(self._users), len(self._values)
        self._users, self._values = turned[:users], turned[users : users + values]
        self._draws = dict(zip(self._draws, turned[users + values :], strict=True))


def _last_uses(layers: Layers) -> Mapping[int, int]:
    found: dict[int, int] = {}
    for number, step in enumerate(layers.steps, start=1):
        noise: Any = step.noise
        if noise is not None:
            found.update(dict.fromkeys(noise.indices.tolist(), number))
    return found


def seen_draws_are_fresh(layers: Layers, view: View) -> bool:
    """Return whether each value seen holds a draw that is in no other value at all and that the observer lacks.

    Then the rows that were seen are independent of each other and of the observer's own knowledge, whatever the
    weights: their rank is their number.
    """
    known = frozenset(view.drawn)
    uses: dict[int, int] = {}
    for step in layers.steps:
        if step.noise is not None:
            for draw in step.noise.indices.tolist():
                uses[draw] = uses.get(draw, 0) + 1
    for number, places in view.seen.items():
        noise: Any = layers.steps[number - 1].noise if number else None
        if noise is None and places:
            return False
        for place in places:
            drawn = noise.indices[noise.indptr[place] : noise.indptr[place + 1]].tolist()
            if not any(uses[draw] == 1 and draw not in known for draw in drawn):
                return False
    return True
