"""Leaks by brute force: all sources in one dense matrix, and numpy's pseudo-inverse. Nothing is shared or sparse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from p2pdp.core.ids import Peer
from p2pdp.core.values import LinearForm, Source
from p2pdp.replay.transcript import Transcript

INPUTS = ("input", "gradient")  # gradients as if they had been fixed in advance


def seen_by(transcript: Transcript, observer: str, members: Sequence[Peer] = ()) -> list[LinearForm]:
    """The forms of a view; what is published is in all of them."""
    assert transcript.published is not None
    forms = list(transcript.published)
    if observer in ("curator", "network"):
        forms += [*transcript.totals, *transcript.undelivered]
    for user in transcript.received if observer == "network" else members:
        forms += transcript.received[user]
    return forms


def leaks(transcript: Transcript, users: int, forms: Sequence[LinearForm], members: Sequence[Peer] = ()) -> Any:
    """mu^2 / sensitivity^2 of each user; NaN for members."""
    rows = [form.expand() for form in forms]
    mine = set(members)
    foreign = sorted({source for row in rows for source in row if not {source.peer, source.other} & mine})
    draws = [source for source in foreign if source.kind in ("draw", "pair")]
    noise = _matrix(rows, draws)
    covariance = noise @ np.diag([transcript.mechanism(one).scale ** 2 for one in draws]) @ noise.T
    inverse = np.linalg.pinv(covariance, rcond=1e-11, hermitian=True)
    found = np.zeros(users)
    for user in range(users):
        inputs = _matrix(rows, [source for source in foreign if source.kind in INPUTS and source.peer == user])
        if user in members:
            found[user] = np.nan
        elif np.max(np.abs(inputs - covariance @ (inverse @ inputs)), initial=0.0) > 1e-7:
            found[user] = np.inf
        else:
            gram = inputs.T @ inverse @ inputs
            largest = max(np.linalg.eigvalsh(gram), default=0.0)
            found[user] = min(np.abs(gram).sum(), len(gram) * largest)
    return found


def _matrix(rows: Sequence[dict[Source, float]], sources: Sequence[Source]) -> Any:
    return np.array([[row.get(source, 0.0) for source in sources] for row in rows]).reshape(len(rows), len(sources))
