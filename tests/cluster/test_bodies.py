from __future__ import annotations

from pathlib import Path

import pytest

from p2pdp.cluster.bodies import NOWHERE, _Map, node_folder, places
from p2pdp.core.addresses import Address
from tests.support.local import SPEC, job_in
from tests.support.toys import roster


def test_users_are_where_their_numbers_say_unless_some_stayed_away(tmp_path: Path) -> None:
    job = job_in(tmp_path / "run", SPEC.replace("nodes = 3", "nodes = 5"))
    signed = roster(3)
    for slot, user in ((1, 0), (4, 1)):
        node_folder(job, slot).mkdir(parents=True)
        (node_folder(job, slot) / "identity.pub").write_text(signed.entries[user].identity.hex() + "\n")
    assert places(job, signed) == [1, 4, NOWHERE]


@pytest.mark.parametrize(("n", "where"), [(5, [10, 11, 12, 13, 14]), (3, [11, 14, None])])
def test_addresses_follow_the_slots(tmp_path: Path, n: int, where: list[int | None]) -> None:
    job = job_in(tmp_path / "run", SPEC.replace("nodes = 3", "nodes = 5"))
    signed = roster(n)
    if n == 3:
        for slot, user in ((1, 0), (4, 1)):
            node_folder(job, slot).mkdir(parents=True)
            (node_folder(job, slot) / "identity.pub").write_text(signed.entries[user].identity.hex() + "\n")
    users = _Map(job, lambda slot: Address("127.0.0.1", 10 + slot))
    found = [users.where(signed, user) for user in range(n)]
    assert [address.port if isinstance(address, Address) else None for address in found] == where
