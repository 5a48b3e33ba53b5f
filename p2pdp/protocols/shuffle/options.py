"""The section `[shuffle]`: its keys, their meaning, and which of them are needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from p2pdp.core.claims import Unit
from p2pdp.core.readers import ROUNDS, Either, number, one_of, truth
from p2pdp.protocols.options import Options, Rules


@dataclass(frozen=True, slots=True)
class ShufflePart:
    """The values of `[shuffle]`."""

    rounds: int | str | None = None
    stay: float = 0.0
    cover: bool = False


OPTIONS: Final = Options(
    section="shuffle",
    part=ShufflePart,
    readers={
        "rounds": Either(one_of("auto", "mixing"), ROUNDS),
        "stay": number(least=0, below=1),
        "cover": truth,
    },
    rules=Rules(
        needed={"shuffle.rounds": (lambda _: True, 'give a number, "auto" or "mixing".')},
        possible=(
            (
                "shuffle.cover",
                lambda s: not (s.options.cover and s.privacy.unit == Unit.RECORD),
                lambda _: 'cover is for one report of each user; with [privacy] unit = "record" leave it out.',
            ),
        ),
    ),
    meaning="Protocols `shuffle.*` only.",
    meanings={
        "rounds": (
            'How many times each report moves. `"auto"` takes enough that any two users\' reports overlap by '
            '0.82; `"mixing"` is the number in [LTT22], which proves nothing.'
        ),
        "stay": "Probability with which a report stays for a round; bipartite graphs need it.",
        "cover": (
            "Whether every edge carries as many frames in every round, so that an observer of the network sees no "
            "route."
        ),
    },
)
