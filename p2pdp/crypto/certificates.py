"""A private certificate authority, and the certificates that it makes for a broker and its clients.

Keys are on P-256, signatures with SHA-256. The authority can sign end certificates and nothing below another
authority; a server's certificate is good for its names only, a client's for being a client under its one name.

The caller owes: `now` is the time, and the authority's key is kept away from whoever runs the broker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

AUTHORITY_DAYS: Final = 3650
END_DAYS: Final = 730
_BEFORE: Final = timedelta(hours=1)  # clocks of other machines may be late


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, both in PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


class Authority:
    def __init__(self, now: datetime, days: int = AUTHORITY_DAYS) -> None:
        """Make one, with a fresh key."""
        self._key = _fresh_key()
        self._name = _named("p2pdp private authority")
        self._certificate = _sign(self._name, self._key, self._name, self._key, now, days, ())

    @property
    def pair(self) -> Pair:
        return _pem(self._certificate, self._key)

    def server(self, names: Sequence[str], now: datetime, days: int = END_DAYS) -> Pair:
        """Make the pair of a broker with these names or addresses, which may be longer than a common name."""
        key = _fresh_key()
        return _pem(_sign(_named("p2pdp broker"), key, self._name, self._key, now, days, names), key)

    def client(self, user: str, now: datetime, days: int = END_DAYS) -> Pair:
        key = _fresh_key()
        return _pem(_sign(_named(user), key, self._name, self._key, now, days, None), key)


def _fresh_key() -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _named(name: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _sign(
    subject: x509.Name,
    key: EllipticCurvePrivateKey,
    issuer: x509.Name,
    issuer_key: EllipticCurvePrivateKey,
    now: datetime,
    days: int,
    names: Sequence[str] | None,
) -> x509.Certificate:
    """Sign a certificate; `names` are a server's, an empty list for an authority, and None for a client."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import ExtendedKeyUsageOID

    authority = names is not None and not names
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BEFORE)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=0 if authority else None), critical=True)
        .add_extension(_usage(authority=authority), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName([_general(name) for name in names]), critical=False)
    if not authority:
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if names else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _usage(*, authority: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def _general(name: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate, key: EllipticCurvePrivateKey) -> Pair:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return Pair(
        certificate.public_bytes(Encoding.PEM),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )
