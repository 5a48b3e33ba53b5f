"""Experiments by subject, found by name; a new one needs no registration.

Each module here defines one `Experiment` or several.
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
    """Return all experiments by name, in the order of papers and figures."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    found = {one.name: one for module in modules for one in vars(module).values() if isinstance(one, Experiment)}
    return {name: found[name] for name in sorted(found, key=lambda name: (name.startswith("ours"), name))}


def named(names: list[str]) -> list[Experiment]:
    """Return the experiments of these names, each once; `all` stands for every one."""
    known = experiments()
    for name in names:
        if name != "all" and name not in known:
            alike = [one for one in known if one.partition("-")[0] == name.partition("-")[0]]  # of the same paper
            close = difflib.get_close_matches(name, alike or known, n=1)
            hint = f"; did you mean {close[0]}?" if close else "; p2pdp reproduce --list names them"
            raise UsageError(f"reproduce {name}: there is no figure or table of that name{hint}")
    return list(known.values()) if "all" in names else [known[name] for name in dict.fromkeys(names)]
