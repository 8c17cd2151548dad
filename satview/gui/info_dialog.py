"""Header, system page and counts of the open trace."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QHeaderView, QTreeWidget, QTreeWidgetItem, QVBoxLayout, QWidget

from satview.base.safe_text import tool_tip, visible_line
from satview.base.time_text import format_duration
from satview.gui.screen_fit import resize_on_screen
from satview.store.trace import Trace

Rows = Iterable[tuple[str, str]]


class InfoDialog(QDialog):
    """Shows what is known of the trace as a whole."""

    def __init__(self, trace: Trace, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(f"{trace.path.name} \N{EM DASH} information")
        self.tree = QTreeWidget(self)
        self.tree.setHeaderLabels(["Name", "Value"])
        self.tree.setUniformRowHeights(True)
        self.tree.header().setSectionResizeMode(0, QHeaderView.ResizeMode.ResizeToContents)
        for title, rows in info_sections(trace):
            top = QTreeWidgetItem(self.tree, [title])
            for name, value in rows:
                item = QTreeWidgetItem(top, [visible_line(name), visible_line(value)])
                item.setToolTip(1, tool_tip(value))
            top.setExpanded(title in ("Trace", "Events", "CPUs", "Header"))
            top.setHidden(not top.childCount())
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.rejected.connect(self.close)
        layout = QVBoxLayout(self)
        layout.addWidget(self.tree)
        layout.addWidget(buttons)
        resize_on_screen(self, 640, 620)


def info_sections(trace: Trace) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return titled rows of (name, value)."""
    system = trace.system
    return [
        ("Trace", list(_trace_rows(trace))),
        (
            "Events",
            [(name, f"{count:,}") for name, count in sorted(trace.class_counts().items(), key=lambda pair: -pair[1])],
        ),
        (
            "CPUs",
            [
                (
                    f"CPU {cpu.number}",
                    "  ".join(
                        filter(
                            None, (cpu.name, f"{cpu.speed_mhz} MHz" if cpu.speed_mhz else "", " ".join(cpu.flag_names))
                        )
                    ),
                )
                for cpu in (system.cpus if system else ())
            ],
        ),
        ("Header", list(trace.header.pairs)),
        (
            "System page",
            [
                *(system.strings if system else ()),
                *((name, f"{value:,} (0x{value:x})") for name, value in (system.values.items() if system else ())),
            ],
        ),
        ("Buffers", list(_buffer_rows(trace))),
    ]


def _trace_rows(trace: Trace) -> Rows:
    yield "File", str(trace.path)
    yield "Format", f"{trace.format}, {trace.byte_order} endian"
    yield "Release", f"{trace.header.get('SYS_RELEASE') or 'not given'}; tables of {trace.release}"
    yield "Length", format_duration(trace.duration_ns)
    yield "Clock", f"{trace.clock.cycles_per_s:,} cycles per second"
    yield "CPUs", str(trace.cpu_count)
    yield "Processes", f"{len(trace.processes) - 1:,}"
    yield "Threads", f"{len(trace.threads) - 1:,}"
    yield "Events", f"{len(trace.events):,}"
    yield "Slots", f"{trace.slot_count:,}"
    if trace.system is not None and trace.system.processor:
        yield "Processor", trace.system.processor


def _buffer_rows(trace: Trace) -> Rows:
    buffers = trace.buffers
    if len(buffers):
        yield "Buffers", f"{len(buffers):,}"
        yield "Lost", f"{int(buffers.lost_before.sum()):,}"
