from __future__ import annotations

import json

import pytest

from p2pdp.cli.main import main
from p2pdp.files.citation import FILE, FORMATS, citation

Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize("form", FORMATS)
def test_each_format_is_printed(form: str, capsys: Captured) -> None:
    assert main(["cite", "--format", form]) == 0
    assert capsys.readouterr().out == citation(form) + "\n"
    assert main(["cite", "--format", form, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"format": form, "citation": citation(form)}


def test_the_file_comes_out_as_it_is(capsys: Captured) -> None:
    assert main(["cite", "--format", "cff"]) == 0
    assert capsys.readouterr().out == FILE.read_text()


def test_another_format_is_one_line(capsys: Captured) -> None:
    assert main(["cite", "--format", "ris"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
