from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError
from p2pdp.crypto.tokens import JoinToken
from tests.support.known import cuts, known, names

ADDRESSES = st.text(
    st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="#"), min_size=1, max_size=255
)
TOKEN = JoinToken("127.0.0.1:7400", bytes(range(32)), bytes(range(100, 116)), 7)
ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"


@pytest.mark.parametrize("row", known("crypto_tokens"), ids=names("crypto_tokens"))
def test_known_answers(row: dict[str, Any]) -> None:
    token = JoinToken(row["address"], bytes.fromhex(row["public"]), bytes.fromhex(row["secret"]), row["number"])
    assert token.to_text() == row["text"]
    assert JoinToken.from_text(row["text"]) == token
    assert JoinToken.from_text(f"  {row['text']}\n") == token


@pytest.mark.parametrize("row", known("crypto_bad_tokens"), ids=names("crypto_bad_tokens"))
def test_known_bad_answers(row: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="join token"):
        JoinToken.from_text(row["text"])


@given(
    ADDRESSES, st.binary(min_size=32, max_size=32), st.binary(min_size=16, max_size=16), st.integers(0, (1 << 32) - 1)
)
def test_tokens_come_back(address: str, public: bytes, secret: bytes, number: int) -> None:
    token = JoinToken(address, public, secret, number)
    assert JoinToken.from_text(token.to_text()) == token


def test_every_single_typo_is_found() -> None:
    text = TOKEN.to_text()
    code = text.index("#") + 1
    for at in range(code, len(text)):
        for letter in ALPHABET:
            if letter != text[at]:
                with pytest.raises(UsageError):
                    JoinToken.from_text(text[:at] + letter + text[at + 1 :])
    for at in range(len(text) - 1):
        swapped = text[:at] + text[at + 1] + text[at] + text[at + 2 :]
        for typo in (text[:at] + text[at + 1 :], text[:at] + "é" + text[at + 1 :], swapped):
            if typo != text:
                with pytest.raises(UsageError):
                    JoinToken.from_text(typo)
    for cut in cuts(text.encode()):
        with pytest.raises(UsageError):
            JoinToken.from_text(cut.decode())


@given(st.text())
def test_any_text_is_a_usage_error(text: str) -> None:
    for typed in (text, f"p2pdp1:a#{text}", f"p2pdp1:{text}#{'a' * 88}"):
        with pytest.raises(UsageError) as raised:
            JoinToken.from_text(typed)
        assert "\n" not in str(raised.value)


def test_the_secret_is_neither_shown_nor_quoted() -> None:
    text = TOKEN.to_text()
    code = text.split("#")[1]
    shown = [repr(TOKEN)]
    for typed in (text[:-1], text.upper(), text.replace("7400", "7401"), f"{text[:-1]}1"):
        with pytest.raises(UsageError) as raised:
            JoinToken.from_text(typed)
        shown.append(str(raised.value))
    for line in shown:
        assert TOKEN.secret.hex() not in line
        assert str(TOKEN.secret) not in line
        assert code[:20] not in line.lower()


@pytest.mark.parametrize("address", ["", "a b", "a#b", "a\n", "ä:1", "a" * 256])
def test_an_address_that_no_token_can_hold_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="address"):
        JoinToken(address, bytes(32), bytes(16), 0)


@pytest.mark.parametrize(("public", "secret", "number"), [(31, 16, 0), (32, 15, 0), (32, 16, -1), (32, 16, 1 << 32)])
def test_parts_of_other_sizes_are_our_own_mistake(public: int, secret: int, number: int) -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        JoinToken("a:1", bytes(public), bytes(secret), number)
