from __future__ import annotations

import matplotlib as mpl

from p2pdp.report.look import COLOURS, LINES, MARKERS, SETTINGS


def test_curves_differ_in_more_than_colour() -> None:
    assert len(set(COLOURS)) == len(set(MARKERS)) == len(set(map(str, LINES))) == 8


def test_matplotlib_knows_the_settings() -> None:
    with mpl.rc_context(SETTINGS):
        assert mpl.rcParams["svg.hashsalt"] == "p2pdp"
