"""Types and ranges of single keys."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from p2pdp import protocols
from p2pdp.core.errors import UsageError
from p2pdp.core.spec import Spec
from p2pdp.files.schema import SECTIONS, all_sections, build_part, read_section
from p2pdp.files.spec import parse_spec, spec_digest, spec_to_toml
from tests.support.readers import KEYS
from tests.support.third_party import ring_drift

WRONG_TYPES: tuple[Any, ...] = (True, 1, 1.5, "x", [], [1], {}, {"a": 1})


def read_one(section: str, key: str, value: Any) -> Any:
    return read_section(section, {key: value}, all_sections())[key]


def refusal(section: str, key: str, value: Any) -> str | None:
    try:
        read_one(section, key, value)
    except UsageError as error:
        return str(error)
    return None


def test_the_table_covers_every_field_of_a_spec() -> None:
    assert set(SECTIONS) | {"options"} == {field.name for field in dataclasses.fields(Spec)}
    for section in SECTIONS.values():
        fields = {field.name for field in dataclasses.fields(section.part) if field.compare}  # the rest is in no file
        assert {section.field_of(key) for key in section.readers} == fields


@pytest.mark.parametrize("name", KEYS)
def test_every_key_refuses_most_types_and_is_named(name: str) -> None:
    section, _, key = name.partition(".")
    refusals = [text for value in WRONG_TYPES if (text := refusal(section, key, value))]
    assert len(refusals) >= 5
    assert all(text.startswith(f"[{section}] {key}: ") for text in refusals)


@pytest.mark.parametrize(
    ("section", "key"), [("run", "nodes"), ("noise", "sigma"), ("privacy", "delta"), ("walk", "laps"), ("data", "clip")]
)
def test_a_truth_value_is_no_number(section: str, key: str) -> None:
    value: Any = [False, True] if key == "clip" else True
    with pytest.raises(UsageError, match=r"must be a (whole )?number"):
        read_one(section, key, value)


def test_whole_numbers_stand_for_numbers_but_not_the_reverse() -> None:
    sigma = read_one("noise", "sigma", 2)
    assert (sigma, type(sigma)) == (2.0, float)
    with pytest.raises(UsageError, match="whole number"):
        read_one("run", "nodes", 2.0)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), 10**400])
def test_numbers_are_finite(value: float) -> None:
    for section, key in (("noise", "sigma"), ("noise", "epsilon"), ("run", "patience_s"), ("graph", "probability")):
        with pytest.raises(UsageError, match="must be finite"):
            read_one(section, key, value)
    with pytest.raises(UsageError, match="entry 1 must be finite"):
        read_one("data", "clip", [0, value])


@pytest.mark.parametrize(
    ("section", "key", "good", "bad"),
    [
        ("run", "nodes", [1, 10**6], [0, -1]),
        ("run", "seed", [0, 2**80], [-1]),
        ("run", "patience_s", [0.1, 5], [0, -1]),
        ("run", "expires", ["2030-01-31T12:00:00Z"], ["2030-01-31", "2030-01-31T12:00:00", "soon", "1", '"x"']),
        ("run", "purpose", ["mean pay", "a" * 300], ["", " ", "a\nb", "\x1b[31m", "\u202e", "a" * 301, 3]),
        ("graph", "probability", [1e-9, 0.5, 1], [0, -0.1, 1.1]),
        ("graph", "degree", [1, 20], [0]),
        ("walk", "tokens", [1], [0]),
        ("gossip", "rounds", [1, "auto"], [0, "mixing", True]),
        ("shuffle", "rounds", [1, "auto", "mixing"], [0, "many"]),
        ("shuffle", "stay", [0, 0.99], [1, -0.1]),
        ("gossip", "lambda", [0.5], [0, 1]),
        ("noise", "sigma", [1e-9], [0, -1]),
        ("noise", "delta", [1e-300, 0.5], [0, 1]),
        ("data", "clip", [[0, 1], [-1.5, 2]], [[1, 0], [1, 1], [0], [0, 1, 2], [-1.7e308, 1.7e308], "0, 1"]),
        ("data", "columns", [["a"], [0, 1], ["a", 0]], [[], ["a", "a"], [-1], [0.5], "a", [True]]),
        ("data", "separator", [",", ";", "\t"], ["", ",,", '"', "\n"]),
        ("data", "rule", ["< -119.57", ">=1e3", "== .5"], ["-119.57", "< x", "<", "< 1 2"]),
        ("data", "standardize", [{"low": [0], "high": [1]}], [{}, {"low": [0]}, {"low": [0], "high": [0]}]),
        ("task", "categories", [2], [1]),
        ("task", "test", [0.2], [0, 1]),
        ("privacy", "unit", ["user", "record"], ["row"]),
        ("privacy", "colluders", [[], [0, 3]], [[1, 1], [-1], [0.5], 3]),
        ("privacy", "budget", [0.5], [0]),
    ],
)
def test_ranges(section: str, key: str, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        read_one(section, key, value)
    for value in bad:
        with pytest.raises(UsageError, match=rf"^\[{section}\] {key}: "):
            read_one(section, key, value)


@pytest.mark.parametrize("name", KEYS)
def test_every_misspelt_key_is_named_with_the_one_that_was_meant(name: str) -> None:
    section, _, key = name.partition(".")
    keys = all_sections()[section].readers
    wrong = [key[:place] + "x" + key[place + 1 :] for place in range(len(key))]
    wrong += [key[:place] + key[place + 1 :] for place in range(len(key))]
    wrong += [key[:place] + "q" + key[place:] for place in range(len(key) + 1)]
    for word in set(wrong) - {"", "x"} - set(keys):
        with pytest.raises(UsageError) as caught:
            read_section(section, {word: 1}, all_sections())
        meant = [key, *({"column", "columns"} - {key} if key in ("column", "columns") else ())]  # either is as near
        assert str(caught.value) in [f'[{section}] {word}: unknown key; did you mean "{one}"?' for one in meant]


def test_names_are_suggested_or_listed() -> None:
    with pytest.raises(UsageError, match='"rign" is unknown; did you mean "ring"'):
        read_one("graph", "kind", "rign")
    with pytest.raises(UsageError, match="known are exact, fast"):
        read_one("noise", "sampler", "zzz")


def test_a_section_is_a_table_and_complete() -> None:
    with pytest.raises(UsageError, match=r"^\[run\] must be a section"):
        read_section("run", 3)
    with pytest.raises(UsageError, match=r"^\[run\] nodes: missing"):
        build_part("run", {"protocol": "walk.sum"})
    assert build_part("gossip", {"lambda": 0.25}, all_sections()).spectral_gap == 0.25


@pytest.mark.parametrize("nodes", [10_000_001, 10**30])
def test_more_users_than_fit_into_memory_are_refused(nodes: int) -> None:
    with pytest.raises(UsageError, match=r"\[run\] nodes: must be at most 10,000,000"):
        read_one("run", "nodes", nodes)


OWN = (
    '[run]\nprotocol = "drift.ring"\nnodes = 4\n[graph]\nkind = "ring"\n[noise]\nmechanism = "gaussian"\nsigma = 2.0\n'
    '[data]\nkind = "uniform"\nclip = [0.0, 1.0]\n'
)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else's protocol, as its entry point gives it."""
    entry = SimpleNamespace(load=lambda: ring_drift.PROTOCOL, value="ring_drift:PROTOCOL")
    monkeypatch.setattr(protocols, "installed", lambda _: {"drift.ring": entry, "drift.other": entry})


@pytest.mark.usefixtures("installed")
def test_a_protocol_brings_a_section_of_its_own() -> None:
    spec = parse_spec(f"{OWN}[drift]\nrounds = 2\n", None)
    assert spec.options == ring_drift.DriftPart(rounds=2)
    assert spec.task.kind == "mean"
    assert parse_spec(spec_to_toml(spec), None) == spec
    more = parse_spec(f"{OWN}[drift]\nrounds = 2\n", None, ["drift.rounds=3"])
    assert more.options == ring_drift.DriftPart(rounds=3)
    assert spec_digest(more) != spec_digest(spec)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("text", "error"),
    [
        (OWN, r"^\[drift\] rounds: missing"),
        (f"{OWN}[drift]\nrounds = 0\n", r"^\[drift\] rounds: must be at least 1"),
        (f"{OWN}[drift]\nround = 2\n", r"^\[drift\] round: unknown key"),
        (f"{OWN}[drift]\nrounds = 2\n[walk]\norder = 'ring'\n", r"^\[walk\] has no meaning"),
        (OWN.replace("drift.ring", "gossip.average") + "[drift]\nrounds = 2\n", r"^\[drift\]: unknown section"),
        (OWN.replace("drift.ring", "drift.rings"), r"^\[run\] protocol: .*drift.ring"),
        (OWN.replace("drift.ring", "drift.other"), r"calls itself"),
        (OWN.replace("gaussian", "laplace") + "[drift]\nrounds = 2\n", r"^\[noise\] mechanism: .*gaussian"),
    ],
)
def test_what_does_not_fit_a_section_of_its_own_is_refused(text: str, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        parse_spec(text, None)


@pytest.mark.usefixtures("installed")
def test_a_section_that_specs_have_already_is_no_protocols_own(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = replace(ring_drift.PROTOCOL.options, section="noise")
    monkeypatch.setattr(ring_drift.RingDrift, "options", taken)
    with pytest.raises(UsageError, match=r"\[noise\]"):
        parse_spec(OWN, None)
