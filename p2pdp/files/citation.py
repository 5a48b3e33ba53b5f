"""The citation of the package: `CITATION.cff`, which lies in it, and the same for BibTeX and as a sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from p2pdp.core.errors import UsageError

FILE: Final = Path(__file__).parent.parent / "CITATION.cff"
FORMATS: Final = ("text", "bibtex", "cff")
_LINE: Final = re.compile(r"^(?P<key>[a-z-]+): (?P<value>.+)$", re.MULTILINE)


def citation(form: str) -> str:
    """Return the citation in one of the `FORMATS`, without a line break at its end."""
    if form not in FORMATS:
        raise UsageError(f"--format {form}: must be one of {', '.join(FORMATS)}")
    text = FILE.read_text("utf-8").rstrip()
    return text if form == "cff" else {"text": _sentence, "bibtex": _bibtex}[form](facts_of(text))


def facts_of(text: str) -> dict[str, str]:
    """Return what stands on single lines of our file, and its one author; a reader of all YAML is not needed."""
    facts = {match["key"]: match["value"].strip('"') for match in _LINE.finditer(text)}
    facts["author"] = re.findall(r"^  - name: (.+)$", text, re.MULTILINE)[0]
    return facts


def _sentence(facts: Mapping[str, str]) -> str:
    year = facts["date-released"][:4]
    return (
        f"{facts['author']} ({year}). {facts['title']}: {facts['abstract']} (version {facts['version']}) "
        f"[computer software]. Licence: {facts['license']}."
    )


def _bibtex(facts: Mapping[str, str]) -> str:
    year, month, _ = facts["date-released"].split("-")
    fields = {
        "author": f"{{{facts['author']}}}",
        "title": f"{{{facts['title']}}}: {facts['abstract']}",
        "year": year,
        "month": str(int(month)),
        "note": f"Computer software, version {facts['version']}, licence {facts['license']}",
    }
    lines = [f"  {name:<6} = {{{value}}}," for name, value in fields.items()]
    return "\n".join([f"@misc{{{facts['title']}-{facts['version']},", *lines, "}"])
