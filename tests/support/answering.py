"""A helper's process for tests: `python -m tests.support.answering`."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from p2pdp.core.errors import Refused, VerificationFailed
from p2pdp.node.helper import serve


class Damaged(VerificationFailed):
    """A kind of error that only its own module knows."""


def answer(request: Mapping[str, Any]) -> Any:
    match request["do"]:
        case "process":
            return os.getpid()
        case "refuse":
            raise Refused(request["why"])
        case "damaged":
            raise Damaged(request["why"])
        case "defect":
            raise KeyError(request["why"])
        case "die":
            os._exit(7)
        case "sleep":
            time.sleep(600)
    return request


if __name__ == "__main__":
    serve(answer)
