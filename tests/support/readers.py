"""Values that readers of keys are given."""

from __future__ import annotations

from typing import Any

from p2pdp.core.readers import (
    Distinct,
    Reader,
    columns,
    limits,
)
from p2pdp.files.schema import all_sections

KEYS = [f"{name}.{key}" for name, section in all_sections().items() for key in section.readers]
COUNTS = {
    f"{name}.{key}": found
    for name, section in all_sections().items()
    for key, reader in section.readers.items()
    if (found := limits(reader)) is not None
}


def given(reader: Reader, value: int) -> Any:
    return [value] if isinstance(reader, Distinct) or reader is columns else value
