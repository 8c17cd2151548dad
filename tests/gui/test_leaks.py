"""The guard that every test of windows runs under finds what a test leaves behind."""

from __future__ import annotations

import threading

import pytest
from PySide6.QtCore import QRunnable, QThreadPool, QTimer
from PySide6.QtWidgets import QDialog, QLabel

from satview.session.tasks import Task
from tests.gui.leaks import Living, outliving


@pytest.fixture
def left():
    """Return a function that shows what is left since the test began."""
    before = Living.now()
    return lambda: outliving(before, 0.05)


def test_a_widget(left):
    label = QLabel("left over")
    label.setObjectName("forgotten")
    assert left() == ["QLabel 'forgotten'"]
    label.deleteLater()
    assert left() == []


def test_a_hidden_dialog_with_what_is_in_it(left):
    dialog = QDialog()
    QLabel("inside", dialog)
    dialog.close()  # without WA_DeleteOnClose it stays
    assert left() == ["QDialog", "QLabel"]
    dialog.deleteLater()


def test_a_timer(left):
    timer = QTimer()
    timer.start(10_000)
    assert left() == ["timer of nobody"]
    timer.stop()
    assert left() == []


def test_work_of_a_job(left):
    job, may_end = Task(), threading.Event()
    job.start(lambda _cancelled: may_end.wait(10))
    assert left() == ["pool of Task"]
    may_end.set()
    job.close()
    assert left() == []


def test_work_of_the_shared_pool(left):
    may_end = threading.Event()

    class Wait(QRunnable):
        def run(self):
            may_end.wait(10)

    pool = QThreadPool.globalInstance()
    pool.start(Wait())
    assert left() == ["pool of nobody"]
    may_end.set()
    pool.waitForDone()


def test_a_thread(left):
    may_end = threading.Event()
    thread = threading.Thread(target=may_end.wait, args=(10,), name="forgotten")
    thread.start()
    assert left() == ["thread forgotten"]
    may_end.set()
    thread.join()
    assert left() == []


def test_what_only_a_cycle_holds_is_collected(left):
    class Holder:
        pass

    holder = Holder()
    holder.label, holder.itself = QLabel("in a cycle"), holder
    del holder
    assert left() == []
