"""Takes sheets of pictures of the lanes: five zooms side by side, light and dark, in several palettes.

`python tools/take_zoom_pictures.py [--scale 1|2] [--folder docs/images]`. Needs no display. One sheet for the dense
sample, one for ten million slots that the simulated kernel writes, one for a lesson. What is drawn can so be compared
at a glance: the same time in other colours below, a tenth of it to the right.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from satview.base.time import TimeWindow

if TYPE_CHECKING:
    from PySide6.QtGui import QPixmap
    from PySide6.QtWidgets import QApplication

    from satview.gui.windows.application import Application
    from satview.gui.windows.main_window import MainWindow

ROOT: Final = Path(__file__).resolve().parents[1]
ZOOMS: Final = (1.0, 0.1, 0.01, 0.001, 0.0001)
LOOKS: Final = (
    ("standard", "light"), ("standard", "dark"), ("colour-blind", "light"), ("colour-blind", "dark"),
    ("print", "light"),
)  # fmt: skip
TILE_PX: Final = (320, 270)
HEAD_PX: Final = 18
GAP_PX: Final = 4
LABELS_PX: Final = 92
LARGE: Final = 10_000_000  # slots, of three or so an event


def traces(folder: Path) -> dict[str, tuple[Path, float]]:
    """Return the traces by the name of their sheet, and where in them zooms go to; those that are not here are made."""
    large, lesson = folder / "large.kev", folder / "inversion.kev"
    program = [sys.executable, "-m", "satview", "tracelogger"]
    subprocess.run([*program, "--workload", "automotive", "--events", str(LARGE // 2), "-f", str(large)], check=True)
    subprocess.run([*program, "--workload", "inversion", "-s", "1", "-f", str(lesson)], check=True)
    sample = ROOT / "sample_traces" / "dense-4cpu.kev"
    return {"zooms-dense": (sample, 0.1425), "zooms-large": (large, 0.37), "zooms-lesson": (lesson, 0.4115)}


class Sheet:
    """Pictures in rows, with what they show above them."""

    def __init__(self, app: QApplication, application: Application, path: Path) -> None:
        from satview.session.session import Stage

        self._app, self._application = app, application
        self._window: MainWindow = application.new_window()
        self._window.session.adds_to_cache = False
        self._window.session.open(path)
        while self._window.session.stage is Stage.LOADING:
            app.processEvents()
        views = self._window.workspace
        assert views is not None
        for dock in views.docks.values():
            dock.hide()
        self._views, self._area = views, views.area
        self._area.show_legend(False)
        self._area.overview.hide()
        lanes = views.opened.lanes
        for info in views.opened.timeline.infos:
            if info.title.startswith("procnto"):  # the least of interest
                lanes.hide(info.index)
        application.settings.set("swimlane/label_width_px", LABELS_PX)
        self._area.setFixedSize(*TILE_PX)

    def take(self, centre: float) -> QPixmap:
        """Return the sheet; zooms go to a share of the trace."""
        from PySide6.QtCore import QRectF, Qt
        from PySide6.QtGui import QColor, QPainter, QPixmap

        ratio = self._window.devicePixelRatioF()
        width = (TILE_PX[0] + GAP_PX) * len(ZOOMS)
        height = (TILE_PX[1] + HEAD_PX) * len(LOOKS)
        sheet = QPixmap(round(width * ratio), round(height * ratio))
        sheet.setDevicePixelRatio(ratio)
        sheet.fill(QColor("white"))
        painter = QPainter(sheet)
        for row, (palette, theme) in enumerate(LOOKS):
            self._application.settings.set("swimlane/palette", palette)
            self._application.settings.set("window/theme", theme)
            for column, zoom in enumerate(ZOOMS):
                x, y = column * (TILE_PX[0] + GAP_PX), row * (TILE_PX[1] + HEAD_PX)
                tile = self._tile(zoom, centre)
                painter.setPen(QColor("black"))
                head = QRectF(x + 4, y, TILE_PX[0], HEAD_PX)
                painter.drawText(head, Qt.AlignmentFlag.AlignVCenter, f"{palette}, {theme}, {zoom:.2%} of the trace")
                painter.drawPixmap(x, y + HEAD_PX, tile)
        painter.end()
        return sheet

    def _tile(self, zoom: float, centre: float) -> QPixmap:
        opened, view = self._views.opened, self._area.view
        whole = opened.trace.window
        length = max(1, round(whole.length * zoom))
        start = whole.start + round((whole.length - length) * centre)
        opened.viewport.move(TimeWindow(start, start + length))
        while True:
            self._app.processEvents()
            view.repaint()  # requests what is not drawn exactly: a layout that came late may have changed the size
            if self._area.is_exact:
                break
        return self._area.grab(self._area.ruler.geometry().united(self._area.labels.geometry()).united(view.geometry()))


def main() -> int:
    """Take the sheets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=int, choices=(1, 2), default=1)
    parser.add_argument("--folder", type=Path, default=ROOT / "docs" / "images")
    options = parser.parse_args()
    os.environ["QT_SCALE_FACTOR"] = str(options.scale)
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from satview.gui.windows.application import Application, make_qt_application, silence_offscreen
    from satview.gui.windows.command_window import Shared
    from satview.session.loading.recent_files import RecentFiles
    from satview.session.settings import Settings

    silence_offscreen()
    app = make_qt_application()
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, (path, centre) in traces(Path(folder)).items():
            settings = Settings(None)
            settings.set("files/cache_mb", 0)
            settings.set("swimlane/lane_height_px", 15)
            application = Application(Shared(settings, RecentFiles(None, 0)))
            sheet = Sheet(app, application, path).take(centre)
            suffix = "" if options.scale == 1 else f"-{options.scale}x"
            sheet.save(str(options.folder / f"{name}{suffix}.png"), "PNG", 0)  # 0: as small as can be
            application.close_all()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
