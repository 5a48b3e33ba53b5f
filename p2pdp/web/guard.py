"""Who may ask: the name by which this server is called, and the read token.

A page in a browser can be made to call any server under a name that its author controls (DNS rebinding). So a name has
to be known; an address in figures and `localhost` cannot be rebound. A token is never taken from an address line, where
browsers and proxies keep it: it comes as `Bearer`, or as the password of `Basic`, for which browsers ask.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from hmac import compare_digest
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final

from p2pdp.core.errors import UsageError
from p2pdp.web.answers import Answer, problem

TOKEN_CHARS_MIN: Final = 16
TOKEN_CHARS_MAX: Final = 512
_CHALLENGES: Final = (
    ("WWW-Authenticate", 'Bearer realm="p2pdp"'),
    ("WWW-Authenticate", 'Basic realm="p2pdp: any name, the read token as password", charset="UTF-8"'),
)

Header = Callable[[str], Sequence[str]]  # all values of a header that is asked for by its name


@dataclass(frozen=True)
class Guard:
    """`names` beside addresses in figures and localhost; without a `token` whoever can call may read."""

    names: Collection[str] = ()
    token: str | None = None

    def __repr__(self) -> str:
        return f"Guard({len(self.names)} names, {'a' if self.token else 'no'} token)"

    def refuses_host(self, header: Header) -> Answer | None:
        hosts = header("Host")
        if len(hosts) != 1:
            return problem(HTTPStatus.BAD_REQUEST, "exactly one Host header is needed")
        name = _name_of(hosts[0])
        if _is_fixed(name) or name in {known.lower().rstrip(".") for known in self.names}:
            return None
        return problem(HTTPStatus.MISDIRECTED_REQUEST, "nobody is known here by this name; --http-name adds one")

    def refuses_reader(self, header: Header) -> Answer | None:
        if self.token is None:
            return None
        given = header("Authorization")
        # Digests are compared, so that not even the length of the token shows in the time that it takes.
        expected = blake2b(self.token.encode()).digest()
        if len(given) == 1 and compare_digest(blake2b(_token_in(given[0])).digest(), expected):
            return None
        return problem(HTTPStatus.UNAUTHORIZED, "the read token is needed, as Bearer or as password", *_CHALLENGES)


def check_token(text: str, file: str) -> str:
    """The token in the text of a file, or `UsageError`; what is wrong with it is said without it."""
    token = text.strip()
    if not TOKEN_CHARS_MIN <= len(token) <= TOKEN_CHARS_MAX or not all("!" <= letter <= "~" for letter in token):
        raise UsageError(
            f"--http-token-file {file}: must hold one line of {TOKEN_CHARS_MIN} to {TOKEN_CHARS_MAX} "
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
    """The host without its port, in small letters; an IPv6 address without its brackets."""
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
