"""The simulated instrumented kernel, and TraceEvent(), the call that controls its tracing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import GeneratorType
from typing import Any

from satview.base.errors import UsageError, one_line
from satview.capture.buffers import MOST_BUFFERS, Buffer
from satview.capture.emit import ON, RULE_DATA, Emitter, EventData, KernelHandler, finish
from satview.capture.nto import set_release
from satview.capture.sim.calls import TraceEvent
from satview.capture.sim.calls.call import MISSING
from satview.capture.sim.calls.processes import add_thread, new_process, start
from satview.capture.sim.machine import Machine
from satview.capture.sim.programs import boot
from satview.capture.sim.scheduler import PartitionScheduler
from satview.capture.sim.services import WATCH, Errno, QnxError, location_of
from satview.capture.sim.target import Target
from satview.capture.sim.threads import ANY_CPU, Body, Cpu, InterruptSource, Partition, Policy, Process
from satview.events import wire
from satview.events.modes import NOT_NUMBERS, NUMBER_MASK, Mode, mode_of
from satview.events.spec import Release
from satview.events.variants import WORD_MASK
from satview.events.wire import WireClass
from satview.filters.rules.handlers import DynamicRule

# Executes TraceEvent(), the call that controls tracing; its first argument is a mode.
#
# Source: capture side, sections 1, 3, 4.3 and 6.


# Dump of the existing processes, threads and states at START, as if they had just been created; and dump of names.


def dump_state(machine: Machine, emitter: Emitter, cpu: int) -> None:
    """Emit TIME, then the existing partitions, processes and threads; filters apply to these events too."""
    buffers, emitter.origin = emitter.buffers, None
    emitter.running = [None] * machine.target.cpus  # set by the RUNNING events of the dump

    def stamp(on_cpu: int = cpu) -> int:
        time = machine.stamp()
        emitter.begins_at(on_cpu, time)
        return time

    if buffers is not None and (buffers.rings[0].current is not None or machine.target.is_old):
        buffers.time(cpu, stamp())  # a new buffer begins with a TIME event anyway
    for partition in machine.partitions:
        emitter.partition(cpu, stamp, partition)
    for process in sorted(machine.processes.values(), key=lambda p: p.pid & 0xFFF):
        if process.is_dead:
            continue
        emitter.process_life(cpu, stamp(), process, "CREATE_NAME" if process.name else "CREATE")
        for thread in process.threads.values():
            emitter.thread_life(cpu, stamp(), thread, "CREATE")
            here = thread.cpu if thread.state == "RUNNING" else cpu
            emitter.thread_state(here, stamp(here), thread)
            if thread.name and not machine.target.is_old:
                emitter.thread_name(cpu, stamp(), thread)
    if not machine.target.has_handlers:
        _dump_service_threads(machine, emitter, cpu)


def dump_names(machine: Machine, emitter: Emitter, cpu: int, start_cycles: int) -> int:
    """Emit the names of all processes and threads, a microsecond apart; return the time after the last event.

    `start_cycles` is the time of the first event, by the machine's clock; it may be in the future.
    """
    time, step = start_cycles, max(1, machine.target.cycles(1000))
    for process in sorted(machine.processes.values(), key=lambda p: p.pid & 0xFFF):
        if process.is_dead or not process.name:
            continue
        emitter.process_life(cpu, time, process, "CREATE_NAME")
        time += step
        for thread in process.threads.values():
            if thread.name:
                emitter.thread_name(cpu, time, thread)
                time += step
    return time


def _dump_service_threads(machine: Machine, emitter: Emitter, cpu: int) -> None:
    """Emit the attachments of service threads to interrupts (8.0)."""
    for source in machine.sources.values():
        for attachment in source.attachments:
            emitter.service_thread(cpu, machine.stamp(), attachment.thread, attachment.ident, source.cpu)


_BUFFER_ADDRESS = 0x1F000000
_FROM_HANDLERS = frozenset((
    Mode.INSERTSUSEREVENT, Mode.INSERTCUSEREVENT, Mode.INSERTUSRSTREVENT, Mode.INSERTEVENT, Mode.START,
    Mode.STARTNOSTATE, Mode.STOP,
))  # fmt: skip
_WAIT_DONE = 1  # result of WAITBUFFER


def mode(name: str) -> int:
    """Return the value of a mode by name, with or without `_NTO_TRACE_`; raises KeyError for an unknown name."""
    mode = mode_of(name)
    if mode is None:
        raise KeyError(name)
    return mode.word


def unsupported(what: str) -> QnxError:
    """Return ENOTSUP, the error for an unknown mode or argument of TraceEvent(); `what` is its message."""
    return QnxError(Errno.ENOTSUP, what)


class TraceControl:
    """Executes TraceEvent() for one kernel.

    Attributes:
        hook: Called with every full buffer, before the handlers set by InterruptHookTrace(); None = not used.
        is_root: The caller may allocate buffers and attach handlers.
        was_started: START was executed at least once.
        buffer_address: Physical address at which ALLOCBUFFER allocates the buffers.
    """

    def __init__(self, machine: Machine, emitter: Emitter) -> None:
        self.machine = machine
        self.emitter = emitter
        self.hook: Callable[[Buffer], None] | None = None
        self.is_root = True
        self.was_started = False
        self.buffer_address = _BUFFER_ADDRESS
        self._caller = (0, 0)  # CPU and pid
        self._in_handler = False
        self._has_io = True
        # State that the kernel keeps while there are no buffers.
        self._is_ring = False
        self._skips = False
        self._sequences: dict[int, int] = {}  # per ring, number of its last buffer
        self._actions = self._table()

    def hand_over(self, buffer: Buffer) -> None:
        """Call `hook` and the handlers of the trace interrupt with a full buffer; without these it stays full."""
        if self.hook is not None:
            self.hook(buffer)
        self.machine.interrupts.trace_hooks.call(buffer)

    def call(self, value: int, args: Sequence[Any], cpu: int = 0, pid: int = 1, has_io: bool = True) -> int:
        """Execute one TraceEvent() call.

        Args:
            value: Mode with its argument count in the top four bits.
            args: The arguments after the mode.
            cpu: CPU of the caller.
            pid: Process of the caller; event handlers that it attaches are removed when the process ends.
            has_io: The caller has I/O privilege, which is required to attach handlers.

        Returns:
            0, or the result of a query mode.

        Raises:
            QnxError: As in the manual: ECANCELED, EFAULT, EEXIST, EINVAL, ENOMEM, ENOTSUP, EPERM.
        """
        if not isinstance(value, int):
            raise unsupported(f"mode {value!r:.40}")
        known = mode_of(value)
        if known is None or not known.is_in(self.machine.target.release):
            raise unsupported(f"mode {value & NUMBER_MASK}")
        if len(args) != len(known.arguments):
            raise QnxError(Errno.EINVAL, f"{known.symbol} takes {len(known.arguments)} arguments, not {len(args)}")
        if self._in_handler and known not in _FROM_HANDLERS:
            raise QnxError(Errno.EPERM, f"{known.symbol} is not allowed in a handler")
        for name, arg in zip(known.arguments, args, strict=True):
            if name not in NOT_NUMBERS and not isinstance(arg, int):
                raise QnxError(Errno.EFAULT, f"{known.symbol}: {name} is not a number")
        self._caller, self._has_io = (cpu, pid), has_io
        if known.kind == "filter":
            return self._set_filter(known, args)
        if not known.is_documented:
            return _WAIT_DONE if known is Mode.WAITBUFFER else 0
        return self._actions[known](*args) or 0

    def _table(self) -> dict[Mode, Callable[..., int | None]]:
        """Return, by mode, the functions for all modes that set no filter; the rule set executes the other modes."""
        return {
            Mode.INSERTEVENT: self._insert_raw,
            Mode.START: lambda: self._start(True),
            Mode.STOP: self._stop,
            Mode.ALLOCBUFFER: self._allocate,
            Mode.DEALLOCBUFFER: self._deallocate,
            Mode.FLUSHBUFFER: self._flush,
            Mode.QUERYEVENTS: self._query_events,
            Mode.INSERTSUSEREVENT: lambda event, d0, d1: self._insert_user(event, (d0, d1)),
            Mode.INSERTCUSEREVENT: self._insert_complex,
            Mode.INSERTUSRSTREVENT: self._insert_text,
            Mode.STARTNOSTATE: lambda: self._start(False),
            Mode.SETRINGMODE: lambda: self._set_mode(True),
            Mode.SETLINEARMODE: lambda: self._set_mode(False),
            Mode.SKIPBUFFER: lambda: self._set_skip(True),
            Mode.OVERWRITEBUFFER: lambda: self._set_skip(False),
            Mode.QUERYVERSION: lambda: int(self.machine.target.sys_release.replace(".", "")),
            Mode.QUERYSUPPORT: lambda: 1,
            Mode.INSERTSCLASSEVENT: lambda cls, event, d0, d1: self._insert_class(cls, event, (d0, d1)),
            Mode.INSERTCCLASSEVENT: lambda cls, event, data, length: self._insert_class(
                cls, event, self._words(data, length)
            ),
        }

    # Filters and handlers

    def _set_filter(self, known: Mode, args: Sequence[Any]) -> int:
        """Execute a mode that sets a filter; QnxError if the rule set or the release refuses it."""
        if "HANDLER" in known.name and not self.machine.target.has_handlers:
            raise unsupported("this release has no event handlers")
        numbers = [arg for name, arg in zip(known.arguments, args, strict=True) if name not in NOT_NUMBERS]
        if "handler" in known.arguments:
            position = known.arguments.index("handler")
            numbers.append(self._handler(args[position], args[position + 1]))
        error = self.emitter.rules.apply(int(known), *numbers)
        if error:
            raise QnxError(Errno(error), f"{known.symbol}({', '.join(map(str, args))[:60]})")
        return 0

    def _handler(self, function: Any, data: Any) -> DynamicRule:
        """Return the handler that a program attaches as a dynamic rule; tracelogger, with `RULE_DATA`, attaches one.

        Raises EPERM (no privilege) or EFAULT (`function` or `data` has the wrong type) as a QnxError.
        """
        if data is RULE_DATA:
            rule: DynamicRule = function
            return rule
        if not self.is_root or not self._has_io:
            raise QnxError(Errno.EPERM, f"attaching a handler: {MISSING}")
        if not callable(function) or not isinstance(data, EventData) or not isinstance(data.data_array, list):
            raise QnxError(Errno.EFAULT, "a handler is a callable and an EventData with a list")
        return KernelHandler(function, data, self._caller[1], self.machine.target.release, self.call_handler)

    def call_handler(self, handler: KernelHandler) -> int:
        """Call a program's event handler and return its result; an exception is recorded, and lets the event pass."""
        if self._in_handler:  # events caused by a handler pass, to prevent infinite recursion
            return 1
        self._in_handler, before = True, self._caller
        try:
            WATCH.is_on = True
            answer = handler.function(handler.data)
            if isinstance(answer, GeneratorType):
                answer = finish(answer, lambda call: self._call_of_handler(call, handler.pid))
            if WATCH.locations:
                self.machine.report_forgotten(f"of process {handler.pid}, event handler")
            return int(answer)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  -- an event that nobody judged passes
            self.machine.fault(
                f"of process {handler.pid}", f"event handler raised {one_line(error)}", location_of(error)
            )
            return 1
        finally:
            self._in_handler, self._caller, WATCH.is_on = False, before, False

    def _call_of_handler(self, call: Any, pid: int) -> int:
        if not isinstance(call, TraceEvent):
            raise TypeError(f"a handler yielded {call!r:.60}; it may yield TraceEvent() calls only")
        call.location = ""
        return self.call(call.mode, call.args, self._caller[0], pid)

    def forget_process(self, pid: int) -> None:
        """Detach the handlers of a process that has died."""
        self.emitter.rules.remove_handlers(lambda rule: isinstance(rule, KernelHandler) and rule.pid == pid)

    # Running

    def _start(self, with_state: bool) -> None:
        if self.emitter.buffers is None:
            raise QnxError(Errno.ECANCELED, "there are no buffers")
        if self.emitter.is_tracing:
            return
        self.emitter.is_tracing, self.emitter.origin = True, None
        self.was_started = True
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
                ring.end(now)
            elif self.machine.target.has_buffer_end:
                ring.close(now, sequence=1)  # 8.0 hands over the trailing buffer and counts from 1 again

    def report_names(self, pause_ns: int, cpu: int = 0) -> None:
        """Write the names of all processes and threads into a ring that was saved, as kernels of 7.x and 8.0 do.

        In 8.0 the last buffer gets sequence number 1, like the last buffer of a linear capture. The first name comes
        `pause_ns` after the machine's current time.
        """
        buffers, machine = self.emitter.buffers, self.machine
        if buffers is None or self.emitter.is_tracing:
            return
        self.emitter.is_tracing = True
        end = dump_names(machine, self.emitter, cpu, machine.now + machine.target.cycles(pause_ns))
        self.emitter.is_tracing = False
        for ring in buffers.rings:
            ring.close(end + ring.skew_cycles, sequence=1 if machine.target.has_buffer_end else None, hand_over=False)

    def _allocate(self, count: int, pointer: Any) -> int:
        if not self.is_root:
            raise QnxError(Errno.EPERM, "allocating buffers needs root")
        if self.emitter.buffers is not None:
            raise QnxError(Errno.EEXIST, "there are buffers already")
        if not 1 <= count <= MOST_BUFFERS:
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
        buffers, head = self.emitter.buffers, head & WORD_MASK
        if buffers is None or not self.emitter.is_tracing:
            return
        cpu = head >> wire.CPU_SHIFT & wire.CPU_MASK
        if cpu >= self.machine.target.cpus:
            cpu = self._caller[0]  # the header has an invalid CPU; the slot goes into the caller's buffer
        if not head >> wire.STRUCT_SHIFT:
            stamp = time + buffers.skew_cycles[cpu]
        buffers.put_slot(cpu, (head, stamp & WORD_MASK, data0 & WORD_MASK, data1 & WORD_MASK), time)

    def _insert_user(self, event: int, words: Sequence[int]) -> None:
        self._insert_class(int(WireClass.USER), event, words)

    def _insert_class(self, cls: int, event: int, words: Sequence[int]) -> None:
        event, cls = event & wire.EVENT_MASK, cls & wire.CLASS_MASK
        time = self.machine.stamp()
        if not self.emitter.flags(wire.code(WireClass.USER, event)) & ON:
            return
        if cls == WireClass.USER:
            self.machine.history.mark(time, event)
        by_process = wire.PROCESS_INJECTED if self.machine.target.release == Release.QNX_8 else 0
        self.emitter.put(self._caller[0], wire.code(cls, event), time, list(words), by_process)

    def _words(self, data: Any, length: int) -> list[int]:
        """Return the first `length` words of a program's buffer: integers, or bytes in the target's byte order."""
        if isinstance(data, (bytes, bytearray, memoryview)):
            data = self._words_of_bytes(bytes(data))
        if not isinstance(data, Sequence) or not 0 <= length <= len(data):
            raise QnxError(Errno.EFAULT, "the buffer is shorter than its length says")
        words = data[:length]
        if not all(isinstance(word, int) for word in words):
            raise QnxError(Errno.EFAULT, "the buffer holds something that is not a number")
        return [word & WORD_MASK for word in words]

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


# The simulated instrumented kernel: machine, emitter and trace control; starts programs and adds devices.


MAX_PRIORITY = 255
BOOT_SECONDS = 341.7  # uptime at the start of a simulation, so that stamps look like those of a running system


class Kernel:
    """A simulated target that has booted.

    Args:
        target: Properties of the target.
        seed: Random seed.

    Attributes:
        machine: Threads, CPUs and clock.
        emitter: Filters and buffers.
        control: TraceEvent() for callers outside the simulation.
        is_up: `spawn` logs the creation of processes; False = they existed before the trace.
    """

    def __init__(self, target: Target, seed: int = 1) -> None:
        self.target = target
        self.is_up = False
        set_release(target.release)
        self.emitter = Emitter(target)
        start_cycles = int(BOOT_SECONDS * target.cycles_per_s)
        self.machine = machine = Machine(target, seed, self.emitter, start_cycles)
        self.emitter.connect(machine)
        machine.on_death.append(lambda process: self.control.forget_process(process.pid))
        self.control = TraceControl(machine, self.emitter)
        machine.trace_event = self.control.call
        smp = "-smp" if target.cpus > 1 or self.emitter.target.release != "6.x" else ""
        boot(machine, f"proc/boot/procnto{smp}-instr")
        machine.interrupts.start_clock()
        for cpu in machine.cpus:
            if cpu.index == 0:
                machine.at(machine.now + 1, self._first_dispatch, cpu)

    def _first_dispatch(self, cpu: Cpu) -> None:
        self.machine.kernel_entry(cpu, lambda _cpu: None)

    def trace_event(self, mode: int, *args: Any) -> int:
        """Call TraceEvent() from outside the simulation, as root; raises `QnxError` if the call fails."""
        self.machine.history.caller = (0, 0)
        return self.control.call(mode, args)

    def spawn(
        self,
        name: str,
        body: Body,
        *args: Any,
        priority: int = 10,
        policy: Policy = Policy.RR,
        thread_name: str = "",
        bits: int = 0,
        runmask: int = ANY_CPU,
        partition: Partition | None = None,
    ) -> Process:
        """Start a process whose first thread runs `body(*args)`, from outside the simulation.

        Args:
            name: Name of the process.
            body: A generator function that yields kernel calls.
            args: Arguments of `body`.
            priority: Priority of the thread, 1 to 255.
            policy: Scheduling policy of the thread.
            thread_name: Name of the thread; empty = unnamed.
            bits: 32 or 64; 0 = the target's default.
            runmask: The CPUs on which the thread may run, as a bit mask.
            partition: Scheduler partition of the process; None = the System partition, if there are partitions.

        Raises:
            UsageError: `body` is no generator function, the priority is outside 1 to 255, or the runmask has none of
                the CPUs.
        """
        if not isinstance(priority, int) or not 1 <= priority <= MAX_PRIORITY:
            raise UsageError(f"{name}: priority {priority!r:.40} is not 1 to {MAX_PRIORITY}")
        if not runmask & (1 << self.target.cpus) - 1:
            raise UsageError(f"{name}: runmask {runmask:#x} has none of the {self.target.cpus} CPUs")
        program = body(*args)
        if not hasattr(program, "send"):
            raise UsageError(f"{name}: {getattr(body, '__name__', body)} is not a generator function")
        process = new_process(self.machine, name, bits=bits)
        if partition is not None:
            process.partition = partition
        thread = add_thread(process, program, priority, policy, thread_name, runmask)
        if self.is_up:
            self.machine.record.process_life(0, self.machine.stamp(), process, "CREATE")
            self.machine.record.process_life(0, self.machine.stamp(), process, "CREATE_NAME")
        start(self.machine, self.machine.cpus[0], thread)
        return process

    def device(self, vector: int, gap_ns: Callable[[], int | None], cpu: int = 0) -> InterruptSource:
        """Add a device that raises interrupts, and return it.

        Args:
            vector: Number of the interrupt.
            gap_ns: Returns the nanoseconds to the next interrupt; None = no more interrupts.
            cpu: CPU that takes the interrupts.

        Raises:
            UsageError: Another device has this vector.
        """
        known = self.machine.sources.get(vector)
        if known is not None and known.is_active and not known.is_silent:
            raise UsageError(f"interrupt {vector} has a device already")
        source = InterruptSource(vector, cpu, gap_ns)
        self.machine.interrupts.add(source)
        return source

    def partitions(self, *shares: tuple[str, int, int]) -> list[Partition]:
        """Load the partition scheduler and return its partitions, without the System partition, which gets the rest.

        Args:
            shares: Name, budget in percent and critical budget in ms of each partition.

        Raises:
            UsageError: A share is negative, or the shares exceed 100 percent together.
        """
        if any(percent < 0 for _, percent, _ in shares) or sum(percent for _, percent, _ in shares) > 100:
            raise UsageError(f"partitions: shares of {', '.join(str(share[1]) for share in shares)} % exceed 100 %")
        scheduler = PartitionScheduler(self.machine)
        scheduler.add("System", 100)
        partitions = [scheduler.add(*share) for share in shares]
        self.machine.scheduler.partitions = scheduler
        for process in self.machine.processes.values():
            process.partition = self.machine.partitions[0]
            for thread in process.threads.values():
                thread.partition = thread.own_partition = process.partition
        return partitions
