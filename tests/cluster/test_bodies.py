from __future__ import annotations

from pathlib import Path

from p2pdp.mechanisms.sampler import ExactSampler, FastSampler
from tests.node.local import SPEC, job_in


def test_noise_is_exact_unless_the_spec_says_fast(tmp_path: Path) -> None:
    assert isinstance(job_in(tmp_path / "a").sampler(), ExactSampler)
    fast = SPEC.replace("sigma = 1.0", 'sigma = 1.0\nsampler = "fast"')
    assert isinstance(job_in(tmp_path / "b", fast).sampler(), FastSampler)


def test_a_job_shows_no_secret(tmp_path: Path) -> None:
    job = job_in(tmp_path / "run")
    assert repr(job.secrets[1]) not in repr(job)
