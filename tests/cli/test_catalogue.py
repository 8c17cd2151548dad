"""`satview catalogue learn`: rows that a listing corrects or proves."""

from __future__ import annotations

import pytest

from satview.__main__ import main
from satview.events import rows
from satview.events.spec import Show
from tests.helpers.shared import shared_path

HEAD = "  TRACE_CYCLES_PER_SEC:: 1000\n     TRACE_SYS_RELEASE:: 7.1.0\n -- KERNEL EVENTS -- \n"


def learned(capsys, path):
    assert main(["catalogue", "learn", str(path)]) == 0
    return capsys.readouterr().out.splitlines()


def test_a_listing_corrects_and_proves_notations(tmp_path, capsys):
    path = tmp_path / "mine.txt"
    path.write_text(
        HEAD + "t:0x00000001 CPU:00 THREAD          :THREADY            pid:0x0000001b tid:2\n"
        "t:0x00000002 CPU:00 THREAD          :THREADY            pid:0x0000001c tid:2\n"
    )
    head, row = learned(capsys, path)
    assert head == "# THREAD, 7.x"
    assert row.startswith("THREADY: pid hex, tid dec | pid hex, tid dec, priority dec?, ")
    first = rows.fields(row.partition(": ")[2].partition(" | ")[0])
    assert [(field.name, field.show, field.is_sure) for field in first] == [
        ("pid", Show.HEX, True),
        ("tid", Show.DEC, True),
    ]


@pytest.mark.thorough
def test_the_real_listing_changes_rows_of_events_that_it_holds_only(capsys):
    text = learned(capsys, shared_path("real/qnx71-ker_call.traceprinter.txt"))
    assert "SND_PULSE_EXE: scoid hex, pid dec" in text
    assert "TIMER: pid dec, tid dec, timer_id dec, flags hex" in text  # the guide's table has timer_id as hex?
    assert not any(line.startswith(("MSG_SENDVNC", "APS_", "ABLE")) for line in text)


def test_what_is_no_listing_is_refused(tmp_path, capsys):
    path = tmp_path / "x.txt"
    path.write_text("hello\n")
    assert main(["catalogue", "learn", str(path)]) == 2
    assert "it has no line with an event" in capsys.readouterr().err
    assert main(["catalogue", "learn", str(tmp_path / "none")]) == 2
