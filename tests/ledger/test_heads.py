from __future__ import annotations

import itertools

from p2pdp.crypto.identity import Identity, sign_labelled, verify_labelled
from p2pdp.ledger.heads import EXCLUSION_LABEL, HEAD_LABEL, head_parts

RUN = b"r" * 16
HEAD = b"h" * 32


def test_the_parts_are_laid_out_as_documented() -> None:
    assert head_parts("view", RUN, 3, 258, HEAD) == (b"view", RUN, b"\0\0\0\3", b"\0\0\0\0\0\0\1\2", HEAD)
    assert head_parts("view", RUN, -2, 0, HEAD)[2] == b"\xff\xff\xff\xfe"


def test_what_one_head_says_no_other_says() -> None:
    heads = {
        head_parts(*terms)
        for terms in itertools.product(
            ("view", "private"), (RUN, b"R" * 16), (-2, -1, 0, 1, 255), (0, 1, 256), (HEAD, b"H" * 32)
        )
    }
    assert len(heads) == 2 * 2 * 5 * 3 * 2


def test_a_signature_holds_for_its_own_head_and_purpose_only() -> None:
    identity = Identity(bytes(32))
    signed = head_parts("view", RUN, 3, 7, HEAD)
    signature = sign_labelled(identity, HEAD_LABEL, *signed)
    assert verify_labelled(identity.public, signature, HEAD_LABEL, *signed)
    assert not verify_labelled(identity.public, signature, EXCLUSION_LABEL, *signed)
    for other in (("private", RUN, 3, 7, HEAD), ("view", RUN, 4, 7, HEAD), ("view", RUN, 3, 8, HEAD)):
        assert not verify_labelled(identity.public, signature, HEAD_LABEL, *head_parts(*other))
