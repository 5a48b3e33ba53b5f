from __future__ import annotations

import base64
import hashlib
import re
from itertools import pairwise

import pytest

from p2pdp.report.page.style import POLICY, STYLE


def brightness(colour: str) -> float:
    """Relative luminance, WCAG 2.1."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((brightness(one), brightness(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


LIGHT, DARK = (
    dict(re.findall(r"--([a-z0-9-]+):(#[0-9a-f]{6})", block))
    for block in re.findall(r":root\{(.*?)\}", STYLE, re.DOTALL)
)


def test_the_policy_allows_this_style_sheet_and_nothing_else() -> None:
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in POLICY
    assert POLICY.startswith("default-src 'none'; base-uri 'none'; form-action 'none'; ")
    assert "unsafe" not in POLICY


def test_the_style_sheet_fetches_nothing() -> None:
    assert "@import" not in STYLE
    assert "@font-face" not in STYLE
    assert set(re.findall(r"url\((.*?)\)", STYLE)) == {"#infinite", "#refused"}
    assert "<" not in STYLE


def test_the_text_can_be_read_on_every_ground() -> None:
    for theme in (LIGHT, DARK):
        for ground in ("ground", "panel", "warn-ground"):
            assert contrast(theme["ink"], theme[ground]) >= 7.0
        for text in ("soft", "link", *(f"s{series}" for series in range(6))):
            assert contrast(theme[text], theme["ground"]) >= 4.5, text
        assert contrast(theme["warn"], theme["warn-ground"]) >= 4.5


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_levels_are_told_apart_by_lightness_alone(theme: str) -> None:
    """From step to step in one direction, so that whoever sees no hue sees the same map."""
    colours = LIGHT if theme == "light" else DARK
    levels = [brightness(colours[f"h{level}"]) for level in range(9)]
    ordered = sorted(levels, reverse=theme == "light")
    assert levels == ordered
    for lighter, darker in pairwise(ordered):
        assert max(lighter, darker) + 0.05 >= 1.12 * (min(lighter, darker) + 0.05)
    assert contrast(colours["h8"], colours["ground"]) > contrast(colours["h0"], colours["ground"])


def test_braces_match() -> None:
    assert STYLE.count("{") == STYLE.count("}")
