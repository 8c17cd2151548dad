"""Workloads in which each program and device draws from a stream of its own, so that a change leaves their work alike.

A simulated machine has one generator for everything that a workload draws. A program that is changed then makes all
others draw other numbers, and a prediction is held against other work. Here a thread draws by its process and name, a
server by the message's sender and its number there, or by the number of the pulse at its channel, and a device by its
vector.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from satview.capture.kernel import Kernel
from satview.capture.sim.calls import MsgReceive, MsgSend, Spawn, ThreadCreate
from satview.capture.sim.calls.messages import Received
from satview.capture.sim.threads import Body, Process, Program
from satview.capture.workloads.registry import Workload


class _Work:
    """A piece of work that draws: what a thread does by itself, or what it does for one message or pulse."""

    def __init__(self, seed: int, name: str) -> None:
        self.name, self.children, self.messages = name, 0, 0
        self._seed = seed
        self._stream: random.Random | None = None

    def stream(self) -> random.Random:
        """Return the generator, made when it is first drawn from: most messages draw nothing."""
        if self._stream is None:
            self._stream = random.Random(f"{self._seed} {self.name}")
        return self._stream


class OwnStreams(random.Random):
    """Stands for the generator of a machine, and draws from the stream of the work that is done now."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._seed = seed
        self._kernel = self._current = _Work(seed, "kernel")
        self._processes: Counter[str] = Counter()
        self._pulses: Counter[tuple[str, int]] = Counter()

    def random(self) -> float:
        """Draw a number from 0 to 1."""
        return self._current.stream().random()

    def getrandbits(self, k: int) -> int:
        """Draw bits; whole numbers in a range are drawn by these."""
        return self._current.stream().getrandbits(k)

    def new_process(self, path: str) -> str:
        """Return the name of the first thread of a process, different each time a program is started."""
        self._processes[path] += 1
        return f"{path} {self._processes[path]}"

    def of_device(self, vector: int, gap_ns: Callable[[], int | None]) -> Callable[[], int | None]:
        """Let a device draw its gaps from its own stream."""
        work = _Work(self._seed, f"device {vector}")

        def own_gap_ns() -> int | None:
            self._current = work
            try:
                return gap_ns()
            finally:
                self._current = self._kernel

        return own_gap_ns

    def of_thread(self, process: str, name: str, body: Body) -> Body:
        """Let a thread, and all that it starts, draw from their own streams."""

        def run(*args: Any) -> Program:
            return (yield from self._run(process, name, body(*args)))

        return run

    def _run(self, process: str, name: str, program: Program) -> Program:
        work = _Work(self._seed, f"{process} {name}")
        value, error = None, None
        while True:
            self._current = work
            try:
                call = program.throw(error) if error is not None else program.send(value)
            except StopIteration as end:
                return end.value
            finally:
                self._current = self._kernel
            error = None
            self._follow(call, process, work)
            try:
                value = yield call
            except Exception as raised:  # noqa: BLE001  -- what a call raises is the program's to handle
                error = raised
            else:
                if isinstance(call, MsgReceive) and isinstance(value, Received):
                    work = self._work_for(process, call.chid, value)

    def _follow(self, call: object, process: str, work: _Work) -> None:
        """Give a thread or process that is started its name, and a message its number."""
        if isinstance(call, (ThreadCreate, Spawn)):
            work.children += 1
            name = f"{work.name} child {work.children}"
            call.body = self.of_thread(process if isinstance(call, ThreadCreate) else name, name, call.body)
        elif isinstance(call, MsgSend) and call.payload is None:
            work.messages += 1
            call.payload = f"{work.name} message {work.messages}"

    def _work_for(self, process: str, chid: int, received: Received) -> _Work:
        if isinstance(received.payload, str):
            return _Work(self._seed, received.payload)
        self._pulses[process, chid] += 1
        return _Work(self._seed, f"{process} channel {chid} pulse {self._pulses[process, chid]}")


def with_own_streams(workload: Workload, seed: int) -> Workload:
    """Return a workload that draws from own streams, also where it was changed before.

    Args:
        workload: What to run.
        seed: Of what programs and devices draw; what the kernel's own code costs has the seed of the capture.
    """

    def setup(kernel: Kernel) -> None:
        draws = OwnStreams(seed)
        kernel.machine.random = draws
        spawn, device = kernel.spawn, kernel.device

        def own_spawn(path: str, body: Body, *args: Any, **named: Any) -> Process:
            return spawn(path, draws.of_thread(draws.new_process(path), "main", body), *args, **named)

        def own_device(vector: int, gap_ns: Callable[[], int | None], cpu: int = 0) -> Any:
            return device(vector, draws.of_device(vector, gap_ns), cpu)

        kernel.spawn, kernel.device = own_spawn, own_device  # type: ignore[method-assign]
        workload.setup(kernel)
        kernel.spawn, kernel.device = spawn, device  # type: ignore[method-assign]

    return replace(workload, setup=setup)
