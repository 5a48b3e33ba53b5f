from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from p2pdp.core.errors import Refused, UsageError
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.spec import Spec
from p2pdp.crypto.roster import RosterEntry, sign_entry, sign_roster
from p2pdp.crypto.tokens import JoinToken
from p2pdp.files.keys import write_identity
from p2pdp.files.model_code import model_code
from p2pdp.files.node_config import NodeConfig, load_node_config
from p2pdp.files.spec import parse_spec, spec_digest
from p2pdp.peer.credentials import Credentials
from p2pdp.protocols import protocol
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.runs.accepting import (
    check_accepted,
    check_can_run,
    check_code,
    check_neighbours,
    check_rounds,
    check_seat,
    describe,
    offered_spec,
    own_data,
    spec_dimensions,
)
from tests.support.torches import torch_here
from tests.support.toys import RUN_ID, identity, run_key

SUM = """[run]
protocol = "walk.sum"
nodes = 4
min_nodes = 3
[graph]
kind = "complete"
[walk]
order = "random"
hops = 9
[noise]
mechanism = "gaussian"
sigma = 2.0
[data]
kind = "uniform"
clip = [0.0, 1.0]
"""
HISTOGRAM = (
    SUM.replace("walk.sum", "walk.histogram")
    .replace('"gaussian"\nsigma = 2.0', '"randomized_response"\nepsilon = 1.0')
    .replace('"uniform"\nclip = [0.0, 1.0]', '"categories"\n[task]\ncategories = 3')
)
TABLE = SUM.replace('kind = "uniform"', 'kind = "csv"\npath = "theirs.csv"\ncolumns = ["a", "b"]')

Configure = Callable[..., NodeConfig]


@pytest.fixture
def configured(tmp_path: Path) -> Configure:
    write_identity(tmp_path / "id", bytes([1] * 32))
    token = JoinToken("boot:1", bytes(32), bytes(16), 0).to_text()
    (tmp_path / "own.csv").write_text("a,b\n0.25,3\n0.5,0.75\n")
    (tmp_path / "one.csv").write_text("1\n0\n2\n")

    def make(data: str = 'kind = "uniform"', accept: str = "") -> NodeConfig:
        path = tmp_path / "node.toml"
        node = f'[node]\nidentity = "id/identity.key"\ntoken = "{token}"\nlisten = "localhost:0"\n'
        path.write_text(f"{node}[data]\n{data}\n[accept]\n{accept}\n")
        return load_node_config(path)

    return make


def noise_sigma(spec: Spec, dimensions: int) -> float | None:
    return protocol(spec.run.protocol).sigma(spec, dimensions)


def spec_of(text: str) -> Spec:
    return parse_spec(text, None)


@pytest.mark.parametrize(
    ("accept", "says"),
    [
        ("sigma_min = 2.0", None),
        ("sigma_min = 2.5", ("sigma_min", "sigma 2,", "asks for 2.5")),
        ("clip = [0, 1]", None),
        ("clip = [-1, 2]", None),
        ("clip = [0, 0.9]", ("clip", "[0, 1]", "[0, 0.9]")),
        ("clip = [0.1, 1]", ("clip", "[0, 1]", "[0.1, 1]")),
        ('protocols = ["walk.sum"]', None),
        ('protocols = ["walk.histogram"]', ("protocols", "walk.sum", "walk.histogram")),
        ("protocols = []", ("protocols", "none only")),
    ],
)
def test_what_the_owner_does_not_accept_is_named(
    configured: Configure, accept: str, says: tuple[str, ...] | None
) -> None:
    config = configured(accept=accept)
    if says is None:
        check_accepted(spec_of(SUM), 1, config)
        return
    with pytest.raises(Refused) as caught:
        check_accepted(spec_of(SUM), 1, config)
    assert all(word in str(caught.value) for word in says)


RING = SUM.replace('kind = "complete"', 'kind = "ring"').replace('"random"\nhops', '"ring"\nlaps')
SHUFFLE = """[run]
protocol = "shuffle.all"
nodes = 4
[graph]
kind = "complete"
[shuffle]
rounds = "auto"
[noise]
mechanism = "randomized_response"
epsilon = 2.0
[data]
kind = "categories"
[task]
kind = "histogram"
categories = 3
"""


@pytest.mark.parametrize(
    ("text", "accept", "key"),
    [
        (SUM, "hops = 9", None),
        (SUM, "hops = 8", "hops"),
        (SUM, "laps = 1\nrounds = 1", None),
        (SUM.replace("hops = 9", "hops = 9\ntokens = 2"), "tokens = 1", "tokens"),
        (
            SUM.replace('kind = "complete"', 'kind = "ring"').replace('"random"\nhops', '"ring"\nlaps'),
            "laps = 8",
            "laps",
        ),
        (SUM, 'sampler = "exact"', None),
        (SUM.replace("sigma = 2.0", 'sigma = 2.0\nsampler = "fast"'), 'sampler = "exact"', "sampler"),
        (SUM.replace('"gaussian"\nsigma = 2.0', '"none"'), "", "mechanisms"),
        (SUM.replace('"gaussian"\nsigma = 2.0', '"none"'), 'mechanisms = ["none"]', None),
        (SUM, 'mechanisms = ["laplace", "none"]', "mechanisms"),
        (SUM, "delta = 1e-6", None),
        (SUM, "delta = 1e-7", "delta"),
        (SUM + "[privacy]\ndelta = 0.5\n", "epsilon_max = 100", "delta"),
        (SUM, "epsilon = 5", "epsilon"),
        (HISTOGRAM, "epsilon = 1", None),
        (HISTOGRAM, "epsilon = 0.9", "epsilon"),
        (SHUFFLE, "epsilon = 2\nrounds = 1", None),
        (SHUFFLE, "epsilon = 1.9", "epsilon"),
        (SUM.replace('"gaussian"\nsigma = 2.0', '"laplace"\nepsilon = 1.0'), "epsilon = 1", None),
        (SUM.replace('"gaussian"\nsigma = 2.0', '"laplace"\nsigma = 2.0'), "epsilon = 0.71", None),
        (SUM.replace('"gaussian"\nsigma = 2.0', '"laplace"\nsigma = 2.0'), "epsilon = 0.70", "epsilon"),
    ],
)
def test_limits_of_the_owner_are_compared_with_the_spec(
    configured: Configure, text: str, accept: str, key: str | None
) -> None:
    if key is None:
        check_accepted(spec_of(text), 1, configured(accept=accept))
        return
    with pytest.raises(Refused, match=rf"\[accept\] {key}: "):
        check_accepted(spec_of(text), 1, configured(accept=accept))


def test_rounds_that_follow_from_the_graph_are_compared_too(configured: Configure) -> None:
    run = plan_run(spec_of(SHUFFLE), 4, 1)
    check_rounds(run.plan.rounds, configured(accept=f"rounds = {run.plan.rounds}"))
    with pytest.raises(Refused, match=r"\[accept\] rounds: "):
        check_rounds(run.plan.rounds, configured(accept=f"rounds = {run.plan.rounds - 1}"))
    check_rounds(plan_run(spec_of(SUM), 4, 1).protocol.rounds(None), configured(accept="rounds = 1"))


def test_noise_is_compared_by_its_standard_deviation(configured: Configure) -> None:
    laplace = spec_of(SUM.replace('"gaussian"\nsigma = 2.0', '"laplace"\nepsilon = 1.0'))
    assert noise_sigma(laplace, 1) == pytest.approx(math.sqrt(2.0))
    assert noise_sigma(laplace, 4) == pytest.approx(4 * math.sqrt(2.0))
    none = spec_of(SUM.replace('"gaussian"\nsigma = 2.0', '"none"'))
    assert noise_sigma(none, 1) == 0.0
    config = configured(accept="sigma_min = 1e-9")
    with pytest.raises(Refused, match="sigma_min"):
        check_accepted(none, 1, config)
    shared = spec_of(
        RING.replace("nodes = 4\nmin_nodes = 3", "nodes = 5").replace("sigma = 2.0", "sigma = 2.0\nshare = true")
    )
    assert noise_sigma(shared, 1) == pytest.approx(1.0)
    with pytest.raises(Refused, match=r"sigma_min: .* 1,"):
        check_accepted(shared, 1, configured(accept="sigma_min = 1.5"))
    with pytest.raises(Refused, match="randomized_response"):
        check_accepted(spec_of(HISTOGRAM), 1, config)


def test_the_owner_reads_what_counts() -> None:
    shown = "\n".join(describe(spec_of(SUM), 1, "abcd"))
    for word in ("abcd", "walk.sum", "3 to 4 nodes", "complete", "gaussian", "deviation 2,", "delta 1e-06", "[0, 1]"):
        assert word in shown
    assert "epsilon 1 a contribution" in "\n".join(describe(spec_of(HISTOGRAM), 1, "abcd"))
    none = spec_of(SUM.replace('"gaussian"\nsigma = 2.0', '"none"'))
    assert "noise none at all" in "\n".join(describe(none, 1, "abcd"))


def test_offers_of_another_version_or_transport_are_refused() -> None:
    assert offered_spec(SUM) == spec_of(SUM)
    for text in ("rubbish", SUM.replace("hops", "hopps"), SUM + "[new]\n"):
        with pytest.raises(Refused, match="version"):
            offered_spec(text)
    check_can_run(spec_of(SUM.replace("min_nodes = 3", 'transport = "mqtt"')))
    with pytest.raises(UsageError, match="memory"):
        check_can_run(spec_of(SUM.replace("min_nodes = 3", 'transport = "memory"')))


def test_the_size_of_a_value() -> None:
    assert [spec_dimensions(spec_of(text)) for text in (SUM, HISTOGRAM, TABLE)] == [1, 1, 2]
    assert spec_dimensions(spec_of(TABLE.replace('columns = ["a", "b"]\n', ""))) is None


def test_rows_are_the_owner_s_whole_file_within_the_run_s_bounds(configured: Configure) -> None:
    data = own_data(spec_of(TABLE), configured('kind = "csv"\npath = "own.csv"'))
    assert data.dimensions == 2
    assert data.user(4, 3).rows.tolist() == [[0.25, 1.0], [0.5, 0.75]]
    picked = own_data(spec_of(SUM), configured('kind = "csv"\npath = "own.csv"\ncolumns = ["a"]\nclip = [0, 1]'))
    assert picked.user(4, 0).rows.tolist() == [0.25, 0.5]
    counted = own_data(spec_of(HISTOGRAM), configured('kind = "csv"\npath = "one.csv"'))
    assert counted.user(4, 1).rows.tolist() == [1, 0, 2]


def test_directions_are_made_of_the_owner_s_rows(configured: Configure) -> None:
    text = SUM.replace("walk.sum", "shuffle.all").replace('[walk]\norder = "random"\nhops = 9', "[shuffle]\nrounds = 3")
    text = text.replace('"gaussian"\nsigma = 2.0', '"privunit"\nepsilon = 2.0')
    text = text.replace('"uniform"\nclip = [0.0, 1.0]', '"unit_mixture"\n[task]\nkind = "mean"')
    assert spec_dimensions(spec_of(text)) == 200
    file = text.replace('"unit_mixture"', '"csv"\npath = "theirs.csv"\nunit_norm = true\ncolumns = ["a", "b"]')
    rows = own_data(spec_of(file), configured('kind = "csv"\npath = "own.csv"')).user(4, 3).rows
    np.testing.assert_allclose(rows, [[0.25 / 9.0625**0.5, 3.0 / 9.0625**0.5], [0.5547002, 0.8320503]])
    with pytest.raises(UsageError, match="unit_norm"):
        own_data(spec_of(file), configured('kind = "csv"\npath = "own.csv"\nunit_norm = false'))


def test_made_up_rows_are_those_of_the_user_in_a_local_run(configured: Configure) -> None:
    data = own_data(spec_of(SUM), configured())
    assert data.user(4, 2).rows.tolist() != data.user(4, 1).rows.tolist()
    assert data.user(4, 2).rows.tolist() == data.user(3, 2).rows.tolist()


@pytest.mark.parametrize(
    ("text", "data", "says"),
    [
        (SUM, 'kind = "csv"\npath = "own.csv"', "columns: "),
        (TABLE, 'kind = "csv"\npath = "one.csv"', "the run's values have 2"),
        (SUM, 'kind = "csv"\npath = "absent.csv"', "absent.csv"),
        (SUM, 'kind = "csv"', "[data] path: missing"),
        (SUM, 'kind = "uniform"\ncolumns = ["a"]', "[data] columns"),
        (SUM, 'kind = "uniform"\nclip = [0, 2]', "clip: is [0, 2], and the run's is [0, 1]"),
        (SUM, 'kind = "categories"', "[data] kind"),
        (HISTOGRAM, 'kind = "uniform"', "[data] kind"),
        (HISTOGRAM, 'kind = "categories"\nclip = [0, 1]', "the run's is none"),
        (HISTOGRAM, 'kind = "csv"\npath = "own.csv"', "one column"),
    ],
)
def test_rows_that_do_not_fit_are_the_owner_s_mistake(configured: Configure, text: str, data: str, says: str) -> None:
    config = configured(data)
    with pytest.raises(UsageError) as caught:
        own_data(spec_of(text), config)
    assert says in str(caught.value)
    assert str(caught.value).startswith(str(config.path))


def credentials(spec: Spec, n: int = 4, neighbours: tuple[Peer, ...] | None = None, **facts: int | str) -> Credentials:
    def entry(peer: Peer) -> RosterEntry:
        return sign_entry(identity(peer), RUN_ID, run_key(peer).public)

    roster = sign_roster(
        identity(BOOTSTRAP),
        run_id=RUN_ID,
        spec_digest=spec_digest(spec),
        protocol="walk.sum",
        facts={"n": n, "dimensions": 1, "sampler": "exact"} | facts,
        bootstrap=entry(BOOTSTRAP),
        curator=entry(CURATOR),
        entries=[entry(user) for user in range(n)],
    )
    return Credentials(1, roster, identity(1), run_key(1), neighbours)


def test_facts_that_do_not_fit_the_spec_are_refused(configured: Configure) -> None:
    spec, config = spec_of(SUM), configured()
    data = own_data(spec, config)
    for n in (3, 4):
        check_seat(credentials(spec, n), spec, data, config)
    for wrong in (
        credentials(spec, n=2),
        credentials(spec, n=5),
        credentials(spec, sampler="fast"),
        credentials(spec_of(TABLE)),
    ):
        with pytest.raises(Refused):
            check_seat(wrong, spec, data, config)
    signed = credentials(spec, 3)
    object.__setattr__(signed.roster, "facts", tuple((dict(signed.roster.facts) | {"n": 4}).items()))
    with pytest.raises(Refused, match="does not fit"):
        check_seat(signed, spec, data, config)
    with pytest.raises(UsageError, match="the run's values have 2"):
        check_seat(credentials(spec, dimensions=2), spec, data, config)


@pytest.mark.parametrize(
    ("pinned", "neighbours", "stranger"),
    [([0, 2, 3], None, None), ([0, 2], None, 3), ([0, 2], (0, 2), None), ([2], (0, 2), 0), ([], (), None)],
)
def test_pinned_peers(
    configured: Configure, pinned: list[Peer], neighbours: tuple[Peer, ...] | None, stranger: Peer | None
) -> None:
    names = ", ".join(f'"{identity(peer).public.hex()}"' for peer in pinned)
    spec, config = spec_of(SUM), configured(accept=f"peers = [{names}]")
    given = credentials(spec, neighbours=neighbours)
    if stranger is None:
        check_seat(given, spec, own_data(spec, config), config)
        return
    with pytest.raises(Refused, match=f"user {stranger} has the identity {identity(stranger).public.hex()}"):
        check_seat(given, spec, own_data(spec, config), config)


LEARN = (
    SUM.replace("walk.sum", "walk.sgd").replace(
        'kind = "uniform"\nclip = [0.0, 1.0]', 'kind = "csv"\npath = "theirs.csv"\ntarget = "b"\nrule = "> 1"'
    )
    + 'unit_norm = true\n[task]\nkind = "logistic_regression"\nclip = 0.5\nrate = 0.1\n'
)


def test_learning_is_accepted_by_the_noise_and_length_of_gradients(configured: Configure) -> None:
    spec = spec_of(LEARN)
    assert noise_sigma(spec, 2) == 2.0
    assert "clipped to [-0.5, 0.5]" in describe(spec, 2, "k")[-1]
    check_accepted(spec, 2, configured(accept="sigma_min = 1.9\nclip = [-1.0, 1.0]"))
    with pytest.raises(Refused, match=r"clip: .*\[-0.5, 0.5\]"):
        check_accepted(spec, 2, configured(accept="clip = [-0.4, 1.0]"))
    with pytest.raises(Refused, match="sigma_min"):
        check_accepted(spec, 2, configured(accept="sigma_min = 2.1"))
    by_epsilon = spec_of(LEARN.replace("sigma = 2.0", "epsilon = 1.0\ndelta = 1e-5"))
    assert noise_sigma(by_epsilon, 2) == pytest.approx(3.7306316348159)


def test_an_own_table_is_made_into_features_as_everybodys_is(configured: Configure, tmp_path: Path) -> None:
    spec = spec_of(LEARN)
    found = own_data(spec, configured(f'kind = "csv"\npath = "{tmp_path}/own.csv"'))
    assert found.dimensions == 2
    rows = found.user(4, 1)
    assert rows.features.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert rows.targets.tolist() == [1.0, -1.0]
    assert spec_dimensions(spec) is None
    assert spec_dimensions(spec_of(LEARN.replace('rule = "> 1"', 'rule = "> 1"\ncolumns = ["a"]'))) == 2
    with pytest.raises(UsageError, match="rule: "):
        own_data(spec, configured(f'kind = "csv"\npath = "{tmp_path}/own.csv"\nrule = "> 2"'))


def test_an_objective_that_only_its_owner_knows_is_no_run_across_machines() -> None:
    text = LEARN.replace('"logistic_regression"', '"own"')
    with pytest.raises(Refused, match=r"\[task\] kind: "):
        offered_spec(text)


TORCH = LEARN.replace('"logistic_regression"', '"torch"\nmodel = "p2pdp.tasks.torch_models:two_features"\nloss = "bce"')


def test_code_that_a_spec_names_is_accepted_by_its_digest_or_not_loaded(configured: Configure) -> None:
    spec = offered_spec(TORCH)
    digest, data = model_code(spec.task), 'kind = "csv"\npath = "own.csv"'
    check_code(spec, configured(data, f'model = "{digest}"'))
    check_code(offered_spec(LEARN), configured(data))
    for accept, words in (("", f'missing; .* model = "{digest}"'), (f'model = "sha256:{"0" * 64}"', f"is {digest}")):
        with pytest.raises(Refused, match=f"accept. model: .*{words}"):
            own_data(spec, configured(data, accept))
    assert digest in " ".join(describe(spec, 3, "00"))
    with pytest.raises(UsageError, match=r"\[accept\] model: must be"):
        configured(data, 'model = "sha256:12"')


def test_the_signed_code_and_start_are_those_of_this_machine(configured: Configure) -> None:
    torch_here()
    spec = offered_spec(TORCH.replace('rule = "> 1"', 'rule = "> 1"\ncolumns = ["a", "b"]'))
    digest = model_code(spec.task)
    config = configured('kind = "csv"\npath = "three.csv"\ntarget = "y"', f'model = "{digest}"')
    (config.path.parent / "three.csv").write_text("a,b,y\n1,2,3\n2,1,0\n")
    data = own_data(spec, config)
    assert data.dimensions == 3
    assert data.start is not None
    facts = {"dimensions": 3, "model": digest, "start": data.start}
    for wrong, words in (({"model": "sha256:"}, "the code"), ({"start": "sha256:"}, "does not start")):
        with pytest.raises(Refused, match=words):
            check_seat(credentials(spec, **{**facts, **wrong}), spec, data, config)


def test_nothing_is_divided_across_machines(configured: Configure) -> None:
    text = LEARN.replace('rule = "> 1"', 'rule = "> 1"\npartition = "by"\ncolumn = "a"')
    with pytest.raises(Refused, match=r"\[data\] partition: .* own"):
        offered_spec(text)
    with pytest.raises(UsageError, match="partition: all rows"):
        own_data(spec_of(LEARN), configured('kind = "csv"\npath = "own.csv"\npartition = "by"\ncolumn = "a"'))


def test_what_is_clipped_is_known_to_the_owner_by_column(configured: Configure) -> None:
    data = own_data(spec_of(TABLE), configured('kind = "csv"\npath = "own.csv"'))
    assert [(one.column, one.clipped, one.rows) for one in data.moved] == [("b", 1, 2)]
    assert own_data(spec_of(SUM), configured()).moved == ()


def test_neighbours_are_those_of_the_signed_graph() -> None:
    spec = spec_of(SUM)
    path = SimpleNamespace(graph=SimpleNamespace(neighbours=[(1,), (0, 2), (1, 3), (2,)]))
    check_neighbours(credentials(spec, neighbours=(0, 2)), cast("RunPlan", path))
    check_neighbours(credentials(spec, neighbours=(0,)), cast("RunPlan", SimpleNamespace(graph=None)))
    for named in ((0,), (0, 3), (0, 2, 3), None):
        with pytest.raises(Refused, match="neighbours"):
            check_neighbours(credentials(spec, neighbours=named), cast("RunPlan", path))


def test_the_owner_reads_the_purpose_that_bootstrap_states() -> None:
    purpose = spec_of(SUM.replace("[run]", '[run]\npurpose = "mean pay"'))
    assert "mean pay" in "\n".join(describe(purpose, 1, "abcd"))
    assert "purpose" not in "\n".join(describe(spec_of(SUM), 1, "abcd"))
