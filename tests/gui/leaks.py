"""What a test may not leave behind: widgets, timers that run, work in the background, threads."""

from __future__ import annotations

import gc
import threading
import time
from dataclasses import dataclass

import shiboken6
from PySide6.QtCore import QEvent, QThreadPool, QTimer
from PySide6.QtWidgets import QApplication

_PATIENCE_S = 2.0
_SHARED_THREADS = ("satview-watchdog",)  # one per process, for all files that are mapped


def _address(thing):
    """Return what shows an object of Qt from others: a wrapper of Python may come and go while the object stays."""
    return shiboken6.getCppPointer(thing)[0]


@dataclass(frozen=True)
class Living:
    """What is there at one moment, by address or thread number; the value says what it is.

    Attributes:
        widgets: All widgets, of windows that are closed but not deleted too.
        timers: Timers that run.
        pools: Thread pools that work.
        threads: Threads of Python that no pool of Qt owns.
    """

    widgets: dict
    timers: dict
    pools: dict
    threads: dict

    @classmethod
    def now(cls):
        wrappers = shiboken6.getAllValidWrappers()
        timers = [each for each in wrappers if isinstance(each, QTimer)]
        pools = [each for each in wrappers if isinstance(each, QThreadPool)]
        return cls(
            {_address(each): _described(each) for each in QApplication.allWidgets()},
            {_address(each): f"timer of {_described(each.parent())}" for each in timers if each.isActive()},
            {_address(each): f"pool of {_described(each.parent())}" for each in pools if each.activeThreadCount()},
            {
                each.ident: f"thread {each.name}"
                for each in threading.enumerate()
                if not isinstance(each, threading._DummyThread) and each.name not in _SHARED_THREADS
            },
        )

    def beyond(self, before):
        """Return in words what is there and was not before."""
        pairs = (
            (self.widgets, before.widgets),
            (self.timers, before.timers),
            (self.pools, before.pools),
            (self.threads, before.threads),
        )
        return sorted(text for here, there in pairs for key, text in here.items() if key not in there)


def _described(thing):
    if thing is None:
        return "nobody"
    return f"{type(thing).__name__} {thing.objectName()!r}".removesuffix(" ''")


def delete_later_now():
    """Carry out what `deleteLater` has promised; without an event loop nobody else does."""
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    QApplication.processEvents()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


def outliving(before, patience_s=_PATIENCE_S):
    """Return what outlives a test, in words; work that is just ending gets a moment, cycles are collected.

    Args:
        before: What was there when the test began.
        patience_s: How long to wait for what is ending.
    """
    delete_later_now()
    left = Living.now().beyond(before)
    end_s = time.monotonic() + patience_s
    while left and time.monotonic() < end_s:
        gc.collect()
        delete_later_now()
        left = Living.now().beyond(before)
        time.sleep(0.01)
    return left
