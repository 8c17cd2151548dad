"""What is where in a QST file: heads, sections and kernel buffers, for the reader and for the simulated kernel.

Source: QST description, versions 3 and 4. Heads are little-endian; slots and the heads of kernel buffers are as the
target wrote them.
"""

from __future__ import annotations

from typing import Final

import numpy as np

MAGIC_3: Final = 0x51535433
MAGIC_4: Final = 0x51535434
MAIN: Final = 0x4D41494E  # slots, one after the other
DATA: Final = 0x44415441  # whole kernel buffers
BUFFERS: Final = 0x4B425546  # where slots of MAIN came from
NAMES: Final = 0x50494E46  # of a second, short trace
SECTION_NAMES: Final = {MAIN: "MAIN", DATA: "DATA", BUFFERS: "KBUF", NAMES: "PINF"}
SECTION_VERSION: Final = 1
HEAD_BYTES: Final = 64
NO_CPU: Final = 0xFF  # 7.1 has one ring for all CPUs
SYSTEMS: Final = {710: "7.1.0", 800: "8.0.0"}

HEAD_4: Final = np.dtype([
    ("magic", "<u4"), ("version", "<u4"), ("head_bytes", "<u4"), ("flags", "<u4"), ("cycles_per_s", "<u8"),
    ("start_ns", "<i8"), ("end_ns", "<i8"), ("cpus", "<u4"), ("system", "<u4"), ("buffer_bytes", "<u4"),
    ("slots_at", "<u4"), ("buffers_per_cpu", "<u4"), ("reserved", "<u4"),
])  # fmt: skip
SECTION_4: Final = np.dtype([
    ("magic", "<u4"), ("version", "<u4"), ("bytes", "<u8"), ("entries", "<u4"), ("reserved", "<u4"),
])  # fmt: skip
BUFFER_4: Final = np.dtype([
    ("index", "<u4"), ("sequence", "<u4"), ("slots", "<u4"), ("flags", "<u4"), ("cpu", "u1"), ("reserved", "V7"),
])  # fmt: skip
HEAD_3: Final = np.dtype([
    ("magic", "<u4"), ("version", "<u4"), ("cycles_per_s", "<u8"), ("end_s", "<u8"), ("end_rest_ns", "<u8"),
    ("last_stamp", "<u4"), ("reserved", "V28"),
])  # fmt: skip
SECTION_3: Final = np.dtype([("magic", "<u4"), ("entries", "<u4"), ("reserved", "V8")])

# In a kernel buffer (tracebuf_t), in the byte order of the target.
SLOT_COUNT_AT: Final = 20
SEQUENCE_AT: Final = 24
LEAST_BUFFER_HEAD: Final = 28
LEAST_BUFFER: Final = 1024  # those of QNX have 16 KiB
