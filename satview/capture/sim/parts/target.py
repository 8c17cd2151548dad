"""The differences between targets: release, clock, buffers, available events."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from satview.base.errors import UsageError
from satview.base.time import NS_PER_S
from satview.events.catalogue import catalogue, release_of
from satview.events.kernel_calls import BUFFER_SIZES
from satview.events.spec import Release
from satview.events.wire import MAX_CPUS


@dataclass(frozen=True, slots=True)
class Target:
    """A simulated target.

    Source of the figures: kernel event trace format, sections 4 to 6; capture side, section 4.

    Attributes:
        release: Selects the event tables.
        sys_release: Text for TRACE_SYS_RELEASE.
        machine: Text for TRACE_MACHINE.
        cycles_per_s: Frequency of the counter behind the stamps.
        cpus: 1 to 64.
        slots_per_buffer: Slots that fit in a 16 KiB kernel buffer after its header.
        mark_linear, mark_ring: Slot count at which a buffer is closed.
        tick_ns: Period of the clock interrupt; timers expire with it. 0 = no tick, timers are exact.
        time_read_early: True if the TIME payload was read some cycles before the slot's stamp.
        has_buffer_end: Buffers end with BUFFER_END, and each belongs to one CPU.
        has_handlers: Interrupt handlers and event handlers exist (removed in 8.0).
        is_64bit: The kernel and, by default, programs are 64-bit.
        big_endian: Byte order of 64-bit payload values and of the file.
        needs_privilege: Only threads with I/O privilege may have handlers, as on a real target.
        skew_ns: Maximum offset between the counters of two CPUs. The 6.4 kernel subtracts the offsets it measured at
            boot,
            to within some ten nanoseconds; later ones read one clock that all CPUs share.
        boot_s: Boot time in seconds since 1970: in June 2024, whatever the date of the simulation.
    """

    release: Release
    sys_release: str
    machine: str
    cycles_per_s: int
    cpus: int
    slots_per_buffer: int
    mark_linear: int
    mark_ring: int
    tick_ns: int = 1_000_000
    time_read_early: bool = False
    has_buffer_end: bool = False
    has_handlers: bool = True
    is_64bit: bool = True
    big_endian: bool = False
    skew_ns: int = 0
    needs_privilege: bool = True
    boot_s: int = 1_718_000_000

    @property
    def waits_for_threads(self) -> bool:
        """True up to 7.x: the creator of a process waits in WAITTHREAD until its first thread has set itself up."""
        return self.release != Release.QNX_8

    @property
    def has_network(self) -> bool:
        """True up to 7.x: nodes of a network send each other messages, and threads wait for these."""
        return self.release != Release.QNX_8

    @property
    def has_global_clock(self) -> bool:
        """True if the system page may declare one clock for all CPUs."""
        return self.skew_ns == 0 or self.cpus == 1

    @property
    def is_old(self) -> bool:
        """True before 6.4: no BUFFER and handler events, INTENTER has the kernel state, insertions appear as calls."""
        return self.release == Release.QNX_6 and self.sys_release < "6.4"

    @property
    def logs_timers(self) -> bool:
        """True from 6.6 on: the expiry of a timer is an event."""
        return self.release is not Release.QNX_6

    def has_call(self, name: str) -> bool:
        """Return whether the kernel of the release has a given call."""
        return _has_call(self.release, name)

    def cycles(self, ns: int) -> int:
        """Return nanoseconds as cycles, rounded down, at least 0."""
        return max(0, ns * self.cycles_per_s // NS_PER_S)

    def skews(self, seed: int) -> tuple[int, ...]:
        """Return the counter offset of each CPU from CPU 0, in cycles; reproducible for a seed."""
        chance, most = random.Random(~seed), self.cycles(self.skew_ns)  # noqa: S311  -- repeatable, not secret
        return (0, *(chance.randint(-most // 2, most // 2) for _ in range(self.cpus - 1)))


@cache
def _has_call(release: Release, name: str) -> bool:
    return catalogue(release).kernel_call_number(name) is not None


def _base(release: Release, sys_release: str, cycles_per_s: int, **others: Any) -> Target:
    sizes = BUFFER_SIZES[release]
    return Target(
        release,
        sys_release,
        "x86pc",
        cycles_per_s,
        1,
        sizes.slots,
        sizes.mark_linear,
        sizes.mark_ring,
        has_buffer_end=sizes.has_end,
        **others,
    )


_BASE: Final = {
    Release.QNX_6: _base(Release.QNX_6, "6.4.1", 736_629_000, time_read_early=True, is_64bit=False, skew_ns=40),
    Release.QNX_6_6: _base(Release.QNX_6_6, "6.6.0", 1_596_000_000, is_64bit=False),
    Release.QNX_7: _base(Release.QNX_7, "7.1.0", 2_592_000_000),
    Release.QNX_8: _base(Release.QNX_8, "8.0.0", 2_592_000_000, tick_ns=0, has_handlers=False),
}
MAX_SKEW_NS: Final = 100_000_000


def target(release: Release, cpus: int = 1, sys_release: str = "", skew_ns: int | None = None) -> Target:
    """Return a target of a release.

    Args:
        release: Selects the event tables.
        cpus: 1 to 64.
        sys_release: Exact release, such as `6.2.1`; empty = the usual one.
        skew_ns: Maximum offset between the CPUs' counters; None = default of the release.

    Raises:
        UsageError: No such target, not 1 to 64 CPUs, or a skew above a tenth of a second.
    """
    if release not in _BASE:
        raise UsageError(f"no target for release {release}; there are {', '.join(_BASE)}")
    if not 1 <= cpus <= MAX_CPUS:
        raise UsageError(f"{cpus} CPUs: a target has 1 to {MAX_CPUS}")
    base = _BASE[release]
    if sys_release and release_of(sys_release) is not release:
        raise UsageError(f"{sys_release} is not a release of the {release} family")
    skew_ns = base.skew_ns if skew_ns is None else skew_ns
    if not 0 <= skew_ns <= MAX_SKEW_NS:
        raise UsageError(f"a skew of {skew_ns} ns: 0 to {MAX_SKEW_NS}")
    return replace(base, cpus=cpus, sys_release=sys_release or base.sys_release, skew_ns=skew_ns)
