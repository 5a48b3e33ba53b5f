"""What every sampler owes to its callers. Samplers are found in their module; none registers itself here."""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from p2pdp.core.draws import Mechanism, Sampler, Shape
from p2pdp.core.errors import UsageError
from p2pdp.mechanisms import sampler as sampler_module

if TYPE_CHECKING:
    from collections.abc import Callable

SAMPLERS: list[type[Any]] = [
    kind
    for name, kind in inspect.getmembers(sampler_module, inspect.isclass)
    if kind.__module__ == sampler_module.__name__ and not name.startswith("_")
]
ARGUMENTS = {"key": bytes(range(32)), "seed": 3, "stream": "contract"}

GAUSSIAN = Mechanism("gaussian", 2.0**40)
GOOD: list[tuple[Mechanism, Shape]] = [
    (GAUSSIAN, ()),
    (GAUSSIAN, (1,)),
    (GAUSSIAN, (7,)),
    (Mechanism("laplace", 2.0**40), ()),
    (Mechanism("laplace", 2.0**40), (7,)),
    (Mechanism("laplace", 0.01), (2,)),
    (Mechanism("randomized_response", 0.5, 10), ()),
    (Mechanism("randomized_response", 0.5, 10), (7,)),
    (Mechanism("uniform_counts", 12.0, 3), (3,)),
    (Mechanism("uniform_bits", 1.0), (4,)),
]
BAD: list[tuple[Mechanism, Shape, Any]] = [
    *(
        (Mechanism(name, scale, categories), (), 1)
        for name, categories in (("gaussian", 0), ("laplace", 0), ("randomized_response", 4))
        for scale in (math.nan, math.inf, -math.inf, 0.0, -1.0, 2.0**63)
    ),
    *((Mechanism("uniform_counts", scale, 4), (4,), 1) for scale in (math.nan, math.inf, 0.0, -3.0, 2.5)),
    *((Mechanism("randomized_response", 0.5, categories), (), 1) for categories in (-1, 0, 1)),
    *((GAUSSIAN, (), count) for count in (0, -1, 1.5, math.nan)),
    *((GAUSSIAN, shape, 1) for shape in ((0,), (-2,))),
    (Mechanism("randomized_response", 1.5, 4), (), 1),
    (Mechanism("gaussian", 5.0, 4), (), 1),
    (Mechanism("uniform_counts", 5.0, 4), (), 1),
    (Mechanism("uniform_counts", 5.0, 4), (3,), 1),
    (Mechanism("uniform_bits", 1.0, 4), (4,), 1),
    (Mechanism("none", 1.0), (), 1),
    (Mechanism("", 1.0), (), 1),
]


@pytest.fixture(params=SAMPLERS, ids=lambda kind: kind.__name__)
def make(request: pytest.FixtureRequest) -> Callable[[], Sampler]:
    wanted = inspect.signature(request.param).parameters
    return lambda: request.param(**{name: ARGUMENTS[name] for name in wanted})


def test_the_known_samplers_are_found() -> None:
    assert {kind.name for kind in SAMPLERS} >= {"exact", "fast", "seeded"}
    assert len({kind.name for kind in SAMPLERS}) == len(SAMPLERS)


@pytest.mark.parametrize(("mechanism", "shape"), GOOD)
@pytest.mark.parametrize("count", [1, 5])
def test_a_batch_has_the_length_types_and_shapes_asked_for(
    make: Callable[[], Sampler], mechanism: Mechanism, shape: Shape, count: int
) -> None:
    batch = make().batch(mechanism, shape, count)
    assert type(batch) is list
    assert len(batch) == count
    for draw in batch:
        if shape == ():
            assert type(draw) is int
        else:
            assert isinstance(draw, np.ndarray)
            assert draw.dtype == np.int64
            assert draw.shape == shape


@pytest.mark.parametrize("shape", [(), (3,)])
@pytest.mark.parametrize("name", ["gaussian", "laplace"])
def test_no_draw_comes_twice(make: Callable[[], Sampler], name: str, shape: Shape) -> None:
    """Within a batch and across batches; at this scale a chance repetition has odds below 1e-8."""
    sampler, mechanism = make(), Mechanism(name, 2.0**50)
    draws = np.concatenate([np.ravel(sampler.batch(mechanism, shape, 50)) for _ in range(3)])
    assert len(set(draws.tolist())) == draws.size


def test_two_batches_are_uncorrelated(make: Callable[[], Sampler]) -> None:
    sampler, count = make(), 10**4
    first, second = (np.array(sampler.batch(GAUSSIAN, (), count)) / GAUSSIAN.scale for _ in range(2))
    assert abs(np.mean(first * second)) < 6 / math.sqrt(count)


def test_changing_one_draw_leaves_the_others(make: Callable[[], Sampler]) -> None:
    batch = make().batch(GAUSSIAN, (4,), 3)
    kept = [draw.copy() for draw in batch[1:]]
    batch[0][:] = 0
    for draw, before in zip(batch[1:], kept, strict=True):
        assert np.array_equal(draw, before)


@pytest.mark.parametrize("options", [1, 2, 7])
def test_choices_are_uniform_over_their_range(make: Callable[[], Sampler], options: int) -> None:
    sampler = make()
    chosen = [sampler.choice(options) for _ in range(20_000)]
    assert {type(number) for number in chosen} == {int}
    assert set(chosen) == set(range(options))
    if options > 1:
        assert stats.chisquare(np.bincount(chosen)).pvalue > 1e-7


def test_choices_reach_the_end_of_their_range(make: Callable[[], Sampler]) -> None:
    sampler = make()
    assert max(sampler.choice(2**63 - 1) for _ in range(100)) > 2**61
    with pytest.raises(UsageError, match="options"):
        sampler.choice(2**63)


@pytest.mark.parametrize("options", [0, -1, math.nan, math.inf, 2.5, None])
def test_bad_numbers_of_options_are_refused(make: Callable[[], Sampler], options: Any) -> None:
    with pytest.raises(UsageError, match="options"):
        make().choice(options)


@pytest.mark.parametrize(("mechanism", "shape", "count"), BAD)
def test_what_cannot_be_drawn_is_refused(
    make: Callable[[], Sampler], mechanism: Mechanism, shape: Shape, count: Any
) -> None:
    with pytest.raises(UsageError):
        make().batch(mechanism, shape, count)


def test_a_sampler_does_not_print_its_state(make: Callable[[], Sampler]) -> None:
    sampler = make()
    (draw,) = sampler.batch(GAUSSIAN, (), 1)
    assert str(draw) not in repr(sampler)
