"""The line under what the user types: a hint, a result, or what is wrong."""

from __future__ import annotations

from satview.gui.plain_label import PlainLabel
from satview.gui.theme import restyle


class MessageLine(PlainLabel):
    """A label that shows texts in the colour of their role."""

    def say(self, text: str, role: str) -> None:
        """Show a text; role: dim, faint or error."""
        self.setText(text)
        restyle(self, "role", role)
