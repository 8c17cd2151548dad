"""Gives a closed trace's memory back at once: what Qt deletes lets go of its data, whatever still refers to it."""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import Any, Final

from PySide6.QtCore import QObject, QTimer

from satview.base.memory import give_back

_under_way: Final[set[int]] = set()
_numbers = count()


def dismantle(root: QObject) -> None:
    """Delete a tree of Qt objects later, and empty our own objects in it as soon as that is done.

    Widgets refer to each other both ways (parents, signals, models), so their Python halves wait for the garbage
    collector; without this every array behind them would wait as well.
    """
    owned = [vars(item) for item in (root, *root.findChildren(QObject)) if type(item).__module__.startswith("satview")]
    number = next(_numbers)
    _under_way.add(number)
    # One pass of the event loop later: while Qt takes the tree apart it may still call them.
    root.destroyed.connect(partial(QTimer.singleShot, 0, partial(_empty, owned, number)))
    root.deleteLater()


def _empty(owned: list[dict[str, Any]], number: int, *_: object) -> None:
    for attributes in owned:
        attributes.clear()
    _under_way.discard(number)
    if not _under_way:  # a window is a dozen trees, and the system takes 5 ms each time
        give_back()
