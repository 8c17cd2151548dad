"""A class of events is one row of a table: everything else follows from it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from satview.base.named_files import resource_path
from satview.events.naming import class_of_unnamed
from satview.events.spec import Release
from satview.events.wire import WireClass, code, external_classes, mark_colours, printed_classes
from satview.filters.external import ExternalClass, classes_of

ROOT = Path(__file__).resolve().parents[2]
SHOWN = """\
import sys
from pathlib import Path

from satview.base import named_files

named_files._root = lambda: Path(sys.argv[1])

from satview.events import wire
from satview.events.modes import header_names
from satview.events.spec import Release
from satview.filters.expressions.expression import select
from satview.filters.external import external_of
from satview.gui.colours import class_colour
from satview.traceparser.api import codes_of
from tests.helpers.kev import TraceBuilder

CODE = wire.code(12, 0)
trace = TraceBuilder("8.0.0").event(CODE, 1000, (2, 64)).event(wire.code(12, 9), 2000, (5,)).open(Path(sys.argv[2]))
for event in trace.iter_events():
    print(event.class_name, event.name, dict(event.args))
print(f"{class_colour('NEWS', is_dark=True):06x}")
print(external_of(CODE, Release.QNX_8).external.name, external_of(CODE, Release.QNX_7).external)
print(header_names(Release.QNX_8)["_NTO_TRACE_NEWS"], "_NTO_TRACE_NEWS" in header_names(Release.QNX_7))
print(codes_of(21, 0, Release.QNX_8) == [CODE])
print(len(select(trace, "class == NEWS")))
"""


@pytest.mark.thorough
def test_a_new_class_is_one_row(tmp_path):
    copy = tmp_path / "resources"
    shutil.copytree(resource_path("events").parent, copy)
    table = copy / "events" / "classes.toml"
    row = "NEWS  12  21  8.0  112233  445566  Events of tomorrow\n"
    table.write_text(table.read_text().replace("plain = '''\n", f"plain = '''\n{row}"))
    (copy / "events" / "news.toml").write_text(
        "names = '''\n0  ARRIVED  _NTO_TRACE_NEWS_ARRIVED  8.0\n'''\nlists_8 = '''\nARRIVED: page dec, size hex\n'''\n"
    )
    command = [sys.executable, "-c", SHOWN, str(copy), str(tmp_path)]
    run = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert run.stderr == ""
    assert run.stdout.splitlines() == [
        "NEWS ARRIVED {'page': 2, 'size': 64}", "NEWS EVENT 9 {'word 0': 5, 'word 1': 0}", "445566", "NEWS None",
        "21 False", "True", "2",
    ]  # fmt: skip


def test_the_classes_of_every_release():
    later = {release: [c.name for c in classes_of(release)][-4:] for release in (Release.QNX_6, Release.QNX_8)}
    assert later[Release.QNX_6] == ["SYSTEM", "COMM", "INT_HANDLER_ENTER", "INT_HANDLER_EXIT"]
    assert later[Release.QNX_8] == ["QUIP", "SEC", "QVM", "PMU"]
    assert [c.name for c in classes_of(Release.QNX_7)][-3:] == ["QUIP", "SEC", "QVM"]
    assert {c.name: int(c) for c in classes_of(Release.QNX_8)} == dict(external_classes(Release.QNX_8))


def test_numbers_of_rows_are_members_of_both_enumerations():
    assert (int(WireClass["QVM"]), int(ExternalClass["QVM"])) == (10, 19)
    assert class_of_unnamed(code(9, 77), Release.QNX_8) == "SEC"
    assert class_of_unnamed(code(12, 0), Release.QNX_8) == "CLASS 12"
    assert printed_classes()[-1].name == "EMPTY"
    assert mark_colours("PMU") == (0x0F7F86, 0x58C8CE)
    assert mark_colours("CLASS 12") == mark_colours("EMPTY")
