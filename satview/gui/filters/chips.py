"""Shows the active filters as chips (small boxes) above the lanes, and fills menus with filters for the selection."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLayout,
    QLayoutItem,
    QMenu,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from satview.base.errors import UsageError
from satview.base.safe_text import menu_text, tool_tip
from satview.events.spec import Argument
from satview.events.states import NOT_A_STATE, STATE_BY_VALUE
from satview.filters.derived_columns import DerivedColumns
from satview.filters.diagnostics import ExpressionError
from satview.filters.expressions.expression import Expression, validate
from satview.filters.expressions.syntax import in_quotes
from satview.filters.passes import Effect, Pass, pass_limits
from satview.gui.theme import Theme, css
from satview.gui.widgets import LinePrompt, PlainLabel, flat_button, line_up
from satview.session.filter_stack import pass_title
from satview.session.open_trace import OpenTrace
from satview.store.arguments import taught
from satview.store.trace import Trace

# Filter conditions that describe the selection: its thread, process, event, class, CPU, state, arguments.


_TEXT_MAX: Final = 80
_FUNCTION: Final = "thisfn"  # the argument that only entries and exits of functions have
_GLOB_SIGNS: Final = re.compile(r"[*?[]")


@dataclass(frozen=True, slots=True)
class Proposal:
    """A condition that the selection meets, proposed as a filter.

    Attributes:
        what: Kind of condition: `Thread`, `Process`, `Event`, `Class`, `CPU`, `State`, or the name of an argument.
        title: The value in the condition, as shown to the user.
        expression: The condition.
        is_argument: True for arguments and payload words.
    """

    what: str
    title: str
    expression: str
    is_argument: bool = False


def proposals(opened: OpenTrace) -> tuple[Proposal, ...]:
    """Return filter conditions that the current selection meets: thread and process first, then event and state."""
    trace, selection = opened.trace, opened.selection
    offered: list[Proposal] = []
    event = selection.event
    thread = 0
    if selection.span is not None and selection.span.thread > 0:
        thread = selection.span.thread
    elif selection.lane is not None:
        info = opened.timeline.infos[selection.lane]
        thread = info.thread
        if not thread and info.process > 0 and event is None:
            offered.append(of_process(trace, info.process))
    if event is not None:
        thread = int(trace.events.thread[event]) or thread
    if thread > 0:
        offered += of_thread(trace, thread)
    if event is not None:
        offered += of_event(trace, event)
    if selection.span is not None and selection.span.value in STATE_BY_VALUE:
        name = STATE_BY_VALUE[selection.span.value].name
        if validate(f"state == {name}", trace.release) is None:
            offered.append(Proposal("State", name, f"state == {name}"))
    unique = {proposal.expression: proposal for proposal in reversed(offered)}
    return tuple(reversed(unique.values()))


def of_thread(trace: Trace, thread: int) -> Iterator[Proposal]:
    """Yield conditions for a thread and for its process."""
    pid, tid = int(trace.threads.pid[thread]), int(trace.threads.tid[thread])
    if tid > 0:
        yield Proposal("Thread", trace.thread_name(thread), f"pid == {pid} and tid == {tid}")
    yield of_process(trace, int(trace.threads.process[thread]))


def of_process(trace: Trace, process: int) -> Proposal:
    """Return the condition for a process."""
    return Proposal("Process", trace.process_name(process), f"pid == {int(trace.processes.pid[process])}")


def of_event(trace: Trace, event: int) -> Iterator[Proposal]:
    """Yield conditions that an event meets, one each for its kind, class, state, CPU and arguments."""
    code = int(trace.events.code[event])
    spec = trace.spec(event)
    kind = f"class == {spec.class_name} and event == {_word(spec.name)}"
    if not _fits(trace, event, kind):
        kind = f"code == {code}"
    yield Proposal("Event", spec.label or spec.name, kind)
    if _fits(trace, event, f"class == {_word(spec.class_name)}"):
        yield Proposal("Class", spec.class_name, f"class == {_word(spec.class_name)}")
    value = int(trace.catalogue.state_value_of_code[code])
    if value != NOT_A_STATE and value in STATE_BY_VALUE:
        name = STATE_BY_VALUE[value].name
        if _fits(trace, event, f"state == {name}"):
            yield Proposal("State", name, f"state == {name}")
    yield Proposal("CPU", str(int(trace.events.cpu[event])), f"cpu == {int(trace.events.cpu[event])}")
    for argument in trace.payloads.decode(event, 40).arguments[:40]:
        for condition in _argument_conditions(argument):
            if _fits(trace, event, condition):
                # Both entry and exit of a function, so that its calls stay complete.
                whole = condition if argument.name == _FUNCTION else f"{kind} and {condition}"
                yield Proposal(argument.name, argument.text, whole, is_argument=True)
                break


def _argument_conditions(argument: Argument) -> Iterator[str]:
    name = _word(argument.name)
    if isinstance(argument.value, int):
        value = argument.value
        number = hex(value) if argument.text.startswith("0x") and value >= 0 else str(value)
        yield f"arg.{name} == {number}"
        yield f"arg.{name} == {value & 0xFFFFFFFF}"
        if argument.words == 1:
            yield f"word[{argument.first_word}] == {value & 0xFFFFFFFF:#x}"
    elif isinstance(argument.value, str):
        text = argument.value[:_TEXT_MAX]
        if text.isprintable():
            yield f"arg.{name} == {in_quotes(text)}"
            yield f"text == {in_quotes(text)}"
            literal = _GLOB_SIGNS.sub(r"[\g<0>]", text)
            yield f"text ~ {in_quotes(f'*{literal}*')}"


class _NoDerivedColumns:
    """Stand-in for derived columns, all -1: proposed conditions test no durations, priorities or latencies."""

    def duration_ns(self, rows: NDArray[np.integer]) -> NDArray[np.int64]:
        return np.full(len(rows), -1, np.int64)

    state_length_ns = priority = latency_ns = duration_ns


_NO_DERIVED_COLUMNS: Final[DerivedColumns] = _NoDerivedColumns()


def _fits(trace: Trace, event: int, text: str) -> bool:
    """Return whether a condition is valid and holds for an event."""
    try:
        condition = Expression(text, trace.release, taught=taught(trace))
        return bool(condition.mask(trace, np.array([event], np.uint32), _NO_DERIVED_COLUMNS)[0])
    except ExpressionError:
        return False


def _word(name: str) -> str:
    return name if name.isidentifier() else in_quotes(name)


# A chip.


@dataclass(frozen=True, slots=True)
class ChipText:
    """Content of a `Chip`: text, number of matching events, tool tip, and the style `on`, `mark` or `off`."""

    text: str
    count: str
    tip: str
    state: str


class Chip(QFrame):
    """A small box with one filter, which can be switched off or removed.

    A chip is reused for another filter, because creating a widget takes milliseconds.

    Signals:
        clicked, dropped: The label or the cross was clicked; sends the name of the filter.
        menu_requested: The chip was right-clicked; sends the name of the filter and the global position of the mouse.
    """

    clicked = Signal(str)
    dropped = Signal(str)
    menu_requested = Signal(str, QPoint)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.name = ""
        self.label = QPushButton(self)
        self.label.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.label.clicked.connect(self._on_label)
        self.count = PlainLabel(self)
        self.count.setObjectName("chipCount")
        self.cross = QToolButton(self)
        self.cross.setText("\N{MULTIPLICATION SIGN}")
        self.cross.setToolTip("Remove this filter")
        self.cross.clicked.connect(self._on_cross)
        self.cross.installEventFilter(self)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._on_menu)
        line_up(QHBoxLayout(self), self.label, self.count, self.cross, margins=(8, 1, 3, 1), spacing=6)
        self.setFixedHeight(chip_height_px(self))
        self._content: ChipText | None = None

    def say(self, content: ChipText) -> None:
        """Show other text, number and style."""
        if content == self._content:
            return
        if self._content is None or content.state != self._content.state:
            self.setProperty("chip", content.state)
            for part in (self, self.label, self.count, self.cross):
                part.style().unpolish(part)
                part.style().polish(part)
        self._content = content
        self.label.setText(menu_text(content.text))
        self.label.setToolTip(tool_tip(content.tip))
        self.label.setAccessibleName(f"Filter {content.text}, {content.count}")
        self.count.setText(content.count)
        self.cross.setAccessibleName(f"Take filter {content.text} away")

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Suppress the context menu on the cross."""
        return event.type() == QEvent.Type.ContextMenu

    @Slot()
    def _on_label(self) -> None:
        self.clicked.emit(self.name)

    @Slot()
    def _on_cross(self) -> None:
        self.dropped.emit(self.name)

    @Slot(QPoint)
    def _on_menu(self, position: QPoint) -> None:
        self.menu_requested.emit(self.name, self.mapToGlobal(position))


def chip_height_px(widget: QWidget) -> int:
    """Return the height of a chip, which is constant, so that the lanes below do not move."""
    return widget.fontMetrics().height() + 11


# A wrapping layout.


class FlowLayout(QLayout):
    """A layout that arranges items from left to right, in as many rows as needed."""

    def __init__(self, parent: QWidget, gap_px: int = 6) -> None:
        super().__init__(parent)
        self._items: list[QLayoutItem] = []
        self._gap_px = gap_px

    def addItem(self, item: QLayoutItem) -> None:
        """Add an item at the end."""
        self._items.append(item)

    def count(self) -> int:
        """Return the number of items."""
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        """Return an item, or None beyond the last."""
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        """Remove and return an item; None beyond the last."""
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        """Return no direction: the layout does not expand."""
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        """Return True: the height depends on the width."""
        return True

    def heightForWidth(self, width: int) -> int:
        """Return the height for a width."""
        return self._lay_out(QRect(0, 0, width, 0), moves=False)

    def setGeometry(self, rect: QRect) -> None:
        """Lay out the items."""
        super().setGeometry(rect)
        self._lay_out(rect, moves=True)

    def sizeHint(self) -> QSize:
        """Return the minimum size."""
        return self.minimumSize()

    def minimumSize(self) -> QSize:
        """Return the size of the largest item."""
        size = QSize(0, 0)
        for item in self._items:
            size = size.expandedTo(item.minimumSize())
        margins = self.contentsMargins()
        return size + QSize(margins.left() + margins.right(), margins.top() + margins.bottom())

    def _lay_out(self, rect: QRect, *, moves: bool) -> int:
        margins = self.contentsMargins()
        left, right = rect.x() + margins.left(), rect.right() - margins.right()
        x, y, row_px = left, rect.y() + margins.top(), 0
        for item in self._items:
            if item.isEmpty():  # hidden
                continue
            size = item.sizeHint()
            size.setWidth(min(size.width(), max(40, right - left)))
            if x > left and x + size.width() > right:
                x, y, row_px = left, y + row_px + self._gap_px, 0
            if moves:
                item.setGeometry(QRect(QPoint(x, y), size))
            x += size.width() + self._gap_px
            row_px = max(row_px, size.height())
        return y + row_px + margins.bottom() - rect.y()


EFFECTS: Final = {
    Effect.HIDE: "Hide all others",
    Effect.DIM: "Dim all others",
    Effect.MARK: "Highlight",
    Effect.COUNT: "Count only",
}
_WORDS: Final = {Effect.HIDE: "only", Effect.DIM: "dim", Effect.MARK: "mark", Effect.COUNT: "count"}
_TREES: Final = {"codes": "kinds of event", "threads": "threads"}
_TITLE_LENGTH: Final = 64
_SPARE: Final = 3  # chips created in advance, so that a new filter shows sooner
_MORE: Final = "\N{HORIZONTAL ELLIPSIS}"


class ChipBar(QFrame):
    """The bar with a chip for each active filter; hidden while there is no filter.

    Signals:
        edit_requested: The user wants to edit a filter pass; sends its name.
        rules_requested: The user wants to make capture rules from the filter.
    """

    edit_requested = Signal(str)
    rules_requested = Signal()

    def __init__(self, opened: OpenTrace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("chipBar")
        self._opened = opened
        self.chips: dict[str, Chip] = {}
        self._spare_chips = [self._new_chip() for _ in range(_SPARE)]
        self._combine_button = self._button("", "How the filters are combined", self._ask_combination)
        self._buttons = (
            self._combine_button,
            self._button("To rules", "Turn this filter into rules for the next capture", self.rules_requested.emit),
            self._button("Clear", "Remove all filters (Shift+F)", opened.filters.show_all),
        )
        self._flow = FlowLayout(self)
        self._flow.setContentsMargins(10, 5, 10, 5)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.set_theme(theme)
        opened.filters.changed.connect(self.refresh)
        self.refresh()

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of a theme."""
        selected = css(0xE3EDFC if not theme.is_dark else 0x22324C)
        marked = css(0xFBE4ED if not theme.is_dark else 0x40222F)
        self.setStyleSheet(f"""
            #chipBar {{ background: {css(theme.panel)}; border: none; border-bottom: 1px solid {css(theme.line)}; }}
            QFrame[chip] {{ background: {selected}; border: 1px solid {css(theme.accent)}; border-radius: 10px; }}
            QFrame[chip="mark"] {{ background: {marked}; border-color: {css(theme.hit)}; }}
            QFrame[chip="off"] {{ background: transparent; border: 1px dashed {css(theme.faint)}; }}
            QFrame[chip] QPushButton {{ background: transparent; border: none; padding: 1px 0; color: {css(theme.text)};
                text-align: left; }}
            QFrame[chip] QPushButton:focus {{ text-decoration: underline; }}
            QFrame[chip="off"] QPushButton {{ color: {css(theme.dim)}; text-decoration: line-through; }}
            QFrame[chip] QLabel {{ color: {css(theme.dim)}; border: none; background: transparent; }}
            QFrame[chip] QToolButton {{ padding: 0 4px; border-radius: 7px; color: {css(theme.dim)}; }}
            QFrame[chip] QToolButton:hover {{ color: {css(theme.text)}; background: {css(theme.line)}; }}
        """)

    @Slot()
    def refresh(self) -> None:
        """Show the active filters; chips keep their positions while the same filters exist."""
        passes = self._opened.filters.state.stack.passes
        texts = self._tree_texts() | {item.name: self._pass_text(item) for item in passes}
        if list(texts) != list(self.chips):
            self._arrange(list(texts))
        for key, text in texts.items():
            self.chips[key].say(text)
            self.chips[key].show()  # last, because it triggers a layout of the bar
        combination = _shorten(self._opened.filters.state.stack.combination)
        self._combine_button.setText(menu_text(f"Combine: {combination}") if combination else f"Combine{_MORE}")
        self._combine_button.setVisible(len(passes) > 1)
        self.setVisible(bool(texts))
        self._flow.invalidate()
        self.updateGeometry()

    def _arrange(self, names: list[str]) -> None:
        """Lay out one chip for each filter name, in this order, followed by the buttons of the bar."""
        while self._flow.takeAt(0) is not None:
            pass
        for name in set(self.chips) - set(names):
            self.chips[name].hide()
            self._spare_chips.append(self.chips.pop(name))
        self.chips = {name: self.chips.get(name) or self._spare_or_new_chip(name) for name in names}
        before: QWidget | None = None
        for widget in (*self.chips.values(), *self._buttons):
            self._flow.addWidget(widget)
        for widget in (*(part for chip in self.chips.values() for part in (chip.label, chip.cross)), *self._buttons):
            if before is not None:
                self.setTabOrder(before, widget)
            before = widget

    def _spare_or_new_chip(self, name: str) -> Chip:
        chip = self._spare_chips.pop() if self._spare_chips else self._new_chip()
        chip.name = name
        return chip

    def _new_chip(self) -> Chip:
        chip = Chip(self)
        chip.hide()
        chip.clicked.connect(self._on_click)
        chip.dropped.connect(self._on_drop)
        chip.menu_requested.connect(self._on_menu)
        return chip

    def _button(self, text: str, tip: str, run: Callable[[], object]) -> QPushButton:
        button = flat_button(text, self, run, tip)
        button.setFixedHeight(chip_height_px(button))
        return button

    def _tree_texts(self) -> dict[str, ChipText]:
        filters, trace = self._opened.filters, self._opened.trace
        state = filters.state
        occurring = trace.code_counts > 0
        count = _MORE if filters.is_pending else f"{filters.view.selected:,}"
        threads = int(state.threads[1:].sum()), len(state.threads) - 1  # row 0 is the unknown thread
        unknown = ""  # said if the numbers say nothing of what is checked
        if threads[0] in (0, threads[1]) and state.threads[0] != (threads[0] > 0):
            unknown = f", {'and' if state.threads[0] else 'without'} the unknown thread"
        texts = {}
        for key, mask, shown, total, more in (
            ("codes", state.codes, int((state.codes & occurring).sum()), int(occurring.sum()), ""),
            ("threads", state.threads, *threads, unknown),
        ):
            if not mask.all():
                text = f"{_WORDS[state.effect]} {shown:,} of {total:,} {_TREES[key]}{more}"
                tip = f"What is checked in the filter panel: {EFFECTS[state.effect].lower()}."
                texts[key] = ChipText(text, count, tip, "mark" if state.effect is Effect.MARK else "on")
        return texts

    def _pass_text(self, item: Pass) -> ChipText:
        filters = self._opened.filters
        hits = filters.view.counts.get(item.name)
        title = pass_title(item)
        state = "off" if not item.is_on else "mark" if item.effect is Effect.MARK else "on"
        count = _MORE if hits is None or filters.is_pending else f"{hits:,}"
        text = f"{item.name}  {_WORDS[item.effect]} {_shorten(title)}"
        switch = "off" if item.is_on else "on"
        tip = f"{title}\n{EFFECTS[item.effect]}. Click to switch it {switch}; right click for more."
        tip = "\n".join([tip, *(f"In views only: {limit}." for limit in pass_limits(item, self._opened.trace.release))])
        return ChipText(text, count, tip, state)

    def menu(self, name: str) -> QMenu:
        """Return the context menu of a filter pass (a condition or rules)."""
        filters = self._opened.filters
        item = filters.pass_named(name)
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for effect, text in EFFECTS.items():
            action = menu.addAction(text)
            action.setCheckable(True)
            action.setChecked(item.effect is effect)
            action.triggered.connect(partial(filters.change_pass, name, effect=effect))
        menu.addSeparator()
        for text, run in (
            ("Invert (not)", partial(filters.change_pass, name, is_inverted=not item.is_inverted)),
            ("Switch off" if item.is_on else "Switch on", partial(self._toggle, name)),
            ("Edit", partial(self.edit_requested.emit, name)),
            ("Find these events", partial(self._opened.search.find, item.expression)),
            ("Remove", partial(filters.remove_pass, name)),
        ):
            action = QAction(text, menu)
            action.triggered.connect(run)
            action.setEnabled(bool(item.expression) or not text.startswith("Find"))
            menu.addAction(action)
        for limit in pass_limits(item, self._opened.trace.release):
            menu.addSeparator()
            menu.addAction(menu_text(f"Not in a capture: {limit.split(';')[0]}")).setEnabled(False)
        return menu

    @Slot(str, QPoint)
    def _on_menu(self, name: str, position: QPoint) -> None:
        if name not in _TREES:
            self.menu(name).popup(position)

    @Slot(str)
    def _on_click(self, name: str) -> None:
        if name not in _TREES:
            self._toggle(name)

    @Slot(str)
    def _on_drop(self, name: str) -> None:
        filters = self._opened.filters
        if name == "codes":
            filters.set(np.ones_like(filters.state.codes), filters.state.threads, "all events")
        elif name == "threads":
            filters.set(filters.state.codes, np.ones_like(filters.state.threads), "all threads")
        else:
            filters.remove_pass(name)

    def _toggle(self, name: str) -> None:
        self._opened.filters.change_pass(name, is_on=not self._opened.filters.pass_named(name).is_on)

    def _ask_combination(self) -> None:
        stack = self._opened.filters.state.stack
        names = " or ".join(item.name for item in stack.passes)
        LinePrompt("Show what fits", names, self._combine, self.window(), stack.combination)

    def _combine(self, text: str) -> None:
        try:
            self._opened.filters.combine(text)
        except UsageError as error:
            raise UsageError(f"combination, {error}") from error


def _shorten(text: str) -> str:
    return text if len(text) <= _TITLE_LENGTH else text[: _TITLE_LENGTH - 1] + _MORE


# The filter entries of context menus: filter to, exclude and highlight, for each property of the selection.


_GROUPS: Final = (
    ("Filter &to", "{}", Effect.HIDE),
    ("E&xclude", "({}) is not true", Effect.HIDE),  # keeps events where the condition is unknown
    ("Hi&ghlight", "{}", Effect.MARK),
)
_ENTRY_LENGTH: Final = 60


def add_filter_menus(menu: QMenu, opened: OpenTrace, argument: str = "") -> None:
    """Add entries that filter by the selection to a context menu; those of a clicked argument to the menu itself."""
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
    if len(title) > _ENTRY_LENGTH:
        title = title[: _ENTRY_LENGTH - 1] + "\N{HORIZONTAL ELLIPSIS}"
    what = proposal.what if proposal.what.isupper() else proposal.what.lower()
    return menu_text(f"{proposal.what} = {title}" if proposal.is_argument else f"This {what}:  {title}")


def _add(menu: QMenu, opened: OpenTrace, text: str, expression: str, effect: Effect) -> None:
    action = menu.addAction(text)
    action.setToolTip(tool_tip(expression))
    action.triggered.connect(partial(_run, opened, expression, effect))


def _run(opened: OpenTrace, expression: str, effect: Effect) -> None:
    try:
        opened.filters.add_pass(expression, effect=effect)
    except UsageError as error:
        opened.filters.failed.emit(str(error))
