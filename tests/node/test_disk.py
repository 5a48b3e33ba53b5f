from __future__ import annotations

import os
from pathlib import Path

import pytest

from p2pdp.core.errors import NotReady, VerificationFailed
from p2pdp.ledger.journal import PRIVATE, VIEW
from p2pdp.ledger.records import LEDGER_MAGIC, OPENED, Chain
from p2pdp.node.disk import Disk


def records(count: int) -> list[bytes]:
    chain = Chain()
    return [chain.append(OPENED, (number,)) for number in range(count)]


def test_what_was_appended_is_there_in_order_and_for_its_owner_only(tmp_path: Path) -> None:
    first, second = records(2)
    disk = Disk(tmp_path / "node", power=False)
    disk.append(((PRIVATE, LEDGER_MAGIC), (VIEW, LEDGER_MAGIC), (VIEW, first), (PRIVATE, first), (VIEW, second)))
    disk.close()
    assert (tmp_path / "node" / "view.ledger").read_bytes() == LEDGER_MAGIC + first + second
    assert (tmp_path / "node" / "private.ledger").read_bytes() == LEDGER_MAGIC + first
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "node").iterdir()} == {0o600}


def test_a_torn_record_is_cut_off_at_every_length(tmp_path: Path) -> None:
    first, second = records(2)
    for length in range(1, len(second)):
        path = tmp_path / "view.ledger"
        path.write_bytes(LEDGER_MAGIC + first + second[:length])
        disk = Disk(tmp_path, power=False)
        assert disk.stored[VIEW] == LEDGER_MAGIC + first
        disk.append(((VIEW, second),))
        disk.close()
        assert path.read_bytes() == LEDGER_MAGIC + first + second


def test_a_file_that_is_no_ledger_is_never_touched(tmp_path: Path) -> None:
    (tmp_path / "view.ledger").write_bytes(b"somebody's diary\n" * 3)
    with pytest.raises(VerificationFailed):
        Disk(tmp_path, power=False)
    assert (tmp_path / "view.ledger").read_bytes() == b"somebody's diary\n" * 3


@pytest.mark.parametrize("power", [True, False])
def test_power_syncs_each_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, power: bool) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", synced.append)
    disk = Disk(tmp_path, power=power)
    disk.append(((VIEW, LEDGER_MAGIC), (VIEW, records(1)[0]), (PRIVATE, LEDGER_MAGIC)))
    disk.close()
    assert len(synced) == (2 if power else 0)


def test_a_full_disk_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int, _data: bytes) -> int:
        raise OSError(28, "No space left on device")

    disk = Disk(tmp_path, power=False)
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(NotReady, match="No space left"):
        disk.append(((VIEW, LEDGER_MAGIC),))
    disk.close()
