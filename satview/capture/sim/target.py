"""Properties of simulated targets: release, CPUs, clock, buffers."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from satview.base.errors import UsageError
from satview.base.time import NS_PER_S
from satview.events.catalogue import BUFFER_SIZES, catalogue, release_of
from satview.events.spec import Release
from satview.events.wire import MAX_CPUS


@dataclass(frozen=True, slots=True)
class Target:
    """A simulated target.

    Source of the figures: kernel event trace format, sections 4 to 6; capture side, section 4.

    Attributes:
        release: Release family, which selects the event tables.
        sys_release: Exact release, the value of TRACE_SYS_RELEASE.
        machine: The value of TRACE_MACHINE.
        cycles_per_s: Frequency of the counter that is read for stamps.
        cpus: Number of CPUs, 1 to 64.
        slots_per_buffer: Number of slots in a 16 KiB kernel buffer after its header.
        mark_linear, mark_ring: High-water marks in linear and ring mode: number of slots at which a buffer is closed.
        tick_ns: Period of the clock interrupt, at which timers expire; 0 = no clock interrupt, timers are exact.
        time_read_early: The time in the payload of a TIME event is some cycles earlier than the slot's stamp.
        has_buffer_end: Buffers end with BUFFER_END, and each belongs to one CPU.
        has_handlers: The release has interrupt handlers and event handlers (removed in 8.0).
        is_64bit: The kernel and, by default, programs are 64-bit.
        big_endian: Byte order of the file and of 64-bit payload values.
        needs_privilege: Only threads with I/O privilege may attach handlers, as on a real target.
        skew_ns: Maximum offset between the counters of two CPUs. The 6.4 kernel corrects the offsets measured at boot,
            to within some ten nanoseconds; later kernels read a clock that all CPUs share.
        boot_s: Boot time in seconds since 1970; by default in June 2024, independent of the current date.
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
        """Whether the creator of a process waits in WAITTHREAD until the first thread is set up: True up to 7.x."""
        return self.release != Release.QNX_8

    @property
    def has_network(self) -> bool:
        """Whether threads can exchange messages with other nodes of a network: True up to 7.x."""
        return self.release != Release.QNX_8

    @property
    def has_global_clock(self) -> bool:
        """Whether the system page declares one clock for all CPUs."""
        return self.skew_ns == 0 or self.cpus == 1

    @property
    def is_old(self) -> bool:
        """True before 6.4.

        The older kernels log no BUFFER and no handler events. They log the kernel state in the entry of an interrupt,
        and the kernel call by which a program inserts an event.
        """
        return self.release == Release.QNX_6 and self.sys_release < "6.4"

    @property
    def logs_timers(self) -> bool:
        """Whether the expiry of a timer is logged: True from 6.6 on."""
        return self.release is not Release.QNX_6

    def has_call(self, name: str) -> bool:
        """Return whether the release has a kernel call of this name."""
        return _has_call(self.release, name)

    def cycles(self, ns: int) -> int:
        """Convert nanoseconds to cycles, rounded down, at least 0."""
        return max(0, ns * self.cycles_per_s // NS_PER_S)

    def skews(self, seed: int) -> tuple[int, ...]:
        """Return the offset of each CPU's counter from CPU 0's, in cycles; the same for the same seed."""
        rng, max_cycles = random.Random(~seed), self.cycles(self.skew_ns)  # noqa: S311  -- repeatable, not secret
        return (0, *(rng.randint(-max_cycles // 2, max_cycles // 2) for _ in range(self.cpus - 1)))


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
        release: Release family.
        cpus: Number of CPUs, 1 to 64.
        sys_release: Exact release, such as `6.2.1`; empty = the family's default.
        skew_ns: Maximum offset between the CPUs' counters; None = the family's default.

    Raises:
        UsageError: There is no such release, or a number is out of range.
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
