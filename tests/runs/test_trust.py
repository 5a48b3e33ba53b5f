from __future__ import annotations

import json
from pathlib import Path

import pytest

import p2pdp
from p2pdp.core.errors import UsageError, VerificationFailed
from p2pdp.crypto.tokens import JoinToken
from p2pdp.node.folder import NODE_FILE
from p2pdp.runs.trust import UNPINNED, pinned_key
from tests.support import small

KEY = bytes(range(32))
OTHER = bytes(range(1, 33))


@pytest.mark.parametrize("text", [KEY.hex(), KEY.hex().upper(), JoinToken("a:1", KEY, bytes(16), 0).to_text()])
def test_a_key_is_hexadecimal_or_in_a_join_token_given_or_in_a_file(text: str, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"{text}\n")
    assert pinned_key(text, tmp_path) == pinned_key(file, tmp_path) == KEY


@pytest.mark.parametrize("text", ["", "00", "zz" * 32, KEY.hex() + "00", "p2pdp1:a:1#x", "nowhere"])
def test_what_is_no_key_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        pinned_key(text, tmp_path)


def test_a_node_s_folder_remembers_the_key_that_it_enrolled_with(tmp_path: Path) -> None:
    assert pinned_key(None, tmp_path) is None
    (tmp_path / NODE_FILE).write_text(json.dumps({"bootstrap": KEY.hex()}))
    assert pinned_key(None, tmp_path) == KEY
    assert pinned_key(OTHER.hex(), tmp_path) == OTHER
    for damaged in ('{"bootstrap": 3}', '{"bootstrap": "00"}', "nothing"):
        (tmp_path / NODE_FILE).write_text(damaged)
        assert pinned_key(None, tmp_path) is None


def test_a_run_that_somebody_made_up_verifies_without_the_key_and_not_with_it(tmp_path: Path) -> None:
    spec = p2pdp.load_spec(small.spec_file(tmp_path, small.RING))
    p2pdp.simulate(spec, tmp_path / "run")
    own = json.loads((tmp_path / "run" / "roster.json").read_text())["bootstrap"]["identity"]
    unpinned = p2pdp.verify(tmp_path / "run")
    assert (unpinned.verified, unpinned.not_checked) == ("complete", [UNPINNED])
    pinned = p2pdp.verify(tmp_path / "run", bootstrap=own)
    assert (pinned.verified, pinned.not_checked) == ("complete", [])
    foreign = p2pdp.verify(tmp_path / "run", bootstrap=OTHER.hex())
    assert foreign.verified is None
    assert [problem["node"] for problem in foreign.problems] == ["bootstrap"]
    p2pdp.audit(tmp_path / "run", bootstrap=own)
    with pytest.raises(VerificationFailed, match="another bootstrap"):
        p2pdp.audit(tmp_path / "run", bootstrap=OTHER.hex())
