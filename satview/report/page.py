"""A report as one HTML file: no script, nothing that is loaded from elsewhere."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from satview.analysis.verdicts.find import find_verdicts
from satview.analysis.verdicts.rule import Thresholds
from satview.base.new_file import NewFile
from satview.base.picture import screenshot
from satview.base.resources import resource_path
from satview.base.safe_text import html_text
from satview.formats.registry import source_files
from satview.report import sections
from satview.store.location import location_of
from satview.store.trace import Trace

_SIZE: Final = "1400x760"
_VERDICTS_SHARE: Final = 0.4  # of the time that a report takes, roughly; pictures and tables take the rest

_SECTIONS: Final[tuple[tuple[str, Callable[[Trace], str]], ...]] = (
    ("Load of the CPUs", sections.load),
    ("Threads", lambda trace: sections.sheet(trace, "thread")),
    ("How long things take", sections.waits),
    ("From interrupts and pulses to threads", sections.latencies),
    ("What the trace cannot show", sections.limits),
)


def write_report(
    trace: Trace,
    path: Path | str,
    thresholds: Thresholds | None = None,
    pictures: int = 4,
    report: Callable[[float], None] | None = None,
) -> int:
    """Write a report about a trace; return how many verdicts are in it.

    Args:
        trace: The trace; its file is opened again for pictures.
        path: The new file, or `-`.
        thresholds: When something is a verdict; None = the ones that come with satview.
        pictures: Of so many verdicts at most, besides the one of the whole trace; 0 = no pictures at all.
        report: Called with the share that is done, 0 to 1.

    Raises:
        WriteError: The file cannot be written.
    """
    progress = report or (lambda _share: None)
    found = find_verdicts(trace, thresholds, progress=lambda share: progress(_VERDICTS_SHARE * share))
    steps = (1 + len(found[:pictures]) if pictures else 0) + len(_SECTIONS)
    shares = iter(_VERDICTS_SHARE + (1 - _VERDICTS_SHARE) * step / steps for step in range(1, steps + 1))
    with tempfile.TemporaryDirectory(prefix="satview-report-") as folder:
        whole = _picture(trace, Path(folder), [], "The whole trace") if pictures else ""
        if pictures:
            progress(next(shares))
        drawn = {}
        for number, verdict in enumerate(found[:pictures]):
            row = verdict.evidence[0] if verdict.evidence else -1
            location = location_of(trace, verdict.start_cycles, verdict.end_cycles, row)
            drawn[number] = _picture(trace, Path(folder), location.options, f"{verdict.kind}, {location}")
            progress(next(shares))
    parts = [("Trace", sections.head(trace) + whole)]
    if len(trace.events):
        parts.append(("Verdicts", sections.verdict_list(trace, found, drawn)))
        for title, make in _SECTIONS:
            parts.append((title, make(trace)))
            progress(next(shares))
    parts.append(("Losses and problems", sections.losses(trace)))
    with NewFile(path, reading=source_files(trace.path), streams=True) as file:
        file.stream.write(_page(trace.path.name, parts).encode("utf-8", "replace"))
    return len(found)


def _picture(trace: Trace, folder: Path, options: list[str], says: str) -> str:
    path = folder / "picture.png"
    path.unlink(missing_ok=True)
    return sections.picture(path, screenshot(trace.path, path, options, _SIZE), says)


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
