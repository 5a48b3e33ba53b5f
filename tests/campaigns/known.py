"""What fails today, by finding: lies that honest peers do not withstand yet, and how that shows.

Each kind of lie here is an expected failure of the suite (`test_liars.py`, strict): whoever mends a finding takes its
lines out. A campaign counts what is here apart, and everything else as a failure.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

KNOWN: Final[dict[tuple[str, str], str]] = {}  # the kind of lie and the violation -> the finding


def finding(kinds: Collection[str], violation: str) -> str | None:
    """Return the finding that explains a violation in a run with these lies; None if it is new."""
    return next((KNOWN[kind, violation] for kind in kinds if (kind, violation) in KNOWN), None)


def failing(kind: str) -> str | None:
    """Return why a kind of lie is expected to fail; None if it is withstood."""
    return next((why for (one, _), why in KNOWN.items() if one == kind), None)
