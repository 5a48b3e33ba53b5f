"""Amplification by iteration between two looks at a token whose path is known.

Guarantee: `exposures` gives, for each user, s such that whoever sees a token at the end of each gap, and knows who took
which step, learns no more of that user than a Gaussian of mu = sqrt(s) Delta / sigma tells, Delta what a
replaced user moves one contribution by and sigma the noise of each step. The caller owes steps that contract.

How: a contribution at rate r moves the model by r Delta, and what it moved can be spread over the noise of its own
and all later steps of the gap. Spreading a_t over step t costs (a_t / (r_t sigma))^2, and what was not yet
contributed cannot be spread ([FMTT18, Theorem 22] for Rényi divergences;
[BSA24] for the Gaussian curve itself). With
time running as the squares of the rates, the cheapest way is along the greatest convex minorant of what the user has
contributed so far. Costs of gaps add up: a path does not depend on data.
"""

from __future__ import annotations

import numpy as np

from p2pdp.core.arrays import Floats, Ints


def exposures(gap: Ints, user: Ints, rates: Floats, users: int) -> Floats:
    """Return the exposure of each user; steps come in the order of their gaps, and in each gap in the order of time.

    Whose noise protects nobody from the observer (its own steps) is not among them.
    """
    total = np.zeros(users)
    if not len(gap):
        return total
    squares = rates * rates
    clock = np.concatenate([[0.0], np.cumsum(squares)])
    begins = clock[:-1]  # of each step, in time that runs on from gap to gap
    last = np.flatnonzero(np.append(gap[1:] != gap[:-1], True))
    ends = clock[last + 1][np.searchsorted(last, np.arange(len(gap)))]
    order = np.lexsort((begins, user, gap))
    owner, start, step, end = user[order], begins[order], rates[order], ends[order]
    new = np.concatenate([[True], (gap[order][1:] != gap[order][:-1]) | (owner[1:] != owner[:-1])])
    heads = np.flatnonzero(new)
    counts = np.diff(np.append(heads, len(order)))
    for count in np.unique(counts):
        chosen = heads[counts == count]
        places = chosen[:, None] + np.arange(count)
        times = np.concatenate([start[places], end[chosen][:, None]], axis=1)
        np.add.at(total, owner[chosen], _minorant_costs(np.diff(times, axis=1), step[places]))
    return total


def _minorant_costs(widths: Floats, heights: Floats) -> Floats:
    """Return, for each row, the sum of height^2/width over the pieces of the greatest convex minorant of its steps.

    Neighbours that fall in slope are pooled, the pool of each row kept as a stack.
    """
    rows, count = widths.shape
    if count == 1:
        return np.asarray(heights[:, 0] ** 2 / widths[:, 0])
    wide, high = np.zeros_like(widths), np.zeros_like(heights)
    top = np.full(rows, -1)
    lanes = np.arange(rows)
    for column in range(count):
        top += 1
        wide[lanes, top], high[lanes, top] = widths[:, column], heights[:, column]
        while True:
            below = np.maximum(top - 1, 0)
            falls = (top > 0) & (high[lanes, top] * wide[lanes, below] <= high[lanes, below] * wide[lanes, top])
            if not falls.any():
                break
            at, to, on = lanes[falls], below[falls], top[falls]
            wide[at, to] += wide[at, on]
            high[at, to] += high[at, on]
            top[falls] -= 1
    kept = np.arange(count) <= top[:, None]
    return np.asarray(np.where(kept, high**2 / np.where(kept, wide, 1.0), 0.0).sum(axis=1))
