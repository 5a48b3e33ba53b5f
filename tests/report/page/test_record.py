from __future__ import annotations

import math
from dataclasses import replace

from p2pdp.core.words import LIMITS
from p2pdp.report.html import html_page
from p2pdp.report.page.facts import Advice, Prospect
from p2pdp.report.page.markup import Section, paragraph
from p2pdp.report.page.record import about, advice, assessment, budget, confidential, evidence, glossary, limits
from tests.support.made import ADVICE, PROOF, claim, facts, outcome, read


def test_who_ran_what_has_purpose_date_version_and_key() -> None:
    rows = dict(read(about(facts(about={"purpose": "mean pay"}, proof=PROOF))).rows)
    assert rows["purpose"] == "mean pay"
    assert rows["date"] == "2030-01-31T12:00:00Z"
    assert rows["made with"] == "p2pdp 1.2.3"
    assert "b0" in rows["who set it up"]
    assert dict(read(about(facts(outcome=None, started="2031"))).rows)["date"] == "2031"
    assert "date" not in dict(read(about(facts(outcome=outcome(started=None)))).rows)


def test_the_auditors_edition_says_on_top_that_it_is_confidential_and_whether_it_holds_the_truth() -> None:
    page = read(html_page(facts()))
    assert page.notes[0].startswith("Confidential")
    assert page.said.index("Confidential") < page.said.index("In short")
    assert "without noise" in read(confidential(facts())).said
    for without in (None, outcome(truth=None, error=None)):
        assert "without noise" not in read(confidential(facts(outcome=without))).said


def test_all_limits_are_told_in_the_words_of_the_list() -> None:
    words = read(limits()).said
    assert all(name in words and text in words for name, text in LIMITS)
    page = read(html_page(facts())).said
    assert page.index(LIMITS[0][0]) < page.index("What came out")


def test_more_noise_shows_both_rows_and_the_line_to_copy() -> None:
    page = read(advice(ADVICE))
    assert page.rows[1:] == [["sigma = 4", "1.5", "infinite", "2"], ["sigma = 8", "0.75", "infinite", "4"]]
    assert "p2pdp plan SPEC --set noise.sigma=8.0" in page.said
    assert "more noise changes nothing" in page.said
    finite = replace(ADVICE, prospects=[Prospect("sigma = 8", 0.75, 3.0, 4.0)])
    assert "changes nothing" not in read(advice(finite)).said


def test_where_there_is_no_number_the_reason_and_the_line_are_told() -> None:
    page = read(advice(Advice("--set noise.sigma=8.0", reason="It takes long.")))
    assert page.rows == []
    assert page.said.startswith("It takes long. ")
    assert "--set noise.sigma=8.0" in page.said
    assert read(advice(Advice("", reason="No noise."))).said == "No noise."


def test_evidence_has_every_digest_and_the_commands() -> None:
    page = read(evidence(facts(), PROOF))
    cells = [row[1] for row in page.rows]
    assert cells[1:6] == ["5p", "40", "b0", "51", "70"]
    assert ["bootstrap", "e0"] in page.rows
    assert ["0", "e1"] in page.rows
    assert "p2pdp verify FILE p2pdp audit FILE --colluders 1,2" in page.said
    plain = replace(PROOF, ledgers={}, together=None)
    told = read(evidence(facts(reader="participants"), plain)).said
    assert "70" not in told
    assert "e1" not in told
    assert "folder of your node" in told


def test_many_ledgers_are_cut() -> None:
    many = replace(PROOF, ledgers={str(user): f"x{user}x" for user in range(300)})
    told = read(evidence(facts(), many)).said
    assert "x199x" in told
    assert "x200x" not in told
    assert "200 of 300" in told


def test_the_assessment_names_what_is_left_and_leaves_room_to_sign() -> None:
    finite = facts(claims=[claim(observer="network")])
    assert "(every observer has a finite bound)" in read(assessment(finite)).said
    none = facts(claims=[claim(), claim(observer="network", epsilon_max=math.inf)])
    page = read(assessment(none))
    assert "for the worst observer none" in page.said
    assert "RESIDUAL" not in page.said
    assert ["assessed by", "role", "decision", "date, signature"] in page.rows


def test_the_budget_is_with_the_owners() -> None:
    assert "[budget]" in read(budget(facts())).said
    assert "allows ε 3" in read(budget(facts(about={"allowed": "ε 3"}))).said


def test_only_terms_that_are_used_are_explained() -> None:
    section = Section("a", "a", "A bound", [paragraph("and colluders; ", "grid"), paragraph("unbounded audits")])
    terms = {"bound": "1", "coalition, colluders": "2", "grid": "3", "audit": "4", "mu": "5", "dither": "6"}
    page = read(glossary(terms, [section]))
    assert page.said == "bound 1 coalition, colluders 2 grid 3 audit 4"
