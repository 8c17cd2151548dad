"""Writes a report about a trace as one HTML file, without scripts or external resources."""

from __future__ import annotations

import math
import tempfile
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.doctor import may_be_more, trust_in_durations, trust_in_load
from satview.analysis.statistics import Statistics
from satview.analysis.times.basis import Basis, Scope, Trust, scope_of, sign
from satview.analysis.times.cpu_times import LoadBy, load_over_time
from satview.analysis.times.message_times import SHARES, Histogram, histogram, occurrences
from satview.analysis.verdicts.evidence import Verdict
from satview.analysis.verdicts.find import all_kinds, find_verdicts
from satview.analysis.verdicts.rule import Thresholds, default_thresholds
from satview.answers.late import late, responses
from satview.answers.latencies import latency_figures, latency_table
from satview.answers.statistics import TABLES
from satview.answers.table import Table
from satview.answers.verdicts import undecided_table
from satview.base.child import screenshot
from satview.base.named_files import resource_path
from satview.base.new_file import NewFile, find_target
from satview.base.safe_text import counted, html_text, percent, with_sign
from satview.base.time import format_duration, format_moment
from satview.formats.registry import source_files
from satview.store.problems import KINDS
from satview.store.time_ranges import location_of, lost_marks, outside_words, trusted_duration_ns
from satview.store.trace import Trace

# SVG plots for the page: stacked areas and histograms. The style sheet of the page defines their colours.


WIDTH: Final = 1000
HEIGHT: Final = 150
_LEFT: Final = 46
_BELOW: Final = 20
_TICKS: Final = 6


def stacked_areas(
    bands: NDArray[np.float64], titles: Sequence[str], length_ns: int, marks: Sequence[tuple[float, float]] = ()
) -> str:
    """Return an SVG of a stacked area chart of shares, float64 (bands, bins), that add up to at most 1 in a bin.

    `marks` are start and end, as shares of the width, of each range in which events are missing.
    """
    steps = np.repeat(np.arange(bands.shape[1] + 1), 2)[1:-1] / bands.shape[1] * WIDTH
    upper, parts = np.zeros(bands.shape[1]), []
    for number, band in enumerate(bands):
        lower, upper = upper, upper + band
        top = zip(steps, HEIGHT * (1 - np.repeat(upper, 2)), strict=True)
        bottom = zip(steps[::-1], HEIGHT * (1 - np.repeat(lower, 2))[::-1], strict=True)
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (*top, *bottom))
        parts.append(f'<polygon class="band band{number % 9}" points="{points}"><title>{html_text(titles[number])}'
                     "</title></polygon>")  # fmt: skip
    parts += [f'<rect class="lost" x="{a * WIDTH:.1f}" y="0" width="{max((b - a) * WIDTH, 1):.1f}" height="{HEIGHT}"/>'
              for a, b in marks]  # fmt: skip
    parts += [_tick(share * WIDTH, format_duration(round(length_ns * share)))
              for share in np.linspace(0, 1, _TICKS).tolist()]  # fmt: skip
    parts += [f'<text class="axis" x="-6" y="{HEIGHT * (1 - share) + 4:.0f}" text-anchor="end">'
              f"{percent(share, 0)}</text>" for share in (0.0, 0.5, 1.0)]  # fmt: skip
    return _drawn(parts, "CPU load over time")


def histogram_bars(drawn: Histogram, title: str, bound_ns: int = 0) -> str:
    """Return an SVG of a histogram of durations; both axes are logarithmic.

    The title is for screen readers; a line at `bound_ns` marks a limit, such as a deadline; 0 = no line.
    """
    edges_log10, counts = drawn.edges_log10, drawn.counts
    bound = math.log10(bound_ns) if bound_ns else float(edges_log10[0])
    lowest, highest = min(float(edges_log10[0]), bound), max(float(edges_log10[-1]), bound)
    x = (edges_log10 - lowest) / max(highest - lowest, 1e-9) * WIDTH
    tall = np.where(counts > 0, np.log10(np.maximum(counts, 1) * 2) / np.log10(max(int(counts.max()) * 2, 2)), 0)
    parts = [
        f'<rect class="{"bar" if bar < drawn.first_beyond else "late"}" x="{left:.1f}" y="{HEIGHT * (1 - height):.1f}" '
        f'width="{max(right - left - 1, 1):.1f}" height="{HEIGHT * height:.1f}"><title>{count:,}</title></rect>'
        for bar, (left, right, height, count) in enumerate(zip(x[:-1], x[1:], tall, counts.tolist(), strict=True))
        if count
    ]  # fmt: skip
    decades = np.arange(np.ceil(lowest), np.floor(highest) + 1)
    parts += [_tick((decade - lowest) / max(highest - lowest, 1e-9) * WIDTH, format_duration(round(10**decade)))
              for decade in decades.tolist()]  # fmt: skip
    if bound_ns:
        left = (bound - lowest) / max(highest - lowest, 1e-9) * WIDTH
        parts.append(f'<line class="bound" x1="{left:.1f}" x2="{left:.1f}" y1="0" y2="{HEIGHT}"/>')
    return _drawn(parts, title)


def _tick(x: float, text: str) -> str:
    anchor = "start" if x < 20 else "end" if x > WIDTH - 20 else "middle"
    return f'<text class="axis" x="{x:.0f}" y="{HEIGHT + 15}" text-anchor="{anchor}">{html_text(text)}</text>'


def _drawn(parts: list[str], title: str) -> str:
    box = f"{-_LEFT} -8 {WIDTH + _LEFT + 8} {HEIGHT + _BELOW + 8}"
    return (f'<svg role="img" aria-label="{html_text(title)}" viewBox="{box}">'
            f'<rect class="frame" x="0" y="0" width="{WIDTH}" height="{HEIGHT}"/>{"".join(parts)}</svg>')  # fmt: skip


# The sections of a report as HTML: properties of the trace, verdicts, load, waits, threads, latencies, losses, limits.


_BINS: Final = 250
_MAX_ROWS: Final = 15
_MAX_LOSSES: Final = 20
_WAITS: Final = (
    ("state:READY", "Wait for a CPU (READY)"),
    ("run", "Run on a CPU"),
    ("round_trip", "Round trip of messages"),
    ("interrupt", "Interrupt"),
)
_COLUMNS: Final = {
    "thread": ("thread", "cpu", "cpu_share", "runs", "longest_run", "ready", "longest_ready", "preemptions",
               "migrations"),
    "cpu": ("cpu", "busy", "busy_share", "interrupt", "idle", "unknown"),
    "activities": ("activity", "trigger", "count", "undecided", "median", "p99", "max", "deadline", "misses", "margin",
                   "overrun"),
    "blame": ("part", "whom", "what", "length", "share"),
}  # fmt: skip


def head(trace: Trace) -> str:
    """Return HTML with the properties of the trace, such as length, number of events, and release."""
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


def verdict_list(trace: Trace, verdicts: Sequence[Verdict], pictures: dict[int, str]) -> str:
    """Return HTML with the verdicts, each with the command that opens its location.

    `pictures` holds the HTML of pictures, by the index of the verdict; a verdict may have none.
    """
    if not verdicts:
        return "<p>Nothing wrong was found.</p>"
    return "".join(_verdict(trace, verdict, pictures.get(i, "")) for i, verdict in enumerate(verdicts))


def picture(path: Path, why_not: str, says: str) -> str:
    """Return a PNG as an embedded image with a text that describes it, or a note why it could not be taken."""
    if why_not:
        return f'<p class="note">No picture: {html_text(why_not)}</p>'
    data = b64encode(path.read_bytes()).decode("ascii")
    return f'<img alt="{html_text(says)}" src="data:image/png;base64,{data}">'


def load(trace: Trace) -> str:
    """Return HTML with a plot of the load of the CPUs over time, and the table of the CPUs."""
    scope = _scope(trace)
    by_process = load_over_time(scope, LoadBy.PROCESS, _BINS)
    whole = np.maximum(by_process.lengths * by_process.cpus, 1)
    shares = by_process.busy_cycles / whole
    titles = ["Others" if subject < 0 else trace.process_name(int(subject)) for subject in by_process.subjects]
    marks = [((int(a) - trace.window.start) / trace.window.length, (int(b) - trace.window.start) / trace.window.length)
             for a, b in lost_marks(trace)]  # fmt: skip
    trust = trust_in_load(Statistics(trace, basis=scope.basis))
    legend = "".join(
        f'<span class="key"><i class="band{i % 9}"></i>{html_text(title)} '
        f"{html_text(with_sign(sign(trust.mark), percent(mean)))}</span>"
        for i, (title, mean) in enumerate(zip(titles, by_process.busy_cycles.sum(axis=1) / whole.sum(), strict=True))
    )
    length_ns = trace.clock.duration_ns(trace.window.length)
    return f"{stacked_areas(shares, titles, length_ns, marks)}<p>{legend}</p>{statistics(trace, 'cpu')}"


def _doubt(trust: Trust) -> str:
    return f'<p class="note">{html_text(trust.says)}.</p>' if trust.says else ""


def waits(trace: Trace) -> str:
    """Return HTML with a histogram and percentiles for each kind of duration of `_WAITS` that the trace has."""
    scope, parts = _scope(trace), []
    for key, title in _WAITS:
        waits_of_key = occurrences(scope, key)
        if not len(waits_of_key):
            continue
        ns = trace.clock.durations_ns(waits_of_key.cycles)
        drawn = histogram(ns)
        marks = [(f"p{share * 100:g}", trace.clock.duration_ns(value))
                 for share, value in zip(SHARES, waits_of_key.percentiles(), strict=True)]  # fmt: skip
        longest_row = int(np.argmax(waits_of_key.cycles))
        start = int(waits_of_key.start[longest_row])
        longest = location_of(trace, start, start + int(waits_of_key.cycles[longest_row]))
        percentiles = ", ".join(f"{name} {format_duration(value)}" for name, value in marks)
        trust = trust_in_durations(trace, key)
        parts.append(
            f"<h3>{title}</h3>{histogram_bars(drawn, title)}"
            f"<p>{len(waits_of_key):,} of them: {percentiles}. The longest takes "
            f"{format_duration(int(ns[longest_row]))} {html_text(str(longest))}.</p>{_doubt(trust)}"
            f"{_command(longest.command)}"
        )
    return "".join(parts) or "<p>The trace has no events of these.</p>"


def statistics(trace: Trace, key: str) -> str:
    """Return HTML with the first rows of a table of statistics, in the table's default order."""
    table = TABLES[key](Statistics(trace), None)
    return _answer(table.sorted_by(table.question.sort_name) if table.question.sort_name else table, _COLUMNS[key])


def latencies(trace: Trace) -> str:
    """Return HTML with the table of latencies from pulses and interrupts to the threads that handle them."""
    return _answer(latency_figures(trace, latency_table(trace)))


def lateness(trace: Trace, thresholds: Thresholds) -> str:
    """Return HTML with the recurring activities, and how the worst instance of the most late one spent its time."""
    answers = late(trace, thresholds.timing)
    activity = answers.most_telling()
    shown = _answer(answers.activities().sorted_by("misses"), _COLUMNS["activities"])
    if len(chains := answers.chains()):
        shown += f"<h3>Chains</h3>{_answer(chains)}"
    if activity is None:
        return shown
    worst, drawn, bars = answers.worst(activity, 1), responses(answers, activity), ""
    if drawn is not None:
        learned = answers.learned.activities[activity]
        deadline_ns = trace.clock.duration_ns(max(learned.deadline_cycles, 0))
        bound = f"; the line is its deadline of {format_duration(deadline_ns)}" if deadline_ns else ""
        bars = (f"<h3>Responses of {html_text(learned.name)}</h3>{histogram_bars(drawn, 'Responses', deadline_ns)}"
                f"<p>How many took how long{bound}.</p>")  # fmt: skip
    differences, (parts, says) = answers.compared(activity), answers.explained(worst)
    causes = "".join(f"<h3>{table.question.title}</h3>{_answer(table)}"
                     for table in (differences.causes, differences.paths) if len(table))  # fmt: skip
    return (f"{shown}<p>{html_text(says[0])}</p>{_answer(parts, _COLUMNS['blame'])}"
            f"{bars}<h3>Slow against fast</h3>{_answer(differences.times)}{causes}")  # fmt: skip


def losses(trace: Trace) -> str:
    """Return HTML with the ranges in which events are missing, and the problems of the file."""
    lost, clock = lost_marks(trace), trace.clock
    parts = ["<p>No events are missing.</p>"]
    if len(lost):
        total = clock.duration_ns(int((lost[:, 1] - lost[:, 0]).sum()))
        rows = [(format_moment(int(a), clock), format_duration(clock.duration_ns(int(b - a)))) for a, b in lost]
        parts = [f"<p>Events are missing in {counted(len(lost), 'range')}, {format_duration(total)} in all.</p>",
                 _rows(("From", "Length"), rows[:_MAX_LOSSES]), _more(len(rows), _MAX_LOSSES)]  # fmt: skip
    counts = trace.problems.counts()
    if counts:
        parts.append(_rows(("Problem of the file", "Times", ""), [
            (KINDS[slug].title, f"{count:,}", "costs data" if KINDS[slug].costs_data else "no data lost")
            for slug, count in counts.items()]))  # fmt: skip
    return "".join(parts)


def limits(trace: Trace, thresholds: Thresholds) -> str:
    """Return HTML with the verdicts that the trace cannot decide: a missing verdict must not read as "no problem"."""
    missing = may_be_more(trace)
    kinds = [kind for kind in all_kinds() if thresholds.is_enabled(kind)]
    rows = [
        (row["kind"], row["shown"], row["reason"]) for row in undecided_table(trace, kinds, thresholds.timing).records()
    ]
    note = f"<p>There may be more than is listed: {html_text(missing)}.</p>" if missing else ""
    if not rows:
        return note or "<p>The trace has what every verdict needs.</p>"
    return note + _rows(("Verdict", "Shown", "Why the trace cannot show it, or not all"), rows)


def _verdict(trace: Trace, verdict: Verdict, drawn: str) -> str:
    location = verdict.location(trace)
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


def _answer(table: Table, names: Sequence[str] = ()) -> str:
    """Return the first rows of a table as HTML, with notes about inexact values; all columns, or only those named."""
    if not len(table):
        return f"<p>{html_text(table.says_why_empty)}</p>"
    columns = [column for column in table.filled() if not names or column.name in names]
    rows = [[table.text(row, column.name) for column in columns] for row in range(min(len(table), _MAX_ROWS))]
    return (_rows([column.marked_title for column in columns], rows, [column.kind.is_words for column in columns])
            + _more(len(table), _MAX_ROWS)
            + "".join(f'<p class="note">{html_text(doubt)}</p>' for doubt in table.doubts(names)))  # fmt: skip


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


_SIZE: Final = "1400x760"
_VERDICTS_SHARE: Final = 0.4  # approximate share of verdicts in the time to write a report

_SECTIONS: Final[tuple[tuple[str, Callable[[Trace], str]], ...]] = (
    ("Load of the CPUs", load),
    ("Threads", lambda trace: statistics(trace, "thread")),
    ("How long things take", waits),
    ("From interrupts and pulses to threads", latencies),
)


def write_report(
    trace: Trace,
    path: Path | str,
    thresholds: Thresholds | None = None,
    pictures: int = 4,
    report: Callable[[float], None] | None = None,
) -> int:
    """Write a report about a trace; return the number of verdicts.

    Args:
        trace: The trace; its file is opened again for pictures.
        path: The file to write, or `-` for standard output.
        thresholds: Thresholds of the verdicts; None = the defaults.
        pictures: Maximum number of verdicts with a picture; 0 = no pictures, not even of the whole trace.
        report: Called with the progress, 0 to 1.

    Raises:
        WriteError: The file cannot be written.
    """
    find_target(path, source_files(trace.path), streams=True)  # fails before the long part
    progress = report or (lambda _share: None)
    thresholds = thresholds or default_thresholds()
    verdicts = find_verdicts(trace, thresholds, progress=lambda share: progress(_VERDICTS_SHARE * share))
    sections: list[tuple[str, Callable[[Trace], str]]] = [
        *_SECTIONS,
        ("What is late", partial(lateness, thresholds=thresholds)),
        ("What the trace cannot show", partial(limits, thresholds=thresholds)),
    ]
    steps = (1 + len(verdicts[:pictures]) if pictures else 0) + len(sections)
    shares = iter(_VERDICTS_SHARE + (1 - _VERDICTS_SHARE) * step / steps for step in range(1, steps + 1))
    with tempfile.TemporaryDirectory(prefix="satview-report-") as folder:
        whole = _picture(trace, Path(folder), [], "The whole trace") if pictures else ""
        if pictures:
            progress(next(shares))
        drawn = {}
        for number, verdict in enumerate(verdicts[:pictures]):
            location = verdict.location(trace)
            drawn[number] = _picture(trace, Path(folder), location.options, f"{verdict.kind}, {location}")
            progress(next(shares))
    parts = [("Trace", head(trace) + whole)]
    if len(trace.events):
        parts.append(("Verdicts", verdict_list(trace, verdicts, drawn)))
        for title, make in sections:
            parts.append((title, make(trace)))
            progress(next(shares))
    parts.append(("Losses and problems", losses(trace)))
    with NewFile(path, reading=source_files(trace.path), streams=True) as file:
        file.stream.write(_page(trace.path.name, parts).encode("utf-8", "replace"))
    return len(verdicts)


def _picture(trace: Trace, folder: Path, options: list[str], says: str) -> str:
    path = folder / "picture.png"
    path.unlink(missing_ok=True)
    return picture(path, screenshot(trace.path, path, options, _SIZE), says)


def _page(name: str, parts: list[tuple[str, str]]) -> str:
    style = resource_path("report/style.css").read_text(encoding="utf-8")
    body = "".join(f"<section><h2>{title}</h2>{text}</section>" for title, text in parts)
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width"><title>{html_text(name)}</title>
<style>{style}</style></head>
<body><h1>{html_text(name)}</h1>{body}<footer>written by satview report</footer></body></html>
"""
