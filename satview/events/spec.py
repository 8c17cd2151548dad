"""Types that describe events: releases, classes, names, argument lists, and decoded payloads."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Release(StrEnum):
    """Releases that differ in event numbers or argument lists; values are the keys in files and on the command line."""

    QNX_6 = "6.x"  # 6.0 to 6.5
    QNX_6_6 = "6.6"
    QNX_7 = "7.x"  # 7.0 and 7.1
    QNX_8 = "8.0"
    UNIXWARE = "unixware"  # thread_trace files
    LINUX = "linux"  # schedules of trace.dat, perf and Perfetto

    @property
    def is_qnx(self) -> bool:
        """False for the formats of other systems, whose events no .kev file can hold."""
        return self not in (Release.UNIXWARE, Release.LINUX)


class Show(StrEnum):
    """Notation in which the value of an argument is written."""

    HEX = "hex"
    DEC = "dec"  # signed
    POINTER = "pointer"
    MSG = "msg"  # first word of message data: characters and hexadecimal
    MSG_MORE = "msg_cont"  # next word of the same message
    STRING = "string"  # NUL-terminated text up to the end of the payload
    STRUCT = "struct"  # embedded structure, up to the end of the payload
    UNKNOWN = "unknown"  # no hint known: hexadecimal


@dataclass(frozen=True, slots=True)
class Field:
    """One argument of an event.

    Attributes:
        name: Name as the vendor's table spells it.
        words: 1 or 2 payload words of 32 bits; 0 = everything up to the end of the payload.
        show: Notation.
        is_sure: False if the notation was inferred from elsewhere, not given for this event.
    """

    name: str
    words: int
    show: Show
    is_sure: bool = True


@dataclass(frozen=True, slots=True)
class EventSpec:
    """The description of one event code in one release.

    Attributes:
        code: Internal class and event number, 15 bits (`wire.code`).
        class_name: Printed class without padding: `KER_CALL`, `THREAD`, `INT_ENTR`, `COMM`, ...
        name: Name of the event in QNX and in listings of every release: `MSG_SENDV`, `THRUNNING`.
        label: Label of the event in the vendor's printer of the release, if that differs from `name`.
        fast: Arguments in fast mode; None = the list is not known.
        wide: Arguments in wide mode; None = the list is not known.
        calls: Public calls behind a kernel call: (`MsgSend`, `MsgSendv`, `MsgSendvs`).
        when: When the kernel emits the event, one short sentence; may be empty.
        is_64bit: True for the form with 64-bit values of an event that has two forms.
        is_known: False for a code that no table of the release names; such events show raw words.
        notes: Notes that are needed to read the raw numbers.
    """

    code: int
    class_name: str
    name: str
    label: str = ""
    fast: tuple[Field, ...] | None = None
    wide: tuple[Field, ...] | None = None
    calls: tuple[str, ...] = ()
    when: str = ""
    is_64bit: bool = False
    is_known: bool = True
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClassSpec:
    """A class as listings print it, finer than the internal class.

    Attributes:
        name: Printed name without padding, such as `KER_EXIT`.
        title: Title for people: `Kernel call exit`.
        external: Number that TraceEvent() and the traceparser library use; None where there is none.
        internal: Internal class number of the events.
        mark_colours: Colours 0xRRGGBB of marks for the events, in the light and in the dark theme.
    """

    name: str
    title: str
    external: int | None
    internal: int
    mark_colours: tuple[int, int] = (0x5C6472, 0xA6AEBC)


@dataclass(frozen=True, slots=True)
class Argument:
    """One decoded argument of one event.

    Attributes:
        name: Name as in `Field.name`, or `word 3` for a raw word.
        value: Integer (signed where the notation is decimal), text, or bytes of a structure.
        text: The value in its notation: `0x00000003`, `-1`, `"abc" (0x00636261)`, `ETIMEDOUT (260)`.
        first_word: Index of the argument's first payload word.
        note: Additional information, such as `unsure`, names of flags, or the meaning of the number; may be empty.
    """

    name: str
    value: int | str | bytes
    text: str
    first_word: int
    words: int
    note: str = ""


def arguments_text(arguments: tuple[Argument, ...], limit: int = 300) -> str:
    """Return `name=value` of every argument on one line, cut at about `limit` characters."""
    text = "  ".join(f"{argument.name}={argument.text}" for argument in arguments)
    return text if len(text) <= limit else text[: limit - 1] + "\N{HORIZONTAL ELLIPSIS}"


@dataclass(frozen=True, slots=True)
class Payload:
    """The decoded payload of one event.

    Attributes:
        form: `fast`, `wide`, `same` (both lists are equal), `failed` (exit with errno), `raw` (list unknown or the
            word count fits none).
        arguments: The arguments in payload order; raw words where the argument list is not known.
        words: Every payload word in host order, padding included.
        raw: The payload bytes as they are in the file.
    """

    form: str
    arguments: tuple[Argument, ...]
    words: tuple[int, ...]
    raw: bytes
