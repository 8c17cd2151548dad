"""Takes sheets of pictures of traces of every kind, for a designer to look at: five zooms side by side, look by look.

`python tools/take_sheets.py [--scale 1|2] [--trace NAME] [--folder out/sheets]`. Needs no display. At 1600x1000, a
sheet has every zoom in every look; at the other sizes every zoom once, the looks in turn. `--docs` takes the sheets
of the docs instead: small, and only of lanes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from satview.base.time import TimeWindow

if TYPE_CHECKING:
    from PySide6.QtGui import QImage, QPixmap
    from PySide6.QtWidgets import QApplication

    from satview.gui.windows.application import Application
    from satview.gui.windows.main_window import MainWindow

Size = tuple[int, int]
ROOT: Final = Path(__file__).resolve().parents[1]
DENSE: Final = ROOT / "sample_traces" / "dense-4cpu.kev"
FEW_US: Final = 5
ZOOMS: Final = (1, 1 / 5, 1 / 50, 1 / 1000, 0)  # shares of the trace; 0: a few microseconds
LOOKS: Final = (("standard", "light"), ("standard", "dark"), ("colour-blind", "light"))
DOCS_LOOKS: Final = (*LOOKS, ("colour-blind", "dark"), ("print", "light"))
USUAL_SIZE: Final = (1600, 1000)
SIZES: Final[dict[int, Sequence[Size]]] = {
    1: (USUAL_SIZE, (1024, 700), (3840, 2160)),
    2: (USUAL_SIZE, (1024, 700), (1920, 1080)),  # the last is 3840x2160 pixels of the screen
}
DOCS_SIZE: Final = (320, 270)
DOCS_LABELS_PX: Final = 92
HEAD_PX: Final = 18
GAP_PX: Final = 4
LESSONS: Final = (
    "two-threads", "polite", "client-server", "inversion", "inheritance", "deadlock", "lost-wakeup", "message-deadlock",
    "nested-inversion", "convoy", "starvation", "partition-starvation", "nested-servers", "interrupt-flood", "periodic",
    "producer-consumer", "partitions", "fork-storm", "meeting-points", "signals", "instrumented", "small-system",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Subject:
    """A trace of a sheet.

    Attributes:
        path: Its file.
        centre: Share of its events before the one that zooms go to.
        beside: File of the trace it is compared with, if any.
        is_lesson: One of many that look alike: taken at one size, every zoom once.
    """

    path: Path
    centre: float = 0.5
    beside: Path | None = None
    is_lesson: bool = False


def subjects(folder: Path) -> dict[str, Callable[[], Subject]]:
    """Return what makes each trace, by the name of its sheet."""

    def captured(name: str, *options: str, seconds: str = "1") -> Path:
        path = folder / f"{name}.kev"
        length = () if "--events" in options else ("-s", seconds)
        command = [sys.executable, "-m", "satview", "tracelogger", *options, *length, "-f", str(path)]
        path.unlink(missing_ok=True)
        # Exit code 1 where the target ends in a deadlock, which is what some lessons are about.
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return path

    def lesson(name: str) -> Subject:
        return Subject(captured(name, "--workload", name), is_lesson=True)

    def damaged() -> Subject:
        content = bytearray(DENSE.read_bytes())
        del content[1_500_003:1_900_001]  # inside a slot
        content[3_000_000:3_050_000] = bytes(50_000)
        path = folder / "damaged.kev"
        path.write_bytes(content)
        return Subject(path)

    def listing() -> Subject:
        path = folder / "listing.txt"
        source = captured("client-server", "--workload", "client-server")
        subprocess.run([sys.executable, "-m", "satview", "traceprinter", "-f", source, "-o", path], check=True)
        return Subject(path)

    def linux() -> Subject:
        path = folder / "linux.txt"
        path.write_text(perf_script(), encoding="utf-8")
        return Subject(path)

    return {
        "dense": lambda: Subject(DENSE, 0.1425),
        "large": lambda: Subject(captured("large", "--workload", "automotive", "--events", "10000000")),
        "wide": lambda: Subject(
            captured("wide", "--workload", "automotive", "--cpus", "18", "-w", "--events", "1000000")
        ),
        "8.0": lambda: Subject(captured("8.0", "--workload", "automotive", "--release", "8.0")),
        "damaged": damaged,
        "listing": listing,
        "threads": lambda: Subject(ROOT / "sample_traces" / "threads"),
        "linux": linux,
        "compared": lambda: Subject(
            captured("inheritance", "--workload", "inheritance"), beside=lesson("inversion").path
        ),
        **{f"lesson-{name}": lambda name=name: lesson(name) for name in LESSONS},
    }


def perf_script() -> str:
    """Return what `perf script` prints of three threads that take turns on two CPUs."""
    threads = (("player", 100), ("mixer", 101), ("logger", 102))
    lines, running = [], {0: ("swapper/0", 0), 1: ("swapper/1", 0)}
    for turn in range(3000):
        cpu = turn % 2
        thread = threads[turn % 3] if turn % 5 else (f"swapper/{cpu}", 0)
        if thread[1] and thread in running.values():
            continue
        (name, number), running[cpu] = running[cpu], thread
        state = "R" if not number or turn % 7 == 0 else "S"
        lines.append(
            f"{name:>12} {number:5} [{cpu:03}] {5 + turn * 0.000333:12.6f}: sched:sched_switch: prev_comm={name} "
            f"prev_pid={number} prev_prio=120 prev_state={state} ==> next_comm={thread[0]} next_pid={thread[1]} "
            "next_prio=120\n"
        )
    return "".join(lines)


class Photographer:
    """A window that shows one trace, at zooms and in looks."""

    def __init__(self, app: QApplication, application: Application, subject: Subject) -> None:
        from satview.gui.windows.looks import show_link
        from satview.session.session import Stage
        from satview.session.trace_link import TraceLink

        self._app, self._application, self._subject = app, application, subject
        self.window: MainWindow = application.new_window()
        self.window.resize(*USUAL_SIZE)
        self.window.session.adds_to_cache = False
        self.window.session.open(subject.path)
        self._wait_while(lambda: self.window.session.stage is Stage.LOADING)
        assert self.window.workspace is not None
        self._views = self.window.workspace
        if subject.beside is not None:
            show_link(self.window, TraceLink(subject.path, beside=str(subject.beside)))

    def _wait_while(self, is_pending: Callable[[], bool]) -> None:
        while is_pending():
            self._app.processEvents()
            time.sleep(0.002)  # the workers need the interpreter

    def show_only_lanes(self) -> None:
        """Hide all but the lanes, and of them those of the kernel."""
        for dock in self._views.docks.values():
            dock.hide()
        area, opened = self._views.area, self._views.opened
        area.show_legend(False)
        area.overview.hide()
        for info in opened.timeline.infos:
            if info.title.startswith("procnto"):  # the least of interest
                opened.lanes.hide(info.index)
        area.setFixedSize(*DOCS_SIZE)

    def lanes(self) -> QPixmap:
        """Return a picture of the lanes, their names and their ruler."""
        area = self._views.area
        return area.grab(area.ruler.geometry().united(area.labels.geometry()).united(area.view.geometry()))

    def sheet(self, size: Size, looks: Sequence[tuple[str, str]], take: Callable[[], QPixmap], rows: int) -> QImage:
        """Return a sheet of `rows` rows of pictures: one for each look, or one row where looks take turns."""
        from PySide6.QtCore import QRectF, Qt
        from PySide6.QtGui import QColor, QImage, QPainter

        ratio = self.window.devicePixelRatioF()
        width, height = (size[0] + GAP_PX) * len(ZOOMS), (size[1] + HEAD_PX) * rows
        sheet = QImage(round(width * ratio), round(height * ratio), QImage.Format.Format_RGB32)
        sheet.setDevicePixelRatio(ratio)
        sheet.fill(QColor("white"))
        painter = QPainter(sheet)
        for number, look in enumerate(looks):  # a look is set once for all its pictures: that takes long
            palette, theme = look
            self._application.settings.set("swimlane/palette", palette)
            self._application.settings.set("window/theme", theme)
            for column, zoom in enumerate(ZOOMS):
                if rows == 1 and column % len(looks) != number:
                    continue
                x, y = column * (size[0] + GAP_PX), (number if rows > 1 else 0) * (size[1] + HEAD_PX)
                self._show(zoom)
                title = f"{palette}, {theme}, {f'{zoom:.1%} of the trace' if zoom else f'{FEW_US} µs'}"
                painter.setPen(QColor("black"))
                painter.drawText(QRectF(x + 4, y, size[0], HEAD_PX), Qt.AlignmentFlag.AlignVCenter, title)
                painter.drawPixmap(x, y + HEAD_PX, take())
        painter.end()
        return sheet

    def _show(self, zoom: float) -> None:
        from satview.gui.windows.screenshot import is_settled

        opened = self._views.opened
        whole, times = opened.trace.window, opened.trace.events.time_cycles
        few = opened.trace.clock.cycles_of(FEW_US * 1000)
        length = max(1, round(whole.length * zoom) or few)
        middle = int(times[int((len(times) - 1) * self._subject.centre)])
        start = max(whole.start, min(middle - length // 2, whole.start + whole.length - length))
        opened.viewport.move(TimeWindow(start, start + length))
        self._app.processEvents()
        self._wait_while(lambda: not is_settled(self.window))
        self._app.processEvents()


def main() -> int:
    """Take the sheets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=int, choices=(1, 2), default=1)
    parser.add_argument("--trace", action="append", help="only this one")
    parser.add_argument("--folder", type=Path, default=ROOT / "out" / "sheets")
    parser.add_argument("--docs", action="store_true", help="take the sheets of the docs")
    options = parser.parse_args()
    os.environ["QT_SCALE_FACTOR"] = str(options.scale)
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from satview.gui.windows.application import Application, make_qt_application, silence_offscreen
    from satview.gui.windows.command_window import Shared
    from satview.session.loading.files import RecentFiles
    from satview.session.settings import Settings

    silence_offscreen()
    app = make_qt_application()
    traces = ROOT / "out" / "traces"
    for folder in (options.folder, traces):
        folder.mkdir(parents=True, exist_ok=True)
    makers = subjects(traces)
    for name in options.trace or (("dense", "large", "lesson-inversion") if options.docs else makers):
        subject = makers[name]()
        if subject.is_lesson and options.scale > 1:
            continue
        settings = Settings(None)
        settings.set("files/cache_mb", 0)
        if options.docs:
            settings.set("swimlane/lane_height_px", 15)
            settings.set("swimlane/label_width_px", DOCS_LABELS_PX)
        application = Application(Shared(settings, RecentFiles(None, 0)))
        photographer = Photographer(app, application, subject)
        window = photographer.window
        if options.docs:
            photographer.show_only_lanes()
            picture = photographer.sheet(DOCS_SIZE, DOCS_LOOKS, photographer.lanes, len(DOCS_LOOKS))
            picture.save(str(options.folder / f"zooms-{name.split('-')[0]}.png"), "PNG", 0)  # 0: as small as can be
        for size in () if options.docs else SIZES[options.scale][: 1 if subject.is_lesson else None]:
            window.resize(*size)
            app.processEvents()
            rows = len(LOOKS) if size == USUAL_SIZE and not subject.is_lesson else 1
            picture = photographer.sheet(size, LOOKS, window.grab, rows)
            file = options.folder / f"{name}-{size[0]}x{size[1]}-{options.scale}x.png"
            picture.save(str(file), "PNG", 80)  # compressed a little: quick
        application.close_all()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
