"""Plots as SVG within a page: areas over time and histograms. Colours come from the page's style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.safe_text import html_text
from satview.base.time_text import format_duration

WIDTH: Final = 1000
HEIGHT: Final = 150
_LEFT: Final = 46
_BELOW: Final = 20
_TICKS: Final = 6


def stacked_areas(
    bands: NDArray[np.float64], titles: Sequence[str], length_ns: int, marks: Sequence[tuple[float, float]] = ()
) -> str:
    """Return bands on top of each other over time, from 0 to 1 each bin.

    Args:
        bands: float64 (bands, bins), shares of the whole.
        titles: Name of each band.
        length_ns: Time of the width.
        marks: From and to, each a share of the width: ranges in which events are missing.
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
    parts += [f'<text class="axis" x="-6" y="{HEIGHT * (1 - share) + 4:.0f}" text-anchor="end">{share:.0%}</text>'
              for share in (0.0, 0.5, 1.0)]  # fmt: skip
    return _drawn(parts, "CPU load over time")


def histogram_bars(edges_log10: NDArray[np.float64], counts: NDArray[np.int64], title: str) -> str:
    """Return a histogram of lengths of time, logarithmic in both directions.

    Args:
        edges_log10: float64 (bins + 1,), logarithms of nanoseconds.
        counts: int64 (bins,).
        title: What it is of, for those who cannot see it.
    """
    first, last = float(edges_log10[0]), float(edges_log10[-1])
    x = (edges_log10 - first) / max(last - first, 1e-9) * WIDTH
    tall = np.where(counts > 0, np.log10(np.maximum(counts, 1) * 2) / np.log10(max(int(counts.max()) * 2, 2)), 0)
    parts = [
        f'<rect class="bar" x="{left:.1f}" y="{HEIGHT * (1 - height):.1f}" width="{max(right - left - 1, 1):.1f}" '
        f'height="{HEIGHT * height:.1f}"><title>{count:,}</title></rect>'
        for left, right, height, count in zip(x[:-1], x[1:], tall, counts.tolist(), strict=True) if count
    ]  # fmt: skip
    decades = np.arange(np.ceil(first), np.floor(last) + 1)
    parts += [_tick((at - first) / max(last - first, 1e-9) * WIDTH, format_duration(round(10**at)))
              for at in decades.tolist()]  # fmt: skip
    return _drawn(parts, title)


def _tick(x: float, text: str) -> str:
    anchor = "start" if x < 20 else "end" if x > WIDTH - 20 else "middle"
    return f'<text class="axis" x="{x:.0f}" y="{HEIGHT + 15}" text-anchor="{anchor}">{html_text(text)}</text>'


def _drawn(parts: list[str], title: str) -> str:
    box = f"{-_LEFT} -8 {WIDTH + _LEFT + 8} {HEIGHT + _BELOW + 8}"
    return (f'<svg role="img" aria-label="{html_text(title)}" viewBox="{box}">'
            f'<rect class="frame" x="0" y="0" width="{WIDTH}" height="{HEIGHT}"/>{"".join(parts)}</svg>')  # fmt: skip
