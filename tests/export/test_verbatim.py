"""`satview convert`: a listing becomes a file with the same events, a file is copied slot by slot."""

from pathlib import Path

import numpy as np
import pytest

from satview.__main__ import main
from satview.formats.registry import open_trace
from tests.helpers.kev import TraceBuilder
from tests.helpers.shared import GUIDE_LISTINGS, shared_path


@pytest.mark.parametrize("byte_order", ["little", "big"])
def test_a_file_is_copied_slot_by_slot(tmp_path, byte_order, capsys):
    builder = (
        TraceBuilder(byte_order=byte_order).time_event(0).process_name(5, 7, "server").call(11, 20, (1, 2, 3, 4, 5))
    )
    path = builder.write(tmp_path / "a.kev")
    assert main(["convert", str(path), str(tmp_path / "b.kev")]) == 0
    assert (tmp_path / "b.kev").read_bytes() == path.read_bytes()
    assert "6 slots" in capsys.readouterr().out


def test_a_trace_is_never_written_over_itself(tmp_path, capsys):
    path = TraceBuilder().time_event(0).write(tmp_path / "a.kev")
    before = path.read_bytes()
    assert main(["convert", str(path), str(path)]) == 2
    assert path.read_bytes() == before
    assert "is being read" in capsys.readouterr().err


@pytest.mark.parametrize("name", GUIDE_LISTINGS)
def test_the_samples_hold_what_the_listings_show(tmp_path, name):
    listing = open_trace(shared_path(f"golden/{name}.results.txt"))
    shipped = Path(__file__).parents[2] / "sample_traces" / f"vendor-{name.replace('.', '-')}.kev"
    assert main(["convert", str(listing.path), str(tmp_path / "out.kev")]) == 0
    file = open_trace(tmp_path / "out.kev")
    assert shipped.read_bytes() == file.path.read_bytes()
    for column in ("time_cycles", "code", "cpu", "thread", "slot_count"):
        np.testing.assert_array_equal(getattr(file.events, column), getattr(listing.events, column))
    assert [file.payloads.raw(i) for i in range(len(file.events))] == [
        listing.payloads.raw(i) for i in range(len(file.events))
    ]


def test_a_converted_listing_reports_no_damage_of_its_own_making(tmp_path):
    listing = tmp_path / "part.txt"
    listing.write_text(
        "  TRACE_CYCLES_PER_SEC:: 1000\n     TRACE_SYS_RELEASE:: 7.1.0\n -- KERNEL EVENTS -- \n"
        "t:0x00000010 CPU:00 CONTROL         :BUFFER             sequence = 35, num_events = 709\n\n"
        "t:0x00000010 CPU:00 CONTROL         :TIME               msb:0x00000000 lsb(offset):0x00000010\n"
        "t:0x00000011 CPU:00 THREAD          :THREADY            pid:1 tid:1\n"
    )
    assert main(["convert", str(listing), str(tmp_path / "out.kev")]) == 0
    file = open_trace(tmp_path / "out.kev")
    assert len(file.events) == 3
    assert not file.problems.cost_data
    assert "buffer-length" not in file.problems.counts()
    # The mark goes with copies of the file.
    assert main(["convert", str(tmp_path / "out.kev"), str(tmp_path / "copy.kev")]) == 0
    assert not open_trace(tmp_path / "copy.kev").problems.cost_data
