"""A join token: the one line that a user gets from whoever runs bootstrap.

It reads `p2pdp1:` address `#` and 88 characters of base32: bootstrap's public key (so the fingerprint is the key
itself), a secret that serves one enrolment, the token's number, and a checksum over all of it, address included.

Guarantee: a mistyped token is refused with one sentence, before anything is sent anywhere. The checksum finds mistakes,
not forgeries: bootstrap, which knows the secrets, decides whether a token is valid.
"""

from __future__ import annotations

from base64 import b32decode, b32encode
from dataclasses import dataclass
from hashlib import blake2b
from struct import Struct
from typing import Final

from p2pdp.core.errors import UsageError

_START: Final = "p2pdp1:"
_SECRET_BYTES: Final = 16
_KEY_BYTES: Final = 32
_BODY: Final = Struct(f">{_KEY_BYTES}s{_SECRET_BYTES}sI")
_CHECKSUM_BYTES: Final = 3
_CODE_CHARS: Final = 88
_ADDRESS_CHARS_MAX: Final = 255
_NUMBER_MAX: Final = (1 << 32) - 1


def _checksum(address: str, body: bytes) -> bytes:
    return blake2b(address.encode() + b"#" + body, digest_size=_CHECKSUM_BYTES, person=b"p2pdp-token").digest()


def _is_address(address: str) -> bool:
    printable = all("!" <= character <= "~" and character != "#" for character in address)
    return printable and 0 < len(address) <= _ADDRESS_CHARS_MAX


@dataclass(frozen=True, slots=True)
class JoinToken:
    """The address and key of bootstrap, and the right to enrol once."""

    address: str
    bootstrap_public: bytes
    secret: bytes
    number: int

    def __post_init__(self) -> None:
        """Refuse what no text could hold."""
        lengths = (len(self.bootstrap_public), len(self.secret))
        if lengths != (_KEY_BYTES, _SECRET_BYTES) or not 0 <= self.number <= _NUMBER_MAX:
            raise ValueError("a join token has a key of 32 bytes, a secret of 16 bytes and a number of 32 bits")
        if not _is_address(self.address):
            raise UsageError(f"the address {self.address!r} of a join token must be plain text without spaces or '#'")

    def __repr__(self) -> str:
        return f"JoinToken({self.address!r}, number {self.number})"

    def to_text(self) -> str:
        """Write the token as one line."""
        body = _BODY.pack(self.bootstrap_public, self.secret, self.number)
        code = b32encode(body + _checksum(self.address, body)).decode().lower()
        return f"{_START}{self.address}#{code}"

    @classmethod
    def from_text(cls, text: str) -> JoinToken:
        """Read a token; white space around it does not matter."""
        line = text.strip()
        address, _, code = line.removeprefix(_START).partition("#")
        if not line.startswith(_START) or not _is_address(address):
            raise UsageError(
                f"not a join token, which reads {_START}ADDRESS#CODE: copy it whole from bootstrap's token file"
            )
        if len(code) != _CODE_CHARS:
            raise UsageError(
                f"this join token has {len(code)} characters after '#' in place of {_CODE_CHARS}: "
                "copy it again from bootstrap's token file"
            )
        body, checksum = _decode(code)
        if checksum != _checksum(address, body):
            raise UsageError("this join token is mistyped: copy it again from bootstrap's token file")
        public, secret, number = _BODY.unpack(body)
        return cls(address, public, secret, number)


def _decode(code: str) -> tuple[bytes, bytes]:
    try:
        decoded = b32decode(code.upper().encode("ascii"))
    except ValueError:
        decoded = b""
    if b32encode(decoded).decode().lower() != code:  # also where base32 took a capital: a token has one spelling
        raise UsageError("this join token has an invalid character: copy it again from bootstrap's token file")
    return decoded[: _BODY.size], decoded[_BODY.size :]
