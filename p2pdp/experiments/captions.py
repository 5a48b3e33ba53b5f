"""Captions: a page of Markdown beside each picture, which says what it shows, and words for those who cannot see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from p2pdp.experiments.contract import Experiment


def alt_text(experiment: Experiment, note: str) -> str:
    """Return what is to be read in place of the picture; `note` is what the picture says at its edge."""
    return f"{experiment.caption.alt} ({note}.)" if note else experiment.caption.alt


def caption_page(document: Mapping[str, Any]) -> str:
    """Return the page of an experiment's document: picture, caption, and each number beside the paper's."""
    caption = document["caption"]
    name, ours = document["name"], document["paper"] == "ours"
    pictures = [file for file in document["files"] if file.endswith(".png")]
    parts = [f"# {name}: {document['title']}", *(f"![{_flat(caption['alt'])}]({file})" for file in pictures)]
    if document["stand_in"]:
        parts.append("**Made of generated stand-ins, no real data: nothing in it is a result.**")
    elif document["quick"]:
        parts.append("**Quick form: what is said below is true of the full one, and need not show here.**")
    terms = {
        "Shows": caption["shows"],
        "Compares": caption["compares"],
        "What to see": caption["see"],
        "About" if ours else "The paper": caption["paper"] if ours else f"{document['paper']}. {caption['paper']}",
        "No bound": caption["no_bound"],
    }
    parts += [f"**{term}.** {text}" for term, text in terms.items() if text]
    if document["lines"]:
        rows = [
            "| " + " | ".join(_cell(line[key]) for key in ("what", "ours", "paper", "verdict", "why")) + " |"
            for line in document["lines"]
        ]
        head = f"| what | ours | {'against' if ours else 'the paper'} | verdict | why |\n|---|---|---|---|---|"
        parts.append("\n".join([head, *rows]))
    tables = ", ".join(f"[{file}]({file})" for file in document["files"] if file.endswith(".csv"))
    prints = ", ".join(f"[{file}]({file})" for file in document["files"] if file.endswith((".svg", ".pdf")))
    seeds = ", ".join(str(seed) for seed in document["seeds"])
    parts.append(
        f"Numbers: {tables}. For print: {prints}. Made by p2pdp {document['versions']['p2pdp']}"
        f"{f' with seed {seeds}' if len(document['seeds']) == 1 else ''}; parameters, seeds, versions and digests of "
        f"data are in [{name}.json]({name}.json)."
    )
    return "\n\n".join(parts) + "\n"


def _flat(text: str) -> str:
    return text.replace("[", "(").replace("]", ")")


def _cell(value: float | str | None) -> str:
    shown = "" if value is None else value if isinstance(value, str) else f"{value:.4g}"
    return shown.replace("|", "\\|").replace("\n", " ")
