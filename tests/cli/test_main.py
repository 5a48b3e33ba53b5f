from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2pdp
from p2pdp import api
from p2pdp.cli.main import main
from tests.support.gossip_specs import gossip
from tests.support.small import ALL, BARE, COMPLETE, HISTOGRAM, RING, SPARSE, contents, recorded, spec_file
from tests.support.sources import TOP

RESULT_FIELDS = set(
    "run_id protocol transport nodes seeded seed started seconds startup_seconds private_kept messages bytes hops "
    "estimate standard_error truth error outputs baselines missing faults headline worst".split()
)
CLAIM_FIELDS = set(
    "observer unit relation delta method conditioning epsilon_max epsilon_mean mu_max mu_mean worst_pair bound "
    "violated_pairs assumptions".split()
)
LINE_FIELDS = set("node index kind peer type token step values digest".split())
KINDS = {"received", "sent", "own", "published", "drawn"}
COMMANDS = "attack simulate verify audit views export keygen sweep".split()

Ran = tuple[int, str, str]
Command = Callable[..., Ran]


@pytest.fixture
def p2pdp_command(capsys: pytest.CaptureFixture[str]) -> Iterator[Command]:
    """The command line in this process: exit code, standard output, error stream."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def run(*arguments: object) -> Ran:
        capsys.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = int(stop.code or 0)
        said = capsys.readouterr()
        return code, said.out, said.err

    yield run
    for number, handler in before.items():
        signal.signal(number, handler)


def fails(ran: Ran, code: int, *words: str) -> None:
    """One line on the error stream, with these words, and this exit code."""
    assert ran[0] == code, ran
    assert ran[2].startswith("p2pdp: ")
    assert ran[2].count("\n") == 1
    for word in words:
        assert word in ran[2]


# What has no run


def test_version_and_help_work_everywhere(p2pdp_command: Command) -> None:
    assert p2pdp_command("--version") == (0, f"p2pdp {p2pdp.__version__}\n", "")
    code, out, err = p2pdp_command("--help")
    assert (code, err) == (0, "")
    assert all(name in out for name in COMMANDS)
    assert "..." not in out.partition("Commands:")[2], "a command's help is cut off at 80 columns"
    for name in COMMANDS:
        code, out, err = p2pdp_command(name, "--help")
        assert (code, err) == (0, "")
        assert f"p2pdp {name}" in out


def test_help_and_version_load_nothing_heavy() -> None:
    script = (
        "import sys\nfrom p2pdp.cli.main import main\nmain(['--help'])\nmain(['--version'])\n"
        "assert not {'numpy', 'scipy', 'networkx', 'nacl', 'rich'} & set(sys.modules), sorted(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=TOP, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_command_shows_the_help(p2pdp_command: Command) -> None:
    code, out, err = p2pdp_command()
    assert (code, out) == (2, "")
    assert "simulate" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing"],
        ["--nothing"],
        ["simulate"],
        ["simulate", "{spec}", "--nothing"],
        ["simulate", "{spec}", "more"],
        ["simulate", "{spec}", "--trials", "many"],
        ["simulate", "{spec}", "--trials", "0"],
        ["simulate", "{spec}", "--trials=-1"],
        ["simulate", "{spec}", "--trials", "2", "--workers", "0"],
        ["simulate", "{spec}", "--fast", "--no-audit"],
        ["simulate", "{spec}", "--set"],
        ["simulate", "{spec}", "--set", "run.nodes"],
        ["simulate", "{spec}", "--set", "run.nods=3"],
        ["simulate", "{spec}", "--set", "runs.nodes=3"],
        ["simulate", "{spec}", "--set", "run.nodes=three"],
        ["simulate", "{spec}", "--set", "run.nodes=-3"],
        ["simulate", "{spec}", "--set", "noise.sigma=nan"],
        ["simulate", "{spec}", "--set", 'run.protocol="gossip.average"'],
        ["simulate", "{folder}/none.toml"],
        ["simulate", "{folder}"],
        ["simulate", "{folder}/bytes"],
        ["simulate", "{folder}/not.toml"],
        ["simulate", "{spec}", "--out", "{spec}"],
        ["simulate", "{spec}", "--out", "{spec}/below"],
        ["simulate", "{spec}", "--out", "{folder}"],
        ["simulate", "{spec}", "--out", "/proc/p2pdp"],
        ["verify", "{folder}/none"],
        ["verify", "{folder}"],
        ["verify", "{spec}"],
        ["verify", "/dev/null"],
        ["audit", "{folder}/none"],
        ["audit", "{folder}"],
        ["audit", "{spec}", "--json"],
        ["views", "{folder}/none"],
        ["views", "{folder}"],
        ["views", "{spec}"],
        ["export", "{folder}", "--out", "{folder}/x"],
        ["export", "{folder}/none", "--out", "{folder}/x"],
        ["export", "{folder}"],
        ["keygen"],
        ["keygen", "--out", "{spec}"],
        ["keygen", "--out", "{spec}/below"],
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_code_2(
    arguments: list[str], tmp_path: Path, p2pdp_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bytes").write_bytes(bytes(range(256)))
    (tmp_path / "not.toml").write_text("[run\nnodes = ")
    places = {"spec": spec_file(tmp_path), "folder": tmp_path}
    before = contents(tmp_path)
    ran = p2pdp_command(*(argument.format(**places) for argument in arguments))
    fails(ran, 2)
    assert ran[1] == ""
    assert contents(tmp_path) == before


def test_a_graph_that_does_not_exist_for_this_n_is_exit_code_3(tmp_path: Path, p2pdp_command: Command) -> None:
    spec = spec_file(tmp_path, COMPLETE)
    fails(p2pdp_command("simulate", spec, "--out", tmp_path / "run", "--set", 'graph.kind="hypercube"'), 3)
    assert not (tmp_path / "run").exists()


def test_an_error_stays_one_line_whatever_it_quotes(tmp_path: Path, p2pdp_command: Command) -> None:
    fails(p2pdp_command("verify", tmp_path / "two\nlines\x1b[31m\udc80"), 2, r"two\nlines\x1b[31m\udc80")


# simulate


def test_an_audit_can_be_left_for_later(tmp_path: Path, p2pdp_command: Command) -> None:
    place = tmp_path / "run"
    code, out, err = p2pdp_command("simulate", spec_file(tmp_path), "--out", place, "--no-audit", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["headline"] is None
    assert not (place / "audit.json").exists()
    assert p2pdp_command("audit", place, "--save")[0] == 0
    assert (place / "audit.json").exists()


@pytest.mark.parametrize("name", ALL)
def test_simulate_prints_the_result_and_nothing_else(name: str, tmp_path: Path, p2pdp_command: Command) -> None:
    code, out, err = p2pdp_command("simulate", spec_file(tmp_path, ALL[name]), "--out", tmp_path / "run", "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    stored = json.loads((tmp_path / "run" / "result.json").read_text())
    assert set(stored) == RESULT_FIELDS
    assert document == stored | {"folder": str(tmp_path / "run")}
    files = set(contents(tmp_path / "run"))
    assert {"spec.toml", "roster.json", "result.json", "audit.json"} <= files
    assert {"curator/view.ledger", "curator/bootstrap/view.ledger"} <= files
    for user in range(document["nodes"]):
        assert {f"nodes/{user:04d}/view.ledger", f"nodes/{user:04d}/private.ledger"} <= files
    assert all((tmp_path / "run" / file).stat().st_mode & 0o777 == 0o600 for file in files if file.endswith(".ledger"))


def test_without_out_the_folder_is_named_after_the_run(
    tmp_path: Path, p2pdp_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    document = json.loads(p2pdp_command("simulate", spec_file(tmp_path), "--json")[1])
    assert document["folder"] == f"p2pdp-{document['run_id']}"
    assert json.loads((tmp_path / document["folder"] / "result.json").read_text())["run_id"] == document["run_id"]
    fails(p2pdp_command("simulate", tmp_path / "spec.toml"), 2, "not empty", document["folder"])


def test_the_same_spec_and_seed_give_the_same_bytes(tmp_path: Path, p2pdp_command: Command) -> None:
    spec = spec_file(tmp_path, COMPLETE)
    for name in ("one", "two"):
        assert p2pdp_command("simulate", spec, "--out", tmp_path / name)[0] == 0
    assert p2pdp_command("simulate", spec, "--out", tmp_path / "other", "--set", "run.seed=6")[0] == 0
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert contents(tmp_path / "one")["roster.json"] != contents(tmp_path / "other")["roster.json"]


def test_trial_i_is_the_run_on_seed_plus_i(tmp_path: Path, p2pdp_command: Command) -> None:
    spec = spec_file(tmp_path, COMPLETE)
    code, out, _ = p2pdp_command("simulate", spec, "--trials", 3, "--out", tmp_path / "run", "--json")
    assert code == 0
    document = json.loads(out)
    assert set(document) == RESULT_FIELDS | {"folder", "trials"}
    for number, trial in enumerate(document["trials"]):
        seed = f"run.seed={5 + number}"
        alone = p2pdp_command("simulate", spec, "--set", seed, "--out", tmp_path / f"{number}", "--json")
        assert trial == {name: json.loads(alone[1])[name] for name in ("estimate", "truth", "error")}
    plain = contents(tmp_path / "0")
    with_trials = contents(tmp_path / "run")
    assert {name for name in plain if plain[name] != with_trials[name]} == {"result.json"}
    assert json.loads(with_trials["result.json"]) == {n: v for n, v in document.items() if n != "folder"}


@pytest.mark.parametrize("name", ALL)
def test_fast_gives_the_same_fields(name: str, tmp_path: Path, p2pdp_command: Command) -> None:
    spec = spec_file(tmp_path, ALL[name])
    code, out, err = p2pdp_command("simulate", spec, "--fast", "--trials", 4, "--out", tmp_path / "run", "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert set(document) == RESULT_FIELDS | {"folder", "trials"}
    assert set(contents(tmp_path / "run")) == {"spec.toml", "result.json"}
    assert document["baselines"] == {"local": {"standard_error": None}, "central": {"standard_error": None}}
    fails(p2pdp_command("audit", tmp_path / "run"), 2, "--fast")
    assert p2pdp_command("simulate", spec, "--fast", "--out", tmp_path / "again")[0] == 0


def test_names_are_not_read_as_markup(tmp_path: Path, p2pdp_command: Command) -> None:
    place = tmp_path / "[red]x[/oops]\x1b[31m"
    code, out, err = p2pdp_command("simulate", spec_file(tmp_path), "--out", place)
    assert (code, err) == (0, "")
    assert "[red]x[/oops]\\x1b[31m" in out
    assert "\x1b" not in out
    assert p2pdp_command("audit", place)[0] == 0


def test_an_interrupt_is_exit_code_130(tmp_path: Path, p2pdp_command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        monkeypatch.setattr(api, "simulate", lambda *_, number=number, **__: signal.raise_signal(number))
        fails(p2pdp_command("simulate", spec_file(tmp_path), "--out", tmp_path / "run"), 130, "interrupted")


def test_a_full_disk_is_exit_code_6(tmp_path: Path, p2pdp_command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    spec = spec_file(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("p2pdp.files.folder.os.open", full)
        fails(p2pdp_command("simulate", spec, "--out", tmp_path / "run"), 6, "No space left")
        fails(p2pdp_command("keygen", "--out", tmp_path / "keys"), 6, "No space left")
    opened = Path.open
    monkeypatch.setattr(
        Path,
        "open",
        lambda path, mode="r", *more, **named: (full if "w" in mode else opened)(path, mode, *more, **named),
    )
    fails(p2pdp_command("simulate", spec, "--out", tmp_path / "other"), 6, "No space left")


def process(out: int, *arguments: object) -> tuple[int, str]:
    """The command in a process of its own, writing to this descriptor."""
    command = [sys.executable, "-m", "p2pdp", *map(str, arguments)]
    done = subprocess.run(command, cwd=TOP, stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("command", ["views", "audit"])
def test_who_reads_the_output_may_stop_or_fail(command: str, tmp_path: Path) -> None:
    place = recorded(tmp_path)
    reader, writer = os.pipe()
    os.close(reader)
    assert process(writer, command, place) == (0, "")
    os.close(writer)
    with Path("/dev/full").open("w") as full:
        code, said = process(full.fileno(), command, place)
    fails((code, "", said), 6, "standard output")


def test_what_failed_elsewhere_is_not_called_standard_output(
    p2pdp_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(api, "simulate", full)
    code, _, said = p2pdp_command("simulate", spec_file(tmp_path), "--out", tmp_path / "run")
    assert (code, said) == (6, "p2pdp: No space left on device\n")


def test_numbers_that_are_none_are_refused_in_plain_words(p2pdp_command: Command, tmp_path: Path) -> None:
    spec = spec_file(tmp_path)
    fails(p2pdp_command("simulate", spec, "--trials", "many"), 2, "'--trials': must be a whole number (")
    fails(p2pdp_command("plan", spec, "--target-epsilon", "small"), 2, "'--target-epsilon': must be a number (")


def test_short_help_works_everywhere(p2pdp_command: Command) -> None:
    for words in ((), ("plan",), ("bench",), ("bench", "hops")):
        assert p2pdp_command(*words, "-h") == p2pdp_command(*words, "--help")


# verify, audit, views, export


def test_verify_says_what_it_found(tmp_path: Path, p2pdp_command: Command) -> None:
    place = recorded(tmp_path)
    code, out, _ = p2pdp_command("verify", place, "--json")
    document = json.loads(out)
    assert code == 0
    assert set(document) == {"run_id", "verified", "records", "problems", "digests", "not_checked"}
    assert (document["verified"], document["problems"]) == ("complete", [])
    assert document["run_id"] == json.loads((place / "result.json").read_text())["run_id"]
    shown = p2pdp_command("verify", place)[1]
    assert shown.startswith(f"complete: {document['records']} records")
    roster, digests = json.loads((place / "roster.json").read_text()), document["digests"]
    assert (digests["spec"], digests["roster"]) == (roster["spec_digest"], roster["digest"])
    assert (digests["bootstrap"], digests["signature"]) == (roster["bootstrap"]["identity"], roster["signature"])
    page = (place / "report.html").read_text()
    for name in ("spec", "roster", "bootstrap", "signature", "ledgers"):
        assert digests[name] in shown
        assert digests[name] in page
    assert all(end in page for end in digests["of"].values())


@pytest.mark.parametrize("file", ["nodes/0002/view.ledger", "curator/view.ledger", "nodes/0001/private.ledger"])
def test_an_altered_ledger_is_exit_code_4_and_named(file: str, tmp_path: Path, p2pdp_command: Command) -> None:
    path = recorded(tmp_path) / file
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    code, out, err = p2pdp_command("verify", tmp_path / "run", "--json")
    problems = json.loads(out)["problems"]
    owner = "curator" if "curator" in file else int(file[6:10])
    assert json.loads(out)["verified"] is None
    assert any(problem["node"] == owner for problem in problems)
    assert all(set(problem) == {"node", "index", "what"} for problem in problems)
    fails((code, out, err), 4)
    assert f"node {owner}" in p2pdp_command("verify", tmp_path / "run")[1]
    fails(p2pdp_command("audit", tmp_path / "run", "--allow-missing"), 4)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b'{"version": 1}', b"[" * 100_000, bytes(range(256)), b"null"]
)
@pytest.mark.parametrize("file", ["roster.json", "spec.toml", "nodes/0000/view.ledger", "curator/view.ledger"])
def test_files_of_any_content_never_make_it_fall_over(
    file: str, content: bytes, tmp_path: Path, p2pdp_command: Command
) -> None:
    place = recorded(tmp_path)
    (place / file).write_bytes(content)
    code, out, err = p2pdp_command("verify", place, "--json")
    fails((code, out, err), 4)
    assert json.loads(out)["problems"]
    fails(p2pdp_command("audit", place, "--json"), 4)
    fails(p2pdp_command("views", place), 4)
    assert p2pdp_command("export", place, "--out", tmp_path / "file")[0] in (0, 4)


def test_files_that_no_evidence_rests_on_may_have_any_content(tmp_path: Path, p2pdp_command: Command) -> None:
    place = recorded(tmp_path)
    for name in ("result.json", "audit.json"):
        (place / name).write_bytes(b"\xff")
    assert p2pdp_command("verify", place)[0] == 0
    assert p2pdp_command("audit", place)[0] == 0


def test_a_foreign_node_is_found(tmp_path: Path, p2pdp_command: Command) -> None:
    place = recorded(tmp_path)
    (place / "nodes" / "0017").mkdir()
    (place / "nodes" / "0017" / "view.ledger").write_bytes((place / "nodes" / "0003" / "view.ledger").read_bytes())
    code, out, _ = p2pdp_command("verify", place, "--json")
    assert code == 4
    assert 17 in [problem["node"] for problem in json.loads(out)["problems"]]
    (place / "nodes" / "0017").rename(place / "nodes" / "stranger")
    fails(p2pdp_command("verify", place), 4)


def test_one_ledger_left_of_a_run_is_not_a_whole_run(tmp_path: Path, p2pdp_command: Command) -> None:
    place = recorded(tmp_path)
    for path in place.rglob("view.ledger"):
        if "0001" not in str(path):
            path.unlink()
    fails(p2pdp_command("verify", place), 4)
    assert p2pdp_command("export", place, "--out", tmp_path / "file")[0] == 0
    fails(p2pdp_command("verify", tmp_path / "file"), 4)
    fails(p2pdp_command("audit", tmp_path / "file"), 4)


@pytest.mark.parametrize("name", ALL)
def test_the_audit_is_the_same_from_folder_and_file(name: str, tmp_path: Path, p2pdp_command: Command) -> None:
    place = recorded(tmp_path, ALL[name])
    (place / "audit.json").unlink()
    code, out, err = p2pdp_command("audit", place, "--json")
    assert (code, err) == (0, "")
    assert (place / "audit.json").read_text() == out
    document = json.loads(out)
    assert set(document) == {
        "run_id",
        "protocol",
        "nodes",
        "delta",
        "verified",
        "claims",
        "refusals",
        "headline",
        "worst",
    }
    assert all(set(claim) == CLAIM_FIELDS for claim in document["claims"])
    for claim in document["claims"]:
        for measure in ("epsilon", "mu"):
            most, mean = claim[f"{measure}_max"], claim[f"{measure}_mean"]
            assert most in (None, "inf") or mean is None or 0.0 <= mean <= most
    assert all(set(refusal) == {"observer", "method", "reason"} for refusal in document["refusals"])
    away = tmp_path / "away"
    away.mkdir()
    assert p2pdp_command("export", place, "--out", away / "file")[0] == 0
    assert p2pdp_command("audit", away / "file", "--json")[1] == out
    assert json.loads(p2pdp_command("verify", away / "file", "--json")[1])["verified"] == "complete"
    assert list(contents(away)) == ["file"]


def test_infinity_is_a_text(tmp_path: Path, p2pdp_command: Command) -> None:
    out = p2pdp_command("audit", recorded(tmp_path, BARE), "--json")[1]
    claims = json.loads(out, parse_constant=pytest.fail)["claims"]
    assert claims[0]["epsilon_max"] == "inf"


def test_delta_and_colluders_of_the_command_line_win(tmp_path: Path, p2pdp_command: Command) -> None:
    place = recorded(tmp_path)
    document = json.loads(p2pdp_command("audit", place, "--delta", "1e-3", "--colluders", "1, 3", "--json")[1])
    assert document["delta"] == 1e-3
    coalition = next(claim for claim in document["claims"] if claim["observer"] == "coalition")
    assert coalition["worst_pair"][1] == [1, 3]


@pytest.mark.parametrize("options", [["--delta", "1e-3"], ["--colluders", "1,3"]])
def test_other_questions_change_the_saved_audit_only_on_request(
    options: list[str], tmp_path: Path, p2pdp_command: Command
) -> None:
    place = recorded(tmp_path)
    before = contents(place)
    code, out, _ = p2pdp_command("audit", place, *options, "--json")
    assert code == 0
    assert contents(place) == before
    assert p2pdp_command("audit", place, *options, "--save", "--json")[:2] == (0, out)
    assert (place / "audit.json").read_text() == out
    assert contents(place)["report.html"] != before["report.html"]


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_an_audit_that_cannot_be_saved_is_printed_all_the_same(
    number: int, tmp_path: Path, p2pdp_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = recorded(tmp_path)
    document = (place / "audit.json").read_text()

    def unwritable(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    for name in ("write_text", "write_bytes", "touch", "mkdir", "unlink", "rename", "replace"):
        monkeypatch.setattr(Path, name, unwritable)
    code, out, err = p2pdp_command("audit", place, "--json")
    assert (code, out) == (0, document)
    assert os.strerror(number) in err
    assert p2pdp_command("audit", place)[0] == p2pdp_command("verify", place)[0] == 0
    code, out, _ = p2pdp_command("audit", place, "--save", "--json")
    assert (code, out) == (2 if number == errno.EACCES else 6, document)


def test_verify_writes_nothing(tmp_path: Path, p2pdp_command: Command) -> None:
    place = recorded(tmp_path)
    before = contents(place)
    assert p2pdp_command("verify", place)[0] == 0
    assert contents(place) == before


@pytest.mark.parametrize(
    "options",
    [
        *(["--delta", value] for value in ("0", "1", "2", "-1e-6", "nan", "inf", "small")),
        *([f"--colluders={value}"] for value in ("", "a", "1,,2", "1;2", "99", "-1", "1,1", "0,1,2,3", "1.0")),
        *(["--pairs", value] for value in ("{folder}/p", "{folder}/p.npy", "{folder}/none/p.npz", "{folder}/d.npz")),
    ],
)
def test_a_wrong_option_of_audit_is_exit_code_2(options: list[str], tmp_path: Path, p2pdp_command: Command) -> None:
    place = recorded(tmp_path)
    (tmp_path / "d.npz").mkdir()
    before = contents(tmp_path)
    fails(p2pdp_command("audit", place, *(option.format(folder=tmp_path) for option in options)), 2)
    assert contents(tmp_path) == before


def test_pairs_are_arrays_by_user_and_observer(tmp_path: Path, p2pdp_command: Command) -> None:
    place = recorded(tmp_path, COMPLETE)
    file = tmp_path / "pairs.npz"
    out = p2pdp_command("audit", place, "--pairs", file, "--colluders", "1,3", "--json")[1]
    node = next(claim for claim in json.loads(out)["claims"] if claim["observer"] == "node")
    with np.load(file, allow_pickle=False) as arrays:
        assert set(arrays) == {"mu", "leak", "epsilon", "epsilon_conditioning", "mu_coalition", "leak_coalition"}
        assert arrays["epsilon_conditioning"].shape == ()
        assert str(arrays["epsilon_conditioning"]) == "view"
        for name in ("mu", "leak", "epsilon"):
            assert arrays[name].shape == (5, 5)
            assert np.array_equal(np.isnan(arrays[name]), np.eye(5, dtype=bool))
        user, observer = node["worst_pair"]
        assert arrays["mu"][user, observer] == np.nanmax(arrays["mu"]) == node["mu_max"]
        assert np.allclose(arrays["leak"], (arrays["mu"] * 2.0) ** 2, rtol=1e-6, equal_nan=True)
        assert np.isnan(arrays["mu_coalition"]).tolist() == [False, True, False, True, False]
    assert list(contents(tmp_path / "run")).count("audit.json") == 1


def test_pairs_of_many_users_are_there_if_they_are_asked_for(
    tmp_path: Path, p2pdp_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, file = recorded(tmp_path, gossip(5, "ring")), tmp_path / "pairs.npz"
    expected = json.loads(p2pdp_command("audit", place, "--pairs", file, "--json")[1])
    monkeypatch.setattr("p2pdp.runs.memory.HELD_MAX", 4)
    assert json.loads(p2pdp_command("audit", place, "--pairs", tmp_path / "again.npz", "--json")[1]) == expected
    assert (tmp_path / "again.npz").read_bytes() == file.read_bytes()
    found = json.loads(p2pdp_command("audit", place, "--json")[1])
    assert found["headline"] == expected["headline"]
    assert [one["method"] for one in found["refusals"] if one["method"].startswith("published:")]


def test_an_audit_that_takes_much_memory_says_so_before_it_begins(
    tmp_path: Path, p2pdp_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = recorded(tmp_path, RING)
    assert "memory" not in p2pdp_command("audit", place, "--json")[2]
    monkeypatch.setattr("p2pdp.runs.memory.PROCESS_BYTES", 3 * 1024**3)
    monkeypatch.setattr("p2pdp.runs.memory.free_bytes", lambda: None)
    assert "p2pdp: this audit takes about 3.0 GiB of memory" in p2pdp_command("audit", place, "--json")[2].splitlines()


def test_where_nothing_is_exact_there_are_no_pairs(tmp_path: Path, p2pdp_command: Command) -> None:
    fails(p2pdp_command("audit", recorded(tmp_path, SPARSE), "--pairs", tmp_path / "pairs.npz"), 5, "--pairs")


def test_a_missing_ledger_is_named_or_allowed(tmp_path: Path, p2pdp_command: Command) -> None:
    place = recorded(tmp_path, COMPLETE)
    (place / "nodes" / "0003" / "view.ledger").unlink()
    fails(p2pdp_command("audit", place), 4, "node 3", "missing")
    fails(p2pdp_command("verify", place), 4)
    code, out, err = p2pdp_command("audit", place, "--allow-missing", "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["verified"] == "incomplete"
    assert any("user 3" in refusal["reason"] for refusal in document["refusals"])
    assert document["claims"]


def test_no_claim_at_all_is_exit_code_5(tmp_path: Path, p2pdp_command: Command) -> None:
    place = recorded(tmp_path, HISTOGRAM)
    for missing in ("nodes/0003", "nodes/0002", "curator"):
        (place / missing / "view.ledger").unlink()
    fails(p2pdp_command("audit", place, "--allow-missing"), 5)


@pytest.mark.parametrize("name", ALL)
def test_views_have_each_step_of_each_token_once(name: str, tmp_path: Path, p2pdp_command: Command) -> None:
    place = recorded(tmp_path, ALL[name])
    spec = p2pdp.load_spec(place / "spec.toml")
    steps = spec.options.hops or (spec.options.laps or 0) * spec.run.nodes
    code, out, err = p2pdp_command("views", place)
    assert (code, err) == (0, "")
    lines = [json.loads(line) for line in out.splitlines()]
    assert {"received", "sent", "published"} <= {line["kind"] for line in lines} <= KINDS
    assert all(set(line) == LINE_FIELDS for line in lines)
    assert all(line["values"] is None for line in lines if line["kind"] == "drawn")
    held = [line for line in lines if line["kind"] in ("received", "own") and line["type"] == "token"]
    expected = [(token, step) for token in range(spec.options.tokens) for step in range(1, steps + 1)]
    assert sorted((line["token"], line["step"]) for line in held) == expected
    for line in lines:
        if line["kind"] == "sent" and line["type"] == "token":
            assert any(
                (other["node"], other["peer"], other["token"], other["step"], other["values"], other["digest"])
                == (line["peer"], line["node"], line["token"], line["step"], line["values"], line["digest"])
                for other in held
            )


def test_values_are_the_token_before_this_users_contribution(tmp_path: Path, p2pdp_command: Command) -> None:
    """Without noise the values of steps are running sums of the contributions, in data units."""
    place = recorded(tmp_path, BARE)
    lines = [json.loads(line) for line in p2pdp_command("views", place)[1].splitlines()]
    held = sorted(
        (line for line in lines if line["kind"] in ("received", "own") and line["type"] == "token"),
        key=lambda line: line["step"],
    )
    total = next(line for line in lines if line["type"] == "total" and line["kind"] == "received")
    values = [line["values"][0] for line in held] + [total["values"][0]]
    added: dict[int, set[float]] = {}
    for line, before, after in zip(held, values, values[1:], strict=False):
        added.setdefault(line["node"], set()).add(round(after - before, 9))
    assert values[0] == 0.0
    assert all(len(amounts) == 1 for amounts in added.values())
    assert total["values"][0] == pytest.approx(json.loads((place / "result.json").read_text())["truth"], abs=1e-6)


def test_views_of_skeletons_have_no_values_and_the_same_digests(tmp_path: Path, p2pdp_command: Command) -> None:
    place = recorded(tmp_path, COMPLETE)
    assert p2pdp_command("export", place, "--out", tmp_path / "file")[0] == 0
    whole = [json.loads(line) for line in p2pdp_command("views", place)[1].splitlines()]
    bare = [json.loads(line) for line in p2pdp_command("views", tmp_path / "file")[1].splitlines()]
    assert bare == [line | {"values": None} for line in whole]
    assert any(line["values"] for line in whole)


def test_an_export_is_not_written_over_anything(tmp_path: Path, p2pdp_command: Command) -> None:
    place = recorded(tmp_path)
    document = json.loads(p2pdp_command("export", place, "--out", tmp_path / "file", "--json")[1])
    assert document == {"file": str(tmp_path / "file"), "skeletons": 6}
    before = (tmp_path / "file").read_bytes()
    fails(p2pdp_command("export", place, "--out", tmp_path / "file"), 2, "exists")
    fails(p2pdp_command("export", place, "--out", tmp_path / "none" / "file"), 2)
    fails(p2pdp_command("export", place, "--out", tmp_path), 2)
    assert (tmp_path / "file").read_bytes() == before
    assert p2pdp_command("export", tmp_path / "file", "--out", tmp_path / "again")[0] == 0
    assert (tmp_path / "again").read_bytes() == before


@pytest.mark.parametrize("cut", [0, 3, 16, 17, 40, -1])
def test_a_damaged_export_is_refused(cut: int, tmp_path: Path, p2pdp_command: Command) -> None:
    assert p2pdp_command("export", recorded(tmp_path), "--out", tmp_path / "file")[0] == 0
    data = (tmp_path / "file").read_bytes()
    (tmp_path / "file").write_bytes(data[:cut])
    fails(p2pdp_command("audit", tmp_path / "file"), 4 if len(data[:cut]) >= 16 else 2)
    fails(p2pdp_command("views", tmp_path / "file"), 4 if len(data[:cut]) >= 16 else 2)


# keygen


def test_keygen_makes_two_halves_and_never_overwrites(tmp_path: Path, p2pdp_command: Command) -> None:
    code, out, _ = p2pdp_command("keygen", "--out", tmp_path / "a" / "b", "--json")
    document = json.loads(out)
    assert (code, document["folder"]) == (0, str(tmp_path / "a" / "b"))
    secret = tmp_path / "a" / "b" / "identity.key"
    assert secret.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "a" / "b" / "identity.pub").read_text() == document["identity"] + "\n"
    assert secret.read_text().strip() not in out
    before = contents(tmp_path)
    fails(p2pdp_command("keygen", "--out", tmp_path / "a" / "b"), 2)
    assert contents(tmp_path) == before
    other = json.loads(p2pdp_command("keygen", "--out", tmp_path / "c", "--json")[1])
    assert other["identity"] != document["identity"]


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "p2pdp", "--version"], cwd=TOP, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, f"p2pdp {p2pdp.__version__}\n")


def test_the_ring_of_the_samples_reads_well(tmp_path: Path, p2pdp_command: Command) -> None:
    place = recorded(tmp_path, RING)
    out = p2pdp_command("audit", place)[1]
    assert "protection from other users, the curator and the public: epsilon" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80
