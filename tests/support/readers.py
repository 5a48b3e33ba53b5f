"""Values that readers of keys are given."""

from __future__ import annotations

from typing import Any

from p2pdp.files.readers import (
    Distinct,
    Reader,
    columns,
    limits,
)
from p2pdp.files.schema import SECTIONS

COUNTS = {
    f"{name}.{key}": found
    for name, section in SECTIONS.items()
    for key, reader in section.readers.items()
    if (found := limits(reader)) is not None
}


def given(reader: Reader, value: int) -> Any:
    return [value] if isinstance(reader, Distinct) or reader is columns else value
