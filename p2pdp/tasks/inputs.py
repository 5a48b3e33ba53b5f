"""A user's inputs as a machine sees them: values live, symbols in the auditor.

A user's k-th contribution is its k-th value, cyclically. Machines get inputs only through this door,
and live inputs are made only from rows that were clipped (`mechanisms.clipping.Bounded`) or checked
(`Categories`, `tasks.examples.Examples`), so nothing unbounded can reach a token.

Learners (`descent.GradientInputs`) begin at `start` and take steps: `gradient` gives a contribution that depends on the
model, `moved` the model after it. Over symbols a gradient is a source of its own, and a model that moved is no longer
linear in what it was made of: its form is then a *trace*, all that went into it, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, runtime_checkable

from p2pdp.core.ids import Peer
from p2pdp.core.values import GRADIENT, ZERO_FORM, LinearForm, Source

DUMMY: Final = "dummy"  # the kind of source that a report is which says nothing of anybody


class Inputs(Protocol):
    def zero(self) -> Any:
        """Return the value a token starts with, and what stands for a contribution that is withheld."""

    def contribution(self, visit: int) -> Any:
        """Return what this user adds at its visit number `visit`, counted from 0."""

    def report(self, visit: int, response: Any) -> Any:
        """Return the contribution randomized: `response` is a randomized-response draw (-1 keeps the truth)."""


@runtime_checkable
class Learning(Protocol):
    """Inputs whose contributions are gradients, which may take long to compute."""

    gradient: Callable[..., Any]


class NumberInputs:
    """Grid integers, or int64 vectors of them."""

    def __init__(self, values: Sequence[Any], dimensions: int) -> None:
        self._values = values
        self._dimensions = dimensions

    def zero(self) -> Any:
        if self._dimensions == 1:
            return 0
        import numpy as np

        return np.zeros(self._dimensions, dtype=np.int64)

    def contribution(self, visit: int) -> Any:
        return self._values[visit % len(self._values)]

    def report(self, visit: int, response: Any) -> Any:
        raise TypeError("numbers are noised, not answered at random")

    def __repr__(self) -> str:
        return f"NumberInputs({len(self._values)} values)"


class RealInputs:
    """Floats, or float64 vectors of them: what gossip averages."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = values

    def zero(self) -> Any:
        raise TypeError("gossip has no token that starts with nothing")

    def contribution(self, visit: int) -> Any:
        return self._values[visit % len(self._values)]

    def report(self, visit: int, response: Any) -> Any:
        raise TypeError("numbers are noised, not answered at random")

    def __repr__(self) -> str:
        return f"RealInputs({len(self._values)} values)"


class CategoryInputs:
    """Categories from 0 on, each reported as a vector with a single 1."""

    def __init__(self, values: Sequence[int], categories: int) -> None:
        self._values = values
        self._categories = categories

    def zero(self) -> Any:
        import numpy as np

        return np.zeros(self._categories, dtype=np.int64)

    def contribution(self, visit: int) -> Any:
        return self.report(visit, -1)

    def report(self, visit: int, response: Any) -> Any:
        reported = self.zero()
        reported[self._values[visit % len(self._values)] if response < 0 else response] = 1
        return reported

    def __repr__(self) -> str:
        return f"CategoryInputs({len(self._values)} values)"


class SymbolicInputs:
    """The auditor's stand-in: which value of which user, not what it is."""

    def __init__(self, user: Peer, values: int) -> None:
        self._user = user
        self._values = values
        self.made = 0  # contributions so far
        self.randomized: dict[Source, tuple[Source, ...]] = {}  # the draws that each report or gradient was made with
        self.models: dict[int, LinearForm] = {}  # by visit, at which model a gradient was taken

    def zero(self) -> LinearForm:
        return ZERO_FORM

    def start(self) -> LinearForm:
        """Return nothing: where learning starts is public."""
        return ZERO_FORM

    def contribution(self, visit: int) -> LinearForm:
        self.made += 1
        return LinearForm.of(Source("input", self._user, visit % self._values))

    def report(self, visit: int, response: Any) -> LinearForm:
        """Return a source of its own: a randomized report is not linear in its draw."""
        self.made += 1
        report = Source("report", self._user, visit)
        self.randomized[report] = _draws_in(response)
        return LinearForm.of(report)

    @property
    def count(self) -> int:
        """Return the number of rows."""
        return self._values

    def gradient(self, model: LinearForm, visit: int, rows: LinearForm | None = None) -> LinearForm:
        """Return a source of its own: a gradient depends on the model in a way that no form tells."""
        self.made += 1
        self.models[visit] = model
        gradient = Source(GRADIENT, self._user, visit)
        if rows is not None:
            self.randomized[gradient] = _draws_in(rows)
        return LinearForm.of(gradient)

    def allowed(self, model: LinearForm) -> LinearForm:
        """Return the model as it is: a projection only post-processes what went into it."""
        return model

    def moved(self, model: LinearForm, direction: LinearForm, rate: float) -> LinearForm:
        """Return what went into the model before, and then the direction of this step."""
        return model + LinearForm((), tuple(direction.expand().items()))

    def sealed(self, name: int, randomness: Any, seed: Any, place: int = 0) -> LinearForm:
        """Return a report on its way as it is."""
        return self.report(place, randomness)

    def sealed_dummy(self, name: int, randomness: Any, seed: Any) -> LinearForm:
        return LinearForm.of(Source(DUMMY, self._user, 0))


def _draws_in(response: Any) -> tuple[Source, ...]:
    """Return the draws that a report was given: one form, several, or a number where nothing was drawn."""
    forms = response if isinstance(response, tuple) else (response,)
    return tuple(source for form in forms if isinstance(form, LinearForm) for source in form.expand())
