"""The section of a spec that a protocol family owns: its keys, their readers, rules and meanings.

A reader raises `core.readers.Unfit` with what was expected. Keys of rules are named `section.key`; a rule may name a
key of a common section too, and then applies beside the common rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from p2pdp.core.readers import Reader
from p2pdp.core.spec import Spec

Test = Callable[[Spec], bool]


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules on which keys go together, with the reason that an error states.

    `only` says under which condition a key has a meaning: otherwise it is refused, and the effective spec omits it.
    `needed` says under which condition a key without a default is required. `possible` holds conditions on all values.
    """

    only: Mapping[str, tuple[Test, str]] = field(default_factory=dict)
    needed: Mapping[str, tuple[Test, str]] = field(default_factory=dict)
    possible: tuple[tuple[str, Test, Callable[[Spec], str]], ...] = ()


@dataclass(frozen=True, slots=True)
class Options:
    """A section of the spec and its values, which are in `spec.options` as the frozen dataclass `part`.

    A field of `part` without a default is required. `renamed` maps keys that cannot be names of fields. `meaning` and
    `meanings` describe the section and each key in the guide's reference; `examples` are values that differ in what
    rules look at, where the defaults alone do not show them all.
    """

    section: str
    part: type[Any]
    readers: Mapping[str, Reader]
    renamed: Mapping[str, str] = field(default_factory=dict)
    rules: Rules = field(default_factory=Rules)
    meaning: str = ""
    meanings: Mapping[str, str] = field(default_factory=dict)
    examples: tuple[Any, ...] = ()
