from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

import p2pdp
from p2pdp.cli.tables import columns, number, plain, show_audit, show_result, show_verified
from p2pdp.core.claims import Claim, Refusal
from p2pdp.runs.audit import Audited, Verified
from tests.support.learners import LOGISTIC, learning, prepared
from tests.support.shuffle_specs import shuffle
from tests.support.small import COMPLETE, HISTOGRAM, RING, spec_file

LONGEST = Claim(
    "coalition", "user", "replace", 1e-6, "published:shuffle", "a-priori", 12345.678, math.inf, 1234.5678, math.inf,
    (2047, (2044, 2045, 2046, 2040, 2041)), True, None, ("a long assumption " * 12,),
)  # fmt: skip


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def audited(*claims: Claim, refusals: tuple[Refusal, ...] = ()) -> Audited:
    return Audited("00" * 16, "walk.sum", 2048, 1e-6, "complete", list(claims), list(refusals))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "unknown"),
        (math.inf, "infinite"),
        (1.23456, "1.235"),
        (0.0, "0"),
        (7, "7"),
        ([1.0, 2.5], "1, 2.5"),
        (list(range(9)), "0, 1, 2, 3, 4, 5, … (9 numbers)"),
    ],
)
def test_numbers_are_short(value: object, shown: str) -> None:
    assert number(value) == shown


def test_texts_are_shown_as_they_stand() -> None:
    assert plain("[bold]a[/bold]\x1b[31m\n").plain == r"[bold]a[/bold]\x1b[31m\n"


def test_counts_of_shuffling_stand_side_by_side_with_the_truth(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = p2pdp.simulate(spec_file(tmp_path, shuffle(6)), tmp_path / "run")
    show_result(result, Path("run"))
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    assert "reports sent by a user" in said
    lines = said.splitlines()
    heading = next(at for at, line in enumerate(lines) if line.startswith("place"))
    assert [line.split()[0] for line in lines[heading + 1 : heading + 4]] == ["0", "1", "2"]
    assert "Moderate protection" in said


@pytest.mark.parametrize("text", [RING, COMPLETE, HISTOGRAM, shuffle(6)])
def test_a_result_fits_80_columns(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = p2pdp.simulate(spec_file(tmp_path, text), tmp_path / "run", trials=3)
    show_result(result, Path("run"))
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    assert "standard error under local DP" in said
    assert "has no privacy protection" in " ".join(said.split())
    assert "root mean square error" in said
    assert "p2pdp audit run" in said
    assert "run/report.html" in said
    show_result(replace(result, headline=None, worst=None), Path("run"))
    said = capsys.readouterr().out
    assert "report.html" not in said, "without claims there is none"
    assert "protection from" not in said
    show_result(
        replace(
            result, missing=[3], baselines={"local": {"standard_error": None}, "central": {"standard_error": None}}
        ),
        Path("run"),
        fast=True,
    )
    said = capsys.readouterr().out
    assert "missing users" in said
    assert "local DP" not in said
    assert "nothing to audit" in said


def test_the_widest_claim_fits_80_columns_whole(capsys: pytest.CaptureFixture[str]) -> None:
    show_audit(audited(LONGEST, refusals=(Refusal("node", "exact", "no [bold]reason " * 9),)))
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    together = "".join(said.split())
    for part in ("coalition", "published:shuffle", "a-priori", "infinite", "2044,2045", "no[bold]reason"):
        assert part in together


def test_long_lists_of_numbers_wrap_and_nothing_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    lists = [[number([place + column * 1.111 for place in range(6)]) for column in range(1, 4)] for _ in range(2)]
    columns([(str(user), *cells) for user, cells in enumerate(lists)], ("user", "estimate", "off by", "a long heading"))
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    words = said.replace(",", " ").split()
    for cell in lists[0]:
        assert all(words.count(one) == 2 for one in cell.split(", "))
    assert words[:3] == ["user", "estimate", "off"]


def test_headline_and_worst_bound_stand_above_the_claims(capsys: pytest.CaptureFixture[str]) -> None:
    seen = [replace(LONGEST, observer=one, epsilon_max=math.log(3.0)) for one in ("node", "curator", "public")]
    show_audit(audited(*seen, replace(LONGEST, observer="network", epsilon_max=math.inf)))
    said = " ".join(capsys.readouterr().out.split())
    assert "epsilon 1.099 at delta 1e-6" in said
    assert said.index("epsilon 1.099") < said.index("epsilon infinite") < said.index("worst pair")
    show_audit(audited(replace(LONGEST, bound=False)))
    assert "no bound is known" in capsys.readouterr().out


def test_what_is_no_bound_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    show_audit(audited(replace(LONGEST, bound=False, epsilon_max=1.5)))
    said = capsys.readouterr().out
    assert "1.5*" in said
    assert "\n*: " in said


def test_refusals_for_one_reason_are_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    refusals = tuple(Refusal(name, "exact", "because") for name in ("node", "curator"))
    show_audit(audited(LONGEST, refusals=refusals))
    assert "refused: node, curator, exact: because" in capsys.readouterr().out


def test_problems_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    problems = [{"node": 3, "index": 7, "what": "[b]altered"}, {"node": "curator", "index": None, "what": "missing"}]
    show_verified(Verified("00", None, 9, problems))
    assert capsys.readouterr().out == "node 3, record 7: [b]altered\nnode curator: missing\n"
    show_verified(Verified("00", "complete", 9, []))
    assert capsys.readouterr().out.startswith("complete: 9 records of run 00")


def test_a_learned_model_stands_beside_what_others_would_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = LOGISTIC.replace("0.2", "7.0") + "\ntest = 0.2"
    result = p2pdp.simulate(prepared(learning(5, 40, task=task))[0].spec, tmp_path / "run", trials=2)
    show_result(result, Path("run"))
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    assert "accuracy on test rows" in said
    assert "… without privacy" in said
    assert "Warning: [task] rate: 7" in said
    show_result(replace(result, warnings=None, scores=None), Path("run"))
    assert "accuracy" not in capsys.readouterr().out


def test_results_of_users_stand_where_nothing_is_published(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = p2pdp.simulate(spec_file(tmp_path, COMPLETE))
    outputs = [{"user": user, "value": value} for user, value in enumerate((1.0, 2.0, 6.0))]
    show_result(replace(result, estimate=None, outputs=outputs), Path("run"))
    said = " ".join(capsys.readouterr().out.split())
    assert "users' results, on average 3 … furthest from that 3 standard error" in said
    show_result(p2pdp.simulate(spec_file(tmp_path, HISTOGRAM)), Path("run"))
    assert "12 contributions of 5 users" in capsys.readouterr().out


@pytest.mark.parametrize("ending", ["sealed", "skeleton"])
def test_the_command_for_the_report_asks_for_the_key_where_skeletons_are_sealed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str
) -> None:
    result = p2pdp.simulate(spec_file(tmp_path, RING), tmp_path / "run")
    (tmp_path / "run" / "curator" / "skeletons").mkdir()
    (tmp_path / "run" / "curator" / "skeletons" / f"0000.{ending}").touch()
    show_result(result, tmp_path / "run")
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "p2pdp audit" in line]
    assert line.endswith(" --key FILE") == (ending == "sealed")
