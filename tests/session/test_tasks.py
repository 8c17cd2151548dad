from __future__ import annotations

import threading
import time

import pytest
from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication

from satview.base.errors import Cancelled
from satview.session.tasks import Task


@pytest.fixture
def job(qapp):
    job = Task()
    yield job
    job.close()


def test_result_arrives(job, qtbot):
    with qtbot.waitSignal(job.done) as reported:
        job.start(lambda is_cancelled: 42)
    assert reported.args == [42]
    assert not job.is_busy


def test_no_progress_is_reported_once_patience_has_seen_the_end(job, qapp):
    reported = []
    job.progress.connect(reported.append)
    job.done.connect(reported.append)

    def work(is_cancelled, report):
        report(0.0)
        return "end"

    job.start_reporting(work, 5.0)
    qapp.processEvents()
    assert reported == ["end"]


def test_newest_wins(job, qtbot):
    release, results, was_stopped = threading.Event(), [], []

    def slow(is_cancelled):
        release.wait(5)
        was_stopped.append(is_cancelled())
        return "old"

    job.done.connect(results.append)
    job.start(slow)
    job.start(lambda is_cancelled: "new")
    release.set()
    qtbot.waitUntil(lambda: bool(results))
    assert results == ["new"]
    assert was_stopped in ([], [True])  # reported to stop, or never begun


def test_failure_arrives_as_the_exception(job, qtbot):
    def bad(is_cancelled):
        raise ValueError("broken")

    with qtbot.waitSignal(job.failed) as reported:
        job.start(bad)
    assert isinstance(reported.args[0], ValueError)


def test_cancelled_work_says_nothing(job, qtbot):
    began, reported = threading.Event(), []

    def work(is_cancelled):
        began.set()
        while not is_cancelled():
            pass
        raise Cancelled

    job.done.connect(reported.append)
    job.failed.connect(reported.append)
    job.start(work)
    assert began.wait(5)
    job.close()
    qtbot.wait(20)
    assert reported == []


def test_progress_is_reported_but_not_too_often(job, qtbot):
    shares = []
    job.progress.connect(shares.append)

    def work(is_cancelled, report):
        for i in range(10_000):
            report(i / 10_000)

    with qtbot.waitSignal(job.done):
        job.start_reporting(work)
    assert 1 <= len(shares) < 100
    assert shares == sorted(shares)


def test_a_task_that_is_destroyed_stops_what_it_runs(qapp):
    """As a window that closes destroys its dialogs, which would wait for the end of what they do."""
    owner, stopped = QObject(), []
    began = threading.Event()

    def work(is_cancelled):
        began.set()
        end_s = time.monotonic() + 5
        while not is_cancelled() and time.monotonic() < end_s:
            time.sleep(0.01)
        stopped.append(is_cancelled())

    Task(owner).start(work)
    assert began.wait(5)
    owner.deleteLater()
    QApplication.sendPostedEvents(owner, QEvent.Type.DeferredDelete.value)
    assert stopped == [True]
