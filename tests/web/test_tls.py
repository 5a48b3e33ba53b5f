from __future__ import annotations

from pathlib import Path

import pytest

from p2pdp.core.errors import UsageError
from p2pdp.web.tls import server_tls
from tests.support.certificates import write_pair


def test_a_pair_that_belongs_together_is_taken(tmp_path: Path) -> None:
    certificate, key = write_pair(tmp_path, "a")
    server_tls(str(certificate), str(key))


def test_others_are_refused_in_one_sentence(tmp_path: Path) -> None:
    certificate, key = write_pair(tmp_path, "a")
    _, other = write_pair(tmp_path, "b")
    text = tmp_path / "text"
    text.write_text("nothing")
    with pytest.raises(UsageError, match="do not belong together"):
        server_tls(str(certificate), str(other))
    with pytest.raises(UsageError, match="not PEM"):
        server_tls(str(text), str(key))
    with pytest.raises(UsageError, match="No such file"):
        server_tls(str(tmp_path / "absent"), str(key))
