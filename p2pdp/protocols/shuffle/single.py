"""`shuffle.single`: each user hands in one of the reports that it holds, or a dummy.

[LTT22, Algorithm 2]; the machine is in `shuffling.py`.
"""

from __future__ import annotations

from typing import Final

from p2pdp.protocols.shuffle.network import NetworkShuffle

PROTOCOL: Final = NetworkShuffle("shuffle.single", single=True)
