"""Writes trace.dat files of version 6 as trace-cmd does; `trace-cmd report` prints them, `convert` makes version 7."""

from __future__ import annotations

import struct
from collections.abc import Sequence

PAGE = 4096
ORDER = "<"  # of numbers, as `struct` spells it; tests set it
_HEADER_PAGE = (
    "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
    "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
    "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
    "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n"
)
_HEADER_EVENT = (
    "# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\tarray       :   32 bits\n\n"
    "\tpadding     : type == 29\n\ttime_extend : type == 30\n\ttime_stamp : type == 31\n\tdata max type_len  == 28\n"
)
_COMMON = (
    ("unsigned short", "common_type", 2, 0), ("unsigned char", "common_flags", 1, 0),
    ("unsigned char", "common_preempt_count", 1, 0), ("int", "common_pid", 4, 1),
)  # fmt: skip
_FLAGS = (
    '__print_flags(REC->prev_state, "|", { 0x01, "S" }, { 0x02, "D" }, { 0x04, "T" }, { 0x08, "t" }, { 0x10, "X" }, '
    '{ 0x20, "Z" }, { 0x40, "P" }, { 0x80, "I" })'
)
# Name, number, fields (type, name, bytes, signed), how it is printed.
FORMATS = (
    ("sched", "sched_switch", 316, (
        ("char", "prev_comm[16]", 16, 0), ("pid_t", "prev_pid", 4, 1), ("int", "prev_prio", 4, 1),
        ("long", "prev_state", 8, 1), ("char", "next_comm[16]", 16, 0), ("pid_t", "next_pid", 4, 1),
        ("int", "next_prio", 4, 1),
    ), '"%s:%d [%d] %s ==> %s:%d [%d]", REC->prev_comm, REC->prev_pid, REC->prev_prio, (REC->prev_state & 255) ? '
       f'{_FLAGS} : "R", REC->next_comm, REC->next_pid, REC->next_prio'),
    ("sched", "sched_waking", 317, (
        ("char", "comm[16]", 16, 0), ("pid_t", "pid", 4, 1), ("int", "prio", 4, 1), ("int", "target_cpu", 4, 1),
    ), '"comm=%s pid=%d prio=%d target_cpu=%03d", REC->comm, REC->pid, REC->prio, REC->target_cpu'),
    ("irq", "irq_handler_entry", 200, (("int", "irq", 4, 1), ("__data_loc char[]", "name", 4, 1)),
     '"irq=%d name=%s", REC->irq, __get_str(name)'),
)  # fmt: skip


def _format_text(group: str, name: str, ident: int, fields: Sequence[tuple[str, str, int, int]], shown: str) -> bytes:
    at, lines = 0, []
    for i, (kind, field, size, signed) in enumerate((*_COMMON, *fields)):
        lines.append(f"\tfield:{kind} {field};\toffset:{at};\tsize:{size};\tsigned:{signed};\n")
        lines += ["\n"] if i == len(_COMMON) - 1 else []
        at += size
    return f"name: {name}\nID: {ident}\nformat:\n{''.join(lines)}\nprint fmt: {shown}\n".encode()


def switch(pid: int, before: tuple[str, int, int, int], after: tuple[str, int, int]) -> bytes:
    """Return a record; before is name, number, priority, state, after without the state."""
    return struct.pack(
        ORDER + "HBBi16siiq16sii", 316, 0, 0, pid, before[0].encode(), *before[1:], after[0].encode(), *after[1:]
    )


def waking(pid: int, name: str, woken: int, prio: int, cpu: int) -> bytes:
    """Return a record of a wake-up by thread `pid`."""
    return struct.pack(ORDER + "HBBi16siii", 317, 0, 0, pid, name.encode(), woken, prio, cpu)


def interrupt(pid: int, irq: int, name: str) -> bytes:
    """Return a record of an interrupt; its name is a text behind the fixed part."""
    text = name.encode() + b"\0"
    record = struct.pack(ORDER + "HBBiiI", 200, 0, 0, pid, irq, 16 | len(text) << 16) + text
    return record.ljust(-(-len(record) // 4) * 4, b"\0")


def word(kind: int, delta: int) -> bytes:
    """Return the first word of an event in a page: its kind is in the first five bits that the processor counts."""
    return struct.pack(ORDER + "I", kind | delta << 5 if ORDER == "<" else kind << 27 | delta)


def page(events: Sequence[tuple[int, bytes]], missed: bool = False) -> bytes:
    """Return one page of the ring buffer: (ns, record), in time order."""
    data, now = b"", events[0][0]
    for time, record in events:
        delta = time - now
        if delta >= 1 << 27:
            data += word(30, delta & (1 << 27) - 1) + struct.pack(ORDER + "I", delta >> 27)
            delta = 0
        now = time
        words = len(record) // 4
        if words <= 28:
            data += word(words, delta) + record
        else:
            data += word(0, delta) + struct.pack(ORDER + "I", len(record) + 4) + record
    assert len(data) <= PAGE - 16
    return struct.pack(ORDER + "QQ", events[0][0], len(data) | missed << 31) + data.ljust(PAGE - 16, b"\0")


def _sized(data: bytes, size: str = "Q") -> bytes:
    return struct.pack(ORDER + size, len(data)) + data


def metadata(version: str, names: Sequence[tuple[int, str]] = ()) -> bytes:
    """Return what is in front of the CPUs of a file of version 6, and in the feature `tracing data` of perf.data."""
    groups: dict[str, list[bytes]] = {}
    for group, *rest in FORMATS:
        groups.setdefault(group, []).append(_sized(_format_text(group, *rest)))
    head = b"\x17\x08\x44tracing" + version.encode() + b"\0" + bytes([ORDER == ">", 8]) + struct.pack(ORDER + "I", PAGE)
    head += b"header_page\0" + _sized(_HEADER_PAGE.encode()) + b"header_event\0" + _sized(_HEADER_EVENT.encode())
    head += struct.pack(ORDER + "II", 0, len(groups))
    for group, texts in groups.items():
        head += group.encode() + b"\0" + struct.pack(ORDER + "I", len(texts)) + b"".join(texts)
    head += _sized(b"", "I") + _sized(b"", "I")
    return head + _sized("".join(f"{number} {name}\n" for number, name in names).encode())


def trace_dat(cpus: Sequence[Sequence[bytes]], names: Sequence[tuple[int, str]] = ()) -> bytes:
    """Return a file of version 6: the pages of each CPU."""
    head = metadata("6", names)
    head += (
        struct.pack(ORDER + "I", len(cpus))
        + b"options  \0"
        + struct.pack(ORDER + "HI", 8, 4)
        + struct.pack(ORDER + "I", len(cpus))
    )
    head += struct.pack(ORDER + "H", 0) + b"flyrecord\0"
    at = -(-(len(head) + 16 * len(cpus)) // PAGE) * PAGE
    data = b""
    for pages in cpus:
        head += struct.pack(ORDER + "QQ", at + len(data), PAGE * len(pages))
        data += b"".join(pages)
    return head.ljust(at, b"\0") + data


def version_7(version_6: bytes, compression: str) -> bytes:
    """Return a file of version 7 with what one of version 6 holds, every section packed if there is a compression."""
    import zlib

    import zstandard

    pack = {"zlib": zlib.compress, "zstd": zstandard.ZstdCompressor().compress, "none": bytes}[compression]
    is_packed = compression != "none"
    position = version_6.index(b"flyrecord\0") + 10
    # What `metadata` writes, cut where version 7 has sections.
    begin = version_6.index(b"header_page\0")
    formats = version_6.index(b"header_event\0") + 13
    formats += 8 + struct.unpack("<Q", version_6[formats : formats + 8])[0]
    events = formats + 4
    ends = version_6.index(b"options  \0") - 4
    cpus = struct.unpack("<I", version_6[ends : ends + 4])[0]
    names = version_6.rindex(b"100 client", 0, ends) - 8
    name_size = struct.unpack("<Q", version_6[names : names + 8])[0]
    parts = [
        (16, version_6[begin:formats]), (17, version_6[formats:events]), (18, version_6[events : names - 8]),
        (21, version_6[names : names + 8 + name_size]),
    ]  # fmt: skip
    head = b"\x17\x08\x44tracing7\0" + bytes([0, 8]) + struct.pack(ORDER + "I", PAGE)
    head += compression.encode() + b"\0" + b"1\0"
    body, options = b"", b""
    start = len(head) + 8

    def section(ident: int, content: bytes) -> bytes:
        packed = pack(content)
        inner = struct.pack(ORDER + "II", len(packed), len(content)) + packed if is_packed else content
        return struct.pack(ORDER + "HHIQ", ident, is_packed, 0, len(inner)) + inner

    for ident, content in parts:
        options += struct.pack(ORDER + "HIQ", ident, 8, start + len(body))
        body += section(ident, content)
    buffer_at = start + len(body)
    body += struct.pack(ORDER + "HHIQ", 3, is_packed, 0, 0)
    listed = b""
    for cpu in range(cpus):
        at, size = struct.unpack("<QQ", version_6[position + 16 * cpu : position + 16 * cpu + 16])
        pages = version_6[at : at + size]
        blocks = [pages[i : i + PAGE] for i in range(0, len(pages), PAGE)]
        packed = [struct.pack(ORDER + "II", len(pack(block)), len(block)) + pack(block) for block in blocks]
        data = struct.pack(ORDER + "I", len(blocks)) + b"".join(packed) if is_packed else pages
        listed += struct.pack(ORDER + "IQQ", cpu, start + len(body), len(data))
        body += data
    value = struct.pack(ORDER + "Q", buffer_at) + b"\0" + b"local\0" + struct.pack(ORDER + "II", PAGE, cpus) + listed
    options += struct.pack(ORDER + "HI", 3, len(value)) + value
    options += struct.pack(ORDER + "HIQ", 0, 8, 0)
    # The options come first, so that their position does not depend on packing.
    tail = section(0, options)
    return head + struct.pack(ORDER + "Q", start + len(body)) + body + tail
