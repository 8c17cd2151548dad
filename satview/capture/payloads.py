"""Which code and which list the simulated kernel logs an event with, ready for the encoder."""

from __future__ import annotations

from functools import cache

from satview.events import wire
from satview.events.catalogue import Catalogue, catalogue
from satview.events.layout import logged_list, plan_of
from satview.events.spec import Release
from satview.events.wire import WireClass
from satview.events.words import Plan

_UNKNOWN: Plan = (("ret_val", 1), ("empty", 1))


class CallPayloads:
    """Codes and argument lists of the kernel calls of one release.

    The form of an event depends on mode (fast, wide) and on the process (32 or 64 bits): from 7.x on an event whose
    list holds 64-bit values carries a flag in its number.
    """

    def __init__(self, release: Release) -> None:
        self.catalogue: Catalogue = catalogue(release)
        self.has_flag = release in (Release.QNX_7, Release.QNX_8)
        self._forms: dict[tuple[int, bool, bool], tuple[int, Plan]] = {}
        self._plans: dict[tuple[int, bool], Plan] = {}
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
        code = wire.code(WireClass.KER_CALL, event) | (wire.KER_64BIT if is_64bit and self.has_flag else 0)
        logged, fields = logged_list(self.catalogue.release, code, is_wide=wide)
        return logged, plan_of(fields) if fields else _UNKNOWN

    def plan(self, code: int, wide: bool = False) -> Plan:
        """Return the argument list of any other event.

        Raises:
            ValueError: The release has no list for it.
        """
        found = self._plans.get((code, wide))
        if found is None:
            fields = logged_list(self.catalogue.release, code, is_wide=wide)[1]
            if fields is None:
                raise ValueError(f"{self.catalogue.release} has no list for code 0x{code:x}")
            found = self._plans[code, wide] = plan_of(fields)
        return found


@cache
def call_payloads(release: Release) -> CallPayloads:
    """Return the lists of a release; made once."""
    return CallPayloads(release)
