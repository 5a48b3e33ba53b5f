from __future__ import annotations

import pytest

from p2pdp.core.errors import RunFailed
from p2pdp.core.expiry import Expired, check_not_expired, expires_s
from p2pdp.core.spec import RunPart


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:00+00:00", 0.0),
        ("1970-01-01T01:00:01.5+01:00", 1.5),
        ("2030-01-31T12:00:00+00:00", 1896091200.0),
        ("2030-01-31T10:00:00-02:00", 1896091200.0),
    ],
)
def test_a_moment_is_the_same_wherever_it_is_read(text: str, seconds: float) -> None:
    run = RunPart("walk.sum", 3, expires=text)
    assert expires_s(run) == seconds
    check_not_expired(run, seconds - 1e-6)
    for now_s in (seconds, seconds + 1e9):
        with pytest.raises(Expired, match="before it had ended; it cannot be resumed") as caught:
            check_not_expired(run, now_s)
        assert text in str(caught.value)
        assert isinstance(caught.value, RunFailed)
        assert caught.value.exit_code == 3


def test_a_run_without_such_a_moment_never_expires() -> None:
    run = RunPart("walk.sum", 3)
    assert expires_s(run) is None
    check_not_expired(run, 1e18)
