"""Saves pictures of the window."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice
from PySide6.QtGui import QImage, QPixmap

from satview.base.errors import WriteError
from satview.base.new_file import write_file


def save_png(picture: QImage | QPixmap, path: Path, reading: Sequence[Path], *, streams: bool = False) -> None:
    """Write a picture as PNG, whatever the name ends in.

    Args:
        picture: What to write.
        path: The file; replaced once the picture is complete.
        reading: Files that must not be replaced: those of the trace.
        streams: Pipes and devices are written to.

    Raises:
        WriteError: The file cannot be written, or the picture is empty.
    """
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    is_made = picture.save(buffer, "PNG")  # type: ignore[call-overload]  # the stubs name QIODevice, QBuffer is one
    buffer.close()
    if not is_made:
        raise WriteError(path, "the picture is empty")
    write_file(path, bytes(data.data()), reading=reading, streams=streams)
