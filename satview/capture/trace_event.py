"""TraceEvent(): one call with a mode and arguments that controls everything about tracing.

Source: capture side, sections 1, 3, 4.3 and 6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from satview.base.errors import told
from satview.capture.buffers import Buffer
from satview.capture.classes import unsupported
from satview.capture.dump import dump_state
from satview.capture.emit import Emitter
from satview.capture.settings import ON, EventData, Hook
from satview.capture.sim.errors import Errno, QnxError, place_of
from satview.capture.sim.privilege import MISSING
from satview.events import constants, rows, wire
from satview.events.spec import Release
from satview.events.wire import WireClass

if TYPE_CHECKING:
    from satview.capture.sim.machine import Machine

MAX_BUFFERS = 4096
_LOW = 0xFFFFFFFF
_NUMBER = 0x0FFFFFFF
_BUFFER_ADDRESS = 0x1F000000
_FROM_HANDLERS = frozenset((9, 10, 11, 30, 31, 32, 33))
NAMES = {mode.name: mode.value for mode in constants.trace_modes()}


def mode(name: str) -> int:
    """Return the value of a mode by its name, with or without `_NTO_TRACE_`."""
    return NAMES[name if name.startswith("_NTO_TRACE_") else f"_NTO_TRACE_{name}"]


class TraceControl:
    """Carries out TraceEvent() for one kernel.

    Attributes:
        hook: Called with every full buffer, besides what programs hooked with InterruptHookTrace().
        is_root: Whether the caller may allocate buffers and attach handlers.
        buffer_address: Physical address that ALLOCBUFFER gives the buffers.
    """

    def __init__(self, machine: Machine, emitter: Emitter) -> None:
        self.machine = machine
        self.emitter = emitter
        self.hook: Callable[[Buffer], None] | None = None
        self.is_root = True
        self.buffer_address = _BUFFER_ADDRESS
        self._caller = (0, 0)     # CPU and pid
        self._in_handler = False
        self._has_io = True
        # What the kernel keeps while there are no buffers.
        self._is_ring = False
        self._skips = False
        self._sequences: dict[int, int] = {}      # per ring, number of its last buffer
        order = rows.RELEASE_ORDER
        here = order.index(machine.target.release)
        self._modes = {m.number: m for m in constants.trace_modes() if order.index(m.since) <= here}
        self._actions = self._table()

    def hand_over(self, buffer: Buffer) -> None:
        """Raise the synthetic interrupt; without a handler a full buffer just waits."""
        if self.hook is not None:
            self.hook(buffer)
        self.machine.interrupts.trace_hooks.call(buffer)

    def call(self, value: int, args: Sequence[Any], cpu: int = 0, pid: int = 1, has_io: bool = True) -> int:
        """Carry out one call.

        Args:
            value: Mode with its argument count in the top four bits.
            args: What follows the mode.
            cpu: CPU of the caller.
            pid: Process of the caller; its handlers go with it.
            has_io: Whether the caller has I/O privilege, which handlers need.

        Returns:
            0, or a count for the query modes.

        Raises:
            QnxError: As the manual says: ECANCELED, EFAULT, EEXIST, EINVAL, ENOMEM, ENOTSUP, EPERM.
        """
        if not isinstance(value, int):
            raise unsupported(f"mode {value!r:.40}")
        known = self._modes.get(value & _NUMBER)
        action = self._actions.get(value & _NUMBER)
        if known is None or action is None:
            raise unsupported(f"mode {value & _NUMBER}")
        if len(args) != known.argc - 1:
            raise QnxError(Errno.EINVAL, f"{known.name} takes {known.argc - 1} arguments, not {len(args)}")
        if self._in_handler and known.number not in _FROM_HANDLERS:
            raise QnxError(Errno.EPERM, f"{known.name} is not allowed in a handler")
        self._check_numbers(known, args)
        self._caller, self._has_io = (cpu, pid), has_io
        return action(*args) or 0

    @staticmethod
    def _check_numbers(known: constants.TraceMode, args: Sequence[Any]) -> None:
        """A pointer where a number belongs, or the other way round, is a bad address."""
        free = {7: (2, 3), 12: (1,), 31: (1,), 32: (1,), 36: (1, 2), 43: (2,), 48: (0,)}.get(known.number, ())
        for i, arg in enumerate(args):
            if i not in free and not isinstance(arg, int):
                raise QnxError(Errno.EFAULT, f"{known.name}: argument {i + 1} is no number")

    def _table(self) -> dict[int, Callable[..., int | None]]:
        s = self.emitter.settings
        return {
            1: lambda: s.switch_all(True), 2: lambda: s.switch_all(False),
            3: lambda cls: s.switch_class(cls, True), 4: lambda cls: s.switch_class(cls, False),
            5: lambda cls, event: s.switch_event(cls, event, True),
            6: lambda cls, event: s.switch_event(cls, event, False),
            7: self._add_event_handler, 8: self._no_handlers(s.unhook), 9: self._insert_raw,
            10: lambda: self._start(True), 11: self._stop, 12: self._allocate, 13: self._deallocate,
            14: self._flush, 15: self._query_events,
            16: lambda: s.widen_all(False), 17: lambda: s.widen_all(True),
            18: lambda cls: s.widen_class(cls, False), 19: lambda cls: s.widen_class(cls, True),
            20: lambda cls, event: s.widen_event(cls, event, False),
            21: lambda cls, event: s.widen_event(cls, event, True),
            22: lambda cls, pid: s.own(cls, None, pid, 0), 23: lambda cls, pid, tid: s.own(cls, None, pid, tid),
            24: lambda cls, event, pid: s.own(cls, event, pid, 0),
            25: s.own,
            26: lambda cls: s.disown(cls, None, False), 27: lambda cls: s.disown(cls, None, True),
            28: lambda cls, event: s.disown(cls, event, False), 29: lambda cls, event: s.disown(cls, event, True),
            30: lambda event, d0, d1: self._insert_user(event, (d0, d1)),
            31: self._insert_complex, 32: self._insert_text,
            33: lambda: self._start(False), 34: lambda: self._set_mode(True), 35: lambda: self._set_mode(False),
            36: self._add_class_handler, 37: self._no_handlers(lambda cls: s.unhook(cls, None)),
            38: lambda: self._set_skip(True), 39: lambda: self._set_skip(False),
            40: lambda: int(self.machine.target.sys_release.replace(".", "")), 41: lambda: 1,
            42: lambda cls, event, d0, d1: self._insert_class(cls, event, (d0, d1)),
            43: lambda cls, event, data, length: self._insert_class(cls, event, self._words(data, length)),
            # 44 to 49: accepted, their effect is not documented anywhere; WAITBUFFER answers "done".
            44: lambda _a, _b: 0, 45: lambda _a, _b: 0, 46: lambda _a: 1, 47: lambda: 0, 48: lambda _events: 0,
            49: lambda: 0,
        }

    # Handlers

    def _no_handlers(self, action: Callable[..., None]) -> Callable[..., None]:
        if self.machine.target.has_handlers:
            return action

        def refuse(*_args: Any) -> None:
            raise unsupported("this release has no event handlers")

        return refuse

    def _check_handler(self, function: Any, data: Any) -> Hook:
        if not self.machine.target.has_handlers:
            raise unsupported("this release has no event handlers")
        if not self.is_root or not self._has_io:
            raise QnxError(Errno.EPERM, f"attaching a handler: {MISSING}")
        if not callable(function) or not isinstance(data, EventData) or not isinstance(data.data_array, list):
            raise QnxError(Errno.EFAULT, "a handler is a callable and an EventData with a list")

        pid = self._caller[1]

        def guarded(event_data: EventData) -> int:
            if self._in_handler:       # what a handler itself brings about is not judged, or it could go on for ever
                return 1
            self._in_handler = True
            try:
                return int(function(event_data))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001  -- an event that nobody judged passes
                self.machine.fault(f"of process {pid}", f"event handler raised {told(error)}", place_of(error))
                return 1
            finally:
                self._in_handler = False

        return Hook(guarded, data, self._caller[1])

    def _add_event_handler(self, cls: int, event: int, function: Any, data: Any) -> None:
        self.emitter.settings.hook(cls, event, self._check_handler(function, data))

    def _add_class_handler(self, cls: int, function: Any, data: Any) -> None:
        self.emitter.settings.hook(cls, None, self._check_handler(function, data))

    # Running

    def _start(self, with_state: bool) -> None:
        if self.emitter.buffers is None:
            raise QnxError(Errno.ECANCELED, "there are no buffers")
        if self.emitter.is_tracing:
            return
        self.emitter.is_tracing = True
        if with_state:
            dump_state(self.machine, self.emitter, self._caller[0])

    def _stop(self) -> None:
        buffers = self.emitter.buffers
        if buffers is None and self._is_ring:
            raise QnxError(Errno.ECANCELED, "ring mode, and there are no buffers")
        was_tracing, self.emitter.is_tracing = self.emitter.is_tracing, False
        for ring in buffers.rings if buffers is not None and was_tracing else ():
            now = self.machine.now + ring.skew_cycles
            if ring.is_ring:
                ring.close(now)
            elif self.machine.target.has_buffer_end:
                ring.close(now, sequence=1)   # 8.0 hands over the trailing buffer and counts from 1 again

    def _allocate(self, count: int, pointer: Any) -> int:
        if not self.is_root:
            raise QnxError(Errno.EPERM, "allocating buffers needs root")
        if self.emitter.buffers is not None:
            raise QnxError(Errno.EEXIST, "there are buffers already")
        if not 1 <= count <= MAX_BUFFERS:
            raise QnxError(Errno.ENOMEM, f"{count} buffers")
        if not isinstance(pointer, list):
            raise QnxError(Errno.EFAULT, "the address goes into a list")
        for ring in self.emitter.allocate(count, self.hand_over).rings:
            ring.set_mode(self._is_ring)
            ring.skips = self._skips
            ring.sequence = self._sequences.get(ring.cpu, 0)
        pointer[:] = [self.buffer_address]
        return 0

    def _deallocate(self) -> None:
        if not self.is_root:
            raise QnxError(Errno.EPERM, "freeing buffers needs root")
        self.emitter.is_tracing = False
        if self.emitter.buffers is not None:
            self._sequences = {ring.cpu: ring.sequence for ring in self.emitter.buffers.rings}
        self.emitter.buffers = None

    def _flush(self) -> None:
        buffers = self.emitter.buffers
        if buffers is None:
            raise QnxError(Errno.EFAULT, "there are no buffers")
        if self._is_ring and self.emitter.is_tracing:
            raise QnxError(Errno.ECANCELED, "ring mode, and tracing is on")
        for ring in buffers.rings:
            ring.flush(self.machine.now + ring.skew_cycles)

    def _query_events(self) -> int:
        buffers = self.emitter.buffers
        if buffers is None:
            raise QnxError(Errno.EFAULT, "there are no buffers")
        return sum(ring.current.slots for ring in buffers.rings if ring.current is not None)

    def _set_mode(self, is_ring: bool) -> None:
        if self.emitter.buffers is None or self.emitter.is_tracing:
            raise QnxError(Errno.ECANCELED, "tracing is on" if self.emitter.is_tracing else "there are no buffers")
        self._is_ring = is_ring
        for ring in self.emitter.buffers.rings:
            ring.set_mode(is_ring)

    def _set_skip(self, skips: bool) -> None:
        self._skips = skips
        if self.emitter.buffers is not None:
            for ring in self.emitter.buffers.rings:
                ring.skips = skips

    # Inserting events

    def _insert_raw(self, head: int, stamp: int, data0: int, data1: int) -> None:
        time = self.machine.stamp()
        buffers, head = self.emitter.buffers, head & _LOW
        if buffers is None or not self.emitter.is_tracing:
            return
        cpu = head >> wire.CPU_SHIFT & wire.CPU_MASK
        if cpu >= self.machine.target.cpus:
            cpu = self._caller[0]      # the header says what it likes; the slot goes where the caller's would
        if not head >> wire.STRUCT_SHIFT:
            stamp = time + buffers.skew_cycles[cpu]
        buffers.put_slot(cpu, (head, stamp & _LOW, data0 & _LOW, data1 & _LOW), time)

    def _insert_user(self, event: int, words: Sequence[int]) -> None:
        self._insert_class(int(WireClass.USER), event, words)

    def _insert_class(self, cls: int, event: int, words: Sequence[int]) -> None:
        event, cls = event & wire.EVENT_MASK, cls & wire.CLASS_MASK
        time = self.machine.stamp()
        if not self.emitter.settings.on[wire.code(WireClass.USER, event)] & ON:
            return
        if cls == WireClass.USER:
            self.machine.history.mark(time, event)
        by_process = wire.PROCESS_INJECTED if self.machine.target.release == Release.QNX_8 else 0
        self.emitter.put(self._caller[0], wire.code(cls, event), time, list(words), by_process)

    def _words(self, data: Any, length: int) -> list[int]:
        """Return so many words of a buffer: a sequence of integers, or bytes in the order of the target."""
        if isinstance(data, (bytes, bytearray, memoryview)):
            data = self._words_of_bytes(bytes(data))
        if not isinstance(data, Sequence) or not 0 <= length <= len(data):
            raise QnxError(Errno.EFAULT, "the buffer is shorter than its length says")
        words = data[:length]
        if not all(isinstance(word, int) for word in words):
            raise QnxError(Errno.EFAULT, "the buffer holds something that is no number")
        return [word & _LOW for word in words]

    def _words_of_bytes(self, raw: bytes) -> list[int]:
        order = self.emitter.byte_order
        return [int.from_bytes(raw[i : i + 4], order) for i in range(0, len(raw) - 3, 4)]  # type: ignore[arg-type]

    def _insert_complex(self, event: int, data: Any, length: int) -> None:
        self._insert_user(event, self._words(data, length))

    def _insert_text(self, event: int, text: Any) -> None:
        if not isinstance(text, (str, bytes)):
            raise QnxError(Errno.EFAULT, "no text")
        raw = (text.encode() if isinstance(text, str) else bytes(text)).split(b"\0")[0] + b"\0"
        self._insert_user(event, self._words_of_bytes(raw + bytes(-len(raw) % 8)))
