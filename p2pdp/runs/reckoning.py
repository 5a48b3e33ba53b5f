"""Computes what a run costs its owner, in a process of its own (`node.helper`), since that takes scipy and memory.

    python -m p2pdp.runs.reckoning

`Reckoning` is what that process does, `Reckoner` is how the node asks for it. First the node names the run, as it is
offered or as it is signed; then come questions about it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from p2pdp.core.errors import UsageError
from p2pdp.core.spec import Spec
from p2pdp.files.reading import read_plain
from p2pdp.files.spec import parse_spec, spec_to_toml
from p2pdp.ledger.records import read
from p2pdp.node.budget import Charge
from p2pdp.node.helper import Helper, serve
from p2pdp.protocols.run_plan import RunPlan, plan_of_facts
from p2pdp.runs.budgeting import charge_of
from p2pdp.runs.costing import Cost, costs_of, offered_run, signed_run, spent_of, terms_of
from p2pdp.runs.plan import check_accountable

_MODULE: Final = "p2pdp.runs.reckoning"


class Reckoning:
    """Answers questions about one run. Requests and answers are JSON."""

    def __init__(self) -> None:
        self._run: RunPlan | None = None
        self._signed: tuple[str, Mapping[str, Any]] | None = None

    def answer(self, request: Mapping[str, Any]) -> Any:
        facts = dict(request)
        does: dict[str, Callable[..., Any]] = {
            "offer": self._offer,
            "sign": self._sign,
            "costs": self._costs,
            "charge": self._charge,
            "spent": self._spent,
        }
        return does[facts.pop("do")](**facts)

    def _offer(self, spec: str, dimensions: int) -> dict[str, Any] | None:
        offered = parse_spec(spec, None)
        check_accountable(offered)
        self._signed = None
        self._run = offered_run(offered, dimensions)
        if self._run is not None:
            check_accountable(offered, self._run.plan)
        return None if self._run is None else {"terms": terms_of(self._run), "rounds": rounds_of(self._run)}

    def _sign(self, spec: str, facts: Mapping[str, Any]) -> None:
        if self._signed != (spec, facts):
            of = parse_spec(spec, None)
            check_accountable(of, plan_of_facts(of, facts).plan)
            self._run = signed_run(of, facts)
            self._signed = spec, facts

    def _named(self) -> RunPlan:
        if self._run is None:
            raise UsageError("no run was named yet")
        return self._run

    def _costs(self, shares: bool) -> list[dict[str, Any]]:
        return [one.to_json() for one in costs_of(self._named(), shares=shares)]

    def _charge(self, observer: str, delta: float | None) -> list[Any]:
        charge, against = charge_of(self._named(), observer, delta)
        return [charge.mu_squared, charge.epsilon, charge.delta, against]

    def _spent(self, user: int, ledger: str, costs: list[dict[str, Any]] | None, shares: bool) -> list[dict[str, Any]]:
        contents = read(read_plain(Path(ledger)))
        before = None if costs is None else [Cost.from_json(one) for one in costs]
        return [one.to_json() for one in spent_of(self._named(), user, contents, before, shares=shares)]


def rounds_of(run: RunPlan) -> int:
    """Return the rounds that a node may limit; 0 where there are none."""
    return run.protocol.rounds(run.plan)


@dataclass(frozen=True)
class Offered:
    """What of an offered run can be known before any roster; `terms` is the digest that its costs follow from."""

    terms: str
    rounds: int


class Reckoner:
    """Asks; `ask` is that of a `Helper`, or of a `Reckoning` in the same process. `shares`: see `costing.costs_of`."""

    def __init__(self, ask: Callable[[Mapping[str, Any]], Any], *, shares: bool = False) -> None:
        self._ask, self.shares = ask, shares

    def offer(self, spec: Spec, dimensions: int) -> Offered | None:
        """Names the run of all `nodes`; None where its graph is not known yet, and nothing can be asked."""
        found = self._ask({"do": "offer", "spec": spec_to_toml(spec), "dimensions": dimensions})
        return None if found is None else Offered(**found)

    def sign(self, spec: Spec, facts: Mapping[str, Any]) -> None:
        """Names the run of a signed roster; `Refused` where facts that follow from its graph are not those signed."""
        self._ask({"do": "sign", "spec": spec_to_toml(spec), "facts": dict(facts)})

    def costs(self) -> list[Cost]:
        return [Cost.from_json(one) for one in self._ask({"do": "costs", "shares": self.shares})]

    def charge(self, observer: str, delta: float | None = None) -> tuple[Charge, str]:
        """As `budgeting.charge_of`."""
        *charge, against = self._ask({"do": "charge", "observer": observer, "delta": delta})
        return Charge(*charge), against

    def spent(self, user: int, ledger: Path, costs: Sequence[Cost] | None = None) -> list[Cost]:
        """As `costing.spent_of`."""
        before = None if costs is None else [one.to_json() for one in costs]
        asked = {"do": "spent", "user": user, "ledger": str(ledger.absolute()), "costs": before, "shares": self.shares}
        return [Cost.from_json(one) for one in self._ask(asked)]


def reckoning() -> Helper:
    """The process, which starts with the first question; to be closed."""
    return Helper(_MODULE, "what this run costs")


if __name__ == "__main__":
    serve(Reckoning().answer)
