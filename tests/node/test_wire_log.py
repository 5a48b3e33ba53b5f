from __future__ import annotations

import json
from pathlib import Path

import pytest

from p2pdp.core.errors import NotReady
from p2pdp.files.folder import WIRE_FILE
from p2pdp.node.disk import Disk
from p2pdp.node.wire_log import WireLog
from p2pdp.peer.link import Link

FRAME = Link(1).control(0)


def senders(folder: Path) -> list[object]:
    return [json.loads(line)["from"] for line in (folder / WIRE_FILE).read_text().splitlines()]


def test_lines_are_appended_to_after_a_restart_and_only_the_owner_reads_them(tmp_path: Path) -> None:
    for life in range(2):
        log = WireLog(tmp_path)
        log(life, FRAME)
        log(-2, FRAME)
        log.close()
        log.close()
    assert senders(tmp_path) == [0, "curator", 1, "curator"]
    assert (tmp_path / WIRE_FILE).stat().st_mode & 0o777 == 0o600


def test_a_torn_line_is_cut_off(tmp_path: Path) -> None:
    log = WireLog(tmp_path)
    log(3, FRAME)
    log.close()
    with (tmp_path / WIRE_FILE).open("ab") as file:
        file.write(b'{"from": 4, "numb')
    log = WireLog(tmp_path)
    log(5, FRAME)
    log.close()
    assert senders(tmp_path) == [3, 5]


def test_a_folder_that_is_none_is_an_error_of_the_world(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotReady, match=WIRE_FILE):
        WireLog(tmp_path / "file")


def test_a_disk_has_a_tap_only_if_it_is_traced(tmp_path: Path) -> None:
    plain, traced = Disk(tmp_path / "a", power=False), Disk(tmp_path / "b", power=False, trace_wire=True)
    assert plain.tap is None
    assert traced.tap is not None
    traced.tap(7, FRAME)
    for disk in (plain, traced):
        disk.close()
        disk.close()
    assert not (tmp_path / "a" / WIRE_FILE).exists()
    assert senders(tmp_path / "b") == [7]
