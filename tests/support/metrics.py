"""What a page of metrics says."""

from __future__ import annotations

import re

SAMPLE = re.compile(r'([a-z0-9_]+)(\{[a-z_]+="(?:[^"\\\n]|\\.)*"(?:,[a-z_]+="(?:[^"\\\n]|\\.)*")*\})? (\S+)')


def samples(text: str) -> dict[str, float]:
    """Reads the text format; every sample belongs to the family declared above it."""
    found: dict[str, float] = {}
    family = ""
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            family, kind = line.split()[2:]
            assert kind in ("gauge", "counter")
        elif not line.startswith("# HELP "):
            match = SAMPLE.fullmatch(line)
            assert match is not None, line
            assert match[1] == family
            assert match[1] + (match[2] or "") not in found
            found[match[1] + (match[2] or "")] = float(match[3])
    return found
