"""The budget of an owner's data sets: a file that records every run, and refuses one before it costs too much.

Guarantee: the sum of what is charged to a data set never exceeds the limits given with a reservation, however many
nodes reserve at once (one lock for all), and whatever is killed when: a charge is on the disk before `reserve`
returns, and stays there. It is keyed by run, so whoever comes back to a run is charged nothing more. A file that is
damaged or gone is an error and never an empty one.

Charges are mu^2 of Gaussian mechanisms, or (epsilon, delta) of others. Gaussian ones compose as mu = sqrt(sum mu^2),
the others by adding up; together they are at most (epsilon_G + sum epsilon, delta_G + sum delta) with epsilon_G that of
the Gaussian curve at delta_G, what the others leave of delta. That holds although runs are chosen one after another,
for what is compared with the limit are the sums themselves ([RRUV16] for the sums of
epsilons, [KTH23] for mu^2).

A charge is of a unit. What single records lost bounds nothing that a user's whole data lost, so a budget of whole users
refuses data that were charged for records. What a user's data lost bounds what each of its rows did: it counts in a
budget of records.

A data set goes by several names, what is in its file and where that is; charges that share a name with it, or with
another charge that does, count. So neither a copy nor a change of a file begins anew.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from p2pdp.core.claims import Unit
from p2pdp.core.errors import NotReady, Refused, VerificationFailed
from p2pdp.files.folder import make_private
from p2pdp.mechanisms import gaussian
from p2pdp.node.disk import write_durably

_FORMAT: Final = "p2pdp budget 1"
_IN_USE: Final = b"the budget beside this file is in use\n"


@dataclass(frozen=True, slots=True)
class Charge:
    """The cost of one or several runs."""

    mu_squared: float = 0.0
    epsilon: float = 0.0
    delta: float = 0.0

    def epsilon_at(self, delta: float) -> float:
        """Return epsilon of all of it together at this delta; infinite where delta alone is more."""
        left = delta - self.delta
        if left < 0.0:
            return math.inf
        return self.epsilon + (gaussian.epsilon_of(left, math.sqrt(self.mu_squared)) if self.mu_squared else 0.0)

    def __str__(self) -> str:
        parts = [f"mu {math.sqrt(self.mu_squared):.6g}"] if self.mu_squared else []
        if self.epsilon or self.delta or not parts:
            parts.append(f"epsilon {self.epsilon:.6g}" + (f" with delta {self.delta:g}" if self.delta else ""))
        return " and ".join(parts)


def total(charges: Sequence[Charge]) -> Charge:
    return Charge(
        math.fsum(charge.mu_squared for charge in charges),
        math.fsum(charge.epsilon for charge in charges),
        math.fsum(charge.delta for charge in charges),
    )


Offers = Callable[[Charge], Iterable[Charge]]  # by what was spent so far


@dataclass(frozen=True, slots=True)
class Limit:
    """Epsilon at delta that must not be exceeded; `name` is the entry that says so."""

    name: str
    epsilon: float
    delta: float

    def allows(self, spent: Sequence[Charge], charge: Charge) -> bool:
        return total([*spent, charge]).epsilon_at(self.delta) <= self.epsilon

    def check(self, spent: Sequence[Charge], charge: Charge, against: str) -> None:
        if self.allows(spent, charge):
            return
        after = total([*spent, charge]).epsilon_at(self.delta)
        alone, before = charge.epsilon_at(self.delta), total(spent)
        cost = f"epsilon {alone:.6g} at delta {self.delta:g}" if alone < math.inf else str(charge)
        used = before.epsilon_at(self.delta)
        left = f"epsilon {max(0.0, self.epsilon - used):.6g}"
        if before.delta:
            left += f" and delta {max(0.0, self.delta - before.delta):.6g}"
        raise Refused(
            f"{self.name}: this run would cost {cost} against {against}, and of epsilon {self.epsilon:g} at delta "
            f"{self.delta:g} there is {left} left (together it would be {_shown(after)})"
        )


def _shown(epsilon: float) -> str:
    return f"epsilon {epsilon:.6g}" if epsilon < math.inf else "more than any epsilon"


@dataclass(frozen=True, slots=True)
class _Entry:
    run: str
    names: tuple[str, ...]
    charge: Charge
    unit: Unit = Unit.USER


class BudgetLedger:
    """The file, and a lock beside it.

    What a run costs is offered in one way or several, given what was spent, and the first that fits is charged: a
    smaller delta goes with a larger epsilon.
    """

    def __init__(self, path: Path, unit: Unit = Unit.USER) -> None:
        """The budget is one of this unit."""
        self._path = path
        self._unit = unit
        self._lock = path.with_name(path.name + ".lock")

    def check(self, names: Sequence[str], offers: Offers, limits: Sequence[Limit], against: str) -> Charge:
        """Return what a reservation would charge now, and charge nothing. Raise `Refused` if none would be granted."""
        with self._locked():
            return _fitting(self._alike(_charged(self._entries(), names)), offers, limits, against)

    def reserve(self, run: str, names: Sequence[str], offers: Offers, limits: Sequence[Limit], against: str) -> bool:
        """Charge a run to a data set unless that was done before; return whether it was now, or raise `Refused`."""
        with self._locked():
            entries = self._entries()
            if any(entry.run == run for entry in entries):
                return False
            charge = _fitting(self._alike(_charged(entries, names)), offers, limits, against)
            self._write([*entries, _Entry(run, tuple(names), charge, self._unit)])
            return True

    def holds(self, run: str) -> bool:
        """Return whether this run was charged before."""
        with self._locked():
            return any(entry.run == run for entry in self._entries())

    def spent(self, names: Sequence[str]) -> Charge:
        with self._locked():
            return total([entry.charge for entry in _charged(self._entries(), names)])

    def _alike(self, entries: Sequence[_Entry]) -> list[Charge]:
        """Return what counts in a budget of this unit."""
        if self._unit == Unit.USER and any(entry.unit == Unit.RECORD for entry in entries):
            raise Refused(
                f"{self._path}: these data were charged for single records, which does not say what a user's whole "
                'data lost; with [budget] unit = "record" both kinds of runs count'
            )
        return [entry.charge for entry in entries]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            make_private(self._path.parent)
            descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise NotReady(f"{self._lock}: {error.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)  # which gives the lock back

    def _entries(self) -> list[_Entry]:
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            if self._lock.read_bytes():
                raise VerificationFailed(
                    f"{self._path}: is gone, and with it what was spent; put it back, "
                    f"or remove {self._lock} too if you mean to begin anew"
                ) from None
            return []
        except OSError as error:
            raise NotReady(f"{self._path}: {error.strerror}") from None
        try:
            return _read(data)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise VerificationFailed(
                f"{self._path}: is damaged, so what was spent is not known; put back a copy of it"
            ) from None

    def _write(self, entries: Sequence[_Entry]) -> None:
        write_durably(self._path, _packed(entries))
        if not self._lock.read_bytes():
            self._lock.write_bytes(_IN_USE)  # in place: the lock is on this very file


def _fitting(spent: Sequence[Charge], offers: Offers, limits: Sequence[Limit], against: str) -> Charge:
    """Return the first offer within all limits, or raise what is wrong with the last."""
    offer = Charge()
    for offer in offers(total(spent)):
        if all(limit.allows(spent, offer) for limit in limits):
            return offer
    for limit in limits:
        limit.check(spent, offer, against)
    return offer


def _charged(entries: Sequence[_Entry], names: Sequence[str]) -> list[_Entry]:
    known: set[str] = set(names)
    while True:
        mine = [entry for entry in entries if known.intersection(entry.names)]
        wider = known.union(*(entry.names for entry in mine))
        if wider == known:
            return mine
        known = wider


def _packed(entries: Sequence[_Entry]) -> bytes:
    listed = [
        {
            "run": entry.run,
            "data": list(entry.names),
            "mu_squared": entry.charge.mu_squared,
            "epsilon": entry.charge.epsilon,
            "delta": entry.charge.delta,
            **({} if entry.unit == Unit.USER else {"unit": str(entry.unit)}),
        }
        for entry in entries
    ]
    document = {"format": _FORMAT, "charges": listed, "digest": _digest(listed)}
    return (json.dumps(document, indent=1, allow_nan=False) + "\n").encode()


def _digest(listed: Any) -> str:
    text = json.dumps(listed, sort_keys=True, allow_nan=False)
    return blake2b(text.encode(), digest_size=32, person=b"p2pdp budget 1").hexdigest()


def _read(data: bytes) -> list[_Entry]:
    document = json.loads(data)
    listed = document["charges"]
    if document["format"] != _FORMAT or document["digest"] != _digest(listed):
        raise ValueError
    entries = []
    for one in listed:
        charge = Charge(one["mu_squared"], one["epsilon"], one["delta"])
        if not all(0.0 <= part < math.inf for part in (charge.mu_squared, charge.epsilon, charge.delta)):
            raise ValueError
        entries.append(_Entry(one["run"], tuple(one["data"]), charge, Unit(one.get("unit", Unit.USER))))
    return entries
