from __future__ import annotations

import re

from p2pdp.report.page.layout import Section, card, document, figure, more, note, paragraph, table, wide, with_small
from p2pdp.report.page.markup import Markup
from p2pdp.report.page.style import POLICY
from tests.support.made import read

HOSTILE = "</title><script>alert(1)</script>"


def test_a_document_is_whole_and_closed() -> None:
    made = document(HOSTILE, "heading", [paragraph("hello")], [Section("a", "short", HOSTILE, [paragraph("x")])], "end")
    assert made.startswith('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">')
    page = read(made)
    assert "script" not in page.names()
    assert page.having(http_equiv="Content-Security-Policy") or page.having(content=POLICY)
    assert page.having(name="viewport")
    assert {given.get("href") for name, given in page.elements if name == "a"} == {"#a"}
    assert len(page.having(id="a")) == 1


def test_the_policy_comes_before_everything_that_it_rules() -> None:
    made = document("t", "h", [], [], "")
    assert made.index("Content-Security-Policy") < made.index("<style>")
    assert made.index("charset") < 1024


def test_the_style_sheet_is_the_only_one_and_there_are_no_style_attributes() -> None:
    made = document("t", "h", [note("a", "b"), card("a", "b", "c")], [], figure(Markup("<svg></svg>"), "c"))
    assert made.count("<style>") == 1
    assert not re.search(r"\bstyle=", made)


def test_tables_name_rows_and_columns() -> None:
    page = read(table(("a", "b"), [("x", 1), ("y", HOSTILE)], numbers=(1,)))
    assert len(page.having(scope="col")) == len(page.having(scope="row")) == 2
    assert len(page.having(class_="n")) == 3
    assert "script" not in page.names()
    assert "thead" not in read(table(("", ""), [("x", 1)])).names()


def test_what_may_be_too_wide_scrolls_by_keyboard_too() -> None:
    assert read(wide("x")).having(class_="wide", tabindex="0")
    assert read(figure(Markup("<svg></svg>"), "words")).having(class_="wide")


def test_boxes_hold_what_they_are_given() -> None:
    assert read(more("title", "inside")).said == "title inside"
    assert read(note("first", "rest")).having(role="note")
    assert read(with_small("a", "b")).said == "a b"
    assert read(paragraph("x", soft=True)).having(class_="soft")
