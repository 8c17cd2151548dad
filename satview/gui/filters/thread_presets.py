"""The button that chooses threads by what they did: used the CPU, changed state, did IPC, are sent to."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Slot
from PySide6.QtWidgets import QMenu, QPushButton, QWidget

from satview.analysis.statistics import Statistics
from satview.base.errors import UsageError
from satview.filters.views import presets
from satview.session.open_trace import OpenTrace
from satview.session.tasks import IsCancelled, Report, Task
from satview.store.trace import Trace

_TOP: Final = (3, 5, 10, 20)


class ThreadPresets(QPushButton):
    """Chooses in the background, then hides all other threads.

    Args:
        opened: The trace.
        picked: Rows of the threads that are selected in the panel.
        parent: Parent widget.
    """

    def __init__(self, opened: OpenTrace, picked: Callable[[], list[int]], parent: QWidget | None = None) -> None:
        super().__init__("Presets", parent)
        self.setProperty("flat", "true")
        self._opened = opened
        self._selected = picked
        self._title = ""
        self._job = Task(self)
        self._job.done.connect(self._on_done)
        self._job.failed.connect(self._on_failed)
        menu = QMenu(self)
        for title, choose in (
            ("Used the CPU", presets.used_cpu),
            ("Changed state", presets.changed_state),
            ("Did IPC", presets.did_ipc),
        ):
            menu.addAction(title, partial(self._start, title, choose))
        menu.addAction("MsgSend family of the selected", self._start_family)
        menu.addSeparator()
        for count in _TOP:
            title = f"Top {count} by CPU"
            menu.addAction(title, partial(self._start, title, partial(_top_by_cpu, count=count)))
        self.setMenu(menu)

    def close_down(self) -> None:
        """Cancel the background task."""
        self._job.close()

    def _start(self, title: str, choose: Callable[[Trace], NDArray[np.bool_]]) -> None:
        trace = self._opened.trace
        self._title = title

        def run(_is_cancelled: IsCancelled, _report: Report) -> object:
            return choose(trace)

        self._job.start(run)

    def _start_family(self) -> None:
        """Choose the selected threads and everyone they send to."""
        selected = np.zeros(len(self._opened.trace.threads), np.bool_)
        selected[self._selected() or self._selected_in_timeline()] = True
        if not selected.any():
            self._opened.filters.failed.emit("select a thread first, here or in the timeline")
            return
        self._start("MsgSend family", partial(presets.message_family, threads=selected))

    def _selected_in_timeline(self) -> list[int]:
        selection, opened = self._opened.selection, self._opened
        if selection.lane is not None:
            info = opened.timeline.infos[selection.lane]
            if info.thread > 0:
                return [info.thread]
            if info.process > 0:
                return [int(row) for row in np.flatnonzero(opened.trace.threads.process == info.process)]
        return [int(opened.trace.events.thread[selection.event])] if selection.event is not None else []

    @Slot(object)
    def _on_done(self, threads: object) -> None:
        if isinstance(threads, np.ndarray):
            rows = np.flatnonzero(threads)
            if not len(rows):
                self._opened.filters.failed.emit(f"{self._title}: no thread of this trace fits")
                return
            self._opened.filters.only_threads(rows, self._title)

    @Slot(object)
    def _on_failed(self, error: object) -> None:
        if not isinstance(error, UsageError):
            raise error if isinstance(error, Exception) else RuntimeError(error)
        self._opened.filters.failed.emit(str(error))


def _top_by_cpu(trace: Trace, count: int) -> NDArray[np.bool_]:
    return presets.top_by_cpu(trace, count, Statistics(trace).threads.cpu_cycles)
