"""Reads `us,cpu,process,pid,tid` lines: which thread has a CPU from when on. A sample of a reader for satview.

The first line is `# context switches`. Its events become slots of a .kev file, so that all of satview works on them.
"""

import csv
import tempfile
from dataclasses import replace
from pathlib import Path

from satview.base.errors import TraceFormatError
from satview.events import wire
from satview.events.naming import state_numbers
from satview.events.spec import Release
from satview.formats.kev.header import SlotWriter, standard_header, syspage_bytes, write_kev
from satview.formats.kev.reader import open_kev

FIRST_LINE = b"# context switches"
CYCLES_PER_S = 1_000_000  # a cycle is a microsecond


class SwitchReader:
    """What the entry point names: satview calls `score`, and `open` of the surest reader."""

    title = "Context switches (CSV)"
    patterns = ("*.csv",)

    def score(self, first_bytes, _path):
        """Return how sure it is of a file by its first bytes: 0 = certainly not its own, 100 = certainly."""
        return 90 if first_bytes.startswith(FIRST_LINE) else 0

    def open(self, path, _progress, _cancelled):
        """Return the trace of a file; a file that is none ends in one sentence."""
        writer, cpus = SlotWriter(), 1
        running = state_numbers(Release.QNX_7)["RUNNING"]
        names = {}
        with path.open(newline="", encoding="utf-8") as file:
            for number, row in enumerate(csv.reader(file), 1):
                if number == 1:
                    continue
                try:
                    us, cpu, process, pid, tid = int(row[0]), int(row[1]), row[2], int(row[3]), int(row[4])
                except (ValueError, IndexError):
                    raise TraceFormatError(
                        path, None, f"line {number} is no switch", "write us,cpu,process,pid,tid"
                    ) from None
                if number == 2:
                    writer.event(wire.CONTROL_TIME, cpu, us, (us >> 32, us & 0xFFFFFFFF))
                if pid not in names:
                    names[pid] = process
                    writer.text_event(wire.PROC_CREATE_NAME, cpu, us, (1, pid), process.encode())
                writer.event(wire.code(wire.WireClass.PR_TH, running), cpu, us, (pid, tid))
                cpus = max(cpus, cpu + 1)
        return self._trace(path, writer, cpus)

    def _trace(self, path, writer, cpus):
        page = syspage_bytes(
            "little", kind=0x100, cycles_per_s=CYCLES_PER_S, boot_time_s=0, cpu_names=("cpu",) * cpus, speed_mhz=0
        )
        pairs = standard_header(
            file_name=path.name,
            date="",
            boot_date="",
            byte_order="little",
            cycles_per_s=CYCLES_PER_S,
            cpu_count=cpus,
            release="7.1.0",
            version="",
            machine="",
            node="",
            syspage_length=len(page),
        )
        with tempfile.TemporaryDirectory() as folder:
            plain = Path(folder) / "switches.kev"
            write_kev(plain, pairs, page, writer.slots(), "little")
            return replace(open_kev(plain), path=path, format="switches")


reader = SwitchReader()
