"""`artifact`: packs a run or a sweep for artifact evaluation, and repeats what was packed.

What may be in an artifact follows from who reads it: everybody. So there is no value, no private ledger, no key, no
name of a file or machine, and of live runs nothing that depends on the route, which is for the auditor (`--auditor`).
Noise of simulated runs follows from the seed: whoever has seed and estimate has the truth. Their data are generated, or
come from files that the caller declares public; then these are packed too, because a repetition needs them.

Guarantee: a simulated run is repeated before it is packed, and refused if it does not give the same bytes. A repetition
takes nothing from the artifact but spec, seed, public files and skeletons, and compares with the digests that are left.
"""

from __future__ import annotations

import csv
import io
import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from p2pdp.auditor.verify import excluded_in
from p2pdp.auditor.verify import verify as verify_evidence
from p2pdp.core.errors import Refused, UsageError, VerificationFailed
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.installed import versions
from p2pdp.core.spec import Spec
from p2pdp.core.version import VERSION
from p2pdp.crypto.identity import RunKey
from p2pdp.files.artifact import (
    FACTS_FILE,
    REPEAT_FILE,
    Files,
    check_out,
    digest_of,
    digests_in,
    has_ledgers,
    is_finished_run,
    is_sweep,
    unpack,
    write_artifact,
)
from p2pdp.files.folder import (
    AUDIT_FILE,
    PARTICIPANTS_FILE,
    REPORT_FILE,
    RESULT_FILE,
    SPEC_FILE,
    packed_export,
    read_document,
    read_evidence,
    to_json,
)
from p2pdp.files.keys import read_auditor_key
from p2pdp.files.reading import in_folder, read_plain
from p2pdp.files.reproduction import scratch_folder
from p2pdp.files.skeletons import handed_in_skeletons
from p2pdp.files.spec import elsewhere, load_spec, named_files, spec_digest, spec_to_toml
from p2pdp.files.sweep import DESCRIPTION_FILE, SweepFolder, SweepSpec, cell, description, points, read_sweep
from p2pdp.report.appendix import appendix
from p2pdp.report.result import Circumstances
from p2pdp.runs.audit import audit
from p2pdp.runs.costing import signed_plan
from p2pdp.runs.editions import edition_of
from p2pdp.runs.simulate import simulate_spec
from p2pdp.runs.sweep import SweepRun, runs_of

FORMAT: Final = 1
_LIBRARIES: Final = ("numpy", "scipy", "pynacl", "cryptography", "msgpack")
INPUTS: Final = "inputs/"
EXPECTED: Final = "expected/"
ROWS: Final = "rows.csv"
SKELETONS: Final = "run.p2pdp"
AUDITOR: Final = "auditor"
PUBLIC: Final = "public"
PATHS_IN: Final = frozenset({SPEC_FILE, REPORT_FILE})  # these two say where the files lie
_COLUMNS: Final = ("seed", "error", "standard_error", "epsilon", "worst_epsilon", "messages", "code")
_REPEAT: Final = """#!/bin/sh
# Checks this artifact, repeats what it holds and compares. README.md says what it needs.
set -eu
cd "$(dirname "$0")"
exec p2pdp artifact . --repeat "$@"
"""
_TIMES: Final = (
    (10.0, "some seconds"),
    (60.0, "less than a minute"),
    (600.0, "some minutes"),
    (3600.0, "up to an hour"),
)

Progress = Callable[[int, int], None]
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Artifact:
    """An artifact as it was written or repeated; `digest` names it, and `compared` counts what was found equal."""

    place: str
    kind: str
    edition: str
    digest: str
    files: list[str]
    compared: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Packed:
    facts: dict[str, Any]
    files: Files
    expected: list[tuple[str, str]]
    time: str


def make_artifact(
    place: Path,
    out: Path,
    *,
    auditor: bool,
    public_data: bool,
    key: Path | None,
    clock: Clock,
    progress: Progress | None = None,
) -> Artifact:
    """Pack the folder of a run or a sweep; `clock` tells seconds."""
    check_out(out)
    if is_sweep(place):
        packed = _of_sweep(place, public_data=public_data)
    elif is_finished_run(place):
        result = read_document(place, RESULT_FILE)
        if result.get("seeded"):
            packed = _of_simulated(place, result, clock, progress, public_data=public_data)
        else:
            packed = _of_live(place, result, None if key is None else read_auditor_key(key), auditor=auditor)
    else:
        raise UsageError(
            f"{place}: is neither the folder of a finished run nor that of a sweep; it lacks {RESULT_FILE}"
        )
    edition = AUDITOR if auditor and packed.facts["kind"] == "live" else PUBLIC
    facts = {"format": FORMAT, "edition": edition, **packed.facts, "versions": versions_here()}
    files = {**packed.files, FACTS_FILE: f"{to_json(facts)}\n".encode(), REPEAT_FILE: _REPEAT.encode()}
    text = appendix(facts, sorted(files), packed.expected, packed.time)
    files["README.md"] = text.encode()
    digest = write_artifact(out, files, secret=edition == AUDITOR)
    return Artifact(str(out), facts["kind"], edition, digest, sorted(files), len(facts.get("repeated", ())))


def versions_here() -> dict[str, str]:
    own = {"p2pdp": VERSION, "python": platform.python_version(), "platform": _platform()}
    return own | versions(_LIBRARIES)


def _platform() -> str:
    return f"{platform.system()} {platform.machine()}"


def _inputs(spec: Spec, *, public_data: bool) -> Files:
    """Return the files that a simulated run computes on, which the caller must declare public."""
    named = named_files(spec)
    if named and not public_data:
        raise Refused(
            f"{', '.join(path.name for path in named.values())}: noise of a simulated run follows from its seed, so an "
            "artifact gives away the values of these files; if they are public, say --public-data, which packs them too"
        )
    return {f"{INPUTS}{name}": read_plain(path) for name, path in named.items()}


# Simulated runs


def _of_simulated(
    place: Path, result: Mapping[str, Any], clock: Clock, progress: Progress | None, *, public_data: bool
) -> _Packed:
    spec = load_spec(place / SPEC_FILE)
    files = _inputs(spec, public_data=public_data)
    trials = result.get("trials")
    how = {
        "fast": not has_ledgers(place),
        "trials": None if trials is None else len(trials),
        "trace_wire": bool(result.get("traced")),
    }
    before_s = clock()
    made = simulated(spec, how, progress)
    took_s = clock() - before_s
    if files:
        made = {name: digest for name, digest in made.items() if name not in PATHS_IN}
    found = digests_in(place)
    differing = sorted(name for name, digest in made.items() if found.get(name) != digest)
    if differing:
        raise Refused(
            f"{place}: spec and seed do not give this run again ({listed(differing)}): it was made by another "
            "version, with faults or an objective of your own from Python, or changed later"
        )
    files[SPEC_FILE] = spec_to_toml(elsewhere(spec, INPUTS)).encode()
    if AUDIT_FILE in made:
        files[f"{EXPECTED}{AUDIT_FILE}"] = read_plain(in_folder(place, AUDIT_FILE))
    facts = {
        "kind": "simulated",
        **{name: result[name] for name in ("run_id", "protocol", "nodes", "seed")},
        "spec_digest": spec_digest(spec).hex(),
        "how": how,
        "repeated": made,
    }
    time = next((words for most_s, words in _TIMES if took_s < most_s), "hours")
    return _Packed(facts, files, _numbers(result), f"{time}, measured here when it was repeated to make this.")


def simulated(spec: Spec, how: Mapping[str, Any], progress: Progress | None) -> dict[str, str]:
    """Simulate, and return the digest of each file that this leaves."""
    with scratch_folder() as scratch:
        simulate_spec(
            spec,
            scratch / "run",
            how["trials"],
            fast=how["fast"],
            faults=None,
            progress=progress,
            trace_wire=how["trace_wire"],
        )
        return digests_in(scratch / "run")


def listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _numbers(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what may be told of a result or an edition: no truth, and no value of a single user."""
    rows = [(name.replace("_", " "), document.get(name)) for name in ("estimate", "standard_error")]
    told = [(label, str(value)) for label, value in rows if value is not None]
    for name in ("headline", "worst"):
        claim = document.get(name)
        if claim is not None:
            words = f"epsilon {claim['epsilon']} at delta {claim['delta']}, {claim['observer']}, {claim['method']}"
            told.append((name, f"{words}, {claim['conditioning']}: {claim['reading']}"))
    return told


# Live runs


def _of_live(place: Path, result: Mapping[str, Any], key: RunKey | None, *, auditor: bool) -> _Packed:
    evidence = read_evidence(place, key, sealed_too=auditor)
    if evidence.own is not None:
        raise UsageError(f"{place}: holds one node's part only; the artifact of a run is made where its curator was")
    checked = verify_evidence(evidence)
    if checked.verified is None and not checked.only_missing:
        raise VerificationFailed(f"{place}: is not verified; p2pdp verify {place} says why")
    text = spec_to_toml(elsewhere(evidence.spec, "")).encode()
    readable = evidence.spec.audit.key is None and bool(handed_in_skeletons(evidence.contents(CURATOR)))
    facts = {
        "kind": "live",
        "run_id": evidence.roster.run_id.hex(),
        "protocol": evidence.roster.protocol,
        "nodes": evidence.roster.n,
        "spec_digest": evidence.roster.spec_digest.hex(),
        "roster_digest": evidence.roster.digest.hex(),
    }
    if not auditor:
        signed = dict(evidence.roster.facts)
        missing = excluded_in(evidence.contents(BOOTSTRAP))
        around = around_of(evidence.roster.run_id.hex(), result.get("started"), missing)
        made = edition_of(signed_plan(evidence.spec, signed), evidence, around)
        made = replace(made, proof=None)  # digests are among the facts
        edition = to_json(made.to_json())
        facts |= {"signed": signed, "readable": readable}
        files = {SPEC_FILE: text, f"{EXPECTED}{PARTICIPANTS_FILE}": f"{edition}\n".encode()}
        return _Packed(facts, files, _numbers(json.loads(edition)), "seconds to a minute, for the claims in advance.")
    skeletons = packed_export(text.decode(), evidence)
    with scratch_folder() as scratch:
        unpack({SKELETONS: skeletons}, scratch, secret=True)
        claims = audited(scratch / SKELETONS)
    files = {SPEC_FILE: text, SKELETONS: skeletons, f"{EXPECTED}{AUDIT_FILE}": claims}
    expected = [("verified", str(checked.verified)), *_numbers(json.loads(claims))]
    took = result.get("seconds")
    itself = f"the run itself took {took:.1f} s; " if isinstance(took, float) else ""
    time = f"{itself}verification and audit take seconds to minutes."
    return _Packed(facts, files, expected, time)


def around_of(run_id: str, started: object, missing: list[Peer]) -> Circumstances:
    """Return what the participants' edition needs of a run: nothing that depends on the route."""
    return Circumstances(
        run_id=run_id,
        seeded=False,
        seed=None,
        started=started if isinstance(started, str) else None,
        bytes=None,
        missing=missing,
        faults={},
        private_kept=False,
    )


def audited(skeletons: Path) -> bytes:
    return f"{to_json(audit(skeletons, None, None, allow_missing=False).to_json())}\n".encode()


# Sweeps


def _of_sweep(place: Path, *, public_data: bool) -> _Packed:
    described = read_sweep(place / DESCRIPTION_FILE)
    if any(key.split(".")[1] in ("path", "password_file") for key in described.grid):
        raise UsageError(f"{place}: its grid varies over files, which an artifact cannot hold; pack one sweep for each")
    _, spec = next(points(described))
    files = _inputs(spec, public_data=public_data)
    rows = rows_in(SweepFolder(place), runs_of(described))
    missing = sum(row is None for row in rows.values())
    if missing:
        raise UsageError(f"{place}: {missing} rows are missing or of another version; run the same sweep again")
    files |= {name: content.encode() for name, content in description(described, INPUTS).items()}
    files[f"{EXPECTED}{ROWS}"] = table_of(described, rows)
    facts = {
        "kind": "sweep",
        "protocol": spec.run.protocol,
        "what": described.what,
        "repeated": {digest: row_digest(row or {}) for digest, row in sorted(rows.items())},
    }
    return _Packed(facts, files, [("runs", str(len(rows)))], f"that of {len(rows)} runs, on all cores.")


def rows_in(folder: SweepFolder, runs: Sequence[SweepRun]) -> dict[str, dict[str, Any] | None]:
    return {run.digest: folder.read(run.digest) for run in runs}


def table_of(described: SweepSpec, rows: Mapping[str, Mapping[str, Any] | None]) -> bytes:
    """Return what everybody may read of the rows, as CSV: neither estimates nor truths."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*described.grid, *_COLUMNS])
    for run in runs_of(described):
        told = {"seed": run.seed, **(rows[run.digest] or {})}
        writer.writerow([cell(value) for value in (*run.point.values(), *(told.get(name) for name in _COLUMNS))])
    return text.getvalue().encode()


def row_digest(row: Mapping[str, Any]) -> str:
    return digest_of(to_json(row).encode())
