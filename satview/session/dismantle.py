"""Gives a closed trace's memory back at once: what Qt deletes lets go of its data, whatever still refers to it."""

from __future__ import annotations

from functools import partial
from typing import Any

from PySide6.QtCore import QObject, QTimer

from satview.base.memory import give_back


def dismantle(root: QObject) -> None:
    """Delete a tree of Qt objects later, and empty our own objects in it as soon as that is done.

    Widgets refer to each other both ways (parents, signals, models), so their Python halves wait for the garbage
    collector; without this every array behind them would wait as well.
    """
    owned = [vars(item) for item in (root, *root.findChildren(QObject)) if type(item).__module__.startswith("satview")]
    # A turn of the event loop later: while Qt takes the tree apart it may still call them.
    root.destroyed.connect(partial(QTimer.singleShot, 0, partial(_empty, owned)))
    root.deleteLater()


def _empty(owned: list[dict[str, Any]], *_: object) -> None:
    for attributes in owned:
        attributes.clear()
    give_back()
