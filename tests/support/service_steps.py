"""What tests of bootstrap and curator share."""

from __future__ import annotations

from typing import Any

from p2pdp.core import messages
from p2pdp.core.step import Step

PATIENCE_S, READY_S = 10.0, 60.0


class LastOption:
    """Draws that always take the last of the options."""

    def noise(self, mechanism: Any, shape: Any) -> Any:
        raise AssertionError("bootstrap adds no noise")

    def choice(self, options: int) -> int:
        return options - 1


DRAWS = LastOption()


def sent(step: Step) -> list[tuple[Any, ...]]:
    """All but what the curator is told of exclusions that are settled."""
    others = (send for send in step.sends if send.message.type != messages.RESOLVED)
    return [(send.to, send.message.type, *send.message.fields) for send in others]
