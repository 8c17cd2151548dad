"""Notation of payload values, and the meaning of their numbers.

Source: kernel event trace format, sections 8.3 to 8.11; listing format, section 3.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from satview.base.safe_text import byte_text
from satview.events.catalogue import Catalogue
from satview.events.header_names import flag_names
from satview.events.layout import SIGEVENT_WORDS, PayloadPart
from satview.events.spec import Argument, EventSpec, Release
from satview.events.value_texts import shown_texts, table_texts

SIGEV_CRITICAL = 0x100
_POWER_CPU_MASK = 0xFFFF


def hex_text(value: int, words: int) -> str:
    """Return a value of some 32-bit words in hexadecimal with all digits: `0x0000002a`."""
    return f"0x{value:0{8 * words}x}"


def signed(value: int, words: int) -> int:
    """Return the signed number that an unsigned value of some 32-bit words represents (two's complement)."""
    bits = 32 * words
    return value - (1 << bits) if value >> (bits - 1) else value


def message(name: str, raw: bytes, words: Sequence[int], first_word: int, count: int) -> Argument:
    """Return message words as one argument, with the text `"RSVP" (0x50565352)` and the bytes as value."""
    data = raw[4 * first_word : 4 * (first_word + count)]
    numbers = " ".join(hex_text(word, 1) for word in words[first_word : first_word + count])
    return Argument(name, data, f'"{message_text(data)}" ({numbers})', first_word, count)


def message_text(data: bytes) -> str:
    """Return the text that listings show for message words.

    A word of 4 bytes with a character that is neither printable nor a line feed is shown as no characters. The text
    ends with the first word that is shown as fewer than 4 characters.
    """
    shown = ""
    for start in range(0, len(data), 4):
        piece = data[start : start + 4].split(b"\0")[0]
        if not all(0x20 <= byte < 0x7F or byte == 0x0A for byte in piece):
            piece = b""
        shown += piece.decode("ascii")
        if len(piece) < 4:
            break
    return shown


def text_argument(name: str, data: bytes, first_word: int, words: int, note: str = "") -> Argument:
    """Return a text as an argument: the value is UTF-8 with replacement characters, `text` shows all bytes escaped."""
    return Argument(name, data.decode("utf-8", "replace"), byte_text(data), first_word, words, note)


def vendor_text(raw: bytes) -> str:
    """Return the text before the NUL; empty if a character is neither printable (C locale) nor a line feed."""
    text = raw.split(b"\0", 1)[0]
    is_shown = all(0x20 <= byte < 0x7F or byte == 0x0A for byte in text)
    return text.decode("ascii") if is_shown else ""


def plain_text(raw: bytes) -> str:
    """Return the text before the NUL as UTF-8; other bytes and control characters are escaped."""
    return byte_text(raw.split(b"\0", 1)[0])


def number_argument(spec: EventSpec, part: PayloadPart, value: int, catalogue: Catalogue) -> Argument:
    """Return a number as an argument, in the notation of its part, and with a note on its meaning."""
    text = str(value) if part.is_signed else hex_text(value, part.words)
    text = part.template % value if part.template else text
    note = _meaning(spec, part, value, catalogue)
    if not note and not part.is_sure and spec.class_name in ("KER_CALL", "KER_EXIT"):
        note = "notation inferred"
    if part.name == "errno" and (name := catalogue.errno_name(value)):
        text = f"{name} ({value})"
    return Argument(part.name, value, text, part.word, part.words, note)


def errno_argument(value: int, first_word: int, catalogue: Catalogue, note: str = "") -> Argument:
    """Return the errno of a failed call: `ETIMEDOUT (260)`, with QNX's names."""
    value = signed(value, 1)
    name = catalogue.errno_name(value)
    return Argument("errno", value, f"{name} ({value})" if name else str(value), first_word, 1, note)


def sigevent(event: Any, raw: bytes, first_word: int) -> Argument:
    """Return the sigevent structure of 6.x: notify, signo or coid or id, value, code and priority of 16 bits each."""
    data = raw[4 * first_word : 4 * (first_word + SIGEVENT_WORDS)]
    if not any(data):
        return Argument("sigevent", data, "NONE", first_word, SIGEVENT_WORDS, "the handler returned no event")
    text = sigevent_text(event.notify, event.number, event.value, event.code, event.priority)
    return Argument("sigevent", data, text, first_word, SIGEVENT_WORDS)


def sigevent_text(notify: int, number: int, value: int, code: int, priority: int, *, is_vendor: bool = False) -> str:
    """Return a sigevent as the 6.4 printer writes it on a QNX host.

    Args:
        notify: Type in the low byte, and flags.
        number: Signal, connection or function.
        value: Value of a pulse, signal or thread.
        code: Signed.
        priority: Signed.
        is_vendor: Show only the low byte of an unknown type, as the vendor's printer does.
    """
    code32, priority = code & 0xFFFFFFFF, signed(priority & 0xFFFFFFFF, 1)
    kind = flag_names("sigev_notify").get(notify & 0xFF)
    forms = {
        "SIGNAL": f"SIGNAL {number}",
        "SIGNAL_CODE": f"SIGNAL_CODE {number} {_alternate(code32)}:{_alternate(value)}",
        "SIGNAL_THREAD": f"SIGNAL_THREAD {number} {_alternate(code32)}:{_alternate(value)}",
        "PULSE": f"PULSE {_alternate(number)}:{priority} {_alternate(code32)}:{_alternate(value)}",
        "THREAD": f"THREAD {code32:x}:{value:x}",
    }
    text = forms.get(kind, kind) if kind else f"UNKNOWN({_alternate(notify & 0xFF if is_vendor else notify)})"
    return f"{text} CRITICAL" if notify & SIGEV_CRITICAL else str(text)


def _alternate(value: int) -> str:
    return f"0x{value:x}" if value else "0"  # C's %#x writes a zero without prefix


def _meaning(spec: EventSpec, part: PayloadPart, value: int, catalogue: Catalogue) -> str:
    texts = table_texts(catalogue.release, spec.code, part.name) if part.name != "errno" else ()
    if texts:
        shown = shown_texts(texts, value, {}) or ""
        is_power = (spec.class_name, spec.name) == ("SYSTEM", "POWER")
        return f"CPU {value & _POWER_CPU_MASK} {shown}".rstrip() if is_power else shown
    if spec.class_name == "CONTROL" and spec.name == "BUFFER" and part.word and value == 0:
        return "not counted: the buffer was not handed over"
    if catalogue.release == Release.QNX_6 and spec.class_name == "COMM" and part.name == "rcvid":
        return f"thread {(value >> 16) + 1}, scoid 0x{value & 0xFFFF:x}" if value != 0xFFFFFFFF else "failed"
    return ""
