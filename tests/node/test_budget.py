"""The owner's budget: never overspent, whoever reserves at once and whatever dies when; never begun anew in silence."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import signal
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.core.errors import NotReady, Refused, VerificationFailed
from p2pdp.mechanisms import gaussian
from p2pdp.node import budget
from p2pdp.node.budget import BudgetLedger, Charge, Limit, total

LIMIT = Limit("[budget] epsilon", 3.0, 1e-6)
NAMES = ("content aa", "file /own.csv")


def reserve(path: Path, run: str, charge: Charge, names: Sequence[str] = NAMES) -> bool:
    return BudgetLedger(path).reserve(run, names, lambda _spent: [charge], [LIMIT], "one other user")


def spent(path: Path, names: Sequence[str] = NAMES) -> Charge:
    return BudgetLedger(path).spent(names)


charges = st.one_of(
    st.builds(Charge, mu_squared=st.floats(1e-6, 0.5)),
    st.builds(Charge, epsilon=st.floats(0.01, 2.0), delta=st.sampled_from([0.0, 1e-7, 5e-7])),
)


def test_gaussian_charges_compose_as_one_gaussian() -> None:
    both = total([Charge(mu_squared=0.09), Charge(mu_squared=0.16)])
    assert both.epsilon_at(1e-5) == gaussian.epsilon_of(1e-5, 0.5)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.5])
def test_mechanisms_chosen_after_looking_cost_no_more_than_their_sum(epsilon: float) -> None:
    """[KTH23]: a second Gaussian whose mu follows from the first one's outcome, within the sum of mu^2 of the limit."""
    mu, limit = 0.6, 1.0
    y = np.linspace(-9.0, 9.6, 4001)
    density, losses = np.exp(-((y - mu) ** 2) / 2) / math.sqrt(2 * math.pi), mu * y - mu**2 / 2
    rest = math.sqrt(limit - mu**2)
    for chosen in (np.where(y > 0.3, rest, 0.0), np.where(y < 0.3, rest, 0.1), rest * np.minimum(1.0, np.abs(y))):
        deltas = [gaussian.delta_of(epsilon - loss, max(m, 1e-9)) for loss, m in zip(losses, chosen, strict=True)]
        together = float(density @ np.array(deltas)) * (y[1] - y[0])
        assert together <= gaussian.delta_of(epsilon, math.sqrt(limit)) + 1e-6


def test_pure_mechanisms_chosen_after_looking_cost_no_more_than_their_sum() -> None:
    """[RRUV16], on all answers of randomized responses whose second epsilon follows from the first answer."""
    first, second = 0.4, {0: 0.2, 1: 0.6}

    def chances(value: int) -> list[float]:
        found = []
        for answer in (0, 1):
            one = 1 / (1 + math.exp(-first if answer == value else first))
            found += [one / (1 + math.exp(-second[answer] if again == value else second[answer])) for again in (0, 1)]
        return found

    ratios = [abs(math.log(p / q)) for p, q in zip(chances(0), chances(1), strict=True)]
    assert max(ratios) == pytest.approx(max(0.4 + 0.6, 0.4 + 0.2))


def test_other_charges_add_up_and_leave_the_rest_of_delta_to_gaussian_ones() -> None:
    every = total([Charge(mu_squared=0.25), Charge(epsilon=0.5, delta=4e-7), Charge(epsilon=0.25)])
    assert every.epsilon_at(1e-6) == pytest.approx(0.75 + gaussian.epsilon_of(6e-7, 0.5))
    assert every.epsilon_at(3e-7) == math.inf
    assert Charge(epsilon=0.5, delta=1e-6).epsilon_at(1e-6) == 0.5
    assert total([Charge(mu_squared=0.25), Charge(delta=1e-6)]).epsilon_at(1e-6) == math.inf
    assert total([Charge(epsilon=0.1, delta=1e-6)] * 10).epsilon_at(1e-5) == pytest.approx(1.0)
    assert total([]).epsilon_at(1e-6) == 0.0


@given(charges, charges, st.sampled_from([1e-6, 1e-5, 1e-4]))
def test_a_charge_never_lowers_what_is_spent(one: Charge, other: Charge, delta: float) -> None:
    both = total([one, other]).epsilon_at(delta)
    assert both >= one.epsilon_at(delta)
    assert both >= other.epsilon_at(delta)


def test_a_run_is_charged_once(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "budget"
    assert reserve(path, "run 1", Charge(epsilon=2.0, delta=1e-7))
    assert not reserve(path, "run 1", Charge(epsilon=2.0, delta=1e-7))
    assert spent(path) == Charge(epsilon=2.0, delta=1e-7)
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_what_does_not_fit_is_refused_with_the_numbers(tmp_path: Path) -> None:
    path = tmp_path / "budget"
    reserve(path, "run 1", Charge(epsilon=2.0, delta=1e-7))
    with pytest.raises(Refused) as refused:
        reserve(path, "run 2", Charge(epsilon=1.5))
    assert str(refused.value) == (
        "[budget] epsilon: this run would cost epsilon 1.5 at delta 1e-06 against one other user, and of epsilon 3 at "
        "delta 1e-06 there is epsilon 1 and delta 9e-07 left (together it would be epsilon 3.5)"
    )
    with pytest.raises(Refused, match=r"would cost epsilon 0\.5 with delta 1e-05 against"):
        reserve(path, "run 3", Charge(epsilon=0.5, delta=1e-5))
    assert spent(path) == Charge(epsilon=2.0, delta=1e-7)
    assert reserve(path, "run 4", Charge(epsilon=1.0))


def test_looking_charges_nothing(tmp_path: Path) -> None:
    ledger = BudgetLedger(tmp_path / "budget")
    ledger.check(NAMES, lambda _spent: [Charge(epsilon=2.9)], [LIMIT], "one other user")
    ledger.check(NAMES, lambda _spent: [Charge(epsilon=2.9)], [LIMIT], "one other user")
    with pytest.raises(Refused):
        ledger.check(NAMES, lambda _spent: [Charge(epsilon=3.1)], [LIMIT], "one other user")
    assert ledger.spent(NAMES) == Charge()


def test_every_limit_holds(tmp_path: Path) -> None:
    lower = Limit("[privacy] budget", 1.0, 1e-5)
    ledger = BudgetLedger(tmp_path / "budget")
    with pytest.raises(Refused, match=r"\[privacy\] budget"):
        ledger.reserve("run", NAMES, lambda _spent: [Charge(epsilon=2.0)], [LIMIT, lower], "one other user")
    assert ledger.reserve("run", NAMES, lambda _spent: [Charge(epsilon=1.0)], [LIMIT, lower], "one other user")


def test_the_first_offer_that_fits_is_charged(tmp_path: Path) -> None:
    sparing, lavish = Charge(epsilon=2.0, delta=1e-7), Charge(epsilon=1.5, delta=9e-7)
    ledger = BudgetLedger(tmp_path / "budget")
    ledger.reserve("run 1", NAMES, lambda _spent: [sparing, lavish], [LIMIT], "one other user")
    assert ledger.spent(NAMES) == sparing
    other = ("content zz",)
    tight = Limit("[budget] epsilon", 1.75, 1e-6)
    ledger.reserve("run 2", other, lambda _spent: [sparing, lavish], [tight], "one other user")
    assert ledger.spent(other) == lavish
    with pytest.raises(Refused, match=r"would cost epsilon 1\.5 at"):
        ledger.reserve("run 3", other, lambda _spent: [sparing, lavish], [tight], "one other user")


def test_data_sets_are_apart_unless_they_share_a_name(tmp_path: Path) -> None:
    path = tmp_path / "budget"
    reserve(path, "run 1", Charge(epsilon=1.0), ("content aa", "file /a"))
    reserve(path, "run 2", Charge(epsilon=0.5), ("content bb", "file /a"))  # the file was changed
    reserve(path, "run 3", Charge(epsilon=0.25), ("content bb", "file /c"))  # and copied
    reserve(path, "run 4", Charge(epsilon=2.0), ("content dd", "file /d"))
    assert spent(path, ("content aa", "file /elsewhere")).epsilon == 1.75
    assert spent(path, ("content ee", "file /c")).epsilon == 1.75
    assert spent(path, ("content dd", "file /x")).epsilon == 2.0
    assert spent(path, ("content zz", "file /z")).epsilon == 0.0


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: text.replace("2.0", "0.2"),
        lambda text: text.replace("p2pdp budget 1", "p2pdp budget 9"),
        lambda text: "[]",
        lambda text: '{"format": "p2pdp budget 1"}',
    ],
)
def test_a_damaged_file_is_an_error(tmp_path: Path, damage: object) -> None:
    path = tmp_path / "budget"
    reserve(path, "run 1", Charge(epsilon=2.0))
    assert callable(damage)
    path.write_text(damage(path.read_text()))
    before = path.read_bytes()
    for act in (lambda: reserve(path, "run 2", Charge(epsilon=0.1)), lambda: spent(path)):
        with pytest.raises(VerificationFailed, match="is damaged"):
            act()
    assert path.read_bytes() == before


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_impossible_numbers_are_damage_even_with_a_digest(tmp_path: Path, value: float) -> None:
    path = tmp_path / "budget"
    reserve(path, "run 1", Charge(epsilon=2.0))
    document = json.loads(path.read_text())
    document["charges"][0]["epsilon"] = value
    if math.isfinite(value):
        document["digest"] = budget._digest(document["charges"])
    path.write_text(json.dumps(document))
    with pytest.raises(VerificationFailed, match="is damaged"):
        spent(path)


def test_a_file_that_is_gone_is_an_error_until_its_lock_is_gone_too(tmp_path: Path) -> None:
    path = tmp_path / "budget"
    reserve(path, "run 1", Charge(epsilon=2.0))
    path.unlink()
    with pytest.raises(VerificationFailed, match="is gone"):
        reserve(path, "run 2", Charge(epsilon=2.0))
    path.with_name("budget.lock").unlink()
    assert reserve(path, "run 2", Charge(epsilon=2.0))


def test_what_is_no_file_is_not_ready(tmp_path: Path) -> None:
    (tmp_path / "budget").mkdir()
    with pytest.raises(NotReady, match="budget"):
        reserve(tmp_path / "budget", "run 1", Charge())
    (tmp_path / "plain").touch()
    with pytest.raises(NotReady, match="plain"):
        reserve(tmp_path / "plain" / "budget", "run 1", Charge())


class Killed(BaseException):
    pass


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 5), charges, st.sampled_from(["", "before", "after"])), max_size=12))
def test_no_interleaving_of_reservations_and_deaths_overspends(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, Charge, str]]
) -> None:
    """Each step a node reserves for a run, or comes back to one; it may die before or after its charge is written."""
    path = tmp_path_factory.mktemp("budget") / "budget"
    granted: dict[int, Charge] = {}  # what somebody may have contributed
    charged: dict[int, Charge] = {}
    write = BudgetLedger._write
    for run, charge, death in steps:

        def dying(self: BudgetLedger, entries: Sequence[object], death: str = death) -> None:
            if death == "before":
                raise Killed
            write(self, entries)  # type: ignore[arg-type]
            if death == "after":
                raise Killed

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(BudgetLedger, "_write", dying)
            try:
                fresh = reserve(path, f"run {run}", charge)
            except Refused:
                after = total([*charged.values(), charge])
                assert run not in charged
                assert after.epsilon_at(LIMIT.delta) > LIMIT.epsilon
                continue
            except Killed:
                if death == "after":
                    charged[run] = charge
                continue
        assert fresh == (run not in charged)
        charged.setdefault(run, charge)
        granted.setdefault(run, charged[run])
        now = spent(path)
        assert now.epsilon == pytest.approx(total(list(charged.values())).epsilon)
        assert now.epsilon_at(LIMIT.delta) <= LIMIT.epsilon
        assert total(list(granted.values())).epsilon_at(LIMIT.delta) <= LIMIT.epsilon


def _reserves(path: Path, number: int, granted: object) -> None:
    for turn in range(5):
        try:
            reserve(path, f"run {number} {turn}", Charge(epsilon=0.4))
        except Refused:
            continue
        granted.put(number)  # type: ignore[attr-defined]


def test_processes_at_once_never_overspend_together(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    granted = context.SimpleQueue()
    workers = [context.Process(target=_reserves, args=(tmp_path / "budget", number, granted)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    count = 0
    while not granted.empty():
        granted.get()
        count += 1
    assert count == 7  # seven times 0.4 fit into 3, and not eight times
    assert spent(tmp_path / "budget").epsilon == pytest.approx(2.8)


def test_a_lock_ends_with_whoever_held_it(tmp_path: Path) -> None:
    path = tmp_path / "budget"
    reserve(path, "run 0", Charge(epsilon=1.0))
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # takes the lock and is killed with it
        with BudgetLedger(path)._locked():
            os.write(writer, b"x")
            signal.pause()
    assert os.read(reader, 1) == b"x"
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert reserve(path, "run 1", Charge(epsilon=1.0))
    os.close(reader)
    os.close(writer)
