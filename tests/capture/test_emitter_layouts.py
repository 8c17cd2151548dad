"""What the simulated kernel writes is what construct structs make of the same arguments, for every event and form."""

from dataclasses import replace
from functools import cache

import numpy as np

from satview.capture.emit import ON, WIDE, Emitter, call_form
from satview.capture.sim.calls import Mmap
from satview.capture.sim.target import target
from satview.capture.sim.threads import Partition, Process, Sigevent, Thread
from satview.events import naming, wire
from satview.events.catalogue import catalogue
from satview.events.layout import canonical, layout_of, part_names
from satview.events.spec import Release, Show
from satview.events.variants import BY_COUNT, WORD_MASK, encode, variant_of, word_bytes
from satview.filters.external import COMM_NAMES
from satview.formats.kev.payloads import build, prepared
from tests.helpers.extent import WIDTH, points

QNX = (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)
FORMS = {
    f"{release}-{mode}-{bits}": (release, is_wide, bits == 64)
    for release in QNX
    for mode, is_wide in WIDTH.items()
    for bits in (32, 64)
}
every = points(form=FORMS, order=("little", "big"))
IN_EITHER_MODE = {"IPI_64"}
PID, TID, PARENT, PRIORITY, ADDRESS, VECTOR = 0x51001, 3, 0x2001, 21, 0x12_3456_789A, 0x1F


def parsed(release, code, words, order):
    """Return form and values, by canonical name, as constructs read them; and what they build of these again."""
    raw = word_bytes(words, order)
    raw += bytes(-len(raw) % 8)
    padded = np.frombuffer(raw, "<u4" if order == "little" else ">u4").tolist()
    layout, names, struct = prepared(release, code, len(padded), variant_of(release, code, padded), order)
    values = struct.parse(raw)
    assert build(layout, values, order) == raw
    return layout, {
        canonical(part.name): values[name]
        for part, name in zip(layout.parts, names, strict=True)
        if part.words or part.show is Show.STRING
    }


@every
def test_kernel_calls(form, order):
    """Entry and exit of every call of the release: other values in every argument, read back by name."""
    release, is_wide, is_64bit = form
    rng, checked = np.random.default_rng(5), 0
    for number in range(wire.KER_EXIT_OFFSET):
        for event in (number, number + wire.KER_EXIT_OFFSET):
            code, plan = call_form(release, event, is_wide, is_64bit)
            spec = catalogue(release).spec(code)
            if (spec.wide if is_wide else spec.fast) is None:
                continue
            values = {
                name: int(rng.integers(0x10, 1 << 32 * width, dtype=np.uint64)) & ~(0xF << 28) for name, width in plan
            }
            if "mode" in values and release not in (Release.QNX_7, Release.QNX_8):
                values["mode"] |= 5 << 28  # the call with all of its arguments
            words = encode(plan, values, order)
            layout, found = parsed(release, code, words, order)
            is_short = is_wide and len(words) <= 2  # two words are read as the fast form (section 8.1)
            assert is_short or layout.form in ("same", "wide" if is_wide else "fast"), spec
            for name, width in plan:
                if name != "empty" and not (is_short and name not in found):  # `empty` may be there twice
                    assert found[name] % (1 << 32 * width) == values[name], (spec, name)
            checked += 1
    assert checked > 100


class Recorder(Emitter):
    """The emitter with its buffers replaced by a list."""

    def __init__(self, release, order, is_wide, is_64bit):
        has_64bit = is_64bit and release in (Release.QNX_7, Release.QNX_8)
        super().__init__(replace(target(release, 2), big_endian=order == "big", is_64bit=has_64bit))
        self.mode = ON | (WIDE if is_wide else 0)
        self.events = []

    def find(self, code):
        return self.mode

    def vector_flags(self, code, vector):
        return ON

    def put(self, cpu, code, time, words, flags=0):
        self.events.append((code, [word & WORD_MASK for word in words]))  # as the buffers do
        return True


@cache
def actors():
    partition = Partition(2, "Drivers", 35, 7)
    process = Process(PID, PARENT, "/usr/bin/thing", 64, None)
    alone = Thread(process, TID, iter(()), PRIORITY, 2, "worker")
    member = Thread(Process(PID, PARENT, "", 64, partition), TID, iter(()), PRIORITY, 3)
    member.is_critical = True
    return process, alone, member, partition


OWNER = {"pid": PID, "tid": TID}


def everything(emitter, release):
    """Call every method of the emitter that is about no kernel call; yield the arguments that must be logged."""
    process, thread, member, partition = actors()
    placed = {"partition" if release is Release.QNX_6 else "partition_id": 2, "sched_flags": 1}
    for state in naming.state_numbers(release):
        if state not in ("CREATE", "DESTROY"):
            thread.state = member.state = state
            emitter.thread_state(0, 1, thread)
            yield {**OWNER, "priority": PRIORITY, "policy": 2}
            emitter.thread_state(0, 1, member)
            yield {**OWNER, "priority": PRIORITY, "policy": 3, **placed}
    for life in ("CREATE", "DESTROY"):
        emitter.thread_life(0, 1, thread, life)
        yield {**OWNER, "priority": PRIORITY, "policy": 2}
    emitter.thread_name(0, 1, thread)
    yield {**OWNER, "name": b"worker"}
    for life in ("CREATE", "CREATE_NAME", "DESTROY", "DESTROY_NAME"):
        emitter.process_life(0, 1, process, life)
        yield {"ppid": PARENT, "pid": PID, **({"name": b"/usr/bin/thing"} if "NAME" in life else {})}
    for name in COMM_NAMES:
        if name == "SIGNAL":
            emitter.comm(0, 1, name, (14, -7, 5, 0, 0, 0, 0, 0, 0), PID, TID)
            yield {"si_signo": 14, "si_code": -7, "si_errno": 5}
        else:
            first = "tid" if name in ("REPLY", "ERROR") else "scoid" if "PULSE" in name else "rcvid"
            emitter.comm(0, 1, name, (0x40000005, PARENT), PID, TID)
            yield {first: 0x40000005, "pid": PARENT}
    if release is Release.QNX_8:
        emitter.deliver_interrupt(0, 1, VECTOR)
        yield {"intr_id": VECTOR}
        emitter.service_thread(0, 1, thread, VECTOR, 1)
        yield {**OWNER, "intr_id": VECTOR, "intr_cpu": 1, "flags": 0, "ist_prio": PRIORITY}
    else:
        yield from interrupts(emitter, process, 0x8048000)
        if release is Release.QNX_7:
            yield from interrupts(emitter, process, ADDRESS)
    if release is not Release.QNX_6:
        emitter.timer(0, 1, thread, 4, 0x101)
        yield {**OWNER, "timer_id": 4, "flags": 0x101}
        emitter.ipi(0, 1, thread)
        yield {**OWNER, "ipicmd": 1, "interrupted_ip": 0x8048000 + TID * 0x150}
    emitter.partition_bankrupt(0, 1, thread, partition)
    yield (
        {**OWNER, "partition_id": 2}
        if release is Release.QNX_6
        else {"suspect_pid": PID, "suspect_tid": TID, "partition_id": 2}
    )
    for file in ("", "libc.so.5"):
        emitter.mapped(0, 1, process, ADDRESS, Mmap(0x2_0000_1000, file, 0xA2, 0x500))
        address, name = ("vaddr", "path") if release is Release.QNX_6 else ("addr", "name")
        yield {
            "pid": PID,
            address: ADDRESS,
            "len": 0x2_0000_1000,
            "flags": 0xA2,
            "prot": 0x500,
            "fd": 3 if file else -1,
            "align": 0,
            "offset": 0,
            **({name: file.encode()} if file else {}),
        }
    emitter.unmapped(0, 1, process, ADDRESS, 0x2_0000_1000)
    yield {"pid": PID, address: ADDRESS, "len": 0x2_0000_1000}
    emitter.path(0, 1, thread, "/dev/ser1")
    yield {**OWNER, "path" if release is Release.QNX_6 else "pathname": b"/dev/ser1"}
    emitter.partition(0, lambda: 1, partition)
    if release is Release.QNX_6:
        yield {"partition_id": 2, "name": b"Drivers"}
        yield {"partition_id": 2, "percentage_budget": 35, "critical_budget": 7}
    else:
        yield {"partition_id": 2, "partition_name": b"Drivers"}
        yield {
            "partition_id": 2,
            "percentage_cpu_budget": 35,
            "critical_budget_ms": 7,
            "maximum_cpu_budget": 100,
            "critical_priority": 0,
            "budget_percent_scale": 100,
        }


def interrupts(emitter, process, address):
    emitter.interrupt_enter(0, 1, VECTOR, address)
    yield {"interrupt_number": VECTOR, "ip": address}
    emitter.interrupt_exit(0, 1, VECTOR, 0x81)
    yield {"interrupt_number": VECTOR, "inkernel" if emitter.target.release is Release.QNX_6 else "kernel_flag": 0x81}
    emitter.handler_enter(0, 1, process, VECTOR, address)
    yield {"interrupt_number": VECTOR, "pid": PID, "ip": address, "area": 0x8060000}
    emitter.handler_exit(0, 1, VECTOR, Sigevent("pulse", coid=0x40000001, priority=10, code=-3, value=0x55))
    yield {
        "interrupt_number": VECTOR,
        "sigevent": {"notify": 4, "number": 0x40000001, "value": 0x55, "code": -3, "priority": 10},
    }


@every
def test_all_other_events(form, order):
    release, is_wide, is_64bit = form
    emitter = Recorder(release, order, is_wide, is_64bit)
    expected = list(everything(emitter, release))
    assert len(emitter.events) == len(expected) > 70
    for (code, words), values in zip(emitter.events, expected, strict=True):
        spec = catalogue(release).spec(code)
        layout, found = parsed(release, code, words, order)
        assert layout.form in ("same", "wide" if is_wide or spec.name in IN_EITHER_MODE else "fast") or (
            spec.name in ("THCREATE", "THDESTROY") and release is Release.QNX_6
        ), spec
        if release is not Release.QNX_6:
            values.pop("sigevent", None)  # its layout is not known
        for name, value in found.items():
            if name in values:
                got = dict(value) if isinstance(value, dict) else value
                assert (
                    {k: got[k] for k in values[name]} == values[name]
                    if isinstance(got, dict)
                    else (got == values[name])
                ), (spec, name)
            else:
                assert "pad" in name or name == "empty", (spec, name)
        if is_wide and spec.name not in ("THCREATE", "THDESTROY"):
            assert found.keys() >= {canonical(name) for name in values}, spec


def test_the_longest_form_of_a_thread_is_that_of_the_catalogue():
    assert [part.name for part in layout_of(Release.QNX_7, wire.THREAD_RUNNING, 6, BY_COUNT).parts] == [
        "pid", "tid", "priority", "policy", "partition_id", "sched_flags",
    ]  # fmt: skip
    assert part_names(layout_of(Release.QNX_7, wire.THREAD_RUNNING, 4, BY_COUNT))[-1] == "policy"
