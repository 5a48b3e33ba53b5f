"""Claims about gossip against attacks on the same schedule with new noise: neither too small nor too large.

The recorded runs are replayed with arrays, one entry a replay, in place of the auditor's symbols: the machines add
and scale both alike. All intervals together are wrong with a probability below 1e-6.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from p2pdp.auditor.audit import audit_run
from p2pdp.core.draws import DITHER, Mechanism
from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.core.values import pair_source
from p2pdp.ledger.records import DRAWN, PAIRED
from p2pdp.mechanisms import gaussian
from p2pdp.replay import player
from p2pdp.replay.evidence import Recorded
from p2pdp.sim.faults import Crash, Partition
from tests.support.gossips import gossip
from tests.support.likelihood import epsilon_lower_end, mu_interval, statistic
from tests.support.runs import Run, quiet, run_of

ERROR = 1e-6 / 1000  # fewer pairs than that are tested
DELTA = 1e-2
COUNT = 40_000
CUT = Partition(0.6, 4.6, frozenset({3, BOOTSTRAP, CURATOR}))

SHARED = 'mechanism = "gaussian"\nsigma = 2.0\npair_sigma = 5.0'
RUNS = {
    "ring": gossip(7, "ring", "rounds = 2"),
    "hypercube": gossip(8, "hypercube", "rounds = 2"),
    "accelerated": gossip(8, "hypercube", "rounds = 3\naccelerated = true"),
    "noise on messages": gossip(6, "ring", "rounds = 3\nmessage_sigma = 0.5"),
    "one published": gossip(8, "hypercube", 'rounds = 2\npublish = "one"'),
    "randomized": gossip(5, "ring", "activations = 9", protocol="randomized"),
    "rounds skipped": gossip(8, "hypercube", "rounds = 2"),
    "shared": gossip(7, "ring", "rounds = 3", noise=SHARED),
    "shared, randomized": gossip(5, "ring", "activations = 9", protocol="randomized", noise=SHARED),
    "shared, taken back": gossip(7, "ring", "rounds = 3", noise=SHARED),
}
GONE = Crash(peer=5, at_record=11, down_s=None)  # before it began, so both neighbours take their noise back


def recorded(name: str) -> Run:
    if name == "shared, taken back":
        return run_of(RUNS[name], GONE)
    return run_of(RUNS[name], partitions=(CUT,), delay_s=0.1) if name == "rounds skipped" else quiet(RUNS[name])


class Replays:
    """A run again with arrays as values; `view` is what an observer saw and drew itself, a row a replay."""

    def __init__(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        self._run = run
        self._seed = self._moved = 0
        self._drawn: dict[int, list[Any]] = {}
        replays = self

        class Inputs:
            def __init__(self, user: int, values: int) -> None:
                assert values == 1
                self._value = np.full(COUNT, float(user == replays._moved))
                self.made, self.models, self.randomized = 0, {}, {}

            def contribution(self, visit: int) -> Any:
                assert visit == 0
                return self._value

        def noise(of: player.Player, mechanism: Mechanism, shape: tuple[int, ...]) -> Any:
            of._take(DRAWN)
            of.draws.append(mechanism)
            if mechanism.name == DITHER:  # is the same in all replays
                return np.arange(4)
            assert shape == ()
            random = np.random.default_rng([replays._seed, of.user, len(of.draws)])
            drawn = random.standard_normal(COUNT) * mechanism.scale
            replays._drawn.setdefault(of.user, []).append(drawn)
            return drawn

        def pair(of: player.Player, peer: int, number: int, mechanism: Mechanism, shape: tuple[int, ...]) -> Any:
            of._take(PAIRED)
            of.pairs[pair_source(of.user, peer, number)] = mechanism
            random = np.random.default_rng([replays._seed, *sorted((of.user, peer)), number, 99])
            drawn = random.standard_normal(COUNT) * mechanism.scale
            replays._drawn.setdefault(of.user, []).append(drawn)  # whoever holds an end knows it
            return drawn

        monkeypatch.setattr(player, "SymbolicInputs", Inputs)
        monkeypatch.setattr(player.Player, "pair", pair)
        monkeypatch.setattr(player.Player, "noise", noise)

    def view(self, moved: int, observer: int, seed: int) -> np.ndarray:
        """`moved` is the user whose value is 1 and not 0; nobody's if it is below 0."""
        self._seed, self._moved, self._drawn = seed, moved, {}
        transcript = self._run.transcript()
        seen: Any = [*transcript.received[observer], *self._drawn[observer], *(transcript.published or ())]
        return np.stack(seen, axis=1)


@pytest.mark.parametrize("name", RUNS)
def test_exact_leaks_are_matched_from_both_sides(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = recorded(name)
    audit = audit_run(run.plan, Recorded(run.plan, run.contents()), run.world.out, DELTA, ())
    assert audit.mu is not None
    replays = Replays(run, monkeypatch)
    for user, observer in ((1, 0), (2, 0), (3, 0), (0, 4), (4, 2)):
        claimed = float(audit.mu[user, observer])
        weights = statistic(replays.view(-1, observer, 1), replays.view(user, observer, 2))
        without, with_ = (replays.view(*terms) @ weights for terms in ((-1, observer, 3), (user, observer, 4)))
        if not weights.any():
            assert claimed < 1e-5
            continue
        low, high = mu_interval(without, with_, ERROR)
        assert high - low < 0.15, "an interval that says nothing tests nothing"
        assert low <= claimed * (1 + 1e-9)
        assert claimed <= high * (1 + 1e-9)
        assert epsilon_lower_end(without, with_, DELTA, ERROR) <= gaussian.epsilon_of(DELTA, claimed)
