"""Find which recorded draws protect each contribution, from the forms of everything that others saw.

A draw protects a contribution if it goes wherever the contribution goes, with the same ratio. Then all that was ever
seen of the contribution is a function of the noised contribution, and the contributions of a user compose as
independent releases, whatever else was sent. Neither the plan nor the order of the records is believed: a draw that was
recorded and never added, or added to one message only, protects nothing.

Ratios are compared in a random combination of all forms that were seen: two sources go together in every form if and
only if their weights in a random complex combination have a real ratio, but for a chance of about 1e-12.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np

from p2pdp.core.draws import Mechanism
from p2pdp.core.ids import Peer
from p2pdp.core.values import GRADIENT, LinearForm, Source

REPORT: Final = "report"
_CONTRIBUTED: Final = frozenset({"input", GRADIENT, REPORT})
_ADDED: Final = frozenset({"gaussian", "laplace"})
_SAME_RATIO: Final = 1e-12
_ROUNDING: Final = 1e-9

Recorded = tuple[Mechanism, ...]


@dataclass(slots=True)
class Noise:
    """A user's noise.

    `own` has the draws that protect each contribution that was seen, in order. `others` are the draws that were seen,
    as they were recorded, but for the first of each contribution: noise of messages, and what protects nothing.
    """

    own: list[Recorded] = field(default_factory=list)
    others: set[Mechanism] = field(default_factory=set)


@dataclass(slots=True)
class _Seen:
    """An occurrence of a contribution, or a draw with all of its occurrences."""

    source: Source
    depth: int
    weight: float  # where it was first added
    combined: complex = 0j


def noise_of(
    seen: Sequence[LinearForm],
    ordered: Sequence[LinearForm],
    draws: Mapping[Peer, Sequence[Mechanism]],
    randomized: Mapping[Source, Recorded],
    unit: float,
) -> dict[Peer, Noise]:
    """Return the noise of each user who has draws or contributions in the forms `seen`.

    Each of these comes once; `ordered` has all that they are made of, as `in_order` sorts it. `randomized` names the
    draws that a report was made with, or that chose the rows of a gradient. Scales of added noise are those of the
    records, in steps of the grid, times the ratio with which the draw accompanies its contribution; `unit` is the ratio
    of one grid step to one unit of a contribution.
    """
    contributed, drawn = _combined(seen, ordered)
    found: dict[Peer, Noise] = {}
    linear: dict[Peer, list[_Seen]] = {}
    for one in contributed:
        if one.source.kind == REPORT:
            found.setdefault(one.source.peer, Noise()).own.append(randomized.get(one.source, ()))
        else:
            linear.setdefault(one.source.peer, []).append(one)
    added: dict[Peer, list[_Seen]] = {}
    for source, one in drawn.items():
        if draws[source.peer][source.number].name in _ADDED:
            added.setdefault(source.peer, []).append(one)
    for peer in linear.keys() | added.keys():
        _match(found.setdefault(peer, Noise()), linear.get(peer, []), added.get(peer, []), draws.get(peer, ()), unit)
        if randomized and linear.get(peer):
            _name_rows(found[peer], [one.source for one in linear[peer] if one.combined], randomized)
    return found


def _name_rows(noise: Noise, sources: Sequence[Source], randomized: Mapping[Source, Recorded]) -> None:
    """Add to the last contributions, which are of these sources, the draws that chose their rows."""
    first = len(noise.own) - len(sources)
    for at, source in enumerate(sources, start=first):
        noise.own[at] += randomized.get(source, ())


def _combined(seen: Sequence[LinearForm], ordered: Sequence[LinearForm]) -> tuple[list[_Seen], dict[Source, _Seen]]:
    """Return contributions and draws, with their weights in a random combination of the forms."""
    random = np.random.Generator(np.random.Philox(key=2)).normal(size=(len(seen), 2))
    weights = {id(form): complex(*pair) for form, pair in zip(seen, random.tolist(), strict=True)}
    contributed: list[_Seen] = []
    drawn: dict[Source, _Seen] = {}
    for form in reversed(ordered):
        total = weights.pop(id(form))
        for source, weight in form.terms:
            if source.kind == "draw":
                one = drawn.get(source)
                if one is None:
                    one = drawn[source] = _Seen(source, form.depth, weight)
                one.depth = form.depth  # forms come deepest first
                one.combined += total * weight
            elif source.kind in _CONTRIBUTED:
                contributed.append(_Seen(source, form.depth, weight, total * weight))
        for parent, weight in form.parents:
            weights[id(parent)] = weights.get(id(parent), 0j) + total * weight
    contributed.reverse()
    return contributed, drawn


def _match(noise: Noise, linear: list[_Seen], added: list[_Seen], draws: Sequence[Mechanism], unit: float) -> None:
    """Group a user's contributions and draws by their ratio in all that was seen; add what is found to `noise`."""
    linear = [one for one in linear if one.combined]
    added = [one for one in added if one.combined]
    combined = np.array([one.combined for one in (*linear, *added)])
    turned = np.angle(combined * combined)  # a negative ratio is real too
    order = np.argsort(turned, kind="stable")
    cuts = (np.nonzero(np.diff(turned[order]) > _SAME_RATIO)[0] + 1).tolist()
    turns, own = order.tolist(), dict[int, Recorded]()
    for begin, end in pairwise([0, *cuts, len(turns)]):
        group = sorted(turns[begin:end])
        places = [at for at in group if at < len(linear)]
        together = [added[at - len(linear)] for at in group[len(places) :]]
        together.sort(key=lambda one: (one.depth, one.source.number))
        noise.others.update(draws[one.source.number] for one in together[len(places) :])
        if places:
            own |= zip(places, _shared([linear[at] for at in places], together, draws, unit), strict=True)
    noise.own += [own[place] for place in sorted(own)]


def _shared(linear: list[_Seen], together: list[_Seen], draws: Sequence[Mechanism], unit: float) -> list[Recorded]:
    """Return the noise of each of some contributions that were only seen together, with these draws, in their order.

    Any way of dividing the draws is valid. Each goes to the last contribution that was added before it; where that
    leaves one without any, Gaussian variance is divided in proportion to the contributions' weights, which comes to
    what their sum tells.
    """
    found: list[list[Mechanism]] = [[] for _ in linear]
    for one in together:
        place = max((at for at, each in enumerate(linear) if each.depth <= one.depth), default=0)
        name, scale, categories = draws[one.source.number]
        found[place].append(Mechanism(name, scale * (_ratio(one, linear[place]) / unit), categories))
    if all(found) or not all(draws[one.source.number].name == "gaussian" for one in together) or not together:
        return [tuple(mechanisms) for mechanisms in found]
    sizes = [abs(one.combined) for one in linear]
    variance = sum((draws[one.source.number].scale * abs(one.combined)) ** 2 for one in together)
    shares = [(variance * size / sum(sizes)) ** 0.5 / size / unit for size in sizes]
    return [(Mechanism("gaussian", share),) for share in shares]


def _ratio(draw: _Seen, contribution: _Seen) -> float:
    """Return the ratio of two weights as the machine wrote it down, unless a form multiplied one of the two later."""
    written, measured = abs(draw.weight / contribution.weight), abs(draw.combined) / abs(contribution.combined)
    return written if abs(measured - written) <= _ROUNDING * written else measured
