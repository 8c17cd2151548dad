"""The programs of threads: what they yield next, and what they do wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from satview.base.errors import one_line
from satview.base.watchdog import Stuck
from satview.capture.sim.calls import signals
from satview.capture.sim.calls.call import Call, Compute
from satview.capture.sim.parts.errors import ThreadCancelled, WorkloadError, location_of
from satview.capture.sim.parts.forgotten import ADVICE, WATCH
from satview.capture.sim.parts.loop import EventLoop
from satview.capture.sim.parts.target import Target
from satview.capture.sim.parts.threads import Thread

LEAST_NS = 150  # of user code between two calls: time passes even in a loop around nothing
MAX_FAULTS = 1000
_LONGEST = 1 << 62


class ProgramRunner(EventLoop):
    """The part of a machine that runs user code.

    Attributes:
        faults: What programs did wrong.
    """

    def __init__(self, target: Target, seed: int, start_cycles: int) -> None:
        super().__init__(target, seed, start_cycles)
        self.faults: list[WorkloadError] = []
        self._forgotten: set[str] = set()  # positions of calls that were never yielded
        self._least = target.cycles(LEAST_NS)

    def next_item(self, thread: Thread) -> Any:
        """Return what a program yields next, None when it has ended; report calls that it made and did not yield."""
        faults, WATCH.is_on = len(self.faults), True
        try:
            item = self._resume(thread)
        finally:
            WATCH.is_on = False
        if WATCH.locations:
            self.report_forgotten(thread, len(self.faults) == faults)
        return item

    def report_forgotten(self, culprit: Thread | str, is_reported: bool = True) -> None:
        """Note the calls that a program or a handler made and did not yield, each location once."""
        for location in WATCH.take():
            if is_reported and location not in self._forgotten:
                self._forgotten.add(location)
                self.fault(culprit, ADVICE, location)

    def _resume(self, thread: Thread) -> Any:
        """Return the next thing the program yields; None when it has ended, by itself or by its own fault."""
        value, error = thread.value, thread.error
        thread.value = thread.error = None
        try:
            item = thread.generator.throw(error) if error is not None else thread.generator.send(value)
        except StopIteration as end:
            thread.exit_value = end.value
            if thread.signal_frames:
                return signals.HandlerEnd()
            return None
        except ThreadCancelled:
            thread.exit_value = -1
            return None
        except Stuck as stuck:
            self.fault(thread, "ran for long without a kernel call or Compute; was ended", location_of(stuck))
            return None
        except KeyboardInterrupt:
            raise
        except BaseException as fault:  # noqa: BLE001  -- ends that thread, not the simulation
            self.fault(thread, f"raised {one_line(fault)}", location_of(fault))
            return None
        if isinstance(item, (Call, Compute)):
            return item
        self.fault(thread, f"yielded {item!r:.80}, which is no kernel call", thread.location())
        thread.generator.close()
        return None

    def compute_cycles(self, thread: Thread, item: Compute) -> int:
        """Return how long user code runs, in cycles; a time that is none is the program's fault."""
        try:
            if item.ns < 0:
                raise ValueError
            return max(self._least, min(self.target.cycles(int(item.ns)), _LONGEST))
        except (TypeError, ValueError, OverflowError):
            self.fault(thread, f"yielded Compute({item.ns!r:.40}), which is no time", thread.location())
            return self._least

    def guard(self, thread: Thread, what: str, function: Callable[[], Any]) -> Any:
        """Call a function that a program handed to the kernel; what it raises is that program's fault."""
        try:
            return function()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001
            self.fault(thread, f"{what} raised {one_line(error)}", location_of(error))
            return None

    def fault(self, culprit: Thread | str, what: str, location: str) -> None:
        """Note what a program did wrong; one that does so for ever is not noted for ever."""
        if len(self.faults) < MAX_FAULTS:
            label = culprit if isinstance(culprit, str) else culprit.label
            self.faults.append(WorkloadError(label, location, what))
