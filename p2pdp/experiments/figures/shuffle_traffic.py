"""[LTT22, Table 3]: what each user sends and holds, measured, as the number of users grows.

Random 8-regular graphs, reports of 16 categories, as many rounds as the paper's mixing time, ceil(ln n / alpha).
Small runs are run in the simulated world and counted from its ledgers, large ones are drawn from the law of the walks
(`analysis/fast.py`); where both are there they are compared. The paper counts reports. Cover, which it counts for
mix-nets as n messages for each user, is measured too: here a user covers its own edges, degree times rounds times
slots. What a user holds at once is O(1) on the average, exactly 1; the most that anybody holds grows slowly.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Final

import numpy as np

from p2pdp.core.spec import DataPart, GraphPart, NoisePart, PrivacyPart, RunPart, Spec, TaskPart
from p2pdp.experiments.contract import (
    JSON,
    Answers,
    Caption,
    Experiment,
    Made,
    Picture,
    Piece,
    Setting,
    Table,
    compared,
    holds,
)
from p2pdp.experiments.style import Curve, Panel, panels
from p2pdp.protocols.shuffle.options import ShufflePart
from p2pdp.runs.simulate import simulate_spec

_SEED: Final = 3
_DEGREE: Final = 8
_USERS: Final = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
_USERS_QUICK: Final = (64, 128, 256, 512)
_WORLD: Final = (64,)  # of these also by machines, channels and ledgers
_FACTOR: Final = 2.0  # between a power of n that passes for a logarithm and that of ln n itself, and of ratios
_SAME: Final = 0.1


def _traffic(n: int, cover: bool, fast: bool) -> dict[str, JSON]:
    spec = Spec(
        run=RunPart("shuffle.all", n, seed=_SEED, audit=False),
        graph=GraphPart("regular", degree=_DEGREE),
        noise=NoisePart("randomized_response", epsilon=1.0),
        data=DataPart("categories"),
        task=TaskPart("histogram", categories=16),
        privacy=PrivacyPart(delta=1e-6),
        options=ShufflePart(rounds="mixing", cover=cover),
    )
    result = simulate_spec(spec, None, None, fast=fast, faults=None, progress=None)
    assert result.traffic is not None
    return {**result.traffic, "n": n}


def _pieces(setting: Setting) -> list[Piece]:
    users = _USERS_QUICK if setting.quick else _USERS
    jobs = [(f"law-{n}", n, False, True) for n in users] + [(f"cover-{n}", n, True, True) for n in users]
    jobs += [(f"world-{n}", n, False, False) for n in _WORLD]
    return [
        Piece(key, partial(_traffic, n, cover, fast), {"n": n, "degree": _DEGREE, "seed": _SEED, "cover": cover})
        for key, n, cover, fast in jobs
    ]


def _make(_setting: Setting, answers: Answers) -> Made:
    law = [answers[key] for key in answers if key.startswith("law")]
    cover = [answers[key] for key in answers if key.startswith("cover")]
    users = [one["n"] for one in law]
    reports = [one["reports_per_user_mean"] for one in law]
    held = [one["reports_held_max"] for one in law]
    power = float(np.polyfit(np.log(users), np.log(reports), 1)[0])
    of_log = float(np.polyfit(np.log(users), np.log(np.log(users)), 1)[0])
    per_log = [count / math.log(n) for count, n in zip(reports, users, strict=True)]
    covered = [one["messages_per_user_mean"] for one in cover]
    lines = [
        holds(
            "reports that a user sends",
            f"n^{power:.3f}; {per_log[0]:.3g} to {per_log[-1]:.3g} times ln n",
            "O(log n)",
            true=power < _FACTOR * of_log and max(per_log) < _FACTOR * min(per_log),
            why=f"ln n itself fits as n^{of_log:.3f} here; within {_FACTOR:g} times that, as the ratio to ln n is",
        ),
        holds(
            "reports that a user holds at once, in the mean",
            1.0,
            "O(1)",
            true=all(abs(one["reports_per_user_expected"] / one["reports_per_user_mean"] - 1.0) < _SAME for one in law),
            why="n reports are with n users; each user sends one a round in the mean, within a tenth",
        ),
        holds(
            "most reports that anybody holds at once",
            f"{held[0]} at n = {users[0]}, {held[-1]} at n = {users[-1]}",
            "O(1)",
            true=held[-1] <= held[0],
            why="the most of all users and rounds grows, as ln n / ln ln n does; memory must be planned for it",
        ),
        holds(
            "messages that a user sends with cover",
            f"{covered[0]:.0f} at n = {users[0]}, {covered[-1]:.0f} at n = {users[-1]}",
            "below O(n), that of mix-nets",
            true=covered[-1] / covered[0] < users[-1] / users[0],
            why="cover goes along a user's own edges only (section 3.2)",
        ),
    ]
    for n in _WORLD:
        world = answers[f"world-{n}"]["reports_per_user_mean"]
        paired = next(one["reports_per_user_mean"] for one in law if one["n"] == n)
        what = f"reports per user at n = {n}: from ledgers of the simulated world, and from the law"
        lines.append(compared(what, world, paired, "two ways of our own", relative=_SAME))
    columns = ("n", "rounds + 1", "reports mean", "reports max", "held max", "bytes mean", "messages mean with cover")
    rows = [
        [
            one["n"],
            one["reports_per_user_expected"],
            one["reports_per_user_mean"],
            one["reports_per_user_max"],
            one["reports_held_max"],
            one["bytes_per_user_mean"],
            with_cover,
        ]
        for one, with_cover in zip(law, covered, strict=True)
    ]
    return Made((Table("", columns, rows),), tuple(lines), (_picture(rows),))


def _picture(rows: list[list[float]]) -> Picture:
    users = [row[0] for row in rows]
    scale = rows[0][2] / math.log(users[0])
    curves = [
        Curve("messages with cover and marks, mean", users, [row[6] for row in rows], look=0),
        Curve("reports sent, mean", users, [row[2] for row in rows], look=1),
        Curve("reports sent, most of all users", users, [row[3] for row in rows], look=2),
        Curve("reports held at once, most of all", users, [row[4] for row in rows], look=3),
        Curve("ln n, through the first point", users, [scale * math.log(n) for n in users], look=7, markers=False),
        Curve("mix-nets with cover, as printed: n", users, users, look=4),
    ]
    title = f"What a user sends and holds: {_DEGREE}-regular graphs, ln n / spectral gap rounds"
    return panels((5.2, 4.2), [Panel(title, "users n", curves)], y="messages or reports per user")


TABLE_3: Final = Experiment(
    "003-table3",
    "Traffic and memory of a user, measured",
    _pieces,
    _make,
    caption=Caption(
        shows="Curves of messages or reports of one user against the number of users, both logarithmic, on "
        "8-regular graphs after ln n / spectral gap rounds.",
        compares="Reports that a user sends, in the mean and at most, reports held at once, and messages with "
        "cover; beside them the logarithm of n and what the paper counts for mix-nets.",
        see="Reports sent grow like the logarithm of n. What a user holds at once hardly grows. Messages with"
        " cover are many more, but do not grow in proportion to n as those of mix-nets do.",
        paper="Network shuffling costs a user little memory, and traffic that grows with the logarithm of n.",
    ),
    seeds=(_SEED,),
)
