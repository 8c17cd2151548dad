"""The parts of a report: what the trace is, verdicts, load, waits, threads, latencies, losses, what it cannot show."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from satview.analysis.doctor.report import may_be_more
from satview.analysis.load import LoadBy, load_over_time
from satview.analysis.sheets.sheet import Kind, Sheet
from satview.analysis.statistics import Statistics
from satview.analysis.statistics_sheets import SHEETS
from satview.analysis.times.basis import Basis
from satview.analysis.times.occurrences import SHARES, histogram, occurrences
from satview.analysis.times.scope import Scope, scope_of
from satview.analysis.verdicts.verdict import Verdict
from satview.answers.latencies import latency_figures, latency_table
from satview.answers.table import Table
from satview.answers.verdicts import undecided_table
from satview.base.counts import counted
from satview.base.safe_text import html_text
from satview.base.time_text import format_duration, format_moment
from satview.report.svg import histogram_bars, stacked_areas
from satview.store.doubts import outside_words, trusted_duration_ns
from satview.store.location import location_of
from satview.store.losses import lost_marks
from satview.store.problems import KINDS
from satview.store.trace import Trace

_BINS: Final = 250
_MOST_ROWS: Final = 15
_MOST_LOSSES: Final = 20
_WAITS: Final = (
    ("state:READY", "Wait for a CPU (READY)"),
    ("run", "Run on a CPU"),
    ("round_trip", "Round trip of messages"),
    ("interrupt", "Interrupt"),
)
_SHEET_COLUMNS: Final = {
    "thread": ("thread", "cpu_ns", "cpu_share", "runs", "longest_run_ns", "ready_ns", "longest_ready_ns", "preemptions",
               "migrations"),
    "cpu": ("cpu", "busy_ns", "busy_share", "interrupt_ns", "idle_ns", "unknown_ns"),
}  # fmt: skip


def head(trace: Trace) -> str:
    """Return what the trace is, in a few lines."""
    wall = trace.clock.wall_time(trace.window.start) if len(trace.events) else None
    lines = (
        ("Length", format_duration(trusted_duration_ns(trace))),
        ("Outside", outside_words(trace)),
        ("Begins", f"about {wall:%Y-%m-%d %H:%M:%S} UTC" if wall else ""),
        ("Events", f"{len(trace.events):,}"),
        ("CPUs", str(trace.cpu_count)),
        ("Release", f"QNX {trace.header.get('SYS_RELEASE') or trace.release}"),
        ("Target", " ".join(filter(None, (trace.header.get("NODENAME"), trace.header.get("MACHINE"))))),
        ("Captured", trace.header.get("DATE") or ""),
        ("With", trace.header.get("TRACELOGGER_ARGS") or ""),
    )
    return "<dl>" + "".join(f"<dt>{name}</dt><dd>{html_text(text)}</dd>" for name, text in lines if text) + "</dl>"


def verdict_list(trace: Trace, found: Sequence[Verdict], pictures: dict[int, str]) -> str:
    """Return the verdicts, each with its location, the command that opens it, and its picture if there is one.

    Args:
        trace: The trace.
        found: The verdicts.
        pictures: Index of a verdict to what `picture` returned.
    """
    if not found:
        return "<p>Nothing wrong was found.</p>"
    return "".join(_verdict(trace, verdict, pictures.get(i, "")) for i, verdict in enumerate(found))


def picture(path: Path, why_not: str, says: str) -> str:
    """Return a picture as part of the page, or why there is none.

    Args:
        path: A PNG.
        why_not: Why it could not be taken; empty = it was.
        says: What it shows.
    """
    if why_not:
        return f'<p class="note">No picture: {html_text(why_not)}</p>'
    data = b64encode(path.read_bytes()).decode("ascii")
    return f'<img alt="{html_text(says)}" src="data:image/png;base64,{data}">'


def load(trace: Trace) -> str:
    """Return the load of the CPUs over time as a plot, and the table of the CPUs."""
    scope = _scope(trace)
    by_process = load_over_time(scope, LoadBy.PROCESS, _BINS)
    whole = np.maximum(by_process.lengths * by_process.cpus, 1)
    shares = by_process.busy_cycles / whole
    titles = ["Others" if subject < 0 else trace.process_name(int(subject)) for subject in by_process.subjects]
    marks = [((int(a) - trace.window.start) / trace.window.length, (int(b) - trace.window.start) / trace.window.length)
             for a, b in lost_marks(trace)]  # fmt: skip
    legend = "".join(
        f'<span class="key"><i class="band{i % 9}"></i>{html_text(title)} {mean:.1%}</span>'
        for i, (title, mean) in enumerate(zip(titles, by_process.busy_cycles.sum(axis=1) / whole.sum(), strict=True))
    )
    length_ns = trace.clock.duration_ns(trace.window.length)
    return f"{stacked_areas(shares, titles, length_ns, marks)}<p>{legend}</p>{sheet(trace, 'cpu')}"


def waits(trace: Trace) -> str:
    """Return how long things take: a histogram and percentiles of each kind that the trace has."""
    scope, parts = _scope(trace), []
    for key, title in _WAITS:
        found = occurrences(scope, key)
        if not len(found):
            continue
        ns = trace.clock.durations_ns(found.cycles)
        drawn = histogram(ns)
        marks = [(f"p{share * 100:g}", trace.clock.duration_ns(value))
                 for share, value in zip(SHARES, found.percentiles(), strict=True)]  # fmt: skip
        at = int(np.argmax(found.cycles))
        start = int(found.start[at])
        longest = location_of(trace, start, start + int(found.cycles[at]))
        said = ", ".join(f"{name} {format_duration(value)}" for name, value in marks)
        parts.append(
            f"<h3>{title}</h3>{histogram_bars(drawn.edges_log10, drawn.counts, title)}"
            f"<p>{len(found):,} of them: {said}. The longest takes {format_duration(int(ns[at]))} "
            f"{html_text(str(longest))}.</p>{_command(longest.command)}"
        )
    return "".join(parts) or "<p>The trace has no events of these.</p>"


def sheet(trace: Trace, key: str) -> str:
    """Return a sheet of the statistics as a table, its first rows in its usual order."""
    found = SHEETS[key](Statistics(trace), None)
    return _table(found, _SHEET_COLUMNS.get(key, ()))


def latencies(trace: Trace) -> str:
    """Return how long pulses and interrupts take until a thread answers."""
    return _answer(latency_figures(trace, latency_table(trace)))


def losses(trace: Trace) -> str:
    """Return where events are missing, and what is wrong with the file."""
    lost, clock = lost_marks(trace), trace.clock
    parts = ["<p>No events are missing.</p>"]
    if len(lost):
        total = clock.duration_ns(int((lost[:, 1] - lost[:, 0]).sum()))
        rows = [(format_moment(int(a), clock), format_duration(clock.duration_ns(int(b - a)))) for a, b in lost]
        parts = [f"<p>Events are missing in {counted(len(lost), 'range')}, {format_duration(total)} in all.</p>",
                 _rows(("From", "Length"), rows[:_MOST_LOSSES]), _more(len(rows), _MOST_LOSSES)]  # fmt: skip
    counts = trace.problems.counts()
    if counts:
        parts.append(_rows(("Problem of the file", "Times", ""), [
            (KINDS[slug].title, f"{count:,}", "costs data" if KINDS[slug].costs_data else "no data lost")
            for slug, count in counts.items()]))  # fmt: skip
    return "".join(parts)


def limits(trace: Trace) -> str:
    """Return what the trace cannot show, so that silence is not taken for health."""
    missing = may_be_more(trace)
    rows = [(row["kind"], row["reason"]) for row in undecided_table(trace).records()]
    said = f"<p>There may be more than is listed: {html_text(missing)}.</p>" if missing else ""
    if not rows:
        return said or "<p>The trace has what every verdict needs.</p>"
    return said + _rows(("Verdict", "Why the trace cannot show it"), rows)


def _verdict(trace: Trace, verdict: Verdict, drawn: str) -> str:
    row = verdict.evidence[0] if verdict.evidence else -1
    location = location_of(trace, verdict.start_cycles, verdict.end_cycles, row)
    times = f", {len(verdict.occurrences):,} times" if len(verdict.occurrences) > 1 else ""
    sure = verdict.certainty.name.lower()
    proof = f'<p class="note">{sure.capitalize()}. Proof: {html_text(verdict.proof)}</p>' if verdict.proof else ""
    return (
        f'<article class="{verdict.severity}"><h3>{verdict.severity}: {verdict.kind}{times}</h3>'
        f"<p>{html_text(verdict.says)}</p><p>Advice: {html_text(verdict.remedy)}</p>{proof}{drawn}"
        f"{_command(location.command)}</article>"
    )


def _command(text: str) -> str:
    return f"<pre>{html_text(text)}</pre>"


def _answer(table: Table) -> str:
    """Return an answer as a table, its first rows, with what is not exact."""
    if not len(table):
        return f"<p>{html_text(table.says_why_empty)}</p>"
    columns = table.filled()
    rows = [[table.text(row, column.name) for column in columns] for row in range(min(len(table), _MOST_ROWS))]
    return (_rows([column.title for column in columns], rows, [column.kind.is_words for column in columns])
            + _more(len(table), _MOST_ROWS)
            + "".join(f'<p class="note">{html_text(doubt)}</p>' for doubt in table.doubts()))  # fmt: skip


def _table(found: Sheet, keys: Sequence[str]) -> str:
    columns = [column for column in found.columns if not keys or column.key in keys]
    is_sorted = any(column.key == found.sort_key for column in found.columns)
    order = found.column(found.sort_key).order(descending=True).tolist() if is_sorted else list(range(len(found)))
    columns = [column for column in columns if any(column.text(row) for row in order)]
    if not order:
        return f"<p>{html_text(found.empty)}</p>"
    is_text = [column.kind is Kind.TEXT for column in columns]
    rows = [[column.marked(row) for column in columns] for row in order[:_MOST_ROWS]]
    notes = dict.fromkeys(column.says_of_trust for column in columns if column.says_of_trust)
    return (_rows([column.marked_title for column in columns], rows, is_text) + _more(len(order), _MOST_ROWS)
            + "".join(f'<p class="note">{html_text(note)}</p>' for note in notes))  # fmt: skip


def _rows(titles: Sequence[str], rows: Iterable[Sequence[str]], is_text: Sequence[bool] = ()) -> str:
    kinds = ["" if not is_text or text else ' class="number"' for text in (is_text or [True] * len(titles))]
    top = "".join(f"<th{kind}>{html_text(title)}</th>" for kind, title in zip(kinds, titles, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{kind}>{html_text(text)}</td>" for kind, text in zip(kinds, row, strict=True)) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _more(count: int, shown: int) -> str:
    return f'<p class="note">and {count - shown:,} more</p>' if count > shown else ""


def _scope(trace: Trace) -> Scope:
    return scope_of(trace, None, None, Basis(trace), None)
