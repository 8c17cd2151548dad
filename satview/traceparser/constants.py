"""Numbers of the traceparser library: information modes, errors, debug flags. Source: listing format, section 6."""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Final

from satview.events.spec import Release


class Info(IntEnum):
    """Information modes of `traceparser_get_info`; the C names have the prefix `_TRACEPARSER_INFO_`.

    Modes of 0 and above are header values. In 8.0, HEADER_END is 19 and 18 is NORMALIZEDN.
    """

    HEADER_BEGIN = 0
    FILE_NAME = 1
    DATE = 2
    VER_MAJOR = 3
    VER_MINOR = 4
    LITTLE_ENDIAN = 5
    BIG_ENDIAN = 6
    MIDDLE_ENDIAN = 7
    ENCODING = 8
    BOOT_DATE = 9
    CYCLES_PER_SEC = 10
    CPU_NUM = 11
    SYSNAME = 12
    NODENAME = 13
    SYS_RELEASE = 14
    SYS_VERSION = 15
    MACHINE = 16
    SYSPAGE_LEN = 17
    HEADER_END = 18
    SYSPAGE = -1
    ENDIAN_CONV = -2
    NOW_CALLBACK_CLASS = -3
    NOW_CALLBACK_EVENT = -4
    PREV_CALLBACK_CLASS = -5
    PREV_CALLBACK_EVENT = -6
    PREV_CALLBACK_RETURN = -7
    DEBUG = -8
    ERROR = -9
    ERROR_STR = -10  # this and the following: 7.1 on
    CLK_MSB = -13
    CLK_INTIAL = -14  # misspelt in the original too
    CLK = -15
    CLK_DELTA = -16
    TIME_DELTA = -17


NORMALIZEDN_8: Final = 18
HEADER_END_8: Final = 19


class Error(IntEnum):
    """Error numbers; the C names have the prefix `_TRACEPARSER_`. 0 is UNKNOWN_CLASS and also means no error.

    15 is UNKNOWN_ERROR up to 7.1 and INVALID_DATA in 8.0, where UNKNOWN_ERROR is 17.
    """

    UNKNOWN_CLASS = 0
    UNKNOWN_PR_TH_EVENT = 1
    UNKNOWN_CONTROL_EVENT = 2
    UNKNOWN_KER_CALL_EVENT = 3
    UNKNOWN_INT_EVENT = 4
    UNKNOWN_CONTAINER_EVENT = 5
    UNKNOWN_USR_EVENT = 6
    UNKNOWN_COMM_EVENT = 7
    NO_MORE_MEMORY = 8
    WRONG_H_KEYWORD = 9
    NULL_STATE_PTR = 10
    WRONG_ENDIAN_TYPE = 11
    CANNOT_READ_IN_FILE = 12
    WRONG_FILE_VERSION = 13
    MISSING_FIELD = 14
    UNKNOWN_ERROR = 15
    INVALID_DATA = 15
    NOT_SEEKABLE = 16  # 8.0
    UNKNOWN_ERROR_8 = 17


class Debug(IntFlag):
    """Flags of `traceparser_debug`; the C names have the prefix `_TRACEPARSER_DEBUG_`."""

    NONE = 0
    ERRORS = 1
    HEADER = 2
    SYSPAGE = 4
    EVENTS = 8
    ALL = 0xFFFFFFFF


class Sort(IntEnum):
    """Orders of delivery for `traceparser_sort` (8.0)."""

    NOSORT = 0
    SORT = 1


ERROR_TEXTS: Final = {
    Error.NO_MORE_MEMORY: "no memory left",
    Error.WRONG_H_KEYWORD: "no such information mode",
    Error.NULL_STATE_PTR: "there is no state",
    Error.WRONG_ENDIAN_TYPE: "the byte order keys of the header are missing or contradict each other",
    Error.CANNOT_READ_IN_FILE: "the file cannot be read, or ends before its events",
    Error.WRONG_FILE_VERSION: "the file is older than version 1.01",
    Error.MISSING_FIELD: "the header has no such key",
    Error.UNKNOWN_ERROR: "class or event cannot be registered",
    Error.NOT_SEEKABLE: "events of a pipe cannot be sorted",
}


def info_key(mode: int, release: Release) -> str | None:
    """Return the header key of an information mode; None if the mode is not a header value."""
    if release == Release.QNX_8 and mode in (NORMALIZEDN_8, HEADER_END_8):
        return "NORMALIZEDN" if mode == NORMALIZEDN_8 else "HEADER_END"
    return Info(mode).name if 0 <= mode <= Info.HEADER_END else None


def header_number(name: str) -> int | None:
    """Return the number of a name in <sys/traceparser.h>; None if there is no such name.

    `_TRACEPARSER_INFO_DATE` is an information mode, `_TRACEPARSER_DEBUG_ALL` a flag, `_TRACEPARSER_SORT` an order, any
    other name an error.
    """
    rest = name.removeprefix("_TRACEPARSER_")
    for prefix, kind in (("INFO_", Info), ("DEBUG_", Debug), ("", Sort), ("", Error)):
        if rest.startswith(prefix) and rest.removeprefix(prefix) in kind.__members__:
            return int(kind[rest.removeprefix(prefix)])
    return None
