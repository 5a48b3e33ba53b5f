"""Published data sets with the settings of the papers."""

from __future__ import annotations

LONGITUDE = (
    'target = "longitude"\nrule = "< -119.57"\nstandardize = { low = [32.5, 1.0, 2.0, 1.0, 3.0, 1.0, 0.5, 15000.0], '
    "high = [42.0, 52.0, 39320.0, 6445.0, 35682.0, 6082.0, 15.0, 500001.0] }"
)
VALUE = (
    'target = "median_house_value"\nrule = "< 206855.8"\nstandardize = { low = [-124.4, 32.5, 1.0, 2.0, 1.0, 3.0, 1.0, '
    "0.5], high = [-114.3, 42.0, 52.0, 39320.0, 6445.0, 35682.0, 6082.0, 15.0] }"
)
