"""Workloads like whole systems: a driver assistance system on several CPUs, and a development target."""

from __future__ import annotations

from functools import partial

from satview.capture.kernel import Kernel, mode
from satview.capture.sim import calls
from satview.capture.sim.calls.messages import Received
from satview.capture.sim.threads import Condvar, Mutex, Policy, Process, Program, Semaphore
from satview.capture.workloads.parts import MS, US, Address, periodic, replying, server

# State shared by the programs of the simulated car.


class Car:
    """State shared by the programs of the simulated car."""

    def __init__(self, kernel: Kernel, inherits: bool) -> None:
        self.kernel = kernel
        self.random = kernel.machine.random
        self.slog, self.disk, self.can, self.camera, self.fusion, self.screen, self.net = (Address() for _ in range(7))
        self.map_lock = Mutex("map")
        self.config_lock = Mutex("config", inherits)
        self.task_lock, self.task_ready = Mutex("work"), Condvar("work")
        self.tasks: list[int] = []
        self.frame = Semaphore("frame")
        self.blocks = Semaphore("blocks")
        self.finished = Semaphore("disk-done")

    def vary(self, low: int, high: int) -> int:
        """Return a random number between the bounds, such as a time; small numbers are more frequent."""
        return low + int((high - low) * self.random.random() ** 2)

    def gaps(self, mean_ns: int, spread: float = 0.4) -> int:
        """Return a random time to a device's next interrupt, in nanoseconds.

        The time is `mean_ns` times a random factor from 1 - `spread` to 1 + `spread`.
        """
        return int(mean_ns * (1 + spread * (2 * self.random.random() - 1)))

    def pid_of(self, name: str) -> int:
        """Return the pid of a process by its name without directories."""
        return next(p.pid for p in self.kernel.machine.processes.values() if p.short_name == name)


# Display, sound and housekeeping of the simulated car.


def hmi(car: Car) -> Program:
    """Render frames that the composer requests."""
    screen = yield from car.screen.connect()
    yield calls.ThreadCreate(_hmi_frames, (car, screen), 18, Policy.RR, "compose")
    yield calls.ThreadCreate(_hmi_input, (car,), 20, Policy.RR, "touch")
    while True:
        yield calls.SemWait(car.frame)
        yield calls.Compute(car.vary(2 * MS, 5 * MS))
        for _ in range(2):
            yield calls.MsgSend(screen, b"BLIT")


def _hmi_frames(car: Car, screen: int) -> Program:
    while True:
        yield calls.Sleep(16 * MS)
        yield calls.MsgSend(screen, b"VSYN")
        yield calls.SemPost(car.frame)


def _hmi_input(car: Car) -> Program:
    log = yield from car.slog.connect()
    while True:
        yield calls.Sleep(car.vary(60 * MS, 300 * MS))
        yield calls.Compute(car.vary(50 * US, 300 * US))
        yield calls.MsgSend(log, b"touch event\0")


def audio(car: Car) -> Program:
    """Mix sound every 10 ms."""

    def cycle(_count: int) -> Program:
        yield calls.Compute(car.vary(150 * US, 450 * US))

    yield from periodic(10 * MS, cycle, priority=35, offset_ns=2 * MS)


def logger(car: Car) -> Program:
    """Write the log to disk, and lock the configuration from time to time."""
    disk = yield from car.disk.connect()
    log = yield from car.slog.connect()
    yield calls.ThreadCreate(_log_rotate, (car,), 10, Policy.RR, "rotate")
    while True:
        yield calls.Sleep(car.vary(9 * MS, 30 * MS))
        yield calls.MsgSend(log, b"read\0")
        yield calls.MutexLock(car.config_lock)
        yield calls.Compute(car.vary(100 * US, 2 * MS))
        yield calls.MutexUnlock(car.config_lock)
        yield calls.MsgSend(disk, b"W" + bytes(31))


def _log_rotate(car: Car) -> Program:
    disk = yield from car.disk.connect()
    while True:
        yield calls.Sleep(car.vary(80 * MS, 200 * MS))
        for _ in range(4):
            yield calls.MsgSend(disk, b"R" + bytes(15))
            yield calls.Compute(car.vary(50 * US, 700 * US))


def map_update(car: Car) -> Program:
    """Run three CPU-bound threads of equal priority, so that time slices end."""
    yield calls.ThreadCreate(_tiles, (car,), 8, Policy.RR, "tiles-2")
    yield calls.ThreadCreate(_tiles, (car,), 8, Policy.RR, "tiles-3")
    yield from _tiles(car)


def _tiles(car: Car) -> Program:
    net = yield from car.net.connect()
    while True:
        for _ in range(6):
            yield calls.MsgSend(net, b"RECV")
            yield calls.Compute(car.vary(200 * US, 900 * US))
        yield calls.Compute(car.vary(8 * MS, 40 * MS))
        yield calls.Sleep(car.vary(20 * MS, 70 * MS))


def watchdog(car: Car) -> Program:
    """Reset the watchdog timer every 100 ms, under sporadic scheduling."""
    yield calls.SchedSet(60, Policy.SPORADIC, low_priority=11, budget_ns=2 * MS, period_ns=50 * MS)
    while True:
        yield calls.Sleep(100 * MS)
        yield calls.Compute(car.vary(40 * US, 3 * MS))


def diag(car: Car) -> Program:
    """Read the diagnostic trouble codes, each time in a new process."""
    yield calls.Sleep(1200 * MS)
    while True:
        pid = yield calls.Spawn("usr/bin/dtc_dump", _dtc_dump, (car,))
        yield calls.WaitPid(pid)
        yield calls.Sleep(4000 * MS)


def _dtc_dump(car: Car) -> Program:
    yield calls.ThreadName("dump")
    can = yield from car.can.connect()
    helper = yield calls.ThreadCreate(_dtc_helper, (car,), 12, Policy.RR, "format")
    for i in range(40):
        yield calls.MsgSend(can, b"DTC?" + i.to_bytes(4, "little"))
        yield calls.Compute(car.vary(200 * US, MS))
        yield calls.Sleep(5 * MS)
    return helper


def _dtc_helper(car: Car) -> Program:
    for _ in range(20):
        yield calls.Sleep(9 * MS)
        yield calls.Compute(car.vary(100 * US, 800 * US))


CAN_VECTOR, NET_VECTOR, DISK_VECTOR, CAMERA_VECTOR = 12, 10, 11, 14
MARK_CYCLE_BEGIN, MARK_CYCLE_END, MARK_DEADLINE, MARK_NOTE = 100, 101, 110, 120
_USER_SIMPLE = mode("INSERTSUSEREVENT")
_USER_TEXT = mode("INSERTUSRSTREVENT")


def setup_automotive(kernel: Kernel, *, inherits: bool = False) -> None:
    """Start the car's programs; `inherits` gives the configuration lock priority inheritance."""
    car = Car(kernel, inherits)
    serve = partial(_start_server, kernel, car)
    serve("proc/boot/slogger2", car.slog, 2, replying(8 * US, 60 * US, car.vary), 21)
    serve("proc/boot/devb-ahci", car.disk, 3, partial(_disk_request, car), 21, extra=_disk_driver)
    serve("proc/boot/dev-can", car.can, 2, replying(6 * US, 30 * US, car.vary), 30, bits=32, extra=_can_driver)
    serve("usr/sbin/io-pkt-v6-hc", car.net, 3, replying(15 * US, 90 * US, car.vary), 21, extra=_net_driver)
    serve("opt/adas/camera_service", car.camera, 3, replying(20 * US, 150 * US, car.vary), 24, extra=_camera_driver)
    serve("opt/adas/sensor_fusion", car.fusion, 2, partial(_fusion_request, car), 22, extra=_fusion_threads)
    serve("usr/sbin/screen", car.screen, 3, replying(60 * US, 400 * US, car.vary), 20)
    kernel.spawn("opt/adas/vehicle_control", _control, car, priority=40, policy=Policy.FIFO, thread_name="control-10ms")
    kernel.spawn("opt/adas/planner", _planner, car, priority=25, thread_name="plan-50ms")
    kernel.spawn("opt/hmi/hmi", hmi, car, priority=18, thread_name="render")
    kernel.spawn("opt/media/audio_server", audio, car, priority=35, policy=Policy.FIFO, thread_name="mix-5ms")
    kernel.spawn("usr/bin/logger", logger, car, priority=9, thread_name="writer", bits=32)
    kernel.spawn("opt/nav/map_update", map_update, car, priority=8, thread_name="tiles-1")
    kernel.spawn("usr/sbin/watchdog", watchdog, car, priority=60, policy=Policy.FIFO, thread_name="kick")
    kernel.spawn("usr/bin/diag", diag, car, priority=12, thread_name="dtc")
    kernel.device(CAN_VECTOR, lambda: car.gaps(3_100 * US), cpu=0)
    kernel.device(NET_VECTOR, lambda: car.gaps(5_300 * US, 0.8), cpu=1)
    kernel.device(CAMERA_VECTOR, lambda: car.gaps(33_333 * US, 0.01), cpu=2)


def _start_server(
    kernel: Kernel,
    car: Car,
    name: str,
    address: Address,
    workers: int,
    serve: object,
    priority: int,
    bits: int = 0,
    extra: object = None,
) -> None:
    short = name.rsplit("/", 1)[-1]

    def main() -> Program:
        if callable(extra):
            yield from extra(car)
        yield from server(address, lambda: car.pid_of(short), workers, serve, priority)  # type: ignore[arg-type]

    kernel.spawn(name, main, priority=priority, bits=bits)


# Drivers


def _can_driver(car: Car) -> Program:
    yield calls.ThreadCreate(_can_receive, (car,), 31, Policy.FIFO, "can-rx")


def _can_receive(car: Car) -> Program:
    chid = yield calls.ChannelCreate()
    coid = yield calls.ConnectAttach(0, chid)
    seen = [0]

    def handler() -> calls.Sigevent | None:
        seen[0] += 1
        return (
            calls.Sigevent("pulse", coid, 31, code=2, value=seen[0]) if seen[0] % 2 else None
        )  # for every second frame

    if car.kernel.target.has_handlers:
        yield calls.ThreadCtl()
        yield calls.InterruptAttach(CAN_VECTOR, handler, 2 * US)
        while True:
            yield calls.MsgReceive(chid)
            yield calls.Compute(car.vary(12 * US, 45 * US))
    ident = yield calls.InterruptAttachEvent(CAN_VECTOR, calls.Sigevent("pulse", coid, 31, code=2))
    while True:
        yield calls.MsgReceive(chid)
        yield calls.InterruptUnmask(CAN_VECTOR, ident)
        yield calls.Compute(car.vary(12 * US, 45 * US))


def _net_driver(car: Car) -> Program:
    yield calls.ThreadCreate(_net_receive, (car,), 23, Policy.RR, "rx")


def _net_receive(car: Car) -> Program:
    if car.kernel.target.has_handlers:
        yield calls.ThreadCtl()
    ident = yield calls.InterruptAttachEvent(NET_VECTOR)
    log = yield from car.slog.connect()
    while True:
        yield calls.InterruptWait()
        yield calls.Compute(car.vary(20 * US, 120 * US))
        yield calls.InterruptUnmask(NET_VECTOR, ident)
        if car.random.random() < 0.05:
            yield calls.MsgSend(log, b"rx overrun\0")


def _disk_driver(car: Car) -> Program:
    yield calls.ThreadCreate(_disk_completion, (car,), 23, Policy.FIFO, "completion")


def _disk_completion(car: Car) -> Program:
    while True:
        yield calls.SemWait(car.blocks)
        yield calls.Sleep(car.vary(2 * MS, 5 * MS))  # time of the disk itself
        yield calls.Compute(15 * US)
        yield calls.SemPost(car.finished)


def _disk_request(car: Car, received: Received) -> Program:
    yield calls.Compute(car.vary(15 * US, 70 * US))
    if received.is_pulse:
        return
    if received.message[:1] == b"W":
        yield calls.SemPost(car.blocks)
        yield calls.SemWait(car.finished)
    yield calls.MsgReply(received.rcvid, 512, b"done")


def _camera_driver(car: Car) -> Program:
    yield calls.ThreadCreate(_camera_frames, (car,), 26, Policy.FIFO, "frame")


def _camera_frames(car: Car) -> Program:
    if car.kernel.target.has_handlers:
        yield calls.ThreadCtl()
    ident = yield calls.InterruptAttachEvent(CAMERA_VECTOR)
    fusion = yield from car.fusion.connect()
    while True:
        yield calls.InterruptWait()
        yield calls.InterruptUnmask(CAMERA_VECTOR, ident)
        yield calls.Compute(car.vary(300 * US, 900 * US))
        yield calls.MsgSendPulse(fusion, 26, code=5)


# Assistance


def _fusion_threads(car: Car) -> Program:
    for i in range(3):
        yield calls.ThreadCreate(_fusion_worker, (car,), 21, Policy.RR, f"detect-{i + 1}")
    yield calls.ThreadCreate(periodic, (20 * MS, _fusion_cycle, car), 24, Policy.RR, "track-20ms")


def _fusion_request(car: Car, received: Received) -> Program:
    yield calls.MutexLock(car.map_lock)
    yield calls.Compute(car.vary(40 * US, 260 * US))
    yield calls.MutexUnlock(car.map_lock)
    if received.is_pulse:
        yield calls.MutexLock(car.task_lock)
        car.tasks.extend([1, 2, 3, 4])
        yield calls.CondSignal(car.task_ready, everybody=True)
        yield calls.MutexUnlock(car.task_lock)
    else:
        yield calls.MsgReply(received.rcvid, 64, b"objects\0")


def _fusion_worker(car: Car) -> Program:
    while True:
        yield calls.MutexLock(car.task_lock)
        while not car.tasks:
            yield calls.CondWait(car.task_ready, car.task_lock)
        car.tasks.pop()
        yield calls.MutexUnlock(car.task_lock)
        yield calls.Compute(car.vary(2 * MS, 6 * MS))
        yield calls.MutexLock(car.map_lock)
        yield calls.Compute(car.vary(60 * US, 400 * US))
        yield calls.MutexUnlock(car.map_lock)


_lines: dict[str, int] = {}


def _fusion_cycle(car: Car, count: int) -> Program:
    if not count:
        _lines["camera"] = yield from car.camera.connect()
    yield calls.TraceEvent(_USER_SIMPLE, MARK_CYCLE_BEGIN, count, 0)
    yield calls.MsgSend(_lines["camera"], b"GETF" + count.to_bytes(4, "little"))
    yield calls.MutexLock(car.map_lock)
    yield calls.Compute(car.vary(200 * US, 900 * US))
    yield calls.MutexUnlock(car.map_lock)
    yield calls.Compute(car.vary(MS, 3 * MS))
    yield calls.TraceEvent(_USER_SIMPLE, MARK_CYCLE_END, count, 0)


def _control(car: Car) -> Program:
    can = yield from car.can.connect()
    late = 0

    def cycle(count: int) -> Program:
        nonlocal late
        yield calls.Compute(car.vary(120 * US, 420 * US))
        yield calls.MsgSend(can, b"TORQ" + count.to_bytes(4, "little"))
        yield calls.MutexLock(car.config_lock)  # priority inversion while the logger holds it
        yield calls.Compute(15 * US)
        yield calls.MutexUnlock(car.config_lock)
        if count % 100 == 99:
            late += 1
            yield calls.TraceEvent(_USER_SIMPLE, MARK_DEADLINE, count, late)

    yield from periodic(10 * MS, cycle, priority=40)


def _planner(car: Car) -> Program:
    fusion = yield from car.fusion.connect()
    can = yield from car.can.connect()
    yield calls.ThreadCreate(_predict, (car,), 23, Policy.RR, "predict")

    def cycle(count: int) -> Program:
        for _ in range(3):
            yield calls.MsgSend(fusion, b"OBJS" + count.to_bytes(4, "little"))
        yield calls.MutexLock(car.map_lock)
        yield calls.Compute(car.vary(300 * US, 1200 * US))
        yield calls.MutexUnlock(car.map_lock)
        yield calls.Compute(car.vary(3 * MS, 8 * MS))
        yield calls.MsgSend(can, b"TRAJ" + count.to_bytes(4, "little"))
        if count % 20 == 0:
            yield calls.TraceEvent(_USER_TEXT, MARK_NOTE, f"replanned, cycle {count}")

    yield from periodic(50 * MS, cycle, priority=25, offset_ns=3 * MS)


def _predict(car: Car) -> Program:
    while True:
        yield calls.Sleep(24 * MS)
        yield calls.MutexLock(car.map_lock)
        yield calls.Compute(car.vary(100 * US, 900 * US))
        yield calls.MutexUnlock(car.map_lock)
        yield calls.Compute(car.vary(MS, 4 * MS))


# A workload like a development target with light load, on which the tutorial's programs run.


SD_CARD_VECTOR = 10


def setup_small_system(kernel: Kernel) -> None:
    """Start slogger, a disk driver with a file system, a terminal driver, a graphics driver, and a shell."""
    disk, terminal = Address(), Address()
    kernel.device(SD_CARD_VECTOR, lambda: kernel.machine.random.randint(4 * MS, 30 * MS))
    _start(kernel, "proc/boot/slogger", Address(), 1, 15)
    _start(kernel, "sbin/devb-eide", disk, 4, 21, driver=True)
    _start(kernel, "sbin/devc-con", terminal, 2, 12)
    kernel.spawn("usr/photon/bin/io-graphics", _refresh, kernel, terminal, priority=12)
    kernel.spawn("bin/sh", _shell, kernel, disk, terminal, priority=10)


def _start(kernel: Kernel, name: str, address: Address, workers: int, priority: int, driver: bool = False) -> Process:
    def serve(received: Received) -> Program:
        yield calls.MsgInfo(received.rcvid)
        yield calls.ConnectClientInfo(received.scoid)
        yield calls.MsgRead(received.rcvid)
        yield calls.Compute(kernel.machine.random.randint(20 * US, 300 * US))
        yield calls.MsgReply(received.rcvid, 0, b"\1\0\0\0")

    def main() -> Program:
        if driver:
            yield calls.ThreadCreate(_disk_interrupts, (Mutex("disk"), Condvar("disk")), priority + 1, Policy.RR)
        yield from server(address, lambda: process.pid, workers, serve, priority, "")

    process = kernel.spawn(name, main, priority=priority)
    return process


def _disk_interrupts(lock: Mutex, ready: Condvar) -> Program:
    yield calls.ThreadCtl()
    ident = yield calls.InterruptAttachEvent(SD_CARD_VECTOR)
    yield calls.ThreadCreate(_disk_thread, (lock, ready), 21, Policy.RR)
    while True:
        yield calls.InterruptWait()
        yield calls.MutexLock(lock)
        yield calls.CondSignal(ready)
        yield calls.MutexUnlock(lock)
        yield calls.InterruptUnmask(SD_CARD_VECTOR, ident)


def _disk_thread(lock: Mutex, ready: Condvar) -> Program:
    yield calls.MutexLock(lock)
    while True:
        yield calls.CondWait(ready, lock)
        yield calls.Compute(150 * US)


def _refresh(kernel: Kernel, terminal: Address) -> Program:
    coid = yield from terminal.connect()
    while True:
        yield calls.Sleep(kernel.machine.random.randint(5 * MS, 15 * MS))
        yield calls.Compute(400 * US)
        yield calls.Ring0(_nothing)
        yield calls.MsgSend(coid, b"\x02\x01\x10\x00\x2c\x00\x00\x00")


def _nothing(_machine: object, _cpu: object) -> int:
    return 0


def _shell(kernel: Kernel, disk: Address, terminal: Address) -> Program:
    coid = yield from terminal.connect()
    while True:
        yield calls.Sleep(25 * MS)
        yield calls.MsgSend(coid, b"$ ls\0")
        pid = yield calls.Spawn("bin/ls", _ls, (kernel, disk))
        yield calls.WaitPid(pid)


def _ls(kernel: Kernel, disk: Address) -> Program:
    coid = yield from disk.connect()
    for _ in range(kernel.machine.random.randint(2, 5)):
        yield calls.MsgSend(coid, b"\x16\x01\x04\x00\x2d\x00\x00\x00")
        yield calls.Compute(100 * US)
