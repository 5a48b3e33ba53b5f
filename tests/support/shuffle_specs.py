"""Specs of small shuffling runs."""

from __future__ import annotations


def shuffle(n: int, graph: str = 'kind = "complete"', protocol: str = "all", terms: str = "rounds = 4") -> str:
    return (
        f'[run]\nprotocol = "shuffle.{protocol}"\nnodes = {n}\nseed = 1\npatience_s = 3.0\n[graph]\n{graph}\n'
        f'[shuffle]\n{terms}\n[noise]\nmechanism = "randomized_response"\nepsilon = 3.0\n'
        '[data]\nkind = "categories"\n[task]\nkind = "histogram"\ncategories = 3\n[privacy]\ndelta = 1e-5\n'
    )


ALL = shuffle(4, 'kind = "ring"')


N = 24


def reports(terms: str) -> str:
    return shuffle(N, 'kind = "regular"\ndegree = 4', terms=terms).replace("epsilon = 3.0", "epsilon = 1.0")


EARLY = reports("rounds = 6\nstay = 0.2")
