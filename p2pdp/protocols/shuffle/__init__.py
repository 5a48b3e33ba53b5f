"""Network shuffling: reports walk from user to user until nobody can tell whose they are."""

from __future__ import annotations

from typing import Final

PROTOCOLS: Final = {"shuffle.all": "network:ALL", "shuffle.single": "network:SINGLE"}
