from __future__ import annotations

import json

import pytest

from p2pdp.cli.options import print_document


def test_a_document_is_strict_json_and_all_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    print_document({"a": [1, None], "b": "inf"})
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {"a": [1, None], "b": "inf"}
    assert captured.err == ""
    with pytest.raises(ValueError, match="Out of range"):
        print_document({"a": float("nan")})
