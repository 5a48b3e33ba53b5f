from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from p2pdp import __version__
from p2pdp.cli.watching import http_options
from p2pdp.core.errors import UsageError


def test_without_a_place_there_is_no_server_and_nothing_to_say_of_it() -> None:
    assert http_options(None, None, None, None, None, is_open=False) is None
    token: dict[str, Any] = {"is_open": False, "auditor_token_file": Path("a")}
    for wrong in ({"is_open": True}, {"is_open": False, "stays": True}, token):
        with pytest.raises(UsageError, match="--http HOST:PORT"):
            http_options(None, None, None, None, None, **wrong)


def test_all_of_it_is_taken_over() -> None:
    made = http_options(
        "a:1", Path("t"), Path("c"), Path("k"), ["n"], is_open=True, stays=True, auditor_token_file=Path("a")
    )
    assert made is not None
    assert (made.listen, made.version, made.token_file) == ("a:1", __version__, Path("t"))
    assert (made.certificate, made.key, made.names) == (Path("c"), Path("k"), ("n",))
    assert made.is_open
    assert made.auditor_token_file == Path("a")
    assert made.stays
