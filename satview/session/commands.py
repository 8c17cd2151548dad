"""The tables of commands and panels, from which menus, toolbar, palette, key overlay, docs and tests are derived."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from platformdirs import user_config_path
from PySide6.QtCore import QObject, Signal

from satview.base.shared_file import DamagedFileError
from satview.session.lanes.lane_arrangement import Label
from satview.session.settings import StoredJson
from satview.timeline.lane_classes import LANE_CLASSES


class Menu(StrEnum):
    """Menus of the main window, in order; the value is the menu title, in which `&` precedes the access key."""

    FILE = "&File"
    EDIT = "&Edit"
    VIEW = "&View"
    GO = "&Go"
    LANES = "&Lanes"
    MARKS = "&Marks"
    CAPTURE = "&Capture"
    PANELS = "&Panels"
    HELP = "&Help"


class Needs(StrEnum):
    """The thing that must exist before a command is enabled."""

    NOTHING = "nothing"
    TRACE = "an open trace"
    EVENT = "a selected event"
    SELECTION = "a selected event or interval"
    LANE = "a selected lane"
    RANGE = "a selected range"
    HITS = "search hits"
    LIVE = "a followed file"
    SECOND = "a second trace"
    CAPTURE = "a running capture"


class KeyScope(StrEnum):
    """Part of the window that must have the focus for the keys of a command to work."""

    WINDOW = "anywhere in the window"
    LANES = "in the swimlanes"  # arrows and the like, which lists and trees need for themselves


@dataclass(frozen=True, slots=True)
class Command:
    """One user command.

    Attributes:
        id: Stable name, `area.verb`; used in tests, docs and settings.
        title: Text of the menu entry; `&` marks its access key, a trailing ellipsis says that a dialog follows.
        menu: Menu that contains the command.
        keys: Key sequences in Qt's portable spelling; menus show the first.
        help: One sentence for tooltips, the key overlay and the docs.
        needs: The thing that must exist before the command is enabled.
        scope: Part of the window that must have the focus for the keys to work.
        icon: File in `resources/icons` without extension; empty for none. Commands with an icon are in the toolbar.
        is_checkable: True if the menu entry has a check mark.
        starts_group: True if a separator precedes the entry in its menu.
        submenu: Title of the submenu that contains the entry; empty if the entry is directly in `menu`.
        is_held: True if the command is repeated faster and faster while its key is held.
    """

    id: str
    title: str
    menu: Menu
    keys: tuple[str, ...] = ()
    help: str = ""
    needs: Needs = Needs.TRACE
    scope: KeyScope = KeyScope.WINDOW
    icon: str = ""
    is_checkable: bool = False
    starts_group: bool = False
    is_held: bool = False
    submenu: str = ""

    @property
    def plain_title(self) -> str:
        """The title without `&`."""
        return self.title.replace("&", "")

    @property
    def whole_title(self) -> str:
        """Titles of submenu and entry, for use outside the menu: `Sort by: Name`, without `&` and ellipsis."""
        title = self.plain_title.rstrip("\N{HORIZONTAL ELLIPSIS}")
        return f"{self.submenu.replace('&', '')}: {title}" if self.submenu else title


@dataclass(slots=True)
class Binding:
    """A command with the function that carries it out in one window.

    Attributes:
        command: The row of the table.
        run: Function that carries out the command.
        is_checked: Returns whether the check mark of a checkable command is set.
    """

    command: Command
    run: Callable[[], object]
    is_checked: Callable[[], bool] | None = None


class CommandRegistry:
    """Holds the commands of one window, in the order of the command table, and the functions that carry them out.

    Raises:
        ValueError: Two commands have the same id or the same key.
    """

    def __init__(self, commands: tuple[Command, ...]) -> None:
        self._commands = {command.id: command for command in commands}
        if len(self._commands) != len(commands):
            raise ValueError("two commands have one id")
        self._by_key: dict[str, str] = {}
        self._bindings: dict[str, Binding] = {}
        for command in commands:
            for key in command.keys:
                if key in self._by_key:
                    raise ValueError(f"key {key} belongs to {self._by_key[key]} and to {command.id}")
                self._by_key[key] = command.id

    def bind(self, command_id: str, run: Callable[[], object], is_checked: Callable[[], bool] | None = None) -> None:
        """Set the function that carries out a command, and the function that returns whether its check mark is set.

        Raises:
            ValueError: The command is already bound.
            KeyError: There is no such command.
        """
        command = self._commands[command_id]
        if command_id in self._bindings:
            raise ValueError(f"{command_id} is bound twice")
        self._bindings[command_id] = Binding(command, run, is_checked)

    def __getitem__(self, command_id: str) -> Binding:
        return self._bindings[command_id]

    def __iter__(self) -> Iterator[Binding]:
        return (self._bindings[name] for name in self._commands if name in self._bindings)

    def clear(self) -> None:
        """Drop the functions of all commands, so that a closed window can be freed."""
        self._bindings.clear()


# Every panel of the workspace, one row each. To add one: write the panel and add its row here.


class Side(StrEnum):
    """Side of the window at which a panel is docked by default."""

    RIGHT = "right"
    BOTTOM = "bottom"


class Topic(StrEnum):
    """Group of panels that share a row of tabs at the bottom; the value is the text of its button."""

    ASK = "Ask"
    MEASURE = "Measure"
    DATA = "Data"
    ABOUT = "About"
    SELECTION = "Selection"  # at the side, unless the window is small


@dataclass(frozen=True, slots=True)
class PanelRow:
    """One row of the table of panels: name, texts, keys and widget of a panel.

    Attributes:
        name: Stable name, in settings and tests; its command is `panels.NAME`.
        title: Text of the menu entry, `&` marks its access key; without `&`, the title of the dock.
        keys: Key sequences that show or hide the panel, in Qt's portable spelling.
        help: One sentence for tooltips, the key overlay and the docs.
        topic: The group of tabs that contains the panel.
        answers: The question that the panel answers, for the line above the panels.
        home: `module:class` of the widget, a `satview.gui.panel.Panel`; imported with the first trace.
        icon: File in `resources/icons` without extension, for the toolbar; empty for none.
    """

    name: str
    title: str
    keys: tuple[str, ...]
    help: str
    topic: Topic
    answers: str
    home: str
    icon: str = ""

    @property
    def plain_title(self) -> str:
        """The title without `&`."""
        return self.title.replace("&", "")

    @property
    def side(self) -> Side:
        """Side of the window at which the panel is docked by default."""
        return Side.RIGHT if self.topic is Topic.SELECTION else Side.BOTTOM

    @property
    def module(self) -> str:
        """The module of the widget."""
        return self.home.partition(":")[0]


PANELS: Final = (
    PanelRow("verdicts", "&Verdicts", ("Ctrl+Shift+V",),
             "Show or hide problems of the traced system: deadlocks, inversions, threads that wait too long.",
             Topic.ASK, "What is wrong in the traced system?",
             "satview.gui.panels.why_panel:VerdictsPanel"),
    PanelRow("why", "&Why?", ("Ctrl+Shift+J",),
             "Show or hide why a thread is running, ready or waiting, from the effect to its causes.",
             Topic.ASK, "Why does a thread run, stay ready or wait at a moment?",
             "satview.gui.panels.why_panel:WhyPanel"),
    PanelRow("path", "&Critical path", ("Ctrl+Shift+Y",),
             "Show or hide the critical path: the chain of work that took a thread from one moment to another.",
             Topic.ASK, "What took a thread from one moment to another?",
             "satview.gui.panels.why_panel:PathPanel"),
    PanelRow("snapshot", "S&napshot", ("Ctrl+Shift+T",),
             "Show or hide the state of every thread at the selected moment, and what it waits for.",
             Topic.ASK, "What did every thread do at one moment, and what did it wait for?",
             "satview.gui.panels.snapshot_panel:SnapshotPanel"),
    PanelRow("statistics", "S&tatistics", ("T",),
             "Show or hide statistics for threads, CPUs, events, kernel calls, messages and interrupts.",
             Topic.MEASURE, "How much CPU time, how many events, calls, messages and interrupts?",
             "satview.gui.statistics:StatisticsPanel"),
    PanelRow("late", "L&ate", ("Ctrl+Shift+H",),
             "Show or hide what is done again and again, which of it was late, and where the time went.",
             Topic.MEASURE, "What was late, and whose fault was it?",
             "satview.gui.panels.late_panel:LatePanel"),
    PanelRow("transactions", "T&ransactions", ("Ctrl+Shift+X",),
             "Show or hide the list of messages, pulses and interrupts with their times, slowest first.",
             Topic.MEASURE, "How long did each message, pulse and interrupt take?",
             "satview.gui.panels.transactions_panel:TransactionsPanel"),
    PanelRow("plots", "P&lots", ("G",),
             "Show or hide plots of CPU load over time and histograms of durations.",
             Topic.MEASURE, "How busy were the CPUs over time, and how are durations spread?",
             "satview.gui.plots.panel:PlotsPanel"),
    PanelRow("flame_graph", "Flame &graph", ("Ctrl+Shift+G",),
             "Show or hide the flame graph: functions as wide as their share of the time, with what they call below.",
             Topic.MEASURE, "In which functions do programs spend their time?",
             "satview.gui.panels.flame_panel:FlamePanel"),
    PanelRow("comparison", "Co&mparison", ("Ctrl+Shift+B",),
             "Show or hide the changes between this trace and a second one: threads, states, calls, latencies.",
             Topic.MEASURE, "What changed from one trace to another?",
             "satview.gui.comparison.panel:ComparisonPanel"),
    PanelRow("events", "&Events", ("E",), "Show or hide the list of events.",
             Topic.DATA, "What happened, event by event?",
             "satview.gui.event_list:EventListPanel", "list"),
    PanelRow("results", "&Search results", ("Ctrl+Shift+R",), "Show or hide the list of search hits.",
             Topic.DATA, "Where does what you searched for occur?",
             "satview.gui.filters.results_panel:ResultsPanel"),
    PanelRow("sql", "S&QL", ("Ctrl+Shift+Q",),
             "Show or hide SQL queries on the tables of the trace, with ready-made views for common questions.",
             Topic.DATA, "What does a query of your own find?",
             "satview.gui.panels.sql_panel:SqlPanel"),
    PanelRow("doctor", "D&octor", ("Ctrl+Shift+D",),
             "Show or hide how far each analysis can be trusted, and what to capture to improve it.",
             Topic.ABOUT, "How far can each answer be trusted, and what should you capture next time?",
             "satview.gui.panels.doctor_panel:DoctorPanel"),
    PanelRow("problems", "&Problems", ("Ctrl+Shift+M",),
             "Show or hide problems in the file: data that was lost, damaged or not understood.",
             Topic.ABOUT, "Which part of the file was lost, damaged or not understood?",
             "satview.gui.panels.doctor_panel:ProblemsPanel"),
    PanelRow("marks", "Mar&ks and notes", ("Ctrl+M",), "Show or hide the list of marks and notes.",
             Topic.ABOUT, "What did you mark and note?",
             "satview.gui.panels.marks_panel:MarksPanel"),
    PanelRow("details", "&Details", ("I",), "Show or hide details of the selection.",
             Topic.SELECTION, "What is selected?",
             "satview.gui.panels.details_panel:DetailsPanel"),
    PanelRow("filter", "&Filter", ("Ctrl+Shift+F",), "Show or hide the filter.",
             Topic.SELECTION, "What is shown, and what is hidden?",
             "satview.gui.panels.filter_panel:FilterPanel", "filter"),
)  # fmt: skip


FIRST_PANELS: Final = {Side.RIGHT: "details", Side.BOTTOM: "events"}
"""The panel in front on each side by default."""


def panel_commands() -> tuple[Command, ...]:
    """Return the commands that show and hide the panels, in the order of the table."""
    starts = {next(row.name for row in PANELS if row.topic is topic) for topic in Topic}
    return tuple(
        Command(f"panels.{row.name}", row.title, Menu.PANELS, row.keys, row.help, icon=row.icon,
                is_checkable=True, starts_group=row.name in starts)
        for row in PANELS
    )  # fmt: skip


# Every command of the viewer, one row each. To add one: add a row and bind it in `gui/windows/window_commands.py`.


# A table: a command is one row, which a call with an argument per line would hide.
COMMANDS: Final = (
    Command("file.open", "&Open\N{HORIZONTAL ELLIPSIS}", Menu.FILE, ("Ctrl+O",), "Open a trace.", Needs.NOTHING,
            icon="open"),
    Command("file.open_link", "Open lin&k\N{HORIZONTAL ELLIPSIS}", Menu.FILE, ("Ctrl+Shift+O",),
            "Open a trace at the position given by a copied link: FILE#t=1.2s..1.5s&sel=1200.", Needs.NOTHING),
    Command("file.compare", "Compare &with another trace\N{HORIZONTAL ELLIPSIS}", Menu.FILE, ("Ctrl+D",),
            "Open a second trace below this one, aligned and moving with it, and list the changes."),
    Command("file.together", "Put files on one time a&xis\N{HORIZONTAL ELLIPSIS}", Menu.FILE, (),
            "Combine this file with others into one trace, each at its offset: two targets, or a host and its guest."),
    Command("file.sample", "Open a s&ample", Menu.FILE, (),
            "Open the trace that comes with satview: 7 s of a driver assistance system on 4 CPUs.", Needs.NOTHING),
    Command("file.trends", "&Trends of many traces\N{HORIZONTAL ELLIPSIS}", Menu.FILE, (),
            "Show one metric for each trace of a data set made by `satview export FOLDER -o DIR`; click to open one.",
            Needs.NOTHING),
    Command("file.new_capture", "New ca&pture\N{HORIZONTAL ELLIPSIS}", Menu.FILE, ("Ctrl+Shift+N",),
            "Capture a trace from a simulated target and open it.", Needs.NOTHING),
    Command("file.capture_target", "Capture from a tar&get\N{HORIZONTAL ELLIPSIS}", Menu.FILE, (),
            "Capture a trace on a target over ssh, and watch it grow.", Needs.NOTHING),
    Command("file.new_window", "&New window", Menu.FILE, ("Ctrl+N",), "Open another window.", Needs.NOTHING),
    Command("file.reload", "Reloa&d", Menu.FILE, ("F5",), "Read the file again."),
    Command("file.info", "Trace &information\N{HORIZONTAL ELLIPSIS}", Menu.FILE, ("Ctrl+I",),
            "Header, system page, CPUs and counts of the trace.", starts_group=True, icon="info"),
    Command("file.save_session", "Sa&ve session\N{HORIZONTAL ELLIPSIS}", Menu.FILE, ("Ctrl+S",),
            "Save lanes, filter and panels under a name, to use with this or other traces.", starts_group=True),
    Command("file.use_session", "&Use session\N{HORIZONTAL ELLIPSIS}", Menu.FILE, ("Ctrl+U",),
            "Apply the lanes, filter and panels of a saved session to this trace."),
    Command("file.remove_session", "Re&move session\N{HORIZONTAL ELLIPSIS}", Menu.FILE, (), "Delete a saved session."),
    Command("file.save_events", "Save events to a &file\N{HORIZONTAL ELLIPSIS}", Menu.FILE, ("Ctrl+Shift+E",),
            "Save the selected range, or the filtered events, as a .kev file, a listing or CSV."),
    Command("file.export_picture", "&Export picture\N{HORIZONTAL ELLIPSIS}", Menu.FILE, ("Ctrl+E",),
            "Save the visible swimlanes, with title, time span and legend, as PNG, SVG or PDF."),
    Command("file.settings", "&Settings\N{HORIZONTAL ELLIPSIS}", Menu.FILE, ("Ctrl+,",), "Change settings.",
            Needs.NOTHING, starts_group=True),
    Command("file.state_looks", "Co&lours of states\N{HORIZONTAL ELLIPSIS}", Menu.FILE, (),
            "Choose a palette and hatching, and change the colour and thickness of states.", Needs.NOTHING),
    Command("file.keys", "Change ke&ys\N{HORIZONTAL ELLIPSIS}", Menu.FILE, ("Ctrl+Shift+K",),
            "Change keyboard shortcuts.", Needs.NOTHING),
    Command("file.close", "&Close window", Menu.FILE, ("Ctrl+W",), "Close this window.", Needs.NOTHING,
            starts_group=True),
    Command("file.quit", "&Quit", Menu.FILE, ("Ctrl+Q",), "Close all windows.", Needs.NOTHING),

    Command("edit.undo", "&Undo", Menu.EDIT, ("Ctrl+Z",), "Undo the last change to filters or lanes."),
    Command("edit.redo", "&Redo", Menu.EDIT, ("Ctrl+Y", "Ctrl+Shift+Z"), "Redo the last undone change."),
    Command("edit.copy", "&Copy", Menu.EDIT, ("Ctrl+C",),
            "Copy the selected rows of the list or table, or the details.", starts_group=True),
    Command("edit.copy_link", "Copy l&ink", Menu.EDIT, ("Ctrl+Shift+C",),
            "Copy a link to this view: the file, visible range, selected event and selected range."),
    Command("edit.find", "&Find\N{HORIZONTAL ELLIPSIS}", Menu.EDIT, ("/", "Ctrl+F"),
            "Find events by name, /pattern/ or a condition, for example duration > 2ms.", starts_group=True,
            icon="find"),
    Command("edit.find_next", "Find &next", Menu.EDIT, ("F3",), "Go to the next hit.", Needs.HITS),
    Command("edit.find_previous", "Find &previous", Menu.EDIT, ("Shift+F3",), "Go to the previous hit.", Needs.HITS),
    Command("filter.only_thread", "Only this &thread", Menu.EDIT, ("Shift+T",), "Hide all other threads.",
            Needs.SELECTION, starts_group=True),
    Command("filter.hide_thread", "Hide this t&hread", Menu.EDIT, (), "Hide the thread of the selection.",
            Needs.SELECTION),
    Command("filter.only_event", "Only events &of this kind", Menu.EDIT, (), "Hide events of other kinds.",
            Needs.EVENT),
    Command("filter.hide_event", "Hide events of this &kind", Menu.EDIT, (),
            "Hide all events of the same kind as the selected one.", Needs.EVENT),
    Command("filter.show_all", "Show &all events and threads", Menu.EDIT, ("Shift+F",), "Remove the filter."),
    Command("edit.clear", "C&lear selection", Menu.EDIT, ("Esc",),
            "Clear, in this order, the legend highlight, the range, the selection and the answers over the lanes.",
            starts_group=True),

    Command("view.zoom_in", "Zoom &in", Menu.VIEW, ("W", "+", "="), "Zoom in at the mouse.", icon="zoom-in",
            is_held=True),
    Command("view.zoom_out", "Zoom &out", Menu.VIEW, ("S", "-"), "Zoom out at the mouse.", icon="zoom-out",
            is_held=True),
    Command("view.pan_left", "Pan &left", Menu.VIEW, ("A",), "Move to earlier times.", is_held=True),
    Command("view.pan_right", "Pan &right", Menu.VIEW, ("D",), "Move to later times.", is_held=True),
    Command("view.page_left", "Page left", Menu.VIEW, ("Shift+A",), "Move one window width earlier."),
    Command("view.page_right", "Page right", Menu.VIEW, ("Shift+D",), "Move one window width later."),
    Command("view.focus", "&Focus selection", Menu.VIEW, ("F",),
            "Zoom to the selected interval, or centre the selected event. Press again to go back.", Needs.SELECTION,
            starts_group=True),
    Command("view.zoom_range", "&Zoom to range", Menu.VIEW, ("Z",), "Zoom so that the selected range fills the window.",
            Needs.RANGE),
    Command("view.zoom_all", "Show &everything", Menu.VIEW, ("0", "Shift+Z"), "Show the whole trace.", icon="zoom-all"),
    Command("view.back", "&Back", Menu.VIEW, ("Alt+Left", "Backspace"), "Go back to the previous view.",
            starts_group=True, icon="back"),
    Command("view.forward", "Forw&ard", Menu.VIEW, ("Alt+Right",), "Go forward to the next view.", icon="forward"),
    Command("view.arrows_off", "&No arrows", Menu.VIEW, (), "Draw no arrows between lanes.", is_checkable=True,
            starts_group=True),
    Command("view.arrows_selection", "Arrows for the sele&ction", Menu.VIEW, (),
            "Draw arrows from the causes of the selected event to its effects.", is_checkable=True),
    Command("view.arrows_all", "All arro&ws", Menu.VIEW, ("L",),
            "Draw arrows for all messages, replies, pulses and wake-ups in the window, or only for the selection.",
            is_checkable=True),
    Command("view.legend", "Le&gend", Menu.VIEW, ("Shift+L",), "Show or hide the colour legend.", is_checkable=True,
            starts_group=True),
    Command("view.shares", "S&hares of time", Menu.VIEW, ("Shift+S",),
            "Where intervals are too dense to draw, show the share of each state instead of the longest one.",
            is_checkable=True),
    Command("view.cpu_kinds", "Kinds of work on CP&Us", Menu.VIEW, ("K",),
            "Show user, kernel, interrupt and idle time in CPU lanes, instead of processes.", is_checkable=True),
    *(Command(f"view.label_{label}", title, Menu.VIEW, (), help_text, is_checkable=True,
              submenu="Inter&val labels")
      for label, title, help_text in (
          (Label.STATE, "&State", "Label thread intervals with the state."),
          (Label.PRIORITY, "&Priority",
           "Label intervals with the priority: p10, or p15\N{UPWARDS ARROW}10 if 15 is inherited."),
          (Label.CPU, "&CPU", "Label intervals with the CPU that the thread runs on."),
          (Label.PARTNER, "P&artner",
           "Label intervals with the partner that the thread waits for: the server, or the mutex holder."),
          (Label.CALL, "&Kernel call", "Label intervals with the kernel call that the thread waits in."),
          (Label.PARTITION, "Pa&rtition", "Label intervals with the partition of the thread."),
      )),
    Command("view.split", "S&plit view", Menu.VIEW, ("Ctrl+\\",),
            "Show or hide a second set of lanes below, for another time range or other lanes.", is_checkable=True,
            starts_group=True),
    Command("view.another", "Sa&me trace in another window", Menu.VIEW, ("Ctrl+Shift+W",),
            "Show the trace in another window, without reading the file again."),
    Command("view.linked", "Lin&ked views", Menu.VIEW, ("Ctrl+Shift+L",),
            "Keep all views of this trace at the same range and selection, or let each move on its own.",
            is_checkable=True),
    *(Command(f"compare.{name}", title, Menu.VIEW, keys, help_text, Needs.SECOND, is_checkable=name == "linked",
              starts_group=name == "linked", submenu="Compared trace &2")
      for name, title, keys, help_text in (
          ("linked", "&Move together", (), "Show the same range in both traces, or let each move on its own."),
          ("starts", "Align &starts", (), "Align the first events of both traces."),
          ("cursors", "Align &cursors A", (), "Align cursor A of both traces."),
          ("selected", "Align s&elected events", (), "Align the selected events of both traces."),
          ("by", "Align &by\N{HORIZONTAL ELLIPSIS}", ("Ctrl+Shift+A",),
           "Align the first event in each trace that meets a condition, or shift the second trace by an offset."),
          ("end", "C&lose the second trace", (), "Close the second trace."),
      )),
    Command("view.theme_system", "&System theme", Menu.VIEW, (), "Follow the light or dark setting of the system.",
            Needs.NOTHING, is_checkable=True, starts_group=True),
    Command("view.theme_light", "Ligh&t theme", Menu.VIEW, (), "Always use the light theme.", Needs.NOTHING,
            is_checkable=True),
    Command("view.theme_dark", "&Dark theme", Menu.VIEW, (), "Always use the dark theme.", Needs.NOTHING,
            is_checkable=True),

    Command("go.previous_edge", "&Previous state change", Menu.GO, ("Left",),
            "Go to the previous state change of the selected lane.", scope=KeyScope.LANES),
    Command("go.next_edge", "&Next state change", Menu.GO, ("Right",),
            "Go to the next state change of the selected lane.", scope=KeyScope.LANES),
    Command("go.extend_left", "Extend range to previous change", Menu.GO, ("Shift+Left",),
            "Move the end of the range to the previous state change.", scope=KeyScope.LANES),
    Command("go.extend_right", "Extend range to next change", Menu.GO, ("Shift+Right",),
            "Move the end of the range to the next state change.", scope=KeyScope.LANES),
    Command("go.previous_event", "Previous &event", Menu.GO, (",",), "Go to the previous event of the selected lane.",
            starts_group=True),
    Command("go.next_event", "Next e&vent", Menu.GO, (".",), "Go to the next event of the selected lane."),
    Command("go.partner", "&Matching enter or exit", Menu.GO, ("J",),
            "Go from an entry event to its exit event, or back.", Needs.EVENT),
    Command("go.cause", "&Cause", Menu.GO, ("[",),
            "Go to the cause of the selected event: the event that woke the thread, or the send of a received message.",
            Needs.EVENT),
    Command("go.effect", "E&ffect", Menu.GO, ("]",),
            "Go to the effect of the selected event: the thread it wakes, or the receipt or reply of a message.",
            Needs.EVENT),
    Command("go.why", "Wh&y?", Menu.GO, ("Y",),
            "Explain, step by step, why the selected thread is running, ready or waiting."),
    Command("go.path", "C&ritical path", Menu.GO, ("Shift+Y",),
            "Show the chain of work that took the selected thread from the start to the end of the selected range."),
    Command("go.late", "W&hy late?", Menu.GO, ("U",),
            "Show how long the selected thread's work at that moment took, its deadline, and where the time went."),
    Command("go.what_if", "What &if\N{HORIZONTAL ELLIPSIS}", Menu.GO, (),
            "Replay the trace with another priority, CPU or lock, and open the prediction below."),
    Command("go.lane_up", "Lane &up", Menu.GO, ("Up",), "Select the lane above.", scope=KeyScope.LANES,
            starts_group=True),
    Command("go.lane_down", "Lane &down", Menu.GO, ("Down",), "Select the lane below.", scope=KeyScope.LANES),
    Command("go.page_up", "Page of lanes up", Menu.GO, ("PgUp",), "Select the lane one page above.",
            scope=KeyScope.LANES),
    Command("go.page_down", "Page of lanes down", Menu.GO, ("PgDown",), "Select the lane one page below.",
            scope=KeyScope.LANES),
    Command("go.first_lane", "First lane", Menu.GO, ("Ctrl+Home",), "Select the first lane.", scope=KeyScope.LANES),
    Command("go.last_lane", "Last lane", Menu.GO, ("Ctrl+End",), "Select the last lane.", scope=KeyScope.LANES),
    Command("go.start", "&Start of the trace", Menu.GO, ("Home",), "Move the window to the start.",
            scope=KeyScope.LANES, starts_group=True),
    Command("go.end", "End of the &trace", Menu.GO, ("End",), "Move the window to the end.", scope=KeyScope.LANES),
    Command("go.to_time", "&Go to time or event\N{HORIZONTAL ELLIPSIS}", Menu.GO, ("Ctrl+G",),
            "Go to a time (1.25s, or -5s from the end), a range (2s..3s), a percentage (25%), a time of day, "
            "cycles (0x1f00c) or an event (#1200).", starts_group=True),
    Command("go.to_lane", "Go to &lane\N{HORIZONTAL ELLIPSIS}", Menu.GO, ("Ctrl+P",),
            "Find a process, thread, CPU or interrupt by name."),

    Command("lanes.fold", "&Fold or unfold", Menu.LANES, ("Return",), "Fold or unfold the selected lane.", Needs.LANE,
            scope=KeyScope.LANES),
    Command("lanes.unfold_all", "&Unfold all", Menu.LANES, ("Shift+E",), "Show the threads of every process."),
    Command("lanes.fold_all", "F&old all", Menu.LANES, ("Shift+C",), "Show processes only."),
    Command("lanes.pin", "&Pin lane", Menu.LANES, ("P",), "Pin the lane to the top, or unpin it.", Needs.LANE,
            is_checkable=True, starts_group=True),
    Command("lanes.hide", "&Hide lane", Menu.LANES, ("H",),
            "Hide the selected lane and the lanes below it in the tree.", Needs.LANE),
    Command("lanes.show_all", "&Show all lanes", Menu.LANES, ("Shift+H",), "Show the hidden lanes again."),
    Command("lanes.hide_empty", "Hide &empty lanes", Menu.LANES, ("X",),
            "Hide lanes in which nothing happens in the visible range.", is_checkable=True),
    *(Command(f"lanes.sort_{name}", title, Menu.LANES, (), help_text, is_checkable=True,
              starts_group=name == "trace", submenu="Sort &by")
      for name, title, help_text in (
          ("trace", "Trace &order", "Sort processes by process id, as in the trace."),
          ("name", "&Name", "Sort processes, and the threads in each, by name."),
          ("cpu", "&CPU use", "Sort by CPU time in the selected range, else in the visible range; most first."),
          ("priority", "&Priority", "Sort by the priority at which threads run most of the time, highest first."),
          ("ready", "&Wait for a CPU",
           "Sort by time in READY in the selected range, else in the visible range; longest first."),
          ("blocked", "&Blocked time",
           "Sort by time spent waiting for others in the selected range, else the visible range; longest first."),
      )),
    *(Command(f"lanes.group_{name}", title, Menu.LANES, (), help_text, is_checkable=True,
              submenu="&Group by")
      for name, title, help_text in (
          ("process", "&Process", "Group threads by process."),
          ("priority", "P&riority", "Group threads by the priority at which they run most of the time."),
          ("cpu", "&CPU", "Group threads by the CPU they mostly run on in the selected range, else the visible range."),
          ("partition", "P&artition", "Group threads by the partition they mostly run in."),
          ("pattern", "&Name pattern\N{HORIZONTAL ELLIPSIS}",
           "Group processes by name patterns, for example Drivers: devb-*, io-*; HMI: hmi*."),
      )),
    *(Command(f"lanes.show_{lane_class.name}", lane_class.menu, Menu.LANES, (), lane_class.help,
              is_checkable=True, submenu="E&vent lanes")
      for lane_class in LANE_CLASSES),
    Command("lanes.user_file", "User event &descriptions\N{HORIZONTAL ELLIPSIS}", Menu.LANES, (),
            "Read names and fields of user events and others from an XML file, remembered for this trace."),
    Command("lanes.no_user_file", "Remove des&criptions", Menu.LANES, (),
            "Stop using names and fields from an XML file for user events."),
    Command("lanes.symbols", "S&ymbols of programs\N{HORIZONTAL ELLIPSIS}", Menu.LANES, (),
            "Name functions, files and lines by the target's programs in a folder, remembered for this trace."),
    Command("lanes.pidin", "N&ames from a pidin text\N{HORIZONTAL ELLIPSIS}", Menu.LANES, (),
            "Name processes and threads by what pidin printed on the target, remembered for this trace."),
    Command("lanes.user_rules", "User event &intervals and counters\N{HORIZONTAL ELLIPSIS}", Menu.LANES, (),
            "Define which user events are counters or intervals: 10 counter queue; 41..42 interval request."),
    Command("lanes.up", "Move &lane up", Menu.LANES, ("Alt+Up",),
            "Move the selected lane up by one, like dragging its name.", Needs.LANE, scope=KeyScope.LANES),
    Command("lanes.down", "Move lane dow&n", Menu.LANES, ("Alt+Down",), "Move the selected lane down by one.",
            Needs.LANE, scope=KeyScope.LANES),
    Command("lanes.taller", "&Taller", Menu.LANES, ("Ctrl+=",), "Make lanes taller.", starts_group=True),
    Command("lanes.shorter", "Sho&rter", Menu.LANES, ("Ctrl+-",), "Make lanes shorter."),

    Command("marks.cursor_a", "Cursor &A", Menu.MARKS, ("1",), "Set cursor A at the edge or event under the mouse."),
    Command("marks.cursor_b", "Cursor &B", Menu.MARKS, ("2",), "Set cursor B at the edge or event under the mouse."),
    Command("marks.clear_cursors", "&Clear cursors", Menu.MARKS, ("3",), "Remove cursors A and B."),
    Command("marks.range", "&Range from selection", Menu.MARKS, ("R",), "Set the range to the selected interval.",
            Needs.SELECTION, starts_group=True),
    Command("marks.type_range", "T&ype a range\N{HORIZONTAL ELLIPSIS}", Menu.MARKS, ("Shift+R",),
            "Select a range by typing it, for example 1.2s..1.5s, -5s.., 25%..50% or #1200..#1300."),
    Command("marks.temporary", "&Temporary mark", Menu.MARKS, ("M",),
            "Mark this time until you set the next temporary mark.", starts_group=True),
    Command("marks.note", "&Note\N{HORIZONTAL ELLIPSIS}", Menu.MARKS, ("Shift+M",),
            "Add a note to the selected range or moment. Notes are stored in a file next to the trace."),
    Command("marks.bookmark", "Book&mark", Menu.MARKS, ("B",),
            "Bookmark this time. Bookmarks are stored in a file next to the trace."),
    Command("marks.next", "Ne&xt mark", Menu.MARKS, ("N",), "Go to the next mark.", starts_group=True),
    Command("marks.previous", "&Previous mark", Menu.MARKS, ("Shift+N",), "Go to the previous mark."),
    Command("marks.remove", "Remo&ve mark", Menu.MARKS, ("Del",), "Remove the selected mark.", scope=KeyScope.LANES),

    Command("capture.live", "&Live", Menu.CAPTURE, ("Ctrl+L",), "Reload the open file as it grows, or stop doing so.",
            is_checkable=True),
    Command("capture.stick", "Stick to the &end", Menu.CAPTURE, ("Shift+End",),
            "Keep the view at the end of the followed file, or stop doing so.", Needs.LIVE, is_checkable=True),
    Command("capture.demo", "Start live &demo", Menu.CAPTURE, (),
            "Capture a simulated target and watch the trace grow in real time.", Needs.NOTHING, starts_group=True),
    Command("capture.stop", "&Stop capture", Menu.CAPTURE, ("Ctrl+Shift+S",),
            "Stop the capture that this window started, and complete the file.", Needs.CAPTURE),

    *panel_commands(),
    Command("panels.bottom", "&Bottom drawer", Menu.PANELS, ("Q",), "Show or hide all panels at the bottom.",
            starts_group=True),
    Command("panels.reset", "Reset layo&ut", Menu.PANELS, (), "Move all panels back to their default positions."),

    Command("help.palette", "&Commands\N{HORIZONTAL ELLIPSIS}", Menu.HELP, ("Ctrl+Shift+P", "F1"),
            "Find a command by name and run it.", Needs.NOTHING),
    Command("help.keys", "&Keys and mouse", Menu.HELP, ("?",), "Show all keys.", Needs.NOTHING),
    Command("help.plugins", "&Plug-ins\N{HORIZONTAL ELLIPSIS}", Menu.HELP, (),
            "List the plug-ins from other packages, and those that are switched off.", Needs.NOTHING),
    Command("help.about", "&About satview", Menu.HELP, (), "Show version and licence.", Needs.NOTHING,
            starts_group=True),
)  # fmt: skip

MOUSE_HELP: Final = (
    ("Wheel", "Scroll lanes"),
    ("Ctrl+wheel", "Zoom at the mouse"),
    ("Shift+wheel", "Pan"),
    ("Ctrl+Shift+wheel", "Change the height of lanes"),
    ("Click", "Select an interval, event, arrow or name over the lanes; on a count of arrows: zoom to them"),
    ("Double click", "Select and zoom to it; on the ruler: show the whole trace"),
    ("Left drag", "Select a range; in the lanes it snaps to edges and events, and to nothing while Alt is held"),
    ("Drag on the ruler", "Select a range; snaps to ticks, with Ctrl to events, and to nothing while Alt is held"),
    ("Drag A or B on the ruler", "Move the cursor; snaps to edges and events unless Alt is held"),
    ("Shift+drag", "Extend the range"),
    ("Middle drag, Space+drag", "Pan"),
    ("Right drag", "Zoom to the dragged range"),
    ("Drag a name", "Move the lane to another position"),
    ("Right click", "Open the context menu"),
)


# Keys of commands: defaults from the table, and the user's own.


_KEY: Final = "satview_keys"
_VERSION: Final = 1
_BYTES_MAX: Final = 1 << 20
_KEYS_MAX: Final = 8
_TEXT_MAX: Final = 80


class KeyBindings(QObject):
    """The current keys of all commands, shared by all windows. Assigning a key removes it from any other command.

    Attributes:
        file: The file that stores the user's keys; its attributes tell whether the last change is stored.

    Signals:
        changed: The keys of a command changed.
    """

    changed = Signal()

    def __init__(self, path: Path | None, parent: QObject | None = None) -> None:
        """Read the stored keys.

        Args:
            path: File that stores the keys; None = keys are kept in memory only.
            parent: Owner.
        """
        super().__init__(parent)
        self.file = StoredJson(path, _checked, _BYTES_MAX, self, makes_folder=True)
        self._selected = _keys_in(self.file.load())

    def keys_of(self, command: Command) -> tuple[str, ...]:
        """Return the keys of a command, in Qt's portable spelling; menus show the first."""
        if command.id in self._selected:
            return self._selected[command.id]
        taken = {key for keys in self._selected.values() for key in keys}
        return tuple(key for key in command.keys if key not in taken)

    def is_changed(self, command: Command) -> bool:
        """Return whether the user changed the keys of a command."""
        return self.keys_of(command) != command.keys

    def owner_of(self, key: str) -> Command | None:
        """Return the command that a key runs; None for an unused key."""
        return next((command for command in COMMANDS if key in self.keys_of(command)), None)

    def set_keys(self, command: Command, keys: tuple[str, ...]) -> None:
        """Assign keys to a command, and remove them from all other commands."""
        keys = tuple(dict.fromkeys(keys))[:_KEYS_MAX]
        for other in COMMANDS:
            old_keys = self.keys_of(other)
            if other is not command and set(old_keys).intersection(keys):
                self._put(other, tuple(key for key in old_keys if key not in keys))
        self._put(command, keys)
        self._store()

    def use_table(self, command: Command | None = None) -> None:
        """Restore the default keys of a command; None = of all commands."""
        if command is None:
            self._selected = {}
            self._store()
        else:
            self.set_keys(command, command.keys)

    def _put(self, command: Command, keys: tuple[str, ...]) -> None:
        self._selected.pop(command.id, None)
        if keys != command.keys:
            self._selected[command.id] = keys

    def _store(self) -> None:
        written = {name: list(keys) for name, keys in self._selected.items()}
        self.file.store(lambda content: {**(content or {}), _KEY: _VERSION, "keys": _unknown_in(content) | written})
        self.changed.emit()


def _checked(content: Any) -> Any:
    if not isinstance(content, dict) or type(content.get(_KEY)) is not int:
        raise DamagedFileError("it holds no keys")
    _keys_in(content)
    return content


def _keys_in(content: Any) -> dict[str, tuple[str, ...]]:
    """Return the stored keys of each known command; a key stored for several commands goes to the first of these.

    Raises:
        DamagedFileError: A value is not a list of strings.
    """
    keys_by_name = (content or {}).get("keys") or {}
    # By hand: the first window reads this, and waits for no more imports.
    if not isinstance(keys_by_name, dict) or not all(map(_are_keys, keys_by_name.values())):
        raise DamagedFileError("keys: a command has something else than a list of keys")
    known, taken = {command.id for command in COMMANDS}, set[str]()
    keys_of = {}
    for name, keys in keys_by_name.items():
        if name in known:
            keys_of[name] = tuple(key for key in dict.fromkeys(keys) if key and key not in taken)[:_KEYS_MAX]
            taken.update(keys_of[name])
    return keys_of


def _are_keys(keys: Any) -> bool:
    return isinstance(keys, list) and all(isinstance(key, str) and len(key) <= _TEXT_MAX for key in keys)


def _unknown_in(content: Any) -> dict[str, Any]:
    """Return the stored keys of commands unknown to this version of satview, so that they stay in the file."""
    known = {command.id for command in COMMANDS}
    return {name: keys for name, keys in ((content or {}).get("keys") or {}).items() if name not in known}


def keys_file() -> Path:
    """Return the path of this user's keys file."""
    return user_config_path("satview", appauthor=False) / "keys.json"


# Directions of movement in time.


BACK: Final = -1  # to earlier times
ON: Final = 1  # to later times
