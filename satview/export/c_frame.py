"""What is around the functions of an exported program: its first lines, and main()."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from satview.export.c_parts import FIND_PROCESSES, parts
from satview.export.c_text import comment

_DATA_WORDS: Final = 512  # room for the payload words of one event; the kernel fills in as many as there are


def head(title: str, has_handlers: bool, has_names: bool) -> list[str]:
    """Return what comes first: what the program is, headers, the macro that carries out a mode."""
    headers = {"errno.h", "stdio.h", "string.h", "sys/kercalls.h", "sys/neutrino.h", "sys/trace.h"}
    if has_handlers:
        headers |= {"stddef.h", "stdint.h", "unistd.h"}
    if has_names:
        headers |= {"devctl.h", "dirent.h", "fcntl.h", "stdlib.h", "sys/procfs.h"}
    return [
        "/* Sets a filter of the instrumented kernel. Written by satview. Run it as root:",
        "     tracelogger -d1 -n 0 -f /dev/shmem/tracebuffer.kev &",
        "     this_program */",
        *comment(title),
        "",
        *(f"#include <{header}>" for header in sorted(headers)),
        "",
        "static int failures;",
        "",
        "/* Carries out one mode; a refused one is reported and the rest goes on. */",
        "#define SET(...) \\",
        "    do { \\",
        "        if (TraceEvent(__VA_ARGS__) == -1) { \\",
        '            fprintf(stderr, "line %d: %s\\n", __LINE__, strerror(errno)); \\',
        "            ++failures; \\",
        "        } \\",
        "    } while (0)",
        "",
    ]


def handler_data(number: int) -> list[str]:
    """Return what the kernel fills in for one attached handler; each has its own, since interrupts nest."""
    return [
        f"static uint32_t words_{number}[{_DATA_WORDS}];",
        f"static event_data_t data_{number} = {{.data_array = words_{number}}};",
    ]


def name_lookup(named: Mapping[str, str]) -> list[str]:
    """Return the functions that fill lists of processes; empty without lists.

    Args:
        named: Per list a C condition over the texts `full` and `own`: the path, and the name without folders.
    """
    if not named:
        return []
    lines = [
        "/* Takes note of a process by its path and by its name without folders. */",
        "static void note_process(int32_t pid, const char *path)",
        "{",
        "    const char *const slash = strrchr(path, '/'), *const name = slash == NULL ? path : slash + 1;",
        "    const struct text full = as_text(path, strlen(path)), own = as_text(name, strlen(name));",
        "    if (*path == '\\0')",
        "        return;",
    ]
    for name, test in named.items():
        lines += [f"    if ({test})", f"        remember(&{name}, pid);"]
    return [*lines, "}", "", *parts()[FIND_PROCESSES].lines]


def main(calls: Sequence[str], has_handlers: bool, has_names: bool) -> list[str]:
    """Return the main function: privileges, names, the calls, START."""
    lines = ["int main(void)", "{"]
    if has_handlers:
        lines += [
            "    /* Handlers run inside the kernel, so they need the right to touch hardware. */",
            "    if (ThreadCtl(_NTO_TCTL_IO, 0) == -1) {",
            '        fprintf(stderr, "no I/O privilege: %s\\n", strerror(errno));',
            "        return 1;",
            "    }",
        ]
    if has_names:
        lines.append("    find_processes();")
    lines += [
        *calls,
        "    if (TraceEvent(_NTO_TRACE_START) == -1) {",
        '        fprintf(stderr, "cannot start: %s\\n", strerror(errno));',
        "        return 1;",
        "    }",
    ]
    if has_handlers:
        lines += [
            "    /* The kernel drops the handlers when this process ends: stop it with a signal. */",
            "    pause();",
        ]
    return [*lines, "    return failures != 0;", "}"]
