from __future__ import annotations

from base64 import b64encode

import pytest

from p2pdp.core.errors import UsageError
from p2pdp.web.guard import Guard, check_token
from tests.support.shown import asked

TOKEN = "0123456789abcdef"


def basic(text: str) -> str:
    return "Basic " + b64encode(text.encode()).decode()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:80", "[::1]:80", "10.1.2.3:1", "localhost", "LOCALHOST:9"])
def test_addresses_in_figures_and_localhost_are_known(host: str) -> None:
    assert Guard().refuses_host(asked("/", host=host).header) is None


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "", "[", "a b"]
)
def test_other_names_are_not(host: str) -> None:
    refused = Guard(["known.example"]).refuses_host(asked("/", host=host).header)
    assert refused is not None
    assert refused.status == 421


def test_a_name_can_be_made_known_and_there_must_be_exactly_one() -> None:
    guard = Guard(["Known.example"])
    assert guard.refuses_host(asked("/", host="known.EXAMPLE.:80").header) is None
    for hosts in ([], ["127.0.0.1", "127.0.0.1"]):
        refused = guard.refuses_host(lambda _name, hosts=hosts: hosts)
        assert refused is not None
        assert refused.status == 400


@pytest.mark.parametrize("given", [f"Bearer {TOKEN}", f"bearer  {TOKEN} ", basic(f"me:{TOKEN}"), basic(f":{TOKEN}")])
def test_the_token_is_taken_as_bearer_or_password(given: str) -> None:
    assert Guard((), TOKEN).refuses_reader(asked("/", authorization=given).header) is None


@pytest.mark.parametrize(
    "given",
    ["", "Bearer", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Token {TOKEN}", TOKEN, basic(TOKEN), "Basic ???",
     basic(f"{TOKEN}:"), "Basic " + "A" * 5, "Bearer \udcff"],
)  # fmt: skip
def test_whatever_else_is_refused_with_both_challenges(given: str) -> None:
    refused = Guard((), TOKEN).refuses_reader(asked("/", authorization=given).header)
    assert refused is not None
    assert refused.status == 401
    assert [name for name, _ in refused.more] == ["WWW-Authenticate"] * 2
    assert TOKEN not in str(refused)


def test_no_token_asks_for_none_and_two_headers_are_refused() -> None:
    assert Guard().refuses_reader(asked("/").header) is None
    assert Guard((), TOKEN).refuses_reader(lambda _name: [f"Bearer {TOKEN}"] * 2) is not None


def test_the_token_is_in_no_text() -> None:
    assert TOKEN not in repr(Guard((), TOKEN, TOKEN))


def test_the_auditors_token_opens_everything_and_the_read_token_only_its_part() -> None:
    guard = Guard((), TOKEN, TOKEN[::-1])
    for token, statuses in ((TOKEN, (None, 401)), (TOKEN[::-1], (None, None)), ("x", (401, 401))):
        header = asked("/", authorization=f"Bearer {token}").header
        found = (guard.refuses_reader(header), guard.refuses_auditor(header))
        assert tuple(None if answer is None else answer.status for answer in found) == statuses
    refused = Guard((), TOKEN).refuses_auditor(asked("/", authorization=f"Bearer {TOKEN}").header)
    assert refused is not None
    assert refused.status == 403


@pytest.mark.parametrize(
    "text", ["", "short", "x" * 15, "x" * 513, "0123456789 abcdef", "0123456789abcdé0", "a" * 9 + "\n" * 9]
)
def test_a_weak_token_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(UsageError, match="--http-token-file f:") as caught:
        check_token(text, "f")
    assert not text or text not in str(caught.value)


def test_line_ends_are_no_part_of_a_token() -> None:
    assert check_token(f"{TOKEN}\n", "f") == TOKEN


def test_an_owner_needs_the_best_token_there_is_or_to_be_on_the_machine() -> None:
    def status(guard: Guard, **headers: str) -> int | None:
        refused = guard.refuses_owner(asked("/", **headers).header)
        return None if refused is None else refused.status

    mine, read = "fedcba9876543210", f"Bearer {TOKEN}"
    assert (status(Guard()), status(Guard(inside=False))) == (None, 403)
    for inside in (True, False):
        assert status(Guard((), TOKEN, None, inside)) == 401
        assert status(Guard((), TOKEN, None, inside), authorization=read) is None
        assert status(Guard((), TOKEN, mine, inside), authorization=read) == 401
        assert status(Guard((), TOKEN, mine, inside), authorization=f"Bearer {mine}") is None
