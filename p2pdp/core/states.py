"""Explicit phases of a machine: an enum of phases, an enum of what changes them, and a table of what follows.

A machine calls `after` only for a change that it has found to be due, whatever its peers send, so a change that the
table does not have is a bug and raises. The guide's page `states` is made from the tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

Phase = TypeVar("Phase", bound=Enum)
Change = TypeVar("Change", bound=Enum)
Transitions = Mapping[tuple[Phase, Change], Phase]


class NoTransitionError(RuntimeError):
    """A machine changed in a way that its table does not have."""


def after(transitions: Transitions[Phase, Change], phase: Phase, change: Change) -> Phase:
    """Return the phase that follows."""
    following = transitions.get((phase, change))
    if following is None:
        raise NoTransitionError(f"{type(phase).__module__}: nothing follows {phase.name} on {change.name}")
    return following
