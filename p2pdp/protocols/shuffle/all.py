"""`shuffle.all`: every report that a user holds in the end goes to the curator.

[LTT22, Algorithm 1]; the machine is in `shuffling.py`.
"""

from __future__ import annotations

from typing import Final

from p2pdp.protocols.shuffle.network import NetworkShuffle

PROTOCOL: Final = NetworkShuffle("shuffle.all", single=False)
