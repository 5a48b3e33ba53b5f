from __future__ import annotations

from typing import Any

import pytest

from p2pdp.report.appendix import appendix

VERSIONS = {"p2pdp": "1.2.3", "python": "3.11.7", "platform": "Linux x86_64", "numpy": "2.0"}


def _text(kind: str, edition: str = "public", **more: Any) -> str:
    facts = {"kind": kind, "edition": edition, "protocol": "walk.sum", "versions": VERSIONS, **more}
    return appendix(facts, ["spec.toml", "inputs/data.csv"], [("estimate", "1.5")], "some seconds.")


@pytest.mark.parametrize("kind", ["simulated", "live", "sweep"])
def test_it_says_what_is_needed_and_what_to_do_and_expect(kind: str) -> None:
    text = _text(kind, run_id="ab12", nodes=4)
    for part in (
        "1.2.3",
        "3.11.7",
        "numpy 2.0",
        "some seconds.",
        "REPEAT.sh",
        "--repeat",
        "| estimate | 1.5 |",
        "ab12",
    ):
        assert part in text
    for name in ("spec.toml", "inputs/data.csv"):
        assert text.count(f"| `{name}` |") == 1
    for title in (
        "Requirements",
        "How to check and repeat it",
        "What to expect",
        "Badges",
        "What is left out, and why",
    ):
        assert text.count(f"\n## {title}\n") == 1


def test_only_the_auditor_s_edition_warns_of_routes() -> None:
    assert "Do not publish" in _text("live", "auditor")
    assert "Do not publish" not in _text("live") + _text("simulated", seed=5)
    assert "seed 5" in _text("simulated", seed=5)
