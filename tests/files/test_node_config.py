from __future__ import annotations

from pathlib import Path

import pytest

from p2pdp.core.errors import UsageError
from p2pdp.crypto.tokens import JoinToken
from p2pdp.files.keys import write_identity
from p2pdp.files.node_config import Accept, Budget, NodeConfig, load_node_config

TOKEN = JoinToken("boot.example.org:7000", bytes(range(32)), bytes([7] * 16), 3)
NODE = '[node]\nidentity = "id/identity.key"\ntoken = "own.token"\nlisten = "0.0.0.0:0"\n'
DATA = '[data]\nkind = "csv"\npath = "rows/own.csv"\n'


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_identity(tmp_path / "id", bytes([1] * 32))
    (tmp_path / "own.token").write_text(TOKEN.to_text() + "\n")
    return tmp_path


def load(place: Path, text: str) -> NodeConfig:
    path = place / "node.toml"
    path.write_text(text)
    return load_node_config(path)


def test_a_small_configuration(place: Path) -> None:
    config = load(place, NODE + DATA)
    assert (config.token, config.listen) == (TOKEN, ("0.0.0.0", 0))  # noqa: S104
    assert config.data.path == str(place / "rows" / "own.csv")
    assert config.given == {"kind", "path"}
    assert (config.accept, config.budget, config.address) == (Accept(), None, None)


def test_a_whole_configuration(place: Path) -> None:
    (place / "pins").write_text(f"# friends\n{'ab' * 32} Ann\n\n{'cd' * 32}\n")
    config = load(
        place,
        NODE.replace('"own.token"', f'"{TOKEN.to_text()}"')
        + 'address = "[2001:db8::1]:7001"\n'
        + DATA
        + 'columns = ["a"]\nclip = [0, 1]\n'
        + '[accept]\nprotocols = ["walk.sum", "walk.histogram"]\nsigma_min = 0.5\nclip = [-1, 2]\npeers = "pins"\n'
        + '[budget]\nepsilon = 3\ndelta = 1e-5\nobserver = "node"\nledger = "spent"\n',
    )
    pins = frozenset({bytes([0xAB] * 32), bytes([0xCD] * 32)})
    assert config.accept == Accept(
        protocols=("walk.sum", "walk.histogram"), sigma_min=0.5, clip=(-1.0, 2.0), peers=pins
    )
    assert config.budget == Budget(3.0, 1e-5, "node", place / "spent")
    assert config.address == "[2001:db8::1]:7001"
    assert load(place, NODE + DATA + f'[accept]\npeers = ["{"ab" * 32}"]').accept.peers == {bytes([0xAB] * 32)}


def test_a_budget_has_defaults(place: Path) -> None:
    budget = load(place, NODE + DATA + "[budget]\nepsilon = 1\n").budget
    assert budget is not None
    assert (budget.epsilon, budget.delta, budget.observer) == (1.0, 1e-6, "network")
    assert budget.ledger == Path("~/.local/state/p2pdp/budget").expanduser()


def test_no_secret_is_shown(place: Path) -> None:
    shown = repr(load(place, NODE + DATA))
    assert "07" * 16 not in shown
    assert "01" * 32 not in shown


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[node", "TOML"),
        (DATA, "[node] is missing"),
        (NODE, "[data] is missing"),
        (NODE + DATA + "[acept]\n", 'did you mean "accept"'),
        (NODE + "lisen = 1\n" + DATA, 'did you mean "listen"'),
        (NODE + DATA + "colums = 1\n", 'did you mean "columns"'),
        (NODE + DATA + "[accept]\nsigma = 1\n", 'did you mean "sigma_min"'),
        (NODE + DATA + "[budget]\nepsilonn = 1\n", 'did you mean "epsilon"'),
        (NODE + DATA + "[budget]\ndelta = 0.1\n", "[budget] epsilon: missing"),
        (NODE.replace("listen", "#") + DATA, "[node] listen: missing"),
        (NODE.replace("identity", "#", 1) + DATA, "[node] identity: missing"),
        (NODE.replace("0.0.0.0:0", "everywhere") + DATA, "[node] listen: must read HOST:PORT"),
        (NODE + 'address = "0.0.0.0:7000"\n' + DATA, "[node] address: must be an address that others"),
        (NODE + 'address = "here:0"\n' + DATA, "[node] address"),
        (NODE.replace("own.token", "no.token") + DATA, "no.token"),
        (NODE.replace("own.token", "p2pdp1:here:1#aa") + DATA, "[node] token: this join token"),
        (NODE.replace("own.token", "node.toml") + DATA, "[node] token: not a join token"),
        (NODE.replace("id/identity.key", "id/other.key") + DATA, "other.key"),
        (NODE + "[data]\npath = 'x'\n", "[data] kind: missing"),
        (NODE + DATA + "[accept]\nsigma_min = inf\n", "[accept] sigma_min: must be finite"),
        (NODE + DATA + "[accept]\nsigma_min = 0\n", "[accept] sigma_min: must be above 0"),
        (NODE + DATA + "[accept]\nclip = [2, 1]\n", "[accept] clip"),
        (NODE + DATA + '[accept]\nprotocols = ["walk.sun"]\n', 'did you mean "walk.sum"'),
        (NODE + DATA + '[accept]\npeers = ["abcd"]\n', "[accept] peers: each must be"),
        (NODE + DATA + '[accept]\npeers = "nobody"\n', "nobody"),
        (NODE + DATA + "[budget]\nepsilon = nan\n", "[budget] epsilon: must be finite"),
        (NODE + DATA + '[budget]\nepsilon = 1\nobserver = "curator"\n', "[budget] observer"),
        ("node = 1\n" + DATA, "[node] must be a section"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(place: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(place, text)
    assert says in str(caught.value)
    assert str(caught.value).startswith(f"{place / 'node.toml'}:")


def test_a_token_whose_address_nobody_can_dial_is_refused(place: Path) -> None:
    token = JoinToken("nowhere", bytes(32), bytes(16), 0).to_text()
    with pytest.raises(UsageError, match="HOST:PORT"):
        load(place, NODE.replace("own.token", token) + DATA)


def test_a_configuration_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="absent"):
        load_node_config(tmp_path / "absent")


def test_the_sample_is_a_configuration(place: Path) -> None:
    sample = (Path(__file__).parents[2] / "deploy" / "samples" / "nodes" / "node.toml").read_text()
    (place / "id").rename(place / "identity")
    (place / "friends.txt").write_text("")
    for text in (sample, sample.replace("# address", "address").replace("# peers", "peers")):
        config = load(place, text)
        assert config.accept.protocols == ("walk.sum",)
        assert config.data.path == str(place / "own.csv")


def test_what_a_run_may_cost_and_be(place: Path) -> None:
    keys = (
        'mechanisms = ["gaussian", "none"]\nsampler = "exact"\nhops = 5\nlaps = 2\ntokens = 3\nrounds = 7\n'
        'epsilon = 0.5\nepsilon_max = 3\nobserver = "node"\ndelta = 1e-5\n'
    )
    assert load(place, NODE + DATA + "[accept]\n" + keys).accept == Accept(
        mechanisms=("gaussian", "none"),
        sampler="exact",
        hops=5,
        laps=2,
        tokens=3,
        rounds=7,
        epsilon=0.5,
        epsilon_max=3.0,
        observer="node",
        delta=1e-5,
    )
    bare = load(place, NODE + DATA + "[accept]\nepsilon_max = 2\n").accept
    assert (bare.observer, bare.delta) == ("network", 1e-3)
    assert load(place, NODE + DATA).accept.delta is None


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ('observer = "node"', "observer"),
        ('epsilon_max = 1\nobserver = "public"', "observer"),
        ("epsilon_max = 0", "epsilon_max"),
        ("hops = 0", "hops"),
        ("delta = 1", "delta"),
        ('mechanisms = ["gauss"]', "mechanisms"),
    ],
)
def test_a_limit_that_makes_no_sense_is_named(place: Path, keys: str, key: str) -> None:
    with pytest.raises(UsageError, match=rf"\[accept\] {key}"):
        load(place, NODE + DATA + "[accept]\n" + keys + "\n")


@pytest.mark.parametrize(
    ("address", "node", "more", "says"),
    [
        ("boot:7000", "", "", r"\[node\] listen: missing"),
        ("boot:7000", 'listen = "127.0.0.1:0"\n', '[transport]\nhost = "b"\n', r"\[transport\]: .* leave it out"),
        ("mqtt://b:1/r/s", 'listen = "127.0.0.1:0"\n', "", r"\[node\] listen: .* leave it out"),
        ("mqtt://b:1/r/s", 'address = "a:1"\n', "", r"\[node\] address: .* leave it out"),
        ("mqtt://b:1/r", "", "", r"\[node\] token: must read mqtts://"),
        ("http://b/r", "", "", r"\[node\] token: must read HOST:PORT"),
        ("mqtt://b:1/r/s", "", "[transport]\nusr = 1\n", 'did you mean "user"'),
    ],
)
def test_a_configuration_fits_its_token(place: Path, address: str, node: str, more: str, says: str) -> None:
    token = JoinToken(address, bytes(32), bytes(16), 3).to_text()
    with pytest.raises(UsageError, match=says):
        load(place, f'[node]\nidentity = "id/identity.key"\ntoken = "{token}"\n{node}[data]\nkind = "uniform"\n{more}')
