"""The filter entries of context menus: filter to, exclude and highlight, for each property of the selection."""

from __future__ import annotations

from functools import partial
from typing import Final

from PySide6.QtWidgets import QMenu

from satview.base.errors import UsageError
from satview.base.safe_text import menu_text, tool_tip
from satview.filters.views.passes import Effect
from satview.session.open_trace import OpenTrace
from satview.session.panels.event_conditions import Proposal, proposals

_GROUPS: Final = (
    ("Filter &to", "{}", Effect.HIDE),
    ("E&xclude", "({}) is not true", Effect.HIDE),  # keeps events where the condition is unknown
    ("Hi&ghlight", "{}", Effect.MARK),
)
_TITLE_LENGTH: Final = 60


def add_filter_menus(menu: QMenu, opened: OpenTrace, argument: str = "") -> None:
    """Add the filter entries for the present selection.

    Args:
        menu: The context menu.
        opened: The trace.
        argument: Name of the clicked argument, whose entries are added to the menu itself; empty = none.
    """
    offered = proposals(opened)
    clicked = [proposal for proposal in offered if proposal.what == argument]
    for title, pattern, effect in _GROUPS:
        for proposal in clicked[:1]:
            _add(menu, opened, f"{title} {_name(proposal)}", pattern.format(proposal.expression), effect)
    if clicked:
        menu.addSeparator()
    for title, pattern, effect in _GROUPS:
        inner = menu.addMenu(title)
        inner.setEnabled(bool(offered))
        for i, proposal in enumerate(offered):
            if i and proposal.is_argument and not offered[i - 1].is_argument:
                inner.addSeparator()
            _add(inner, opened, _name(proposal), pattern.format(proposal.expression), effect)


def _name(proposal: Proposal) -> str:
    title = " ".join(proposal.title.split())
    if len(title) > _TITLE_LENGTH:
        title = title[: _TITLE_LENGTH - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return menu_text(
        f"{proposal.what} = {title}" if proposal.is_argument else f"This {_lower(proposal.what)}:  {title}"
    )


def _lower(what: str) -> str:
    return what if what.isupper() else what.lower()


def _add(menu: QMenu, opened: OpenTrace, text: str, expression: str, effect: Effect) -> None:
    action = menu.addAction(text)
    action.setToolTip(tool_tip(expression))
    action.triggered.connect(partial(_run, opened, expression, effect))


def _run(opened: OpenTrace, expression: str, effect: Effect) -> None:
    try:
        opened.filters.add_pass(expression, effect=effect)
    except UsageError as error:
        opened.filters.failed.emit(str(error))
