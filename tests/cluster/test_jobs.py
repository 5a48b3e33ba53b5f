from __future__ import annotations

from pathlib import Path

import pytest

from p2pdp.cluster.folder import RunFolder
from p2pdp.cluster.jobs import job_of
from p2pdp.core.errors import RunFailed
from p2pdp.files.spec import parse_spec, spec_digest, spec_to_toml
from p2pdp.mechanisms.sampler import ExactSampler, FastSampler
from tests.support.local import SPEC, job_in


def made(place: Path, text: str = SPEC) -> RunFolder:
    return RunFolder.make(place / "run", spec_to_toml(parse_spec(text, place)))


def test_a_job_is_all_in_the_folder(tmp_path: Path) -> None:
    """Whoever reads it again, in another process say, does the same run with the same people."""
    one, other = job_of(made(tmp_path)), job_of(RunFolder(tmp_path / "run"))
    for job in (one, other):
        assert (job.slots, job.folder) == (3, tmp_path / "run")
        assert job.digest == spec_digest(parse_spec(SPEC, tmp_path))
    assert (one.run_id, one.bootstrap_public, one.text) == (other.run_id, other.bootstrap_public, other.text)
    assert list(one.secrets) == list(other.secrets)
    assert len(set(one.secrets)) == 3
    for user in range(3):
        assert one.rows(3, user).rows.tolist() == other.rows(3, user).rows.tolist()


def test_a_graph_that_there_is_none_of_is_told_where_it_is_made(tmp_path: Path) -> None:
    text = SPEC.replace('kind = "ring"', 'kind = "hypercube"').replace('order = "ring"\nlaps', 'order = "random"\nhops')
    job = job_of(made(tmp_path, text))
    with pytest.raises(RunFailed, match="hypercube"):
        job.plan(3)


def test_noise_is_exact_unless_the_spec_says_fast(tmp_path: Path) -> None:
    assert isinstance(job_in(tmp_path / "a").sampler(), ExactSampler)
    fast = SPEC.replace("sigma = 1.0", 'sigma = 1.0\nsampler = "fast"')
    assert isinstance(job_in(tmp_path / "b", fast).sampler(), FastSampler)


def test_a_job_shows_no_secret(tmp_path: Path) -> None:
    job = job_in(tmp_path / "run")
    assert repr(job.secrets[1]) not in repr(job)
