"""Network shuffling: reports walk from user to user until their owners cannot be told."""

from __future__ import annotations

from typing import Final

PROTOCOLS: Final = {"shuffle.all": "network:ALL", "shuffle.single": "network:SINGLE"}
