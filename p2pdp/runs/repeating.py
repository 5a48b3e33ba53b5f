"""Repeats an artifact (`runs/artifact.py`), and compares.

Guarantee: a repetition takes nothing from the artifact but spec, seed, public files, skeletons and what bootstrap
signed. All that it makes is compared with the digests and files that say what to expect.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from p2pdp.core.errors import NotReady, Refused, UsageError, VerificationFailed
from p2pdp.core.spec import Spec
from p2pdp.core.version import VERSION
from p2pdp.files.artifact import FACTS_FILE, Files, digest_of, read_artifact, unpack
from p2pdp.files.folder import AUDIT_FILE, PARTICIPANTS_FILE, SPEC_FILE, read_evidence, to_json
from p2pdp.files.reading import inside
from p2pdp.files.reproduction import scratch_folder
from p2pdp.files.spec import load_spec, named_files, parse_spec, spec_digest
from p2pdp.files.sweep import DESCRIPTION_FILE, SweepFolder, points, read_sweep
from p2pdp.protocols.contract import Estimate
from p2pdp.runs.artifact import (
    AUDITOR,
    EXPECTED,
    FORMAT,
    PATHS_IN,
    PUBLIC,
    ROWS,
    SKELETONS,
    Artifact,
    Progress,
    around_of,
    audited,
    listed,
    row_digest,
    rows_in,
    simulated,
    table_of,
    versions_here,
)
from p2pdp.runs.costing import signed_plan
from p2pdp.runs.editions import edition_in_advance
from p2pdp.runs.sweep import runs_of, sweep_runs

Digests = dict[str, str]


def repeat_artifact(place: Path, progress: Progress | None = None) -> Artifact:
    """Repeat what an artifact holds and compare; raise `VerificationFailed` where anything differs."""
    files, digest = read_artifact(place)
    facts = _facts_of(place, files)
    with scratch_folder() as scratch:
        unpack({name: data for name, data in files.items() if not name.startswith(EXPECTED)}, scratch, secret=True)
        try:
            wanted, made = _REPETITIONS[facts["kind"]](facts, files, scratch, progress)
        except (KeyError, TypeError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise VerificationFailed(f"{place}: {FACTS_FILE} is damaged ({type(error).__name__})") from None
        except UsageError as error:  # in what somebody else packed
            raise VerificationFailed(f"{place}: {error}") from None
    differing = sorted(name for name in wanted.keys() | made.keys() if wanted.get(name) != made.get(name))
    if differing:
        here = versions_here()
        others = [
            f"{name} {told} there, {here[name]} here"
            for name, told in facts["versions"].items()
            if here.get(name) not in (told, None)
        ]
        why = f"; versions differ: {', '.join(others)}" if others else ""
        raise VerificationFailed(f"{place}: the repetition differs in {listed(differing)}{why}")
    return Artifact(str(place), facts["kind"], facts["edition"], digest, sorted(files), len(made))


def _facts_of(place: Path, files: Files) -> dict[str, Any]:
    try:
        facts = json.loads(files[FACTS_FILE])
        known = facts["format"] == FORMAT and facts["kind"] in _REPETITIONS and facts["edition"] in (PUBLIC, AUDITOR)
        made_with = facts["versions"]["p2pdp"]
    except (ValueError, KeyError, TypeError):
        raise VerificationFailed(f"{place}: {FACTS_FILE} is damaged") from None
    if not known:
        raise VerificationFailed(f"{place}: is an artifact of another format")
    if made_with != VERSION:
        raise NotReady(f"{place}: was made with p2pdp {made_with}, and this is {VERSION}; install that version")
    return dict(facts)


def _repeat_simulated(
    facts: Mapping[str, Any], files: Files, scratch: Path, progress: Progress | None
) -> tuple[Digests, Digests]:
    spec = load_spec(scratch / SPEC_FILE)
    _check_inside(scratch, spec)
    made = simulated(spec, facts["how"], progress)
    wanted: Digests = dict(facts["repeated"])
    shown = files.get(f"{EXPECTED}{AUDIT_FILE}")
    if (shown is None) != (AUDIT_FILE not in wanted) or (shown is not None and digest_of(shown) != wanted[AUDIT_FILE]):
        raise VerificationFailed(f"{EXPECTED}{AUDIT_FILE} is not the audit whose digest {FACTS_FILE} has")
    if named_files(spec):
        made = {name: digest for name, digest in made.items() if name not in PATHS_IN}
    return {**wanted, "spec": facts["spec_digest"]}, {**made, "spec": spec_digest(spec).hex()}


def _repeat_live(
    facts: Mapping[str, Any], files: Files, scratch: Path, _progress: Progress | None
) -> tuple[Digests, Digests]:
    spec = parse_spec(files[SPEC_FILE].decode(), None)
    wanted, made = {"spec": facts["spec_digest"]}, {"spec": spec_digest(spec).hex()}
    if facts["edition"] == PUBLIC:
        name = f"{EXPECTED}{PARTICIPANTS_FILE}"
        again = _claims_again(facts, spec, json.loads(files[name]))
    else:
        name = f"{EXPECTED}{AUDIT_FILE}"
        evidence = read_evidence(scratch / SKELETONS)
        wanted["roster"], made["roster"] = facts["roster_digest"], evidence.roster.digest.hex()
        wanted["skeletons"], made["skeletons"] = facts["spec_digest"], evidence.spec_digest.hex()
        again = audited(scratch / SKELETONS)
    return {**wanted, name: digest_of(files[name])}, {**made, name: digest_of(again)}


def _repeat_sweep(
    facts: Mapping[str, Any], files: Files, scratch: Path, progress: Progress | None
) -> tuple[Digests, Digests]:
    described = read_sweep(scratch / DESCRIPTION_FILE)
    for _, spec in points(described):
        _check_inside(scratch, spec)
    sweep_runs(scratch / DESCRIPTION_FILE, scratch / "again", None, progress)
    rows, name = rows_in(SweepFolder(scratch / "again"), runs_of(described)), f"{EXPECTED}{ROWS}"
    made = {digest: row_digest(row or {}) for digest, row in rows.items()}
    return {**facts["repeated"], name: digest_of(files[name])}, {**made, name: digest_of(table_of(described, rows))}


def _check_inside(scratch: Path, spec: Spec) -> None:
    """Refuse a spec of somebody else's that names a file of this machine."""
    for name, path in named_files(spec).items():
        inside(scratch, path)
        if not path.is_relative_to(scratch):
            raise VerificationFailed(f"its spec names a file outside of the artifact for {name}")


def _claims_again(facts: Mapping[str, Any], spec: Spec, told: Mapping[str, Any]) -> bytes:
    """Compute the claims in advance again, for the plan that bootstrap signed."""
    try:
        run = signed_plan(spec, facts["signed"])
    except Refused as error:
        raise VerificationFailed(str(error)) from None
    edition = edition_in_advance(
        run,
        around_of(facts["run_id"], told["started"], told["missing"]),
        Estimate(told["estimate"], told["standard_error"]),
        readable=facts["readable"],
    )
    return f"{to_json(edition.to_json())}\n".encode()


_REPETITIONS: Final = {"simulated": _repeat_simulated, "live": _repeat_live, "sweep": _repeat_sweep}
