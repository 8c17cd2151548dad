"""Every panel of the workspace, one row each. To add one: write the panel and add its row here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from satview.session.commands import Command, Menu, Needs


class Side(StrEnum):
    """Where a panel is docked at first."""

    RIGHT = "right"
    BOTTOM = "bottom"


@dataclass(frozen=True, slots=True)
class PanelRow:
    """One panel.

    Attributes:
        name: Stable name, in settings and tests; its command is `panels.NAME`.
        title: Text of the menu entry, `&` marks its letter; without that, the title of the dock.
        keys: Key sequences that show or hide it, in Qt's portable spelling.
        help: One sentence for tooltips, the key overlay and the docs.
        side: Where it is docked at first. The first row of a side is in front there.
        home: `module:class` of the widget, a `satview.gui.panel.Panel`; imported with the first trace.
        icon: File in `resources/icons` without extension, for the toolbar; empty for none.
    """

    name: str
    title: str
    keys: tuple[str, ...]
    help: str
    side: Side
    home: str
    icon: str = ""

    @property
    def plain_title(self) -> str:
        """The title without the mark of the menu letter."""
        return self.title.replace("&", "")

    @property
    def module(self) -> str:
        """The module of the widget."""
        return self.home.partition(":")[0]


PANELS: Final = (
    PanelRow("events", "&Events", ("E",), "Show or hide the list of events.", Side.BOTTOM,
             "satview.gui.event_list:EventListPanel", "list"),
    PanelRow("statistics", "S&tatistics", ("T",),
             "Show or hide statistics of threads, CPUs, events, kernel calls, messages and interrupts.", Side.BOTTOM,
             "satview.gui.statistics:StatisticsPanel"),
    PanelRow("transactions", "T&ransactions", ("Ctrl+Shift+X",),
             "Show or hide messages, pulses and interrupts with their times, the slowest first.", Side.BOTTOM,
             "satview.gui.answer_table:TransactionsPanel"),
    PanelRow("plots", "P&lots", ("G",),
             "Show or hide plots: load of the CPUs over time, histograms of durations.", Side.BOTTOM,
             "satview.gui.plots.panel:PlotsPanel"),
    PanelRow("details", "&Details", ("I",), "Show or hide the details of the selection.", Side.RIGHT,
             "satview.gui.panels.details_panel:DetailsPanel"),
    PanelRow("filter", "&Filter", ("Ctrl+Shift+F",), "Show or hide the filter.", Side.RIGHT,
             "satview.gui.panels.filter_panel:FilterPanel", "filter"),
    PanelRow("marks", "Mar&ks and notes", ("Ctrl+M",), "Show or hide the list of marks and notes.", Side.BOTTOM,
             "satview.gui.panels.marks_panel:MarksPanel"),
    PanelRow("problems", "&Problems", ("Ctrl+Shift+M",),
             "Show or hide the list of problems of the file: what was lost, damaged or not understood.", Side.BOTTOM,
             "satview.gui.panels.problems_panel:ProblemsPanel"),
    PanelRow("verdicts", "&Verdicts", ("Ctrl+Shift+V",),
             "Show or hide what is wrong in the trace: deadlocks, inversions, threads that wait too long.", Side.BOTTOM,
             "satview.gui.panels.verdicts_panel:VerdictsPanel"),
    PanelRow("path", "&Critical path", ("Ctrl+Shift+Y",),
             "Show or hide the critical path: what had to happen for a thread to get from one moment to another.",
             Side.BOTTOM, "satview.gui.panels.path_panel:PathPanel"),
    PanelRow("snapshot", "S&napshot", ("Ctrl+Shift+T",),
             "Show or hide what every thread does at the selected moment, by state and what it waits for.", Side.BOTTOM,
             "satview.gui.panels.snapshot_panel:SnapshotPanel"),
    PanelRow("doctor", "D&octor", ("Ctrl+Shift+D",),
             "Show or hide what the trace shows exactly, what as a bound, what not at all, and what to capture for it.",
             Side.BOTTOM, "satview.gui.panels.doctor_panel:DoctorPanel"),
    PanelRow("comparison", "Co&mparison", ("Ctrl+Shift+B",),
             "Show or hide what changed from this trace to a second one: threads, states, calls, latencies.",
             Side.BOTTOM, "satview.gui.comparison.panel:ComparisonPanel"),
    PanelRow("sql", "S&QL", ("Ctrl+Shift+Q",),
             "Show or hide queries in SQL over the tables of the trace, and views for what is requested often.",
             Side.BOTTOM, "satview.gui.panels.sql_panel:SqlPanel"),
    PanelRow("results", "&Search results", ("Ctrl+Shift+R",), "Show or hide the table of search hits.", Side.BOTTOM,
             "satview.gui.filters.results_panel:ResultsPanel"),
)  # fmt: skip


def panel_commands() -> tuple[Command, ...]:
    """Return the commands that show and hide the panels, in the order of the table."""
    return tuple(
        Command(f"panels.{row.name}", row.title, Menu.PANELS, row.keys, row.help, Needs.TRACE, icon=row.icon,
                is_checkable=True)
        for row in PANELS
    )  # fmt: skip
