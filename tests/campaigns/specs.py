"""Small specs of every protocol that is installed, with noise and without, for worlds by the thousand.

A protocol of another package has no entry here. `specs_of` tries the sections that most protocols take, and says of a
protocol for which none of them is a spec that it is not covered.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

from p2pdp import protocols
from p2pdp.core.errors import P2pdpError
from p2pdp.core.spec import Spec
from p2pdp.files.data import DataSet, load_data
from p2pdp.files.spec import parse_spec, spec_digest
from p2pdp.protocols.run_plan import RunPlan, plan_run
from tests.support.sources import TOP

PATIENCE_S: Final = 1.0
SAMPLES: Final = TOP / "deploy" / "samples"

_UNIFORM = '[data]\nkind = "uniform"\nclip = [0.0, 1.0]\n'
_COUNTS = '[data]\nkind = "categories"\n[task]\nkind = "histogram"\ncategories = 3\n'
_EXAMPLES = (
    '[data]\nkind = "csv"\npath = "walk_sgd.csv"\ntarget = "effect"\nrule = "> 0.0"\n'
    "standardize = { low = [20.0, 0.0], high = [60.0, 10.0] }\n"
    '[task]\nkind = "logistic_regression"\nclip = 1.0\nrate = 0.2\n'
)
_GAUSSIAN = '[noise]\nmechanism = "gaussian"\nsigma = 2.0\n'
_ANSWERS = '[noise]\nmechanism = "randomized_response"\nepsilon = 1.0\n'
_NONE = '[noise]\nmechanism = "none"\n'
_REGULAR = '"regular"\ndegree = 4'


def _spec(protocol: str, nodes: int, graph: str, options: str, rest: str) -> str:
    return (
        f'[run]\nprotocol = "{protocol}"\nnodes = {nodes}\nseed = 1\n'
        f"patience_s = {PATIENCE_S}\nenrol_timeout_s = 30\n"
        f"[graph]\nkind = {graph}\n{options}{rest}"
    )


def _ring(laps: int, tokens: int = 1) -> str:
    return f'[walk]\norder = "ring"\nlaps = {laps}\ntokens = {tokens}\n'


def _hops(hops: int, tokens: int = 1) -> str:
    return f'[walk]\norder = "random"\nhops = {hops}\ntokens = {tokens}\n'


_PAIRS = '[gossip]\nactivations = 10\npublish = "all"\n'
_GOSSIP = '[gossip]\nrounds = 3\npublish = "all"\n'
_OWN: Final = {
    "walk.sum": (
        _spec("walk.sum", 4, '"ring"', _ring(2, 2), _GAUSSIAN + _UNIFORM),
        _spec("walk.sum", 5, '"complete"', _hops(9, 2), _GAUSSIAN + _UNIFORM),
        _spec("walk.sum", 6, _REGULAR, _hops(12), _GAUSSIAN + _UNIFORM),
        _spec("walk.sum", 5, '"complete"', _hops(12), _NONE + _UNIFORM),
    ),
    "walk.histogram": (
        _spec("walk.histogram", 4, '"ring"', _ring(2), _ANSWERS + _COUNTS),
        _spec("walk.histogram", 5, '"complete"', _hops(9), _ANSWERS + _COUNTS),
        _spec("walk.histogram", 5, '"complete"', _hops(9), _NONE + _COUNTS),
    ),
    "walk.sgd": (
        _spec("walk.sgd", 4, '"complete"', _hops(8), _GAUSSIAN + _EXAMPLES),
        _spec("walk.sgd", 4, '"ring"', _ring(2), _GAUSSIAN + _EXAMPLES),
    ),
    "gossip.average": (
        _spec("gossip.average", 4, '"complete"', _GOSSIP, _GAUSSIAN + _UNIFORM),
        _spec("gossip.average", 5, '"path"', '[gossip]\nrounds = 4\npublish = "one"\n', _GAUSSIAN + _UNIFORM),
        _spec("gossip.average", 4, '"complete"', _GOSSIP, _NONE + _UNIFORM),
        _spec("gossip.average", 5, '"complete"', _GOSSIP, _GAUSSIAN + "pair_sigma = 3.0\n" + _UNIFORM),
    ),
    "gossip.randomized": (
        _spec("gossip.randomized", 5, '"complete"', _PAIRS, _GAUSSIAN + _UNIFORM),
        _spec("gossip.randomized", 5, '"complete"', _PAIRS, _NONE + _UNIFORM),
    ),
    "gossip.sgd": (
        _spec("gossip.sgd", 4, '"complete"', "[gossip]\nrounds = 2\n", _GAUSSIAN + _EXAMPLES + "rounds = 2\n"),
    ),
    "pairwise.sum": (
        _spec("pairwise.sum", 6, '"complete"', "[pairwise]\nsurvivors_min = 3\n", _GAUSSIAN + _UNIFORM),
        _spec("pairwise.sum", 6, '"complete"', "[pairwise]\nsurvivors_min = 3\n", _NONE + _UNIFORM),
        _spec("pairwise.sum", 7, _REGULAR, "[pairwise]\nsurvivors_min = 4\n", _GAUSSIAN + _UNIFORM),
    ),
    "shuffle.all": (
        _spec("shuffle.all", 5, '"complete"', "[shuffle]\nrounds = 3\n", _ANSWERS + _COUNTS),
        _spec("shuffle.all", 6, _REGULAR, "[shuffle]\nrounds = 3\n", _ANSWERS + _COUNTS),
    ),
    "shuffle.single": (_spec("shuffle.single", 5, '"complete"', "[shuffle]\nrounds = 3\n", _ANSWERS + _COUNTS),),
}  # fmt: skip
_GRAPHS: Final = ('"ring"', '"complete"', _REGULAR, '"path"')


class Prepared(NamedTuple):
    """What a world is made of."""

    text: str
    spec: Spec
    run: RunPlan
    data: DataSet
    digest: bytes


@cache
def prepared(text: str) -> Prepared:
    spec = parse_spec(text, SAMPLES)
    data = load_data(spec, spec.run.nodes)
    run = plan_run(spec, spec.run.nodes, data.dimensions, sampler="seeded")
    return Prepared(text, spec, run, data, spec_digest(spec))


@cache
def specs_of(protocol: str) -> tuple[str, ...]:
    """Return the specs of a protocol; none where nothing that is tried is one of its specs."""
    if protocol in _OWN:
        return _OWN[protocol]
    owned = protocols.protocol(protocol).options
    options = [""] if owned is None else ["", *(f"[{owned.section}]\n{key} = 3\n" for key in owned.readers)]
    tried = (_spec(protocol, 5, graph, own, _GAUSSIAN + _UNIFORM) for graph in _GRAPHS for own in options)
    return tuple(text for text in tried if _is_spec(text))


def _is_spec(text: str) -> bool:
    try:
        prepared(text)
    except P2pdpError:
        return False
    return True


def covered() -> tuple[str, ...]:
    """Return the protocols that are installed and have specs."""
    return tuple(name for name in protocols.names() if specs_of(name))
