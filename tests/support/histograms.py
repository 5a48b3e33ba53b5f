"""What histograms of randomized reports really tell, by listing all outcomes: an oracle for tiny shuffles."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations_with_replacement

Law = dict[tuple[int, ...], float]


def report(epsilon_0: float, categories: int, value: int) -> list[float]:
    """The chances of one report; `value` -1 stands for a uniform element."""
    if value < 0:
        return [1.0 / categories] * categories
    other = 1.0 / (math.exp(epsilon_0) + categories - 1.0)
    return [math.exp(epsilon_0) * other if one == value else other for one in range(categories)]


def histogram(epsilon_0: float, categories: int, values: Iterable[int], dummies: int = 0) -> Law:
    """The law of the counts of reports with these truths."""
    law: Law = {(0,) * categories: 1.0}
    for value in [*values, *[-1] * dummies]:
        chances = report(epsilon_0, categories, value)
        following: defaultdict[tuple[int, ...], float] = defaultdict(float)
        for counts, mass in law.items():
            for one in range(categories):
                following[(*counts[:one], counts[one] + 1, *counts[one + 1 :])] += mass * chances[one]
        law = dict(following)
    return law


def product(laws: Iterable[Law]) -> Law:
    """Several independent histograms seen together."""
    found: Law = {(): 1.0}
    for law in laws:
        found = {(*key, *counts): mass * one for key, mass in found.items() for counts, one in law.items()}
    return found


def delta(epsilon: float, first: Law, second: Law) -> float:
    return sum(max(0.0, mass - math.exp(epsilon) * second[counts]) for counts, mass in first.items())


def epsilon_of(target: float, first: Law, second: Law, most: float) -> float:
    low, high = 0.0, most
    if delta(0.0, first, second) <= target:
        return 0.0
    for _ in range(50):
        middle = (low + high) / 2.0
        low, high = (low, middle) if delta(middle, first, second) <= target else (middle, high)
    return high


def others(categories: int, number: int) -> Iterator[tuple[int, ...]]:
    """All that the others may hold; their order does not matter."""
    return combinations_with_replacement(range(categories), number)
