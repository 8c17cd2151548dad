"""Targets of what a window is made of, without showing one: filters, marks, settings, lanes, item models."""

from __future__ import annotations

import gc
import json
import os
import random
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

import numpy as np

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from satview.analysis.statistics import Statistics
from satview.answers.statistics import TABLES
from satview.base.errors import SatviewError, TraceFormatError
from satview.base.time import TimeWindow
from satview.events.spec import Release
from satview.filters.passes import Effect
from satview.formats.registry import open_trace
from satview.gui.answer_table import AnswerModel
from satview.gui.event_list import EventListModel
from satview.gui.theme import LIGHT
from satview.session.highlight import Marks
from satview.session.loading.files import RecentFiles
from satview.session.loading.loaded_trace import LoadedTrace
from satview.session.navigation import Navigation
from satview.session.open_trace import OpenTrace
from satview.session.settings import SETTINGS, Settings
from satview.store.mark_file import SUFFIX, Mark
from satview.timeline.lane_tree import Timeline
from tests.fuzz.mutation import Decisions, mutate
from tests.fuzz.texts import the_scene

_TEXTS = (
    "",
    "pid == 2",
    "event == MSG_SENDV and",
    "/(a+)+$/",
    'name ~ "*li*"',
    "time > 1us",
    "\0",
    "READY",
    "no such thing",
)
_RULES = ("", "DELALLCLASSES\nADDCLASS THREAD", "ADDALLCLASSES\nWHERE pid == 3", "nonsense", "ADDCLASS")
_ROLES = (
    Qt.ItemDataRole.DisplayRole,
    Qt.ItemDataRole.ToolTipRole,
    Qt.ItemDataRole.ForegroundRole,
    Qt.ItemDataRole.BackgroundRole,
    Qt.ItemDataRole.TextAlignmentRole,
)


@cache
def application() -> QGuiApplication:
    """Return the one Qt application of the process; as in the program, garbage is collected on this thread alone."""
    gc.disable()
    gc.collect(1)
    return QApplication.instance() or QApplication(["satview"])


def script(rng: random.Random) -> bytes:
    """Return bytes that `Decisions` turns into actions."""
    return rng.randbytes(rng.choice((4, 20, 60, 150)))


def run_filters(data: bytes, _folder: Path) -> None:
    """Do, undo and redo changes of the filter; afterwards undoing all gives the first filter back."""
    application()
    decisions, trace = Decisions(data), the_scene(Release.QNX_7)
    opened = OpenTrace(trace, Timeline(trace), Settings(None))
    first = opened.filters.state
    try:
        done = 0
        while not decisions.is_over and done < 60:
            _filter_action(decisions, opened)
            done += 1
        shown = opened.filters.rows
        assert shown is None or np.all(np.diff(shown.astype(np.int64)) > 0)
        while opened.edits.undo_title:
            opened.edits.undo()
        assert opened.filters.state.same(first), "undoing all does not give the first filter"
    finally:
        opened.shut_down()


def _filter_action(decisions: Decisions, opened: OpenTrace) -> None:
    filters, names = opened.filters, [item.name for item in opened.filters.state.stack.passes]
    codes = [decisions.number(0x8000) for _ in range(decisions.number(4))]
    threads = [decisions.number(len(opened.trace.threads)) for _ in range(decisions.number(3))]
    actions = [
        lambda: filters.show_codes(codes, bool(decisions.number(2))),
        lambda: filters.only_codes(codes, "x"),
        lambda: filters.only_threads(threads, "x"),
        filters.show_all,
        lambda: filters.set_effect(decisions.one(tuple(Effect))),
        lambda: filters.set_form(codes, decisions.one(("fast", "wide", "", "x"))),
        lambda: filters.add_pass(decisions.one(_TEXTS), decisions.one(_RULES), decisions.one(tuple(Effect))),
        lambda: filters.combine(decisions.one(("", "A", "A or not B", "A and (", "Z", "not A"))),
        opened.edits.undo,
        opened.edits.redo,
        lambda: opened.search.find(decisions.one(_TEXTS)),
        QApplication.processEvents,
    ]
    if names:
        name = decisions.one(names)
        actions += [
            lambda: filters.remove_pass(name),
            lambda: filters.change_pass(name, is_inverted=True),
            lambda: filters.change_pass(name, is_on=False, expression=decisions.one(_TEXTS)),
        ]
    try:
        decisions.one(actions)()
    except SatviewError as error:
        str(error)


def json_file(rng: random.Random, sound: list[object]) -> bytes:
    """Return a file of JSON, often damaged."""
    text = json.dumps(rng.choice(sound)).encode()
    return mutate(
        rng, text, (b"[", b"{", b"null", b"[" * 3000, b"NaN", b'"marks"', b"1e999", b'"\\ud800"', b"9" * 6000)
    )


_NUMBERS = (0, -1, 1 << 32, 1 << 70, 4294967296 + 500, 4294968296, None, "x", 1.5, True)


def marks_file(rng: random.Random) -> bytes:
    """Return a file of marks."""
    rows = [
        {
            "start_cycles": rng.choice(_NUMBERS),
            "end_cycles": rng.choice(_NUMBERS),
            "text": rng.choice(("", "note", "x" * 5000, 3)),
            "later": [1],
        }
        for _ in range(rng.randrange(5))
    ]
    return json_file(rng, [{"satview_marks": 1, "marks": rows}, {"marks": rows}, rows, {}])


def run_marks(data: bytes, folder: Path) -> None:
    """Open a trace with a file of marks beside it, add one; both the new one and what the file held are there."""
    application()
    limits = TimeWindow(1 << 32, (1 << 32) + 100_000)
    path = folder / "t.kev"
    for old in folder.glob("*.json*"):
        old.unlink()
    file = path.with_name(path.name + SUFFIX)
    file.write_bytes(data)
    marks = Marks(path, limits)
    before = set(marks)
    mine = Mark((1 << 32) + 77, (1 << 32) + 99, "mine")
    marks.add(mine)
    assert marks.file.is_stored, marks.file.failure
    again = Marks(path, limits)
    assert before | {mine} <= set(again), "a mark is lost"
    if marks.file.notice:
        left = [old.read_bytes() for old in folder.glob(f"{file.name}.damaged-*")]
        assert data in left, "the damaged file was not set aside"
    for mark in list(again):
        again.remove(mark)
    assert not set(Marks(path, limits)), "a removed mark is back"


def settings_file(rng: random.Random) -> bytes:
    """Return a file of settings or recent files."""
    values = (0, 1, 10**30, -1, "dark", "x" * 300, True, None, 1.0, [], {})
    return json_file(
        rng,
        [
            {row.key: rng.choice(values) for row in rng.sample(SETTINGS, 4)} | {"newer/key": 1},
            ["/a", "b", 3, "\0", "x" * 5000],
            {},
            [],
        ],
    )


def run_settings(data: bytes, folder: Path) -> None:
    """Read settings and recent files from the same bytes; all values fit, and a change is stored."""
    application()
    for old in folder.glob("s.json*"):
        old.unlink()
    path = folder / "s.json"
    path.write_bytes(data)
    settings = Settings(path)
    assert all(row.fits(settings.value(row.key)) for row in SETTINGS)
    theme = "dark" if settings.text("window/theme") != "dark" else "light"
    settings.set("window/theme", theme)
    assert settings.file.is_stored, settings.file.failure
    assert Settings(path).text("window/theme") == theme
    path.write_bytes(data)
    recent = RecentFiles(path, 10)
    recent.files()
    recent.add(folder / "a.kev")
    assert recent.file.is_stored, recent.file.failure


def run_models(data: bytes, folder: Path) -> None:
    """Open a damaged trace as a window does, and request from every model everything it would show."""
    application()
    path = folder / "m.kev"
    path.write_bytes(data)
    try:
        trace = open_trace(path)
    except TraceFormatError:
        return
    loaded = LoadedTrace.of(trace)
    opened = OpenTrace(trace, loaded.timeline, Settings(None), None, loaded.events_of_thread, loaded.silent)
    try:
        opened.viewport.set_width(800)
        _read_model(EventListModel(opened, 20, LIGHT))
        found = Statistics(trace, trace.window)
        for make in TABLES.values():
            model = AnswerModel(LIGHT)
            model.show(make(found, None), "", is_descending=True)
            _read_model(model)
        _navigate(opened, Decisions(data[-60:]))
    finally:
        opened.shut_down()


def _read_model(model: EventListModel | AnswerModel) -> None:
    for row in range(min(40, model.rowCount())):
        for column in range(model.columnCount()):
            index = model.index(row, column)
            for role in _ROLES:
                model.data(index, role)
    for section in range(model.columnCount()):
        model.headerData(section, Qt.Orientation.Horizontal)


def _navigate(opened: OpenTrace, decisions: Decisions) -> None:
    navigation = Navigation(opened)
    lanes = len(opened.timeline.infos)
    actions = [
        partial(step, direction)
        for direction in (-1, 1)
        for step in (navigation.step_edge, navigation.step_event, navigation.step_hit, navigation.step_mark)
    ]
    actions += [
        opened.viewport.show_all,
        opened.viewport.back,
        navigation.show_partner,
        navigation.focus,
        navigation.fit,
        opened.lanes.fold_all,
        opened.lanes.unfold_all,
        partial(opened.viewport.zoom, 0.01, opened.trace.window.start),
        partial(opened.viewport.pan, 5.0),
        opened.edits.undo,
    ]
    for _ in range(20):
        if lanes and decisions.number(3) == 0:
            navigation.show_lane(decisions.number(lanes))
        if len(opened.trace.events) and decisions.number(3) == 0:
            navigation.show_event(decisions.number(min(60_000, len(opened.trace.events))))
        with suppress(SatviewError):  # such as: the selected event has no partner
            decisions.one(actions)()
        window = opened.viewport.window
        assert window.length > 0
        for lane in range(min(6, lanes)):
            opened.timeline.lane(lane)
