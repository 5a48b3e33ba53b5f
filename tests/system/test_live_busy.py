"""Users that flood others, machines that are busy, and processes that stand still: nobody honest is put out for it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from p2pdp.core import messages
from p2pdp.core.ids import BOOTSTRAP
from p2pdp.ledger.records import OWN, public_message, read
from p2pdp.peer.limits import TOO_MANY, WRONG
from tests.support.floods import FRAMES, HELLO, MESSAGES, POKE, RESEND, SILENT
from tests.support.launched import Launched, complete

SHORT = "patience_s = 6", "patience_s = 4"
HOGS = 8
STOPPED_S = 4.0  # longer than silence that is asked about
PACK = 3
UNDER_WAY = 50  # frames
ALL_BEGAN = 6  # frames for bootstrap: each of five users said that it is ready


def told_of_itself(run: Launched, kind: str) -> list[int]:
    """The peers of whom bootstrap told itself this."""
    data = (run.folder / "curator" / "bootstrap" / "view.ledger").read_bytes()
    own = [public_message(record) for record in read(data).records if record.kind == OWN]
    return [message.fields[0] for message in own if message.type == kind]


@contextmanager
def hogs(count: int) -> Iterator[None]:
    """Keep the machine busy."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for one in busy:
            one.kill()
            one.wait()


@pytest.mark.parametrize(("kind", "victim"), [(HELLO, 0), (POKE, BOOTSTRAP), (RESEND, 0)])
def test_a_user_that_floods_slows_down_itself_and_nobody_is_put_out(tmp_path: Path, kind: str, victim: int) -> None:
    with Launched(tmp_path, complete(5, 1500).replace(*SHORT), flood=[3, kind, victim]) as run:
        result = run.completes()
    assert result["missing"] == []
    assert result["faults"][TOO_MANY] > FRAMES / 2  # of the first burst: the run may end before the flood


def test_a_flood_of_questions_about_silence_fills_no_disk_and_puts_nobody_out(tmp_path: Path) -> None:
    """The flood is in no ledger of who sends it, so the audit may name that; the run has its result all the same."""
    with Launched(tmp_path, complete(5, 1500).replace(*SHORT), flood=[3, SILENT, BOOTSTRAP]) as run:
        run.end()
        assert run.excluded() == []
        assert run.count("published") == 1
        view = run.folder / "curator" / "bootstrap" / "view.ledger"
        recorded = [record for record in read(view.read_bytes()).records if record.kind != OWN]
        assert len(recorded) < 10 * WRONG.burst < MESSAGES / 10
        faults = json.loads((view.parent / "totals.json").read_text())["faults"]
        assert faults["unexpected_message"] >= WRONG.burst
        assert faults[TOO_MANY] > 0


def test_a_pack_that_stands_still_until_it_is_called_silent_is_spared_when_it_is_back(tmp_path: Path) -> None:
    """Bootstrap stands still then, so that the pack is back in time however slow this test is."""
    pack = [3, 4, 5]
    text = complete(9, 4000).replace(*SHORT)
    with Launched(tmp_path, text, (4, UNDER_WAY), nodes_per_process=PACK, silent=[str(tmp_path), *pack]) as run:
        process = run.stands()
        children = run.children()
        assert [user for user in range(9) if children[user] == process] == pack
        bootstrap = run.standing(BOOTSTRAP)
        for one in (process, bootstrap):
            os.kill(one, signal.SIGCONT)
        assert run.completes()["missing"] == []
        silent, spared = (set(told_of_itself(run, kind)) for kind in (messages.SILENT, messages.SPARED))
        assert silent >= set(pack)
        assert spared <= silent  # it is not told where the run ends before the next look


def test_packs_that_are_killed_on_a_busy_machine_come_back(tmp_path: Path) -> None:
    with Launched(tmp_path, complete(9, 4000), (1, UNDER_WAY), nodes_per_process=PACK) as run:
        process = run.stands()
        with hogs(HOGS):
            run.kill(4)
            os.kill(process, signal.SIGKILL)
            run.wait_for_everybody()
            run.wait_for_progress()
        assert run.completes()["missing"] == []
        assert run.count("restarted") == 2


def test_bootstrap_that_stood_still_for_long_puts_nobody_out(tmp_path: Path) -> None:
    """Users go on without it; what they said meanwhile is read first, and patience begins where it was."""
    text = complete(5, 8000).replace("patience_s = 6", "patience_s = 3")
    with Launched(tmp_path, text, (BOOTSTRAP, ALL_BEGAN)) as run:
        roles = run.stands()
        time.sleep(STOPPED_S)
        os.kill(roles, signal.SIGCONT)
        assert run.completes()["missing"] == []
