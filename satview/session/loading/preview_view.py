"""The preview of a trace that is still being read, and which part of it shows."""

from __future__ import annotations

from PySide6.QtCore import QObject

from satview.session.viewport import Viewport, with_margin
from satview.timeline.preview import Preview


class PreviewView(QObject):
    """What a window shows until a trace is read.

    Attributes:
        preview: The data, read-only.
        viewport: The part that shows; the trace begins with it if the user has moved there.
    """

    def __init__(self, preview: Preview, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.preview = preview
        self.viewport = Viewport(with_margin(preview.window), self, preview.window.end)
