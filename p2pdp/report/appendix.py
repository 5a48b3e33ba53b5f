"""The appendix of an artifact: what evaluators read first, filled with the facts of the run or sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

_WHAT: Final = {
    "simulated": "a simulated run",
    "live": "a live run",
    "sweep": "a sweep: simulated runs of one spec over a grid of settings and seeds",
}
_FILES: Final = {
    "artifact.json": "versions, seeds, and the digests that a repetition must give",
    "REPEAT.sh": "the one command that checks and repeats",
    "SHA256SUMS": "digests of all other files (`sha256sum -c SHA256SUMS`)",
    "spec.toml": "the effective spec; names of files are replaced",
    "sweep.toml": "the description of the sweep; names of files are replaced",
    "base.toml": "the spec that the sweep varies",
    "run.p2pdp": "skeletons of all ledgers: every record without its value, linked by hashes",
    "expected/audit.json": "the audit that a repetition must give, byte by byte",
    "expected/participants.json": "what everybody may read of the run",
    "expected/rows.csv": "error, epsilon and cost of each run",
}
_LEFT_OUT: Final = {
    "simulated": "Ledgers and the full result are left out, because the seed makes them again. The data are generated "
    "from the seed too, or come from files that whoever packed this declared public. Noise that follows from a seed "
    "protects nobody: this run shows what a run gives.",
    "live": "No value, no ledger, no key and no result without noise is in here. Without skeletons the readers of this "
    "artifact learn nothing about the route that messages took, so the claims in `participants.json` hold against them "
    "too. The auditor's edition (`p2pdp artifact DIR --auditor`) has the skeletons.",
    "auditor": "No value, no private ledger, no key and no result without noise is in here. **This is the auditor's "
    "edition**: skeletons and audit tell the route that messages took. Whoever reads them is an observer for whom the "
    "claims given the public route count, and none that rest on a hidden route. Do not publish it where those matter.",
    "sweep": "Rows of the sweep's table hold results without noise, so the artifact has their digests, and of each run "
    "the numbers in `expected/rows.csv`. Noise that follows from a seed protects nobody: sweeps show what runs give.",
}
_MEANS: Final = {
    "simulated": "It checks the digests of all files here, runs the simulation again from spec and seed, and compares "
    "every file that it leaves with the digest of the original.",
    "live": "It checks the digests of all files here and that the spec has the digest that is named here, and computes "
    "the claims in advance again. What bootstrap signed is in the auditor's edition only: the estimate rests on the "
    "word of whoever made this artifact. The run itself used the entropy of the operating system and cannot be "
    "repeated.",
    "auditor": "It checks the digests of all files here, verifies the chain of every skeleton and that what one user "
    "sent another received, audits the run from the skeletons alone, and compares the audit with "
    "`expected/audit.json` byte by byte. The run itself used the entropy of the operating system and cannot be "
    "repeated.",
    "sweep": "It checks the digests of all files here, runs every run of the sweep again, and compares each row with "
    "the digest of the original.",
}


def appendix(facts: Mapping[str, Any], names: Sequence[str], expected: Sequence[tuple[str, str]], time: str) -> str:
    """Return the text for an artifact of these facts and files; `expected` are labelled numbers."""
    kind, versions = facts["kind"], facts["versions"]
    edition = "auditor" if facts["edition"] == "auditor" and kind == "live" else kind
    libraries = ", ".join(
        f"{name} {version}" for name, version in versions.items() if name not in ("p2pdp", "python", "platform")
    )
    files = [f"| `{name}` | {_FILES.get(name, 'a public file that the spec names')} |" for name in names]
    seeds = facts.get("seed")
    lines = [
        "# Artifact appendix",
        "",
        f"This is {_WHAT[kind]} of p2pdp: `{facts['protocol']}`"
        + (f", {facts['nodes']} users, run `{facts['run_id']}`" if "run_id" in facts else "")
        + (f", seed {seeds}" if seeds is not None else "")
        + ".",
        "",
        "## What is in here",
        "",
        *("| file | what it is |", "|---|---|", *files),
        "",
        "## Requirements",
        "",
        f"* p2pdp {versions['p2pdp']}: `pip install .` in a clone of that version. Another version refuses to repeat.",
        (
            f"* Made with Python {versions['python']} on {versions['platform']}, with {libraries}. Other versions of "
            "these may differ in the last digits of floating-point numbers; a repetition that differs names them."
        ),
        "* No network, no special hardware, no data beside those in here.",
        f"* Time: {time}",
        "",
        "## How to check and repeat it",
        "",
        *("```", "sh REPEAT.sh", "```", ""),
        (
            f"or `p2pdp artifact PLACE --repeat`, where PLACE is this folder or its ZIP file. {_MEANS[edition]} "
            "It ends with exit code 0 if all is equal, and else with code 4 and the name of what differs."
        ),
        "",
        "## What to expect",
        "",
        *("| what | value |", "|---|---|", *(f"| {label} | {value} |" for label, value in expected)),
        "",
        "## Badges",
        "",
        "* *Available*: this folder and the source of p2pdp have to be archived by the authors.",
        "* *Functional*: `REPEAT.sh` runs what is described here, and the package has its own tests (README of p2pdp).",
        "* *Reproduced*: "
        + {
            "live": "only the claims in advance can be, from this edition; the auditor's edition has more.",
            "auditor": "the audit is computed again from evidence that every user's hash chain fixes.",
        }.get(edition, "everything is computed again from the seed and compared byte by byte."),
        "",
        "## What is left out, and why",
        "",
        _LEFT_OUT[edition],
        "",
    ]
    return "\n".join(lines)
