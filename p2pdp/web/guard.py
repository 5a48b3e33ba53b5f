"""Access control: the server's own names, and the tokens of participants and of the auditor.

There are two kinds of documents (`report/participants.py` says which is which). The participants' edition asks for the
read token, where there is one. What only the auditor may read is served to the auditor's token alone, and to nobody
where there is no such token. The auditor's token opens the participants' edition too. A node's page is its owner's:
for the auditor's token if the node has one, else for the read token; without any it is served on the loopback only.

A page in a browser can be made to call any server under a name that its author controls (DNS rebinding). So a name has
to be known; an address in figures and `localhost` cannot be rebound. A token is never taken from an address line, where
browsers and proxies keep it: it comes as `Bearer`, or as the password of `Basic`, for which browsers ask.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from hmac import compare_digest
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final

from p2pdp.core.errors import UsageError
from p2pdp.web.answers import Answer, problem

TOKEN_CHARS_MIN: Final = 16
TOKEN_CHARS_MAX: Final = 512
Header = Callable[[str], Sequence[str]]  # all values of a header that is asked for by its name


def _challenges(token: str) -> tuple[tuple[str, str], ...]:
    return (
        ("WWW-Authenticate", 'Bearer realm="p2pdp"'),
        ("WWW-Authenticate", f'Basic realm="p2pdp: any name, the {token} as password", charset="UTF-8"'),
    )


@dataclass(frozen=True)
class Guard:
    """`names` beside numeric addresses and localhost; without a `token` anybody may read the participants' edition."""

    names: Collection[str] = ()
    token: str | None = field(default=None, repr=False)
    auditor_token: str | None = field(default=None, repr=False)
    inside: bool = True  # only this machine can reach the server

    def refuses_host(self, header: Header) -> Answer | None:
        hosts = header("Host")
        if len(hosts) != 1:
            return problem(HTTPStatus.BAD_REQUEST, "exactly one Host header is needed")
        name = _name_of(hosts[0])
        if _is_fixed(name) or name in {known.lower().rstrip(".") for known in self.names}:
            return None
        return problem(HTTPStatus.MISDIRECTED_REQUEST, "nobody is known here by this name; --http-name adds one")

    def refuses_reader(self, header: Header) -> Answer | None:
        if self.token is None or _has(header, self.token) or _has(header, self.auditor_token):
            return None
        needed = "the read token is needed, as Bearer or as password"
        return problem(HTTPStatus.UNAUTHORIZED, needed, *_challenges("read token"))

    def refuses_auditor(self, header: Header) -> Answer | None:
        if self.auditor_token is None:
            return problem(HTTPStatus.FORBIDDEN, "this is for the auditor; --http-auditor-token-file makes a token")
        if _has(header, self.auditor_token):
            return None
        needed = "the auditor's token is needed, as Bearer or as password"
        return problem(HTTPStatus.UNAUTHORIZED, needed, *_challenges("auditor's token"))

    def refuses_owner(self, header: Header) -> Answer | None:
        """Refuse whoever is not the owner of a node: who has its token, or on the loopback, where there is none."""
        if self.auditor_token is not None:
            return self.refuses_auditor(header)
        if self.token is not None:
            return self.refuses_reader(header)
        if self.inside:
            return None
        needed = "this is for the node's owner; --http-auditor-token-file or --http-token-file makes a token"
        return problem(HTTPStatus.FORBIDDEN, needed)


def _has(header: Header, token: str | None) -> bool:
    """Return whether the request carries this token. Digests are compared, so that the time tells nothing."""
    given = header("Authorization")
    if token is None or len(given) != 1:
        return False
    return compare_digest(blake2b(_token_in(given[0])).digest(), blake2b(token.encode()).digest())


def check_token(text: str, file: str, option: str = "--http-token-file") -> str:
    """Return the token in a file's text, or raise `UsageError`, which says what is wrong without quoting it."""
    token = text.strip()
    if not TOKEN_CHARS_MIN <= len(token) <= TOKEN_CHARS_MAX or not all("!" <= letter <= "~" for letter in token):
        raise UsageError(
            f"{option} {file}: must hold one line of {TOKEN_CHARS_MIN} to {TOKEN_CHARS_MAX} "
            "printable characters without spaces"
        )
    return token


def _token_in(value: str) -> bytes:
    scheme, _, rest = value.strip().partition(" ")
    if scheme.lower() == "bearer":
        return rest.strip().encode(errors="surrogateescape")
    if scheme.lower() != "basic":
        return b""
    try:
        return b64decode(rest.strip(), validate=True).partition(b":")[2]
    except (binascii.Error, ValueError):
        return b""


def _name_of(host: str) -> str:
    """Return the host without its port, in small letters; an IPv6 address without its brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower().rstrip(".")


def _is_fixed(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
