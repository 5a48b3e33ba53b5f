"""The section `[gossip]`: its keys, their meaning, and which of them go together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from p2pdp.core.readers import HOPS, POSITIVE, ROUNDS, SHARE, Either, one_of, truth
from p2pdp.core.spec import Spec
from p2pdp.protocols.options import Options, Rules

FULL: Final = "full"
SHORT: Final = "short"


@dataclass(frozen=True, slots=True)
class GossipPart:
    """The values of `[gossip]`."""

    rounds: int | str | None = None
    accelerated: bool = False
    message_sigma: float | None = None
    publish: str = "none"
    spectral_gap: float = 0.5  # the key in the file is `lambda`
    activations: int | None = None
    precision: str = FULL


def averages_in_rounds(spec: Spec) -> bool:
    return spec.run.protocol == "gossip.average"


def randomized(spec: Spec) -> bool:
    """Return whether pairs meet one by one."""
    return spec.run.protocol == "gossip.randomized"


OPTIONS: Final = Options(
    section="gossip",
    part=GossipPart,
    readers={
        "rounds": Either(one_of("auto"), ROUNDS),
        "accelerated": truth,
        "message_sigma": POSITIVE,
        "publish": one_of("none", "one", "all"),
        "lambda": SHARE,
        "activations": HOPS,
        "precision": one_of(FULL, SHORT),
    },
    renamed={"lambda": "spectral_gap"},
    rules=Rules(
        only={
            "gossip.rounds": (lambda s: not randomized(s), "randomized gossip counts activations, not rounds."),
            "gossip.accelerated": (lambda s: not randomized(s), "only synchronous gossip can be accelerated."),
            "gossip.activations": (randomized, "only gossip.randomized counts activations."),
            "gossip.precision": (averages_in_rounds, "only gossip.average can send states in fewer bytes."),
            "gossip.lambda": (lambda s: s.graph.changing, "it is assumed only where [graph] changing = true."),
        },
        needed={
            "gossip.rounds": (lambda s: not randomized(s), 'give a number or "auto".'),
            "gossip.activations": (randomized, "gossip.randomized needs it."),
        },
        possible=(
            (
                "gossip.precision",
                lambda s: s.options.precision == FULL or (s.noise.mechanism != "none" and not s.noise.pair_sigma),
                lambda _: "states on a coarser grid need noise of the users' own, and none that neighbours share.",
            ),
            (
                "graph.changing",
                lambda s: not (s.graph.changing and randomized(s)),
                lambda _: "bootstrap draws the activations of gossip.randomized on a graph that stays.",
            ),
            (
                "noise.pair_sigma",
                lambda s: not (s.graph.changing and s.noise.pair_sigma),
                lambda _: "neighbours that share noise have to stay neighbours, so the graph cannot change.",
            ),
        ),
    ),
    meaning="Protocols `gossip.*` only.",
    meanings={
        "rounds": (
            'Rounds of exchange; with `gossip.sgd`, those between two gradients. `"auto"` takes enough that '
            "what is left of disagreement is of the size of the noise."
        ),
        "accelerated": "Whether rounds use Chebyshev acceleration.",
        "message_sigma": "Standard deviation of fresh noise on every message, in data units.",
        "publish": "Whose results are published: nobody's, user 0's, or everybody's.",
        "lambda": "Spectral gap that is assumed of changing graphs.",
        "precision": (
            'How vectors are sent: `"full"` as floats of 8 bytes, `"short"` as whole steps of a coarser grid, of 5 '
            "bytes, in runs with noise of the users' own and none that they share. Claims count rounding and dither on "
            "that grid as on the finer one. The dither, 2^-17 of the range of states, adds to their error."
        ),
        "activations": "How many times a pair of neighbours meets, in all.",
    },
)
