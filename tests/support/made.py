"""Facts for pages, made up so that each part can be told from the others; and a reader that a page must satisfy."""

from __future__ import annotations

import math
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np

from p2pdp.auditor.headline import Verdict, verdict_of
from p2pdp.core.claims import Claim, Refusal
from p2pdp.report.page.facts import Advice, Curve, Outcome, PageFacts, Proof, Prospect

CLAIM = Claim(
    "node", "user", "replace", 1e-5, "exact", "public", 1.5, 0.75, 0.5, 0.25, (0, 2), True, None, ("the sky is blue",)
)
OUTCOME = Outcome(
    estimate=17.5, standard_error=2.0, truth=16.0, error=1.5, local=8.0, central=1.0, seeded=False, seed=None,
    started="2030-01-31T12:00:00Z", seconds=0.5, messages=9, bytes=1234, missing=[], faults={},
)  # fmt: skip


def matrix(n: int = 3) -> Any:
    """Pairs whose epsilons all differ: user u, seen by v, has u + v / 100."""
    users = np.arange(n, dtype=np.float64)
    made = users[:, None] + users[None, :] / 100
    np.fill_diagonal(made, math.nan)
    return made


FACTS = PageFacts(
    run_id="ab" * 16,
    protocol="walk.sum",
    nodes=3,
    delta=1e-5,
    verified="complete",
    claims=[CLAIM],
    refusals=[],
    conditioning="public",
    epsilon=matrix(),
    mu=matrix() / 4,
    coalition=None,
    distances=1.0 - np.eye(3),
    no_distances="",
    curves=[Curve("another user (exact, public)", [(1e-6, 2.0), (1e-5, 1.5), (1e-4, 1.0)])],
    outcome=OUTCOME,
    unread="",
    setting={"graph": "kind ring"},
    spec_text="[run]\n",
)


PROOF = Proof("1.2.3", "5p", "40", "b0", "51", {"bootstrap": "e0", "0": "e1"}, "70", "p2pdp audit FILE --colluders 1,2")
ADVICE = Advice(
    "--set noise.sigma=8.0", [Prospect("sigma = 4", 1.5, math.inf, 2.0), Prospect("sigma = 8", 0.75, math.inf, 4.0)]
)


def facts(**changes: Any) -> PageFacts:
    return replace(FACTS, **changes)


def outcome(**changes: Any) -> Outcome:
    return replace(OUTCOME, **changes)


def claim(**changes: Any) -> Claim:
    return replace(CLAIM, **changes)


def verdict(epsilon: float) -> Verdict:
    """What an audit says that has one bound for all."""
    return verdict_of([claim(epsilon_max=epsilon, observer="network")], [], 3, 1e-5)


def refused(observer: str = "curator", reason: str = "it was raining") -> Refusal:
    return Refusal(observer, "exact", reason)


class Page(HTMLParser):
    """Reads markup strictly: every element that opens is closed, in order."""

    def __init__(self, markup: object) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.rows: list[list[str]] = []  # of all tables: the words of each cell
        self.notes: list[str] = []  # what a reader must not overlook, by its first words
        self._open: list[str] = []
        self._noted = False
        self.feed("".join(markup) if isinstance(markup, list) else str(markup))
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._noted = self._noted or ("role", "note") in attrs
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in ("meta", "br"):
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self._open:
            return
        self.texts.append(data)
        if {"td", "th"} & set(self._open):
            self.rows[-1][-1] = " ".join(f"{self.rows[-1][-1]} {data}".split())
        if self._noted and self._open[-1:] == ["strong"]:
            self.notes.append(data.strip())
            self._noted = False

    @property
    def said(self) -> str:
        """All words, as one line."""
        return " ".join(" ".join(self.texts).split())

    def names(self) -> set[str]:
        return {name for name, _ in self.elements}

    def having(self, **wanted: str) -> list[tuple[str, dict[str, str | None]]]:
        """Elements with these attributes; `class_` as in the code."""
        plain = {name.rstrip("_"): value for name, value in wanted.items()}
        return [one for one in self.elements if plain.items() <= one[1].items()]


def read(markup: object) -> Page:
    return Page(markup)
