from __future__ import annotations

from p2pdp.auditor.headline import DELTA_MAX, reading_of
from p2pdp.core.claims import Conditioning, Method, Observer
from p2pdp.core.words import (
    CONDITIONINGS,
    METHODS,
    OBSERVERS,
    PROTECTIONS,
    conditioning_words,
    method_words,
    observer_name,
)


def test_every_observer_method_and_conditioning_has_words() -> None:
    assert set(OBSERVERS) == set(Observer)
    assert set(CONDITIONINGS) == set(Conditioning)
    assert set(METHODS) == {*Method, "model", "published"}


def test_every_reading_has_words() -> None:
    assert {reading_of(epsilon, delta) for epsilon in (0.5, 2.0, 9.0) for delta in (1e-5, 2 * DELTA_MAX)} == {
        *PROTECTIONS
    }


def test_words_are_found_by_the_strings_of_documents() -> None:
    assert observer_name("node") == observer_name(Observer.NODE) == OBSERVERS[Observer.NODE][0]
    assert conditioning_words("view") == CONDITIONINGS[Conditioning.VIEW]
    assert method_words("local") == METHODS[Method.LOCAL]


def test_methods_are_known_by_their_first_part() -> None:
    assert method_words("published:complete_sum") == METHODS["published"]
    assert method_words("model:non-adaptive") == METHODS["model"]


def test_what_has_no_words_is_shown_as_it_is() -> None:
    assert [said("new") for said in (observer_name, method_words, conditioning_words)] == ["new"] * 3
