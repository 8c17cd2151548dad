"""The data before the events of a trace: the text header and the system page, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class CpuInfo:
    """One CPU of the target, from the system page."""

    number: int
    name: str = ""
    speed_mhz: int = 0
    flags: int = 0
    flag_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SystemInfo:
    """Contents of the system page, as plain values.

    Attributes:
        length: Bytes of the system page.
        processor: `X86`, `ARM`, `AArch64`, ...
        cpus: The CPUs in the page; may be fewer than the CPUs of the trace.
        boot_time_s: Seconds since 1970 UTC; None if not given.
        strings: Typed strings such as HOSTNAME, in order, (name, text).
        values: All other fields by name, for `info` and for listings.
        raw: The bytes of the page.
    """

    length: int
    processor: str
    cpus: tuple[CpuInfo, ...]
    boot_time_s: int | None
    strings: tuple[tuple[str, str], ...]
    values: dict[str, int]
    raw: bytes = b""


@dataclass(frozen=True, slots=True)
class Header:
    """The text header: keys without `TRACE_`, values as text, in file order.

    Attributes:
        pairs: (key, value), without BEGIN and END.
        length: Bytes of the header, including BEGIN and END.
    """

    pairs: tuple[tuple[str, str], ...]
    length: int = 0

    def get(self, key: str, default: str = "") -> str:
        """Return the last value of a key, or the default if the header does not have the key."""
        for name, value in reversed(self.pairs):
            if name == key:
                return value
        return default

    def date(self, key: str) -> datetime | None:
        """Parse the value of a key as a date in the form of `DATE`, in UTC; None if it is missing or invalid."""
        try:
            return datetime.strptime(self.get(key), "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC)
        except ValueError:
            return None

    def number(self, key: str) -> int | None:
        """Parse the value of a key as a decimal number; None if it is missing or invalid."""
        text = self.get(key).strip()
        return int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else None
