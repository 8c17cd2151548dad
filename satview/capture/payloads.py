"""Payload words of events, made from the argument lists of the event catalogue."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from satview.events import wire
from satview.events.catalogue import Catalogue, catalogue
from satview.events.spec import Field, Release
from satview.events.wire import WireClass

_LOW = 0xFFFFFFFF
Plan = tuple[tuple[str, int], ...]
_DIFFERENT = {"msg": "msg[0]", "smsg": "smsg[0]", "rmsg": "rmsg[0]"}


def canonical(name: str) -> str:
    """Return the one spelling under which the simulator knows an argument; the lists of 6.x spell some differently."""
    name = _DIFFERENT.get(name, name)
    return (name.replace("param.__", "param.").replace("(sec)", "_sec").replace("(nsec)", "_nsec")
            if name.startswith(("itime", "oitime", "otime", "ntime", "param")) else name)


def plan_of(fields: Sequence[Field] | None) -> Plan | None:
    """Return names and widths of a list, None where the list is not known."""
    if fields is None:
        return None
    return tuple((canonical(field.name), field.words or 1) for field in fields)


def encode(plan: Plan, values: dict[str, int], big_endian: bool = False) -> list[int]:
    """Return the words of a payload; arguments without a value are 0."""
    words: list[int] = []
    get = values.get
    for name, width in plan:
        value = get(name, 0)
        if width == 1:
            words.append(value & _LOW)
        elif big_endian:
            words += (value >> 32 & _LOW, value & _LOW)
        else:
            words += (value & _LOW, value >> 32 & _LOW)
    return words


class CallPayloads:
    """Codes and argument lists of the kernel calls of one release.

    The form of an event depends on mode (fast, wide) and on the process (32 or 64 bits): from 7.x on an event whose
    list holds 64-bit values carries a flag in its number.
    """

    def __init__(self, release: Release) -> None:
        self.catalogue: Catalogue = catalogue(release)
        self.has_flag = release in (Release.QNX_7, Release.QNX_8)
        self._forms: dict[tuple[int, bool, bool], tuple[int, Plan]] = {}
        self._numbers: dict[str, int | None] = {}

    def number(self, name: str) -> int | None:
        """Return the number of a call by name, None if the release has none."""
        if name not in self._numbers:
            self._numbers[name] = self.catalogue.kernel_call_number(name)
        return self._numbers[name]

    def form(self, event: int, wide: bool, is_64bit: bool) -> tuple[int, Plan]:
        """Return code and argument list of an entry or exit event (number, plus 128 for exits)."""
        key = (event, wide, is_64bit)
        found = self._forms.get(key)
        if found is None:
            found = self._forms[key] = self._find(event, wide, is_64bit)
        return found

    def _find(self, event: int, wide: bool, is_64bit: bool) -> tuple[int, Plan]:
        code = wire.code(WireClass.KER_CALL, event)
        if is_64bit and self.has_flag:
            spec = self.catalogue.spec(code | wire.KER_64BIT)
            plan = plan_of(spec.wide if wide else spec.fast) if spec.is_known else None
            if plan:
                return code | wire.KER_64BIT, plan
        spec = self.catalogue.spec(code)
        plan = plan_of(spec.wide if wide else spec.fast) or (("ret_val", 1), ("empty", 1))
        if not wide and plan[0][0] == "clock_id" and len(plan) == 3:
            plan = plan[1:]   # TIMER_TIMEOUT: the 7.x table names the clock, the wire has two words
        return code, plan


@cache
def call_payloads(release: Release) -> CallPayloads:
    """Return the lists of a release; made once."""
    return CallPayloads(release)


def text_words(text: str, byte_order: str) -> list[int]:
    """Return NUL-terminated text as words in host order; names are cut to 126 bytes, as the kernel does."""
    raw = text.encode("utf-8", "replace")[:126] + b"\0"
    raw += bytes(-len(raw) % 4)
    return [int.from_bytes(raw[i : i + 4], byte_order) for i in range(0, len(raw), 4)]  # type: ignore[arg-type]
