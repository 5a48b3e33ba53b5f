"""A long run under observation: memory, files, threads and ledgers, with a process killed every so often.

Samples are taken while the run goes on. A quantity that ought to be flat is held against its regression over time,
from the first third on: it may grow by a share of its mean, from the beginning of that to the end. Ledgers ought to
grow with hops, and only with hops.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import numpy as np

from tests.campaigns.oracle import Violation
from tests.campaigns.running import Campaign, Judged
from tests.support.launched import Launched, complete, judge_folder

NODES: Final = 12
SECONDS: Final = 120.0
KILL_EVERY_S: Final = 20.0
HOPS_A_SECOND: Final = 3000  # about as many as two cores make
RSS_GROWTH: Final = 0.25  # of the mean, over the time watched
COUNT_GROWTH: Final = 0.15  # of files and threads
HOP_BYTES_MAX: Final = 600  # of both ledgers of all, for a hop
LOG_BYTES_MAX: Final = 200_000


class Sample(NamedTuple):
    """What all processes of a run have at a moment."""

    at_s: float
    rss: int
    fds: int
    threads: int
    ledgers: int


def sample(launched: Launched, began_s: float) -> Sample:
    rss = fds = threads = 0
    for process in set(launched.children().values()):
        with suppress(OSError, ValueError, IndexError):
            place = Path(f"/proc/{process}")
            rss += int((place / "statm").read_text().split()[1]) * 4096
            threads += len(list((place / "task").iterdir()))
            fds += len(list((place / "fd").iterdir()))
    size = sum(launched.sizes().values())
    return Sample(time.monotonic() - began_s, rss, fds, threads, size)


def growth(times: Sequence[float], values: Sequence[float]) -> float:
    """Return by what share of its mean a quantity grows over the last two thirds, by its regression over time."""
    half = len(times) // 3
    at, of = np.asarray(times[half:], dtype=float), np.asarray(values[half:], dtype=float)
    if len(at) < 3 or not of.mean():
        return 0.0
    slope = np.polyfit(at - at[0], of, 1)[0]
    return float(slope * (at[-1] - at[0]) / of.mean())


def problems(samples: Sequence[Sample], *, processes: int = NODES) -> list[Violation]:
    """Return which quantities grow that ought to be flat; samples while a process was down are left out."""
    whole = [one for one in samples if one.threads >= processes]
    times = [one.at_s for one in whole]
    limits = {"rss": RSS_GROWTH, "fds": COUNT_GROWTH, "threads": COUNT_GROWTH}
    found = []
    for name, most in limits.items():
        grown = growth(times, [getattr(one, name) for one in whole])
        if grown > most:
            found.append(Violation("growth", f"{name} grew by {grown:.0%} of its mean, and may by {most:.0%}"))
    return found


def soak(part: str, seed: int, *, seconds: float = SECONDS) -> Judged:
    """Run for about so long, and judge growth, bytes a hop, logs and ledgers."""
    dice = Random(f"{part}/{seed}")  # noqa: S311 - what is thrown is no secret
    hops = int(seconds * HOPS_A_SECOND)
    text = complete(NODES, hops)
    with tempfile.TemporaryDirectory(prefix="p2pdp-soak-") as folder, Launched(Path(folder), text) as run:
        run.wait_for_everybody()
        began_s = time.monotonic()
        samples: list[Sample] = []
        kill_at_s = KILL_EVERY_S
        while run.running and time.monotonic() - began_s < 10 * seconds:
            samples.append(sample(run, began_s))
            if samples[-1].at_s >= kill_at_s:
                run.kill(dice.randrange(NODES))
                kill_at_s += KILL_EVERY_S
            time.sleep(0.5)
        code = run.end()
        found = problems(samples)
        if code != 0:
            return Judged([Violation("live", f"ended with {code}: {run.said[-3:]}")], None, f"soak seed {seed}")
        judge_folder(run.folder)
        size = sum(place.stat().st_size for place in run.folder.rglob("*.ledger"))
        logs = sum(place.stat().st_size for place in run.folder.rglob("*.log"))
    if size > hops * HOP_BYTES_MAX:
        found.append(Violation("growth", f"{size / hops:.0f} bytes of ledgers for a hop"))
    if logs > LOG_BYTES_MAX:
        found.append(Violation("growth", f"{logs} bytes of logs"))
    last = samples[-1]
    story = f"seed {seed}: {hops} hops in {last.at_s:.0f} s"
    counts = Counter({"hops": hops, "ledger bytes": size, "log bytes": logs, "MiB": last.rss >> 20, "files": last.fds})
    return Judged(found, None, story, counts)


SOAK = Campaign("soak", "a long run whose memory, files, threads and ledgers are watched", lambda: ["walk"], soak)
