"""The draws of `p2pdp/mechanisms/discrete.py` one by one: every decision by enclosures of 700 bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

SLOTS, TAIL, UNIT, FACTOR_BITS = 2**14, 1, 2**96, 32
BITS = 700


def exp_minus(power: Fraction, bits: int) -> tuple[int, int]:
    """Bounds of 2^bits exp(-power): the alternating series at a small argument, squared again and again."""
    halvings = max(0, math.floor(power).bit_length() + 4)
    inner = bits + 2 * halvings + 40
    small = power / 2**halvings
    low_argument = math.floor(small * 2**inner)
    low = high = 2**inner
    # Terms z^i / i! of the argument rounded down and up; each is smaller than the one before.
    above = below = 2**inner
    for index in range(1, inner):
        below = below * low_argument // (index << inner)
        above = -(-above * (low_argument + 1) // (index << inner))
        if index % 2:
            low, high = low - above, high - below
        else:
            low, high = low + below, high + above
        if above <= 1:
            break
    low, high = low - 2, high + 2
    for _ in range(halvings):
        low, high = low * low >> inner, -(-high * high >> inner)
    return max(0, low) >> inner - bits, -(-high >> inner - bits)


class SlowNoise:
    """A law as it is described, with exact numbers."""

    def __init__(self, power: int, scale: float) -> None:
        self.power, self.scale = power, Fraction(scale)
        self.width = 1
        while self.width * 64 <= self.scale:
            self.width *= 2
        self.piece = 1
        while self.piece <= self.scale:
            self.piece *= 2
        self.place_bits = self.width.bit_length() - 1
        self.bits = 49 - (self.place_bits if self.place_bits <= 32 else 0)
        heights: list[int] = []
        while True:
            place = len(heights) * self.width
            height = exp_minus(self.exponent(place), 96)[1] if place else UNIT
            if place >= self.scale and 2 * self.piece // self.width * SLOTS * height <= TAIL * sum(heights):
                break
            heights.append(height)
        self.tail = len(heights)
        factor = (SLOTS - TAIL - self.tail) * UNIT * 2**FACTOR_BITS // sum(heights)
        self.factor = Fraction(factor, 2**FACTOR_BITS)
        self.sizes = [math.ceil(self.factor * height / UNIT) for height in heights]
        self.sizes[0] += SLOTS - TAIL - sum(self.sizes)

    def exponent(self, magnitude: int) -> Fraction:
        return magnitude**2 / (2 * self.scale**2) if self.power == 2 else magnitude / self.scale

    def chance(self, step: int, magnitude: int) -> tuple[int, int]:
        """Bounds of 2^BITS q of a proposal."""
        ratio = self.factor / self.sizes[step]
        low, high = exp_minus(self.exponent(magnitude), BITS)
        return math.floor(ratio * low), math.ceil(ratio * high)

    def proposal(self, word: int, places: int) -> tuple[int, int, int, int]:
        """Step, sign, place in it and the first bits of U."""
        slot, sign, rest = word % SLOTS, word // SLOTS % 2, word // (2 * SLOTS)
        step = 0
        while step < self.tail and slot >= sum(self.sizes[: step + 1]):
            step += 1
        if self.place_bits > 32:
            return step, sign, places % self.width, rest
        return step, sign, rest % self.width, rest // self.width

    def verdict(self, step: int, sign: int, known: int) -> bool | None:
        """Whether more bits of U are needed (None), and otherwise whether it is below q wherever in the step."""
        if step == self.tail:
            return None
        first, last = (step, step + 1) if self.place_bits else (step + sign, step + sign)
        if known < self.chance(step, last * self.width)[0] >> BITS - self.bits:
            return True
        return None if known < -(-self.chance(step, first * self.width)[1] >> BITS - self.bits) else False

    def accepted(self, words: list[int], places: list[int], word: Callable[[], int]) -> list[int]:
        """What is accepted of these proposals; `word` returns further ones."""
        proposals = [self.proposal(*both) for both in zip(words, places, strict=True)]
        verdicts = [self.verdict(step, sign, known) for step, sign, _, known in proposals]
        more = {index: word() for index, verdict in enumerate(verdicts) if verdict is None}
        found = []
        for index, ((step, sign, place, known), verdict) in enumerate(zip(proposals, verdicts, strict=True)):
            value, taken = step * self.width + place, verdict
            if step == self.tail:
                value, taken = self.of_tail(sign, word)
            elif verdict is None:
                chance = self.chance(step, value + sign)
                taken = self.decided(chance, known << 64 | more[index], self.bits + 64, word)
            if taken:
                found.append(-1 - value if sign else value)
        return found

    def of_tail(self, sign: int, word: Callable[[], int]) -> tuple[int, bool]:
        piece, bits = 0, format(word(), "064b")
        while "1" not in bits:
            bits += format(word(), "064b")
        piece = bits.index("1")
        value = self.tail * self.width + piece * self.piece + word() % self.piece
        if value >= 2**63:
            return value, False
        ratio = self.factor * (self.piece // self.width) * 2 ** (piece + 1) / TAIL
        low, high = exp_minus(self.exponent(value + sign), BITS)
        return value, self.decided((math.floor(ratio * low), math.ceil(ratio * high)), 0, 0, word)

    @staticmethod
    def decided(chance: tuple[int, int], known: int, bits: int, word: Callable[[], int]) -> bool:
        while True:
            start, end = (edge << BITS - bits for edge in (known, known + 1))
            if start >= chance[1]:
                return False
            if end <= chance[0]:
                return True
            known, bits = known << 64 | word(), bits + 64

    def drawn(self, count: int, spare: int, data: bytes) -> tuple[list[int], int]:
        """Draws from these bytes, and how many of them were taken."""
        stream = [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)]
        at = 0

        def word() -> int:
            nonlocal at
            at += 1
            return stream[at - 1]

        found: list[int] = []
        while len(found) < count:
            wanted = count - len(found)
            proposals = wanted + wanted * spare // 1024 + math.isqrt(wanted) // 2 + 1
            words = [word() for _ in range(proposals)]
            places = [word() if self.place_bits > 32 else 0 for _ in range(proposals)]
            found += self.accepted(words, places, word)[:wanted]
        return found, 8 * at
