"""Specs of learning over minibatches that nodes draw: 60 rows of 5 users, 4 of 12 expected in a step."""

from __future__ import annotations

from typing import Final

from tests.support.gossip_learners import LOGISTIC, gossip_learning
from tests.support.learners import learning

_BATCH: Final = LOGISTIC.replace("rounds = 3", "rounds = 6\nbatch = 4")
_RECORD: Final = 'unit = "record"\n'

GOSSIP: Final = gossip_learning(5, task=_BATCH, sigma=0.3) + _RECORD
PAIRS: Final = GOSSIP.replace("sigma = 0.3", "sigma = 0.3\npair_sigma = 0.6").replace(
    "rounds = 2", 'rounds = 2\npublish = "one"'
)
WALK: Final = (
    learning(5, 20, task='kind = "logistic_regression"\nclip = 1.0\nrate = 0.2\nbatch = 4', sigma=0.3) + _RECORD
)
