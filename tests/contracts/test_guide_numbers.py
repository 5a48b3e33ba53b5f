"""Each number of the guide's example, and the order of magnitude of its table, is what the library computes."""

from __future__ import annotations

import dataclasses
import math
import re

import pytest

import p2pdp
from p2pdp.auditor.headline import reading_of
from p2pdp.files.guide import page
from p2pdp.files.spec import demo_spec

EXAMPLE = page("epsilon").text
NAMED = re.compile(r"`([a-z_]+) = ([0-9.e-]+)`")


def written() -> dict[str, str]:
    """The numbers of the page by name; one that is named twice is the same twice."""
    found = NAMED.findall(EXAMPLE)
    assert len(dict(found)) == len(set(found))
    return dict(found)


def shown(value: float, like: str) -> str:
    """The value with as many digits as the page has."""
    if "e" in like:
        return f"{value:.0e}".replace("e-0", "e-")
    return f"{value:.{len(like.partition('.')[2])}f}"


def computed() -> dict[str, float]:
    spec = demo_spec()
    assert spec.noise.sigma is not None
    assert spec.privacy.delta is not None
    assert spec.data.clip is not None
    n, laps, sigma, delta = spec.run.nodes, spec.options.laps, spec.noise.sigma, spec.privacy.delta
    width = spec.data.clip[1] - spec.data.clip[0]
    plan = p2pdp.plan(spec)
    node, curator = (
        next(one for one in plan.claims if (one.observer, one.method) == (who, "exact")) for who in ("node", "curator")
    )
    one = p2pdp.account("gaussian", sigma=sigma, delta=delta)
    doubled = p2pdp.plan(dataclasses.replace(spec, noise=dataclasses.replace(spec.noise, sigma=2.0 * sigma)))
    target = p2pdp.plan(spec, target_epsilon=1.0).to_json()["target"]
    assert node.mu_max is not None
    assert curator.mu_max is not None
    scheduled = math.ceil(laps * n / (n - 1))
    # The same numbers from the formulas that the text gives.
    assert node.mu_max == pytest.approx(math.sqrt(laps) * width / sigma)
    assert curator.mu_max == pytest.approx(laps / math.sqrt(scheduled + 1) * width / sigma)
    assert plan.standard_error == pytest.approx(math.sqrt(scheduled + 1) * sigma)
    return {
        "users": n,
        "laps": laps,
        "sigma": sigma,
        "delta": delta,
        "sensitivity": width,
        "mu_one": one.outputs["mu"],
        "epsilon_one": one.outputs["epsilon"],
        "scheduled_draws": scheduled,
        "mu_node": node.mu_max,
        "epsilon_node": node.epsilon_max,
        "epsilon_node_mean": node.epsilon_mean or math.nan,
        "mu_curator": curator.mu_max,
        "epsilon_curator": curator.epsilon_max,
        "headline": plan.to_json()["headline"]["epsilon"],
        "factor": math.exp(node.epsilon_max),
        "guess": 0.5 * (1.0 + math.erf(node.mu_max / 2.0 / math.sqrt(2.0))),
        "standard_error": float(plan.to_json()["standard_error"]),
        "local_error": plan.to_json()["baselines"]["local"]["standard_error"],
        "central_error": plan.to_json()["baselines"]["central"]["standard_error"],
        "epsilon_doubled": doubled.to_json()["headline"]["epsilon"],
        "sigma_for_one": target["value"],
    }


def test_each_number_of_the_example_is_recomputed() -> None:
    page_says, library_says = written(), computed()
    assert page_says.keys() == library_says.keys()
    assert page_says == {name: shown(library_says[name], text) for name, text in page_says.items()}


def test_no_decimal_of_the_example_goes_unchecked() -> None:
    example = EXAMPLE.partition("## An example")[2].partition("\n## ")[0]
    rest = NAMED.sub("", example).replace("noise.sigma=6.0", "")
    assert re.findall(r"\d+\.\d+", rest) == []


def test_readings_are_those_of_the_table() -> None:
    rows = re.findall(r"^\| (below 1|1 to 5|above 5|infinite)[^|]* \| (\w+) \|", EXAMPLE, re.MULTILINE)
    values = {"below 1": 0.99, "1 to 5": 3.0, "above 5": 5.01, "infinite": math.inf}
    assert [(words, reading_of(values[words], 1e-6)) for words, _ in rows] == rows
    assert reading_of(0.1, 0.0011) == "none"
    assert f"{math.exp(1.0):.1f}" in EXAMPLE
    assert f"{math.exp(5.0):.0f}" in EXAMPLE
