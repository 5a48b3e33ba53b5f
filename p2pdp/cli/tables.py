"""Results and claims as people read them, in 80 columns.

Texts of specs, files and paths are shown as they are: none of them is read as markup, and characters that
would move the cursor are written as escapes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from p2pdp.files.folder import PARTICIPANTS_PAGE, REPORT_FILE
from p2pdp.files.skeletons import holds_sealed, holds_skeletons

if TYPE_CHECKING:
    from p2pdp.core.claims import Claim, Refusal
    from p2pdp.report.result import Result
    from p2pdp.runs.audit import Audited, Verified

_LISTED_MAX: Final = 6
_COLLUDERS_MAX: Final = 4
_SIDE_BY_SIDE_MAX: Final = 24  # numbers of an estimate that are shown one a line


def number(value: Any) -> str:
    """Return a number with up to four significant digits; long vectors are cut."""
    if value is None:
        return "unknown"
    if isinstance(value, list):
        shown = ", ".join(number(part) for part in value[:_LISTED_MAX])
        return f"{shown}, … ({len(value)} numbers)" if len(value) > _LISTED_MAX else shown
    if value in (math.inf, "inf"):
        return "infinite"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def people(count: int) -> str:
    return "1 user" if count == 1 else f"{count} users"


def plain(text: object) -> Text:
    """Return a text without markup and without control characters."""
    return Text("".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in str(text)))


def _say(console: Console, text: object, *, wrap: bool = True) -> None:
    console.print(plain(text), soft_wrap=not wrap)


def show_result(result: Result, folder: Path, *, fast: bool = False) -> None:
    console = Console(highlight=False)
    _say(console, f"{result.protocol}, run {result.run_id}, {people(result.nodes)}")
    if result.audit_problem is not None:
        _say(console, f"VERIFICATION FAILED, the result may be false: {result.audit_problem}")
    columns(_result_rows(result), console=console)
    if isinstance(result.estimate, list) and result.scores is None:
        _show_side_by_side(console, result)
    for warning in result.warnings or ():
        _say(console, f"Warning: {warning}")
    if result.seeded:
        _say(console, f"Simulation: noise comes from seed {result.seed}, so this result has no privacy protection.")
    show_verdict(console, result.headline, result.worst)
    if fast:
        _say(console, f"{folder}: spec and result; --fast leaves no ledgers, so there is nothing to audit", wrap=False)
    elif result.audit_problem is not None:
        _say(console, f"What is wrong with the ledgers: p2pdp verify {folder}", wrap=False)
    elif result.headline is None and result.messages is None:  # users are elsewhere, and kept their skeletons
        _say(console, _unaudited(folder))
        _say(console, f"What participants may read, for a browser: {folder / PARTICIPANTS_PAGE}", wrap=False)
    else:
        key = " --key FILE" if holds_sealed(folder) else ""
        if result.headline is None:
            _say(console, "Nothing is claimed so far about what others could have learned: there was no audit.")
        _say(console, f"Privacy report: p2pdp audit {folder}{key}", wrap=False)
    if result.headline is not None and not fast:
        _say(console, f"The same for a browser: {folder / REPORT_FILE}", wrap=False)
    tells = "routes" if result.truth is None else "the result without noise" + ("" if fast else ", and routes")
    files = "The result in the folder is" if fast else "Result, audit and report in the folder are"
    _say(console, f"{files} for you only (mode 0600), telling {tells}.")


def _unaudited(folder: Path) -> str:
    """Say why bootstrap has no claim: users are elsewhere, and keep their ledgers unless they hand in skeletons."""
    if holds_sealed(folder):
        return f"What users handed in is sealed to the auditor, who audits it: p2pdp audit {folder} --key FILE"
    if holds_skeletons(folder):
        return (
            f"Not all users handed in ledgers without values: p2pdp audit {folder} --allow-missing claims what it can."
        )
    return "No user handed in its ledger without values, so there is nothing to audit here."


def show_verdict(console: Console, headline: dict[str, Any] | None, worst: dict[str, Any] | None) -> None:
    """Print headline and worst bound; nothing where nothing was audited."""
    from p2pdp.report.page.words import in_words

    for sentence in in_words(headline, worst) if headline is not None and worst is not None else ():
        _say(console, sentence)


def _result_rows(result: Result) -> list[tuple[str, str]]:
    rows = [
        *_estimate_rows(result),
        ("standard error", number(result.standard_error)),
        ("without noise it would be", number(result.truth)),
        ("error", number(result.error)),
    ]
    if result.scores is not None:
        rows += _score_rows(result)
    local, central = (result.baselines[name]["standard_error"] for name in ("local", "central"))
    if local is not None or central is not None:
        rows += [("standard error under local DP", number(local)), ("… with a trusted curator", number(central))]
    way = ("hops", result.hops) if result.rounds is None else ("rounds", result.rounds)
    rows.append((f"{way[0]}, messages", f"{way[1]}, {number(result.messages)}"))
    if result.traffic is not None:
        rows += _traffic_rows(result.traffic)
    rows.append(("seconds", number(result.seconds)))
    rows.append(("faults", ", ".join(f"{kind} {count}" for kind, count in result.faults.items()) or "none"))
    if result.missing:
        rows.append(("missing users", ", ".join(map(str, result.missing))))
    if result.trials is not None:
        rows += _trial_rows(result)
    return rows


def _estimate_rows(result: Result) -> list[tuple[str, str]]:
    """Return the estimate's rows; where nothing is published, users' own. Histograms of walks count every visit."""
    from p2pdp.protocols import protocol
    from p2pdp.report.own_results import of_users

    users = of_users(result.outputs) if result.estimate is None else None
    if users is not None:
        return [("users' results, on average", number(users.mean)), ("… furthest from that", number(users.furthest))]
    rows = [("estimate", number(result.estimate))]
    if protocol(result.protocol).analysis().counts_contributions:
        rows.append(("… which counts", f"{result.hops} contributions of {result.nodes} users"))
    return rows


def _traffic_rows(traffic: dict[str, Any]) -> list[tuple[str, str]]:
    names = {"reports": "reports sent by a user", "bytes": "… and bytes"}
    return [
        (text, f"{number(traffic[f'{name}_per_user_mean'])} on average, {traffic[f'{name}_per_user_max']} at most")
        for name, text in names.items()
    ]


def _show_side_by_side(console: Console, result: Result) -> None:
    lists = (result.estimate, result.standard_error, result.truth, result.error)
    shown = [one if isinstance(one, list) else [] for one in lists]
    if len(shown[0]) > _SIDE_BY_SIDE_MAX:
        return
    console.print()
    rows = [
        (str(place), *(number(one[place]) if place < len(one) else "" for one in shown))
        for place in range(len(shown[0]))
    ]
    columns(rows, ("place", "estimate", "standard error", "without noise", "error"), console)
    console.print()


def _score_rows(result: Result) -> list[tuple[str, str]]:
    """Return the model's scores, on rows kept out of learning if there are any, beside its baselines."""
    scores = result.scores or {}
    parts = ["test_" if scores["test_loss"] is not None else "", *(["public_"] if "public_loss" in scores else [])]
    names = {"local": "… under local DP", "central": "… with a trusted curator", "none": "… without privacy"}
    rows = []
    for part in parts:
        what = "loss" if scores[f"{part}score"] is None else scores["score_name"]
        key = f"{part}loss" if what == "loss" else f"{part}score"
        rows.append((f"{what}{_ROWS_OF[part]}", _with_trials(scores, key)))
        rows += [
            (text, _with_trials(result.baselines[name], key))
            for name, text in names.items()
            if key in result.baselines[name]
        ]
    return rows


_ROWS_OF: Final = {"": "", "test_": " on test rows", "public_": " on public rows"}


def _with_trials(scores: dict[str, Any], key: str) -> str:
    """Return a score, and its mean over trials with the standard error of that."""
    over = scores.get("over_trials")
    if over is None or over["trials"] < 2 or over.get(key, {}).get("mean") is None:
        return number(scores[key])
    mean, error = (number(over[key][name]) for name in ("mean", "standard_error"))
    return f"{number(scores[key])}; {mean} ± {error} over {over['trials']} trials"


def _trial_rows(result: Result) -> list[tuple[str, str]]:
    """Return the trials' mean error beside the standard error announced for one of them."""
    errors = [trial.error for trial in result.trials or ()]
    rows = [("trials", str(len(errors)))]
    columns = [list(error) if isinstance(error, list) else [error] for error in errors if error is not None]
    if columns:
        squares = [math.sqrt(sum(part * part for part in parts) / len(parts)) for parts in zip(*columns, strict=True)]
        rows.append(("root mean square error", number(squares if len(squares) > 1 else squares[0])))
    return rows


_LONG_CELL: Final = 36


def columns(
    rows: Iterable[Sequence[str]], headings: Sequence[str] = (), console: Console | None = None, gap: int = 2
) -> None:
    """Print a table; where room is short the last column gives way, and so do long lists of numbers."""
    table = Table(show_header=bool(headings), box=None, pad_edge=False, padding=(0, gap, 0, 0))
    shown = [tuple(row) for row in rows]
    for place, heading in enumerate(headings):
        long = place > 0 and any(len(row[place]) > _LONG_CELL for row in shown)
        table.add_column(plain(heading), overflow="fold", no_wrap=not long and place < len(headings) - 1)
    for row in shown:
        table.add_row(*map(plain, row))
    (console or Console(highlight=False)).print(table)


def show_verified(found: Verified) -> None:
    console = Console(highlight=False)
    if found.verified is not None:
        what = "unaltered, consistent, and as the protocol says"
        _say(console, f"{found.verified}: {found.records} records of run {found.run_id}, {what}")
        _show_digests(console, found)
    for problem in found.problems:
        where = "" if problem["index"] is None else f", record {problem['index']}"
        _say(console, f"node {problem['node']}{where}: {problem['what']}", wrap=False)
    for what in found.not_checked:
        _say(console, f"not checked: {what}", wrap=False)


_DIGESTS: Final = {
    "spec": "spec",
    "roster": "roster",
    "bootstrap": "bootstrap's key",
    "signature": "its signature",
    "ledgers": "all ledgers",
}


def _show_digests(console: Console, found: Verified) -> None:
    """Show what the report's section on evidence shows, to be compared with it."""
    digests = found.to_json()["digests"] or {}
    for key, name in _DIGESTS.items():
        if key in digests:
            _say(console, f"{name:<16}{digests[key]}", wrap=False)


def show_audit(found: Audited) -> None:
    console = Console(highlight=False)
    heading = f"{found.protocol}, {people(found.nodes)}, delta {found.delta:g}, ledgers {found.verified}"
    _say(console, heading)
    document = found.to_json()
    show_verdict(console, document["headline"], document["worst"])
    show_claims(console, found.claims, found.refusals)
    for what in found.not_checked:
        _say(console, f"not checked: {what}")


def show_claims(console: Console, claims: Sequence[Claim], refusals: Iterable[Refusal]) -> None:
    console.print()
    headings = ("", "observer", "method", "given", "epsilon", "mean", "mu", "worst pair")
    columns([(str(place), *_row(claim)) for place, claim in enumerate(claims, start=1)], headings, console, gap=1)
    console.print()
    _say(
        console,
        "epsilon = worst case over users; mean = average over pairs; given = what the observer is assumed to know.",
    )
    from p2pdp.core.claims import Unit
    from p2pdp.core.words import unit_words

    for unit in dict.fromkeys(claim.unit for claim in claims if claim.unit != Unit.USER):
        _say(console, f"unit: {unit_words(unit).one}.")
    if not all(claim.bound for claim in claims):
        _say(console, "*: a published formula, a model or a forecast, which is no bound.")
    refused: dict[tuple[str, str], list[str]] = {}
    for refusal in refusals:
        refused.setdefault((refusal.method, refusal.reason), []).append(refusal.observer)
    for (method, reason), observers in refused.items():
        _say(console, f"refused: {', '.join(observers)}, {method}: {reason}")
    for rows, texts in _assumed(claims).items():
        _say(console, f"assumed in {'row' if len(rows) == 1 else 'rows'} {_ranges(rows)}:")
        for text in texts:
            _say(console, f"  {text}")


def _assumed(claims: Sequence[Claim]) -> dict[tuple[int, ...], list[str]]:
    """Return the assumptions by the rows that rest on them, those of most rows first."""
    rows: dict[str, list[int]] = {}
    for place, claim in enumerate(claims, start=1):
        for text in dict.fromkeys(claim.assumptions):
            rows.setdefault(text, []).append(place)
    found: dict[tuple[int, ...], list[str]] = {}
    for text, places in sorted(rows.items(), key=lambda one: (-len(one[1]), one[1])):
        found.setdefault(tuple(places), []).append(text)
    return found


def _ranges(places: Sequence[int]) -> str:
    """Return numbers in ascending order, consecutive ones as a range."""
    parts: list[list[int]] = []
    for place in places:
        if parts and place == parts[-1][-1] + 1:
            parts[-1].append(place)
        else:
            parts.append([place])
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def _row(claim: Claim) -> tuple[str, ...]:
    star = "" if claim.bound else "*"
    mean = "" if claim.epsilon_mean is None else number(claim.epsilon_mean)
    epsilons = number(claim.epsilon_max) + star, mean
    mu = "" if claim.mu_max is None else number(claim.mu_max)
    from p2pdp.core.words import method_name

    return claim.observer, method_name(claim), claim.conditioning, *epsilons, mu, _pair(claim)


def _pair(claim: Claim) -> str:
    """Name the user whose data is at stake, and the observer where its column does not."""
    if claim.worst_pair is None:
        return ""
    user, observer = claim.worst_pair
    if isinstance(observer, tuple):
        shown = ", ".join(map(str, observer[:_COLLUDERS_MAX])) + (", …" if len(observer) > _COLLUDERS_MAX else "")
        return f"user {user} to users {shown}"
    return f"user {user}" + (f" to user {observer}" if isinstance(observer, int) else "")
