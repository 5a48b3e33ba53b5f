from __future__ import annotations

from pathlib import Path

from p2pdp.cluster.bodies import NOWHERE, node_folder, places
from p2pdp.mechanisms.sampler import ExactSampler, FastSampler
from tests.host.toys import roster
from tests.node.local import SPEC, job_in


def test_noise_is_exact_unless_the_spec_says_fast(tmp_path: Path) -> None:
    assert isinstance(job_in(tmp_path / "a").sampler(), ExactSampler)
    fast = SPEC.replace("sigma = 1.0", 'sigma = 1.0\nsampler = "fast"')
    assert isinstance(job_in(tmp_path / "b", fast).sampler(), FastSampler)


def test_a_job_shows_no_secret(tmp_path: Path) -> None:
    job = job_in(tmp_path / "run")
    assert repr(job.secrets[1]) not in repr(job)


def test_users_are_where_their_numbers_say_unless_some_stayed_away(tmp_path: Path) -> None:
    job = job_in(tmp_path / "run", SPEC.replace("nodes = 3", "nodes = 5"))
    assert places(job, roster(5)) == [0, 1, 2, 3, 4]
    signed = roster(3)
    for slot, user in ((1, 0), (4, 1)):
        node_folder(job, slot).mkdir(parents=True)
        (node_folder(job, slot) / "identity.pub").write_text(signed.entries[user].identity.hex() + "\n")
    assert places(job, signed) == [1, 4, NOWHERE]
