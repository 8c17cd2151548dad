from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from satview.base.time import TimeWindow
from satview.gui.swimlane.overview import density


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no fault of it
@given(st.lists(st.integers(0, 1000), max_size=60), st.data(), st.integers(1, 40))
def test_density_counts_the_selected_events_of_each_pixel(times, data, width_px):
    times = np.array(sorted(times), np.int64)
    selected = sorted(data.draw(st.sets(st.integers(0, len(times) - 1)))) if len(times) else []
    window = TimeWindow(100, 900)
    expected = [0] * width_px
    for row in selected:
        if 100 <= times[row] < 900:
            pixel = max(i for i in range(width_px) if 100 + i * 800 // width_px <= times[row])
            expected[pixel] += 1
    assert density(times, np.array(selected, np.uint32), window, width_px).tolist() == expected


def test_all_events_count_without_a_filter():
    times = np.arange(100, dtype=np.int64)
    assert density(times, None, TimeWindow(0, 100), 4).tolist() == [25, 25, 25, 25]
