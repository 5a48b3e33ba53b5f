"""Limits on what one peer can make us do, in one place.

A peer that is heard may ask for things: answers, messages sent again, records on our disk. Each kind of demand has a
bucket for each peer, which fills at a steady rate up to a burst. A demand that finds the bucket empty is dropped as if
its frame had been lost, and counted (`TOO_MANY`). So such a peer is slowed and never put out for it, others notice
nothing, and what was a message comes again when its sender sends it again.

The rates, and why honest peers stay far below them:

* `RESENDS`: each is answered by up to 256 messages, with all pieces of their values, and counts for one more a
  MiB of those, up to `LARGE_MAX`. A peer asks once for each gap, again after a fifth of the patience while it lasts,
  and a gap takes a broken connection.
* `QUESTIONS`: hellos and pokes, each answered by one frame. A peer asks once for each new connection and twice a second
  while it restarts; bootstrap pokes eight times in a patience.
* `REPEATS`: messages that we have already, each answered by one frame. A peer sends up to 256 again at once, and then
  waits twice as long each time.

  These two are for users only: bootstrap, which asks for signs of life, is answered even where somebody repeats its
  frames without end.
* `WRONG`: recorded messages that the machine refuses, such as a question about silence from somebody who has no say. It
  has to be recorded that they came, and who sends many has his messages taken at this rate from then on. Around an
  exclusion an honest peer may send a few.
* `MESSAGES`, `BYTES`: what bootstrap and the curator record of one user. A run has some ten messages for each of them,
  beside reports, and a skeleton comes in pieces of 48 KiB.

Messages between users that are as they should be have no limit: the protocol says how many there are.

The caller owes: `now_s` that never falls.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from p2pdp.core.ids import Peer, is_user

TOO_MANY: Final = "too_many"


class Rate(NamedTuple):
    """The amount of one kind of demand that is granted a second, and that granted at once."""

    of: str
    per_s: float
    burst: float


QUESTIONS: Final = Rate("questions", 32.0, 128.0)
RESENDS: Final = Rate("resends", 16.0, 64.0)
LARGE_MAX: Final = 15.0  # as so many more at most counts a question that is answered by large values, one a MiB
REPEATS: Final = Rate("repeats", 512.0, 2048.0)
WRONG: Final = Rate("wrong", 4.0, 128.0)
MESSAGES: Final = Rate("messages", 32.0, 4096.0)
BYTES: Final = Rate("bytes", 4.0 * 2**20, 256.0 * 2**20)


class Limits:
    """The buckets of all peers of one host. There is none for a demand that a peer never made."""

    def __init__(self, me: Peer) -> None:
        self._serves = not is_user(me)
        self._left: dict[tuple[Peer, Rate], tuple[float, float]] = {}  # what was left, and when
        self.wrong: set[Peer] = set()  # of whom a message was refused

    def grants(self, peer: Peer, rate: Rate, now_s: float, amount: float = 1.0) -> bool:
        """Take this amount out of a bucket, if anything is in it; one demand may take more than there is."""
        left = self._filled(peer, rate, now_s)
        granted = left >= min(1.0, amount)
        self._left[peer, rate] = (left - amount if granted else left), now_s
        return granted

    def answers(self, peer: Peer, rate: Rate, now_s: float) -> bool:
        """Return whether a demand of a peer for an answer is granted, as all of roles are."""
        return not is_user(peer) or self.grants(peer, rate, now_s)

    def takes(self, peer: Peer, message_bytes: int, now_s: float) -> bool:
        """Return whether a message of this peer is to be taken now."""
        if peer in self.wrong and self._filled(peer, WRONG, now_s) < 1.0:
            return False
        if not self._serves or not is_user(peer):
            return True
        return self.grants(peer, MESSAGES, now_s) and self.grants(peer, BYTES, now_s, message_bytes)

    def refused(self, peer: Peer, now_s: float) -> None:
        """Take note that a message of this peer was recorded and refused."""
        self.wrong.add(peer)
        self.grants(peer, WRONG, now_s)

    def _filled(self, peer: Peer, rate: Rate, now_s: float) -> float:
        left, since_s = self._left.get((peer, rate), (rate.burst, now_s))
        return min(rate.burst, left + rate.per_s * (now_s - since_s))
