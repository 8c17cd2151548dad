"""Who had the CPUs, as a picture in SVG: a sample of an export for satview.

The name of the entry point is the ending: `satview export FILE -o out.svg`.
"""

from satview.base.safe_text import html_text
from satview.tables.table import table

WIDTH, HEIGHT = 1200, 30


def write_svg(trace, stream):
    """Write a trace to a binary stream; return how many bars are in it."""
    runs, window = table(trace, "run"), trace.window
    scale = WIDTH / window.length
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT * trace.cpu_count}">']
    columns = (runs[name].tolist() for name in ("cpu", "thread", "start_cycles", "end_cycles", "is_idle"))
    bars = [
        (cpu, thread, (start - window.start) * scale, (end - start) * scale)
        for cpu, thread, start, end, is_idle in zip(*columns)
        if not is_idle
    ]
    for cpu, thread, x, width in bars:
        lines.append(
            f'<rect x="{x:.2f}" y="{cpu * HEIGHT + 2}" width="{max(width, 0.2):.2f}" height="{HEIGHT - 4}" '
            f'fill="hsl({thread * 47 % 360} 60% 55%)"><title>{html_text(trace.thread_name(thread))}</title></rect>'
        )
    stream.write("\n".join([*lines, "</svg>", ""]).encode("utf-8", "replace"))
    return len(bars)
