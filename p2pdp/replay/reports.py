"""Who reported in which gap of a view: for histograms, whose contributions are randomized one by one.

A view of a walk is the token at several moments; what happened between two of them is a *gap*, and the view tells of
it only how often each category was reported. Where something lost was sent again and both copies went on, what the
copies share is a gap of its own: that tells whoever saw both at least as much. A published sum of several totals is one
gap. What the members of the view reported and drew themselves they know, so it protects nobody and is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from p2pdp.core.arrays import Ints
from p2pdp.core.ids import Peer
from p2pdp.core.values import LinearForm, Source
from p2pdp.replay.rows import Layout, RowTerms, stretches
from p2pdp.replay.transcript import Transcript

REPORT: Final = "report"
_DUMMIES: Final = "uniform_counts"


@dataclass(frozen=True, slots=True)
class ReportGap:
    """`reports` of each user in this gap, and uniform elements that nobody in the view knows."""

    reports: Ints
    dummies: int


@dataclass(frozen=True, slots=True)
class ReportView:
    """`exact` where the gaps are no more than what is seen."""

    gaps: list[ReportGap]
    exact: bool


class Reports:
    """Lays a transcript out once and then answers for any set of observers."""

    def __init__(self, transcript: Transcript, users: int) -> None:
        self._transcript = transcript
        self._users = users
        self._layout = Layout()
        self._received = {peer: self._placed(forms) for peer, forms in transcript.received.items()}
        self._totals = self._placed(transcript.seen_by_roles)
        self._published = self._placed(list(transcript.published or ()))
        self._tabulate()

    def _placed(self, forms: Iterable[LinearForm]) -> list[dict[tuple[int, int], float]]:
        return [self._layout.place(form) for form in forms]

    def _tabulate(self) -> None:
        """Of all terms of all chains, in order: a number for their source, who it is, and what it is worth."""
        owners, reports, dummies, names, offsets = [], [], [], [], [0]
        numbers: dict[Source, int] = {}
        for chain in range(self._layout.chains):
            sources = self._layout.chain(chain).sources
            for source in sources:
                owners.append(source.peer)
                reports.append(source.kind == REPORT)
                drawn = self._transcript.draws[source.peer][source.number] if source.kind == "draw" else None
                dummies.append(int(drawn.scale) if drawn is not None and drawn.name == _DUMMIES else -1)
                names.append(numbers.setdefault(source, len(numbers)))
            offsets.append(offsets[-1] + len(sources))
        self._owner = np.array(owners, dtype=np.int64)
        self._is_report = np.array(reports, dtype=np.bool_)
        self._dummies = np.array(dummies, dtype=np.int64)  # -1 for what is neither a report nor uniform elements
        self._name = np.array(names, dtype=np.int64)
        self._offset = np.array(offsets, dtype=np.int64)

    def nodes(self, members: Sequence[Peer]) -> ReportView | None:
        """What a user sees, or users who pool what they saw, know and drew. None where it cannot be told."""
        placed = [form for member in members for form in self._received[member]]
        return self._view([*placed, *self._published], members)

    def curator(self) -> ReportView | None:
        return self._view([*self._totals, *self._published], ())

    def public(self) -> ReportView | None:
        return self._view(self._published, ())

    def _view(self, placed: Iterable[dict[tuple[int, int], float]], members: Sequence[Peer]) -> ReportView | None:
        if self._transcript.published is None:  # it belongs to every view, and what it was cannot be told
            return None
        terms = stretches(placed)
        at = self._offset[terms.chain] + terms.place
        foreign = ~np.isin(self._owner[at], np.array(members, dtype=np.int64))
        at, row = at[foreign], terms.row[foreign]
        if np.any(~self._is_report[at] & (self._dummies[at] < 0)) or np.any(terms.weight[foreign] != 1.0):
            return None
        gap, at, exact = self._gaps(terms, row, at)
        own = self._is_report[at]
        count = int(gap.max(initial=-1)) + 1
        cells = np.bincount(gap[own] * self._users + self._owner[at[own]], minlength=count * self._users)
        dummies = np.bincount(gap[~own], weights=self._dummies[at[~own]], minlength=count)
        reports = cells.reshape(count, self._users)
        return ReportView([ReportGap(reports[one], int(dummies[one])) for one in range(count)], exact)

    def _gaps(self, terms: RowTerms, row: Ints, at: Ints) -> tuple[Ints, Ints, bool]:
        """The gap of each source, and where it stands: rows, or what is in the same rows where these overlap."""
        names, first, times = np.unique(self._name[at], return_index=True, return_counts=True)
        if np.all(times == 1):
            return row, at, True
        rows_of: dict[int, set[int]] = {}
        for name, one in zip(self._name[at].tolist(), row.tolist(), strict=True):
            rows_of.setdefault(name, set()).add(one)
        gaps: dict[frozenset[int], int] = {}
        found = [gaps.setdefault(frozenset(rows_of[name]), len(gaps)) for name in names.tolist()]
        return np.array(found, dtype=np.int64), at[first], len(gaps) <= terms.rows
