from __future__ import annotations

import re

from p2pdp.core.messages import COMMON
from p2pdp.files.guide import page
from p2pdp.files.reference_messages import messages_page
from p2pdp.ledger.records import KIND_NAMES
from p2pdp.protocols import ours, protocol


def test_the_page_is_up_to_date() -> None:
    assert page("messages").text == messages_page(), (
        "make it again: python -c 'from p2pdp.files.reference_messages import write; write()'"
    )


def test_every_message_and_every_record_has_a_row() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", messages_page(), flags=re.MULTILINE)
    declared = {one.name for name in ours() for one in protocol(name).messages}
    assert set(rows) == declared | set(KIND_NAMES)
    assert len([row for row in rows if COMMON.get(row) is not None and row not in KIND_NAMES]) == len(
        [one for one in COMMON if one.name not in KIND_NAMES]
    )


def test_a_row_says_fields_value_ways_and_marks() -> None:
    assert (
        "| `relay` | `came_by`: whole number from 0, `hop`: whole number from 0, `round`: whole number from 1 "
        "| yes | user -> user | custody | a sealed report on its way |"
    ) in messages_page()
