from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.crypto.addresses import AddressError
from p2pdp.crypto.broker_address import BrokerAddress, read_broker_address

NAMES = st.text("abcXYZ019._@-", min_size=1, max_size=64)


@given(st.sampled_from(["broker.example", "10.0.0.1", "::1"]), st.integers(1, 65535), st.booleans(), NAMES, NAMES)
def test_what_is_written_is_read(host: str, port: int, tls: bool, run: str, station: str) -> None:
    address = BrokerAddress(host, port, tls, run, station)
    assert read_broker_address(address.to_text()) == address
    assert address.to_text().startswith("mqtts://" if tls else "mqtt://")


def test_an_address_of_bootstraps_own_is_none_of_a_broker() -> None:
    assert read_broker_address("boot.example:7000") is None
    assert read_broker_address("http://broker/x") is None


@pytest.mark.parametrize(
    "text",
    [
        "mqtts://broker/run/bootstrap",
        "mqtts://broker:0/run/bootstrap",
        "mqtts://broker:1/run",
        "mqtts://broker:1/run/boot/strap",
        "mqtts://broker:1/+/bootstrap",
        "mqtts://broker:1/run/#",
        "mqtt://",
    ],
)
def test_half_an_address_is_refused(text: str) -> None:
    with pytest.raises(AddressError):
        read_broker_address(text)
