"""Experiments, one module each, found by name; a new one needs no registration.

A module here whose name begins with `fig_` or `table_` defines `EXPERIMENT`; the others are what several of them share.
"""

from __future__ import annotations

import difflib
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from p2pdp.core.errors import UsageError
from p2pdp.experiments.contract import Experiment


@cache
def experiments() -> dict[str, Experiment]:
    """All that are here, by name, in the order of papers and figures."""
    found: list[Experiment] = [
        import_module(f"{__name__}.{module.name}").EXPERIMENT
        for module in iter_modules(__path__)
        if module.name.startswith(("fig_", "table_"))
    ]
    return {one.name: one for one in sorted(found, key=lambda one: (one.name.startswith("ours"), one.name))}


def named(names: list[str]) -> list[Experiment]:
    """The experiments of these names, each once; `all` stands for every one."""
    known = experiments()
    for name in names:
        if name != "all" and name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else "; p2pdp reproduce --list names them"
            raise UsageError(f"reproduce {name}: there is no figure or table of that name{hint}")
    return list(known.values()) if "all" in names else [known[name] for name in dict.fromkeys(names)]
