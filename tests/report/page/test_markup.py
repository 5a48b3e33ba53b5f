from __future__ import annotations

import html

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.report.page.markup import Markup, join, tag, text
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
