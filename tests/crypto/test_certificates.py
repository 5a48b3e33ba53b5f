from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from p2pdp.crypto.certificates import AUTHORITY_DAYS, END_DAYS, Authority, Pair

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def parsed(pair: Pair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate)


def test_an_authority_signs_ends_and_nothing_below_another_authority() -> None:
    authority = Authority(NOW)
    own, server = parsed(authority.pair), parsed(authority.server(["broker"], NOW))
    server.verify_directly_issued_by(own)
    assert own.extensions.get_extension_for_class(x509.BasicConstraints).value == x509.BasicConstraints(True, 0)
    assert server.extensions.get_extension_for_class(x509.BasicConstraints).value.ca is False
    assert own.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    assert not server.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    assert own.not_valid_after_utc - NOW == timedelta(days=AUTHORITY_DAYS)
    assert server.not_valid_after_utc - NOW == timedelta(days=END_DAYS)


def test_a_server_is_good_for_its_names_and_a_client_for_being_one() -> None:
    authority = Authority(NOW)
    server, client = parsed(authority.server(["broker", "127.0.0.1", "::1"], NOW)), parsed(authority.client("me", NOW))
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["broker"]
    assert names.get_values_for_type(x509.IPAddress) == [ip_address("127.0.0.1"), ip_address("::1")]
    uses = [list(one.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) for one in (server, client)]
    assert uses == [[ExtendedKeyUsageOID.SERVER_AUTH], [ExtendedKeyUsageOID.CLIENT_AUTH]]
    assert [one.value for one in client.subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["me"]


def handshake(place: Path, authority: Pair, server: Pair, name: str) -> None:
    """Two ends of TLS that meet in memory; raises what the client finds wrong."""
    for file, content in (("ca", authority.certificate), ("pem", server.certificate), ("key", server.key)):
        (place / file).write_bytes(content)
    there = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    there.load_cert_chain(place / "pem", place / "key")
    ways = ssl.MemoryBIO(), ssl.MemoryBIO()
    here = ssl.create_default_context(cafile=str(place / "ca"))
    one = here.wrap_bio(ways[0], ways[1], server_hostname=name)
    other = there.wrap_bio(ways[1], ways[0], server_side=True)
    left = [one, other]
    for _ in range(10):
        for end in list(left):
            try:
                end.do_handshake()
                left.remove(end)
            except ssl.SSLWantReadError:
                continue
    assert left == []


def test_a_client_of_this_authority_takes_this_server_by_its_names_and_no_other(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    authority, foreign = Authority(now), Authority(now)
    server = authority.server(["broker.example", "127.0.0.1"], now)
    handshake(tmp_path, authority.pair, server, "broker.example")
    handshake(tmp_path, authority.pair, server, "127.0.0.1")
    old = authority.server(["broker.example"], now - timedelta(days=9), days=3)
    client = authority.client("broker.example", now)
    for ca, end, name in (
        (authority, server, "other.example"),
        (foreign, server, "broker.example"),
        (authority, old, "broker.example"),
        (authority, client, "broker.example"),
    ):
        with pytest.raises(ssl.SSLCertVerificationError):
            handshake(tmp_path, ca.pair, end, name)


def test_keys_are_fresh_and_in_no_repr() -> None:
    authority = Authority(NOW)
    pairs = [authority.pair, authority.client("a", NOW), authority.client("a", NOW)]
    assert len({pair.key for pair in pairs}) == 3
    assert all("PRIVATE" not in repr(pair) for pair in pairs)
