"""What the program prints of a moment or a range selects the same events when somebody types it again."""

from __future__ import annotations

import re
import shlex
from html import unescape

import numpy as np
import pytest

from satview.__main__ import main
from satview.base.time import TimeWindow, parse_moment, parse_range
from satview.events import wire
from satview.filters.expressions.expression import select
from satview.formats.registry import open_trace
from satview.report import write_report
from satview.session.open_trace import OpenTrace
from satview.session.range_view import range_details
from satview.session.settings import Settings
from satview.session.trace_link import link_to, parse_link
from satview.store.time_ranges import location_of
from satview.timeline.lane_tree import Timeline
from tests.helpers.kev import TraceBuilder

RATES = (19_200_000, 999_999_937, 1_000_000_000, 2_599_998_123, 2_600_000_000)
EVENTS, PAIRS = 400, 60


def dense(folder, rate):
    """Write events that follow each other by 1 to 9 cycles, some by more than a second; return the file."""
    random = np.random.default_rng(rate)
    builder, time = TraceBuilder(rate=rate, start=0x1234_5678_9ABC).time_event(0), 0
    for _ in range(EVENTS):
        time += int(random.integers(1, 10)) if random.random() < 0.98 else int(random.integers(1, rate))
        builder.time_event(time) if random.random() < 0.1 else None
        builder.event(wire.code(12, 0), time, (2, 64))
    return builder.write(folder / "dense.kev")


@pytest.fixture(params=RATES)
def trace(request, tmp_path):
    return open_trace(dense(tmp_path, request.param))


def pairs(trace):
    """Return windows from one event to another: that is in it, or not."""
    random, times = np.random.default_rng(7), trace.events.time_cycles.tolist()
    chosen = np.sort(random.integers(0, len(times), (PAIRS, 2)), axis=1).tolist()
    windows = [TimeWindow(times[a], times[b] + closed) for a, b in chosen for closed in (0, 1) if times[b] > times[a]]
    assert len(windows) > PAIRS
    return [*windows, trace.window, TimeWindow(times[-1], trace.window.end)]


def typed(text, trace):
    return trace.rows_between(parse_range(text, trace.time_axis))


def test_links_and_the_panel_of_the_range(trace, qapp):
    opened = OpenTrace(trace, Timeline(trace), Settings(None))
    for window in pairs(trace):
        opened.selection.set_range(window)
        assert typed(parse_link(link_to(opened)).selected, trace) == trace.rows_between(window)
        lines = {line.name: line.text for line in range_details(trace, window, None).sections[0].lines}
        assert typed(f"{lines['From']}..{lines['To']}", trace) == trace.rows_between(window)
        assert typed(f"{lines['From']}..+{lines['Length']}", trace) == trace.rows_between(window)
    opened.shut_down()


def test_locations_of_claims(trace):
    for window in pairs(trace):
        rows = trace.rows_between(window)
        location = location_of(trace, window.start, window.end, rows.start)
        shown = typed(location.range_text, trace)
        assert (shown.start <= rows.start, shown.stop >= rows.stop) == (True, True)
        words = re.fullmatch(r"at (.* s) \(event ([\d,]+)\)", str(location))
        assert parse_moment(words[1], trace.time_axis) == window.start
        assert trace.events.time_cycles[int(words[2].replace(",", "")) - 1] == window.start


def test_expressions_compare_to_the_cycle(trace):
    times = trace.events.time_cycles
    for row in (0, 1, 17, 250, len(times) - 1):
        first, after = np.searchsorted(times, times[row]), np.searchsorted(times, times[row], side="right")
        assert select(trace, f"time >= #{row + 1}").tolist() == list(range(first, len(times)))
        assert select(trace, f"#{row + 1} >= time").tolist() == list(range(after))
        assert select(trace, f"time != #{row + 1}").tolist() == [*range(first), *range(after, len(times))]
    half = parse_moment("50%", trace.time_axis)
    assert select(trace, "time < 50% and cpu == 0").tolist() == list(range(np.searchsorted(times, half)))


@pytest.mark.thorough
@pytest.mark.parametrize("rate", [19_200_000, 2_599_998_123])
def test_commands_take_what_is_printed(rate, tmp_path, capsys):
    trace = open_trace(path := dense(tmp_path, rate))
    for window in pairs(trace)[:6]:
        location = location_of(trace, window.start, window.end)
        words = shlex.split(location.command)
        assert words[:3] == ["satview", str(path), "--range"]
        for text in (words[3], str(location).removeprefix("at ") + ".."):
            rows = typed(text, trace)
            main(["filter", str(path), "--range", text])
            assert capsys.readouterr().out == f"{rows.stop - rows.start:,} of {len(trace.events):,} events match\n"
        main(["traceprinter", str(path), "-n", "--from", words[3].split("..")[0]])
        printed = [line for line in capsys.readouterr().out.splitlines() if "CLASS 12" in line or "CPU" in line]
        assert (
            sum("t:" in line for line in printed)
            == len(trace.events) - typed(f"{words[3].split('..')[0]}..", trace).start
        )


def test_commands_in_a_report(tmp_path):
    trace = open_trace(dense(tmp_path, 2_600_000_000))
    write_report(trace, tmp_path / "r.html", pictures=0)
    for command in re.findall(r"satview [^<]*--range[^<]*", (tmp_path / "r.html").read_text()):
        assert typed(shlex.split(unescape(command))[3], trace)
