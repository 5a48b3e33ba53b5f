"""Results as Python shows them: a line or two as text, a small table in a notebook, a DataFrame, a picture.

Guarantee: neither text nor notebook shows what is behind the noise (truths, errors, values of single users), since both
are pasted into mails and kept in notebooks. The HTML has no script, style or address, and every text in it is escaped.
A DataFrame and a picture are made where somebody asks for them; pandas and matplotlib are imported then.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from p2pdp.core.claims import Claim
from p2pdp.core.errors import NotReady
from p2pdp.core.words import PROTECTIONS, observer_name
from p2pdp.report.documents import claim_document
from p2pdp.report.page.markup import Markup, join, paragraph, table, tag
from p2pdp.report.page.words import in_words, number, observer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

Bound = Mapping[str, Any] | None  # `headline` or `worst` of a document


class Shown:
    """An object that can be shown.

    `_said` are its lines as text, `_markup` stands below the first of them in a notebook, and `_rows` make a table.
    """

    __slots__ = ()

    def _said(self) -> Sequence[str]:
        raise NotImplementedError

    def _markup(self) -> Iterable[Markup]:
        return ()

    def _rows(self) -> tuple[Sequence[Mapping[str, Any]], Sequence[str] | None]:
        """Return rows and the names of their columns; None for those that the first row has."""
        raise NotImplementedError

    def __repr__(self) -> str:
        first, *rest = self._said()
        return "\n  ".join([f"{type(self).__name__}({first})", *rest])

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return join([paragraph(tag("strong", self._said()[0])), *self._markup()], "\n")

    def to_frame(self) -> DataFrame:
        """Return the numbers as a DataFrame; needs pandas."""
        try:
            import pandas as pd
        except ImportError:
            raise NotReady("to_frame: pandas is not installed here; pip install '.[tables]' installs it") from None
        rows, columns = self._rows()
        return pd.DataFrame([*rows], columns=None if columns is None else [*columns])


class Pictured(Shown):
    """An object that can be drawn as well."""

    __slots__ = ()

    def _draw(self, axes: Axes) -> None:
        raise NotImplementedError

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw a picture on these axes, by default on new ones of matplotlib's pyplot; return the axes."""
        import matplotlib as mpl

        from p2pdp.report.look import SETTINGS

        with mpl.rc_context(SETTINGS):
            if axes is None:
                from matplotlib import pyplot as plt

                axes = plt.subplots(figsize=(5.6, 3.6))[1]
            self._draw(axes)
        return axes


class WithClaims(Pictured):
    """An object with claims; `_bounds` are its headline and its worst bound as documents."""

    __slots__ = ()
    protocol: str
    nodes: int
    claims: list[Claim]

    def _bounds(self) -> Mapping[str, Bound]:
        raise NotImplementedError

    def _markup(self) -> Iterable[Markup]:
        bounds = self._bounds()
        return [*verdict_markup(bounds["headline"], bounds["worst"]), claims_markup(self.claims)]

    def _rows(self) -> tuple[list[dict[str, Any]], None]:
        return claim_rows(self.claims), None

    def _draw(self, axes: Axes) -> None:
        from p2pdp.report.pictures import draw_claims, draw_pairs

        title, pairs = f"{self.protocol}, {people(self.nodes)}", getattr(self, "epsilon", None)
        if pairs is None:
            draw_claims(axes, self.claims, f"{title}: bounds")
        else:
            draw_pairs(axes, pairs, f"{title}: epsilon of every pair")


def people(nodes: int) -> str:
    return f"{nodes} users" if nodes != 1 else "1 user"


def bound_line(headline: Bound) -> list[str]:
    """Say a headline in a line; nothing where nothing was audited."""
    if headline is None:
        return []
    epsilon = math.inf if headline["epsilon"] == "inf" else headline["epsilon"]
    who, word = observer_name(headline["observer"]), PROTECTIONS[headline["reading"]]
    return [f"epsilon {number(epsilon)} at delta {number(headline['delta'])} against {who}: {word}"]


def verdict_markup(headline: Bound, worst: Bound) -> list[Markup]:
    return [] if headline is None or worst is None else [paragraph(said) for said in in_words(headline, worst)]


def facts_markup(facts: Iterable[tuple[str, object]]) -> Markup:
    """Return a table of names and what they are; what is None is left out."""
    return table(("", ""), [(name, number(value)) for name, value in facts if value is not None])


def claims_markup(claims: Iterable[Claim]) -> Markup:
    """Return the table of claims; those that prove nothing are marked."""
    rows = [
        (observer(one), number(one.epsilon_max), number(one.epsilon_mean), one.method, one.conditioning,
         "yes" if one.bound else "no")
        for one in claims
    ]  # fmt: skip
    return table(("observer", "worst ε", "mean ε", "method", "assumed to know", "bound"), rows, numbers=(1, 2))


def claim_rows(claims: Iterable[Claim]) -> list[dict[str, Any]]:
    """Return claims as rows, with numbers as numbers."""
    return [
        {**claim_document(one), "epsilon_max": one.epsilon_max, "epsilon_mean": one.epsilon_mean, "mu_max": one.mu_max,
         "mu_mean": one.mu_mean}
        for one in claims
    ]  # fmt: skip


def baseline_errors(baselines: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, Any]]:
    """Return the standard errors of the alternatives at the same epsilon, as far as they are known."""
    return [
        (f"standard error, {name} differential privacy", found["standard_error"])
        for name, found in baselines.items()
        if found.get("standard_error") is not None
    ]
