"""The linear account: exact leaks of every pair from each observer's rows, for any linear protocol with Gaussian draws.

Rows over sources are expanded from the transcript, and each draw has the scale of its record. Nothing here knows a
protocol. Leaks never exceed the local ceiling, for all that anybody sees is made of the noised contributions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from p2pdp.core.arrays import Bools, Floats, Ints
from p2pdp.core.draws import NO_NOISE
from p2pdp.core.ids import Peer
from p2pdp.privacy.linear.view import disjoint_leaks, general_leaks
from p2pdp.replay.contributions import Recorded
from p2pdp.replay.rows import Layout, stretches
from p2pdp.replay.transcript import Transcript

_INPUT, _DRAW, _UNKNOWN = range(3)


def ceiling(own: Sequence[Recorded]) -> float:
    """The leak of a user whose contributions are all seen, each with the Gaussian noise that protects it alone."""
    total = 0.0
    for recorded in own:
        variance = sum(mechanism.scale**2 for mechanism in recorded if mechanism.name == "gaussian")
        total += 1.0 / variance if variance > 0.0 else np.inf
    return total


@dataclass(frozen=True)
class Leaks:
    """mu^2 / sensitivity^2 of each user for one observer; NaN for members. None where it cannot be told."""

    values: Floats | None


class ExactAuditor:
    """Lays a transcript out once and then answers for any set of observers.

    Leaks are in steps of the grid; `unit` is one step in units of a contribution. Raises `TooLarge`.
    """

    def __init__(self, transcript: Transcript, users: int, unit: float = 1.0) -> None:
        self._transcript = transcript
        self._unit = unit
        self._users = users
        self._layout = Layout()
        self._received = {
            peer: [self._layout.place(form) for form in forms] for peer, forms in transcript.received.items()
        }
        self._totals = [self._layout.place(form) for form in transcript.seen_by_roles]
        published = transcript.published
        self._published = [self._layout.place(form) for form in published or ()]
        self._tabulate()
        self._ceiling = np.full(users, np.inf)
        for user, own in transcript.own_noise.items():
            self._ceiling[user] = ceiling(own)

    def _tabulate(self) -> None:
        """One table of the terms of all chains, in order."""
        kinds, owners, numbers, variances, weights, offsets = [], [], [], [], [], [0]
        for chain in range(self._layout.chains):
            arrays = self._layout.chain(chain)
            for source in arrays.sources:
                kinds.append({"input": _INPUT, "report": _INPUT, "draw": _DRAW}.get(source.kind, _UNKNOWN))
                owners.append(source.peer)
                numbers.append(source.number)
                drawn = self._transcript.draws[source.peer][source.number] if source.kind == "draw" else NO_NOISE
                variances.append((drawn.scale / self._unit) ** 2 if drawn.name == "gaussian" else 0.0)
            weights.append(arrays.weights)
            offsets.append(offsets[-1] + len(arrays.sources))
        self._kind = np.array(kinds, dtype=np.int8)
        self._owner = np.array(owners, dtype=np.int64)
        self._number = np.array(numbers, dtype=np.int64)
        self._variance = np.array(variances, dtype=np.float64)
        self._weight = np.concatenate(weights) if weights else np.zeros(0)
        self._offset = np.array(offsets, dtype=np.int64)
        drawn_terms = self._kind == _DRAW
        self._draws_once = len(np.unique(self._sources(drawn_terms))) == np.count_nonzero(drawn_terms)
        self._last = np.zeros(len(self._kind), dtype=np.int64)

    def nodes(self, members: Sequence[Peer]) -> Leaks:
        """A user, or users who pool what they saw, know and drew."""
        placed = [form for member in members for form in self._received[member]]
        return self._leaks([*placed, *self._published], members)

    def curator(self) -> Leaks:
        return self._leaks([*self._totals, *self._published], ())

    def public(self) -> Leaks:
        return self._leaks(self._published, ())

    def network(self) -> Leaks:
        """Whoever holds all views, but nobody's inputs and draws."""
        placed = [form for forms in self._received.values() for form in forms]
        return self._leaks([*placed, *self._totals, *self._published], ())

    def _leaks(self, placed: Iterable[dict[tuple[int, int], float]], members: Sequence[Peer]) -> Leaks:
        if self._transcript.published is None:  # it belongs to every view, and what it was cannot be told
            return Leaks(None)
        forms = list(placed)
        mixed = sum(len(form) != 1 or next(iter(form.values())) != 1.0 for form in forms)
        terms = stretches(forms)
        at = self._offset[terms.chain] + terms.place
        foreign = ~np.isin(self._owner[at], np.array(members, dtype=np.int64))
        kind, weight = self._kind[at], self._weight[at] * terms.weight
        if np.any(kind == _UNKNOWN):
            return Leaks(None)
        drawn, inputs = (kind == _DRAW) & foreign, (kind == _INPUT) & foreign
        if self._draws_once and mixed <= 1 and not np.any(weight < 0.0) and self._are_distinct(at):
            leaks = disjoint_leaks(
                terms.rows,
                self._users,
                terms.row[drawn],
                self._variance[at[drawn]] * weight[drawn] ** 2,
                terms.row[inputs],
                self._owner[at[inputs]],
                weight[inputs],
            )
        else:
            leaks = general_leaks(
                terms.rows,
                self._users,
                terms.row[drawn],
                self._sources(at[drawn]),
                weight[drawn] * np.sqrt(self._variance[at[drawn]]),
                terms.row[inputs],
                self._owner[at[inputs]],
                self._number[at[inputs]],
                weight[inputs],
            )
        leaks = np.minimum(leaks, self._ceiling)
        leaks[list(members)] = np.nan
        return Leaks(leaks)

    def _are_distinct(self, at: Ints) -> bool:
        """Of two equal places the later one overwrites what the other wrote there."""
        order = np.arange(len(at))
        self._last[at] = order
        return bool(np.array_equal(self._last[at], order))

    def _sources(self, at: Ints | Bools) -> Ints:
        """A number for each draw."""
        names: Ints = self._owner[at] * (self._number.max(initial=0) + 1) + self._number[at]
        return names
