"""Links in texts of panels: to an event, to the lane of a thread or process, to a thread at a moment."""

from __future__ import annotations

from PySide6.QtCore import QUrl

from satview.gui.theme import Theme, css
from satview.session.navigation import Navigation


def linked(target: str, html: str, theme: Theme) -> str:
    """Return text as a link that `follow` understands.

    Args:
        target: `event:ROW`, `thread:ROW`, `process:ROW` or `at:THREAD/CYCLES`.
        html: What it shows.
        theme: The colours.
    """
    return f"<a href='{target}' style='color:{css(theme.accent)}; text-decoration:none'>{html}</a>"


def follow(navigation: Navigation, url: QUrl) -> None:
    """Go where a link leads; nowhere if it is another kind of link."""
    where = url.path()
    if url.scheme() == "event" and where.isdigit():
        navigation.show_event(int(where))
    elif url.scheme() in ("thread", "process") and where.isdigit():
        navigation.show_owner(url.scheme() == "thread", int(where))
    elif url.scheme() == "at":
        thread, _, cycles = where.partition("/")
        navigation.show_interval(int(thread), int(cycles))
