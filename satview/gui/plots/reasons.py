"""Why no plot shows, in words."""

from __future__ import annotations

from satview.base.safe_text import visible_line
from satview.session.panels.plots_task import CountsPlotted, DurationsPlotted, LoadPlotted, Plotted


def reason_for(plotted: Plotted | None) -> str:
    """Return why no plot shows; empty if one does."""
    if plotted is None:
        return "Counting\N{HORIZONTAL ELLIPSIS}"
    if isinstance(plotted, LoadPlotted):
        return plotted.capture
    if isinstance(plotted, CountsPlotted):
        return "" if plotted.titles else "There are no events in this part of the trace."
    if plotted.histogram is not None:
        return ""
    of_whom = whose(plotted)
    if plotted.found.unfinished:
        count = f"{plotted.found.unfinished:,}"
        return f"{plotted.measure.title}: the trace holds both ends of none of the {count}{of_whom}."
    return (
        f"{plotted.measure.title}: none{of_whom} begins in this part of the trace.\n"
        f"A capture needs {plotted.measure.capture} for it."
    )


def whose(plotted: DurationsPlotted) -> str:
    """Return whose times are counted, in words; empty for all."""
    return f" of {visible_line(plotted.whose)}" if plotted.whose else ""
