from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.report.page.markup import (
    Markup,
    Section,
    card,
    document,
    figure,
    join,
    more,
    note,
    paragraph,
    table,
    tag,
    text,
    wide,
    with_small,
)
from p2pdp.report.page.style import POLICY
from tests.support.made import read

HOSTILE = "</style><script>alert('x')</script>\"' onload=x &lt; \u202e\x00\udc80 ]]>"


def test_elements_attributes_and_nesting() -> None:
    made = tag("p", "a < b ", tag("b", 3), class_="x", stroke_width=1.5, gone=None)
    assert made == '<p class="x" stroke-width="1.5">a &lt; b <b>3</b></p>'
    assert tag("rect", width=1) == '<rect width="1"/>'
    assert tag("rect", tag("title", "t")) == "<rect><title>t</title></rect>"
    assert tag("meta", charset="utf-8") == '<meta charset="utf-8">'
    assert tag("svg", viewBox="0 0 1 1") == '<svg viewBox="0 0 1 1"></svg>'


def test_markup_is_not_escaped_again() -> None:
    assert text(text("<")) == "&lt;"
    assert join([tag("b"), "<", 2], ", ") == "<b></b>, &lt;, 2"
    assert isinstance(join([]), Markup)


@pytest.mark.parametrize("letter", ["\x00", "\x1b", "\u202e", "\u2028", "\ud800"])
def test_letters_that_do_not_simply_stand_there_are_shown_as_escapes(letter: str) -> None:
    assert text(f"a{letter}b") == html.escape(f"a{letter!r}b".replace("'", ""))
    assert text("a\nb") == "a\nb"


def test_hostile_text_stays_text_in_children_and_attributes() -> None:
    page = read(tag("p", HOSTILE, title=HOSTILE))
    assert page.names() == {"p"}
    assert set(page.elements[0][1]) == {"title"}
    assert "<script>" in page.said


@given(st.text(), st.text())
def test_whatever_is_said_is_shown_and_nothing_else(child: str, value: str) -> None:
    made = tag("p", child, title=value)
    made.encode()  # nothing is left that is not text
    page = read(made)
    assert [name for name, _ in page.elements] == ["p"]
    shown = "".join(letter if letter.isprintable() or letter == "\n" else repr(letter)[1:-1] for letter in child)
    assert "".join(page.texts) == shown


def test_numbers_are_short() -> None:
    assert tag("circle", r=1 / 3) == '<circle r="0.333333"/>'


HOSTILE_LAYOUT = "</title><script>alert(1)</script>"


def test_a_document_is_whole_and_closed() -> None:
    made = document(
        HOSTILE_LAYOUT,
        "heading",
        [paragraph("hello")],
        [Section("a", "short", HOSTILE_LAYOUT, [paragraph("x")])],
        "end",
    )
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
    page = read(table(("a", "b"), [("x", 1), ("y", HOSTILE_LAYOUT)], numbers=(1,)))
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
