"""Scripts in `scripts/`: commands, and below each what must come of it (`tests/support/scripts.py`).

`pytest tests/scenarios/test_scripts.py --record` writes the output of today into them; read the difference before you
commit it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.scripts import recorded

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.txt"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_comes_to_what_it_says(script: Path, pytestconfig: pytest.Config) -> None:
    text = script.read_text(encoding="utf-8")
    now = recorded(text)
    if pytestconfig.getoption("--record"):
        script.write_text(now, encoding="utf-8")
    else:
        assert now == text


def test_an_output_that_was_changed_is_seen() -> None:
    text = SCRIPTS[0].read_text(encoding="utf-8")
    assert recorded(text.replace("excluded 2", "excluded 3")) == text
