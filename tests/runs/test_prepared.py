from __future__ import annotations

from pathlib import Path

import pytest

import p2pdp
from p2pdp.core.errors import UsageError
from p2pdp.runs.prepared import on_seed, prepare, run_id
from tests.support.small import COMPLETE, RING, spec_file


def test_a_name_tells_specs_seeds_and_ways_apart(tmp_path: Path) -> None:
    ring, complete = (p2pdp.load_spec(spec_file(tmp_path, text)) for text in (RING, COMPLETE))
    names = [
        run_id(on_seed(spec, seed), fast=fast) for spec in (ring, complete) for seed in (0, 1) for fast in (False, True)
    ]
    assert len(set(names)) == len(names)
    assert {len(name) for name in names} == {16}
    assert run_id(ring, fast=False) == run_id(p2pdp.load_spec(spec_file(tmp_path)), fast=False)


def test_the_place_of_the_spec_and_its_data_makes_no_other_run(tmp_path: Path) -> None:
    names = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        (folder / "rows.csv").write_text("1\n2\n3\n4\n")
        text = RING.replace('kind = "uniform"', 'kind = "csv"\npath = "rows.csv"')
        names.append(prepare(p2pdp.load_spec(spec_file(folder, text))).run_id)
    assert names[0] == names[1]


def test_data_are_read_once(tmp_path: Path) -> None:
    prepared = prepare(p2pdp.load_spec(spec_file(tmp_path)))
    assert prepared.rows(2) is prepared.rows(2)
    assert prepared.seed == 5
    assert "lru_cache" not in repr(prepared)


@pytest.mark.parametrize("seed", [2**128, 10**60])
def test_a_seed_without_a_name_is_refused(seed: int, tmp_path: Path) -> None:
    spec = p2pdp.load_spec(spec_file(tmp_path))
    with pytest.raises(UsageError, match="seed"):
        on_seed(spec, seed)
    path = spec_file(tmp_path, RING.replace("seed = 5", f"seed = {2**128 - 1}"))
    p2pdp.simulate(path)
    for fast in (False, True):
        with pytest.raises(UsageError, match="last trial"):
            p2pdp.simulate(path, trials=2, fast=fast)
