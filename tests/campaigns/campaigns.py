"""All campaigns by name."""

from __future__ import annotations

from typing import Final

from tests.campaigns.decoders import DECODERS
from tests.campaigns.folders import FOLDERS
from tests.campaigns.hostile import HOSTILE
from tests.campaigns.live import LIVE
from tests.campaigns.running import Campaign
from tests.campaigns.simulated import LIARS, SCHEDULES
from tests.campaigns.soak import SOAK

CAMPAIGNS: Final[dict[str, Campaign]] = {
    one.name: one for one in (SCHEDULES, LIARS, HOSTILE, DECODERS, FOLDERS, LIVE, SOAK)
}
