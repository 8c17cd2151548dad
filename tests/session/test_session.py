from __future__ import annotations

import pytest

from satview.session.open_trace import OpenTrace
from satview.session.session import Session, Stage
from satview.session.settings import Settings
from tests.helpers.kev import TraceBuilder
from tests.helpers.scene import scene


@pytest.fixture
def session(qapp):
    session = Session(Settings(None))
    yield session
    session.shut_down()


def wait(qtbot, session):
    qtbot.waitUntil(lambda: session.stage is not Stage.LOADING)


def test_opens_a_trace(session, qtbot, tmp_path):
    stages = []
    session.stage_changed.connect(lambda: stages.append(session.stage))
    session.open(scene(tmp_path))
    wait(qtbot, session)
    assert stages == [Stage.LOADING, Stage.READY]
    assert len(session.opened.timeline.infos) == 6


def test_closed_before_the_window_has_its_turn(session, qtbot, tmp_path):
    stages, closed = [], []

    def close():
        assert session.stage is Stage.LOADING  # what was read is there, but nobody has been told
        assert session.opened is None
        session.close()
        closed.append(True)

    session.stage_changed.connect(lambda: stages.append(session.stage))
    session._job.done.connect(close)  # called after the session's own slot
    session.open(scene(tmp_path))
    qtbot.waitUntil(lambda: bool(closed))
    qtbot.wait(20)
    assert stages == [Stage.LOADING, Stage.EMPTY]
    assert session.opened is None
    assert not session.findChildren(OpenTrace)


def test_cpus_that_logged_nothing_are_hidden_where_there_are_many(session, qtbot, tmp_path):
    builder = TraceBuilder(cpus=12).time_event(0).state("RUNNING", 10, 2, 1, cpu=0).state("RUNNING", 20, 3, 1, cpu=11)
    session.open(builder.write(tmp_path / "many.kev"))
    wait(qtbot, session)
    opened = session.opened

    def cpus():
        infos = [opened.timeline.infos[row.index] for row in opened.lanes.rows]
        return [info.cpu for info in infos if info.cpu >= 0]

    assert cpus() == [0, 11]
    assert opened.lanes.hidden_count == 10
    opened.lanes.show_all()
    assert cpus() == list(range(12))
