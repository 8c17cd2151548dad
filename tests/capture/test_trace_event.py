"""TraceEvent(): every mode, its effect, its errors; filters and handlers in their order."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from satview.capture.emit import ON, WIDE, EventData
from satview.capture.kernel import Kernel, mode
from satview.capture.sim.calls import ClockTime, Compute, Sleep, ThreadCtl, TraceEvent
from satview.capture.sim.services import QnxError
from satview.capture.sim.target import target
from satview.capture.sim.threads import Program
from satview.capture.workloads import registry
from satview.events import wire
from satview.events.modes import Mode
from satview.events.spec import Release
from satview.events.wire import WireClass
from satview.filters.external import ExternalClass as Class
from tests.capture.made import finish, kernel, lines, run

KER, THREAD, COMM, SYSTEM, USER, CONTROL = 2 << 10, 4 << 10, 7 << 10, 5 << 10, 6 << 10, 1 << 10


def call(made: Kernel, name: str, *args: Any) -> int:
    return made.trace_event(mode(name), *args)


def fails(made: Kernel, name: str, *args: Any) -> str:
    with pytest.raises(QnxError) as caught:
        call(made, name, *args)
    return caught.value.name


class State:
    """What the kernel's rule set says of codes and vectors after some modes."""

    def __init__(self, made: Kernel) -> None:
        self.gate = made.emitter
        self.on = [self.gate.flags(code) & (ON | WIDE) for code in range(wire.CODE_COUNT)]
        self.thread_wide = self.gate.rules.thread_is_wide

    def thread_of(self, code: int) -> tuple[int, int]:
        return self.gate.rules.thread_test(self.gate.rules.address(code))

    def logs(self, event: int, vector: int) -> bool:
        return bool(self.gate.vector_flags(wire.code(WireClass.INT, event), vector) & ON)


def settings(modes: tuple[tuple[Any, ...], ...], release: Release = Release.QNX_6) -> State:
    made, _ = kernel(release, modes=modes)
    return State(made)


def test_mode_values_carry_their_argument_count() -> None:
    assert mode("START") == 0x1000000A
    assert mode("_NTO_TRACE_ADDEVENTHANDLER") == 0x50000007
    assert len(Mode) == 49


@pytest.mark.thorough
def test_add_and_delete_classes() -> None:
    on = settings((("ADDCLASS", Class.KERCALL),)).on
    assert on[KER | 11] & ON
    assert on[KER | 11 + 128] & ON
    assert not on[THREAD | 1]
    on = settings((("ADDALLCLASSES",), ("DELCLASS", Class.KERCALLEXIT))).on
    assert on[KER | 11] & ON
    assert not on[KER | 11 + 128]
    assert on[USER | 1023] & ON
    on = settings((("ADDALLCLASSES",), ("SETALLCLASSESWIDE",), ("DELALLCLASSES",))).on
    assert on[KER | 11] == WIDE, "off, but the wide bit stays"


@pytest.mark.thorough
def test_add_class_thread_means_wide_and_fast_clears_it() -> None:
    assert settings((("ADDCLASS", Class.THREAD),)).thread_wide
    assert not settings((("ADDCLASS", Class.THREAD), ("SETALLCLASSESFAST",))).thread_wide
    assert not settings((("ADDALLCLASSES",),)).thread_wide


@pytest.mark.thorough
def test_bit_31_of_the_thread_mask_is_wide() -> None:
    assert settings((("ADDEVENT", Class.THREAD, 1 << 31 | 2),)).thread_wide
    assert not settings((("ADDCLASS", Class.THREAD), ("DELEVENT", Class.THREAD, 1 << 31))).thread_wide
    assert settings((("ADDCLASS", Class.THREAD), ("DELEVENT", Class.THREAD, 2))).thread_wide


@pytest.mark.thorough
def test_events_of_mask_classes_take_several_bits() -> None:
    on = settings((("ADDEVENT", Class.THREAD, 1 << 1 | 1 << 2),)).on
    assert [n for n in range(26) if on[THREAD | n]] == [1, 2]
    on = settings((("ADDEVENT", Class.PROCESS, 4),)).on
    assert on[wire.PROC_CREATE_NAME]
    assert not on[wire.PROC_CREATE]


@pytest.mark.thorough
def test_8_0_thread_events_are_numbers() -> None:
    on = settings((("ADDEVENT", Class.THREAD, 6),), Release.QNX_8).on
    assert [n for n in range(64) if on[THREAD | n]] == [6]


@pytest.mark.thorough
def test_interrupt_vectors() -> None:
    state = settings((("ADDEVENT", Class.INT, 7),))
    assert [state.logs(event, 7) for event in (1, 2)] == [True, True]
    assert not state.logs(3, 7), "INT of one vector leaves out its handlers"
    assert not state.logs(1, 8)
    state = settings((("ADDCLASS", Class.INT),))
    assert all(state.logs(event, 200) for event in (1, 2, 3, 4))


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (("ADDCLASS", 99), "ENOTSUP"),
        (("ADDEVENT", Class.USER, 1024), "EINVAL"),
        (("ADDEVENT", Class.KERCALL, 128), "ENOTSUP"),
        (("ADDEVENT", Class.INT, 256), "ENOTSUP"),
        (("ADDEVENT", Class.KERCALLINT, 1), "ENOTSUP"),
        (("SETCLASSWIDE", Class.USER), "ENOTSUP"),
        (("SETEVENTWIDE", Class.COMM, 99), "ENOTSUP"),
        (("SETCLASSPID", Class.PROCESS, 1), "ENOTSUP"),
        (("SETEVENTPID", Class.USER, 1, 1), "ENOTSUP"),
        (("ADDEVENTHANDLER", Class.CONTROL, 2, len, EventData()), "ENOTSUP"),
        (("ADDCLASSEVHANDLER", Class.USER, len, EventData()), "ENOTSUP"),
        (("ADDCLASSEVHANDLER", Class.THREAD, None, EventData()), "EFAULT"),
        (("DELEVENTHANDLER", Class.USER, 1), "ENOTSUP"),
        (("ALLOCBUFFER", 4, []), "EEXIST"),
        (("INSERTUSRSTREVENT", 1, 5), "EFAULT"),
        (("INSERTCUSEREVENT", 1, [1], 2), "EFAULT"),
        (("ADDCLASS", "THREAD"), "EFAULT"),
        (("ADDCLASS",), "EINVAL"),
        (("LOGGER_ATTACH", 1, 2), "ENOTSUP"),
        (("ADDEVENTHANDLER", Class.KERCALL, -1, len, EventData()), "ENOTSUP"),
        (("ADDEVENTHANDLER", Class.THREAD, 1 << 22, len, EventData()), "ENOTSUP"),
        (("ADDEVENTHANDLER", Class.PROCESS, 1 << 5, len, EventData()), "ENOTSUP"),
        (("DELEVENTHANDLER", Class.CONTROL, 1 << 9), "ENOTSUP"),
        (("DELEVENTHANDLER", Class.INTENTER, -1), "ENOTSUP"),
        (("ADDCLASSEVHANDLER", Class.THREAD, len, EventData((1, 2))), "EFAULT"),
        (("INSERTCUSEREVENT", 1, ["x"], 1), "EFAULT"),
        (("INSERTCUSEREVENT", 1, {0: 1}, 1), "EFAULT"),
    ],
)
def test_bad_arguments_get_the_errno_of_the_manual(args: tuple[Any, ...], error: str) -> None:
    made, _ = kernel(Release.QNX_6)
    assert fails(made, *args) == error


def test_unknown_modes_and_missing_buffers() -> None:
    made, _ = kernel()
    for value in (0x10000063, 0, -1, None, "START"):
        with pytest.raises(QnxError) as caught:
            made.trace_event(value)
        assert caught.value.errno == 48, value
    call(made, "DEALLOCBUFFER")
    assert fails(made, "START") == "ECANCELED"
    assert fails(made, "STARTNOSTATE") == "ECANCELED"
    assert call(made, "STOP") == 0, "an error in ring mode only"
    assert fails(made, "FLUSHBUFFER") == "EFAULT"
    assert fails(made, "QUERYEVENTS") == "EFAULT"
    assert fails(made, "SETRINGMODE") == "ECANCELED"
    assert fails(made, "ALLOCBUFFER", 0, []) == "ENOMEM"
    assert fails(made, "ALLOCBUFFER", 4, None) == "EFAULT"
    assert call(made, "DEALLOCBUFFER") == 0, "nothing to free is fine"
    made.control.is_root = False
    assert fails(made, "ALLOCBUFFER", 4, []) == "EPERM"
    assert fails(made, "ADDCLASSEVHANDLER", Class.THREAD, lambda _d: 1, EventData()) == "EPERM"


def test_modes_of_ring_and_queries() -> None:
    made, _ = kernel(modes=(("ADDALLCLASSES",), ("SETRINGMODE",)))
    call(made, "START")
    assert fails(made, "FLUSHBUFFER") == "ECANCELED"
    assert fails(made, "SETLINEARMODE") == "ECANCELED"
    assert call(made, "QUERYEVENTS") == made.emitter.buffers.rings[0].current.slots
    assert call(made, "QUERYSUPPORT") == 1
    assert call(made, "QUERYVERSION") == 710
    call(made, "STOP")
    assert call(made, "FLUSHBUFFER") == 0
    call(made, "DEALLOCBUFFER")
    assert fails(made, "STOP") == "ECANCELED", "ring mode outlives its buffers"


def test_a_flush_after_stop_hands_the_ring_over_again() -> None:
    made, _ = kernel(modes=(("ADDALLCLASSES",), ("SETRINGMODE",)))
    handed: list[int] = []
    made.control.hook = lambda buffer: handed.append(buffer.index)
    call(made, "FLUSHBUFFER")
    assert handed == [], "nothing in it yet"
    call(made, "START")
    call(made, "STOP")
    call(made, "FLUSHBUFFER")
    assert handed == [0, 0]


@pytest.mark.parametrize("release", [Release.QNX_6, Release.QNX_7, Release.QNX_8])
def test_stop_hands_a_ring_over_though_the_last_event_filled_its_buffer(release: Release) -> None:
    made, _ = kernel(release, modes=(("ADDCLASS", Class.USER), ("SETRINGMODE",)))
    handed: list[int] = []
    made.control.hook = lambda buffer: handed.append(buffer.index)
    (ring,) = made.emitter.buffers.rings
    call(made, "START")
    call(made, "INSERTSUSEREVENT", 1, 2, 3)
    while ring.current is not None:
        call(made, "INSERTSUSEREVENT", 1, 2, 3)
    assert handed == [], "a ring hands over nothing before STOP"
    call(made, "STOP")
    assert handed == [0]
    assert [buffer.index for buffer in ring.oldest_first()] == [0]


def test_stop_hands_over_a_ring_without_events() -> None:
    made, _ = kernel(modes=(("DELALLCLASSES",), ("SETRINGMODE",)))
    handed: list[int] = []
    made.control.hook = lambda buffer: handed.append(buffer.slots)
    call(made, "START")
    call(made, "STOP")
    assert handed == [0]


def test_buffers_come_and_go_but_not_their_numbers_and_modes() -> None:
    made, sink = kernel()
    call(made, "SKIPBUFFER")
    for _ in range(2):
        call(made, "STARTNOSTATE")
        call(made, "INSERTSUSEREVENT", 1, 2, 3)
        call(made, "FLUSHBUFFER")
        call(made, "DEALLOCBUFFER")
        call(made, "ALLOCBUFFER", 4, [])
    numbers = [first for code, _, first, _ in lines(sink.slots()) if code == wire.CONTROL_BUFFER]
    assert numbers == [1, 2], "not reset by a new logger"
    ring = made.emitter.buffers.rings[0]
    assert ring.skips
    assert not ring.is_ring
    call(made, "SETRINGMODE")
    call(made, "DEALLOCBUFFER")
    call(made, "OVERWRITEBUFFER")
    call(made, "ALLOCBUFFER", 4, [])
    ring = made.emitter.buffers.rings[0]
    assert (ring.is_ring, ring.skips, ring.mark) == (True, False, made.target.mark_ring)


def test_waitbuffer_exists_from_8_0_on() -> None:
    assert call(kernel(Release.QNX_8)[0], "WAITBUFFER", 0) == 1
    assert fails(kernel(Release.QNX_7)[0], "WAITBUFFER", 0) == "ENOTSUP"
    assert fails(kernel(Release.QNX_8)[0], "ADDCLASSEVHANDLER", Class.THREAD, lambda _d: 1, EventData()) == "ENOTSUP"


# pid and tid


@pytest.mark.thorough
def test_pid_and_tid_settings_replace_each_other() -> None:
    state = settings((("SETCLASSTID", Class.THREAD, 5, 2), ("SETEVENTPID", Class.THREAD, 2, 7)))
    assert state.thread_of(THREAD | 2) == (5, 2)
    assert state.thread_of(THREAD | 1) == (7, 0), "the pid setting cleared the tid"
    state = settings((("SETCLASSPID", Class.KERCALL, 5), ("CLREVENTPID", Class.KERCALLEXIT, 11)))
    assert state.thread_of(KER | 11) == state.thread_of(KER | 11 + 128) == (0, 0), "one setting for entry and exit"
    assert state.thread_of(KER | 12 + 128) == (5, 0)
    made, _ = kernel(modes=(("SETCLASSTID", Class.THREAD, 5, 2),))
    assert fails(made, "CLREVENTPID", Class.THREAD, 2) == "ENOTSUP"
    assert call(made, "CLREVENTTID", Class.THREAD, 2) == 0
    assert call(made, "CLRCLASSPID", Class.PROCESS) == 0


@pytest.mark.thorough
def test_6_4_clears_comm_tids_the_wrong_way_round() -> None:
    def left(release: Release) -> bool:
        state = settings((("SETCLASSTID", Class.COMM, 5, 2), ("CLRCLASSTID", Class.COMM)), release)
        return state.thread_of(COMM | 1) != (0, 0)

    assert left(Release.QNX_6), "clears where no tid is stored: a bug of 6.4"
    assert not left(Release.QNX_7)


def test_only_the_selected_process_is_traced() -> None:
    made, sink = kernel()
    selected = made.spawn("selected", _ticking)
    made.spawn("other", _ticking)
    for name in ("SETCLASSPID",):
        call(made, name, Class.KERCALL, selected.pid)
        call(made, name, Class.THREAD, selected.pid)
    call(made, "STARTNOSTATE")
    run(made, 20)
    pids = {first for code, _, first, _ in lines(finish(made, sink)) if code >> 10 == 4 and code & 0x3FF < 26}
    assert pids == {selected.pid}


def _ticking() -> Program:
    while True:
        yield Compute(100_000)
        yield ClockTime()
        yield Sleep(1_000_000)


# Handlers and the order of evaluation


def handler_kernel(
    function: Any, cls: int = Class.KERCALLENTER, event: int = -1, start: bool = True
) -> tuple[Any, Any, Any]:
    made, sink = kernel()
    data = EventData(area="mine")
    if event < 0:
        call(made, "ADDCLASSEVHANDLER", cls, function, data)
    else:
        call(made, "ADDEVENTHANDLER", cls, event, function, data)
    process = made.spawn("ticking", _ticking)
    if start:
        call(made, "STARTNOSTATE")
    run(made, 10)
    return made, (finish(made, sink) if start else sink.slots()), (data, process)


def test_event_data_has_the_documented_fields() -> None:
    seen = []

    def handler(data: EventData) -> int:
        seen.append(
            (
                data.header,
                list(data.data_array[: data.el_num]),
                data.el_num,
                data.area,
                data.feature_mask,
                tuple(data.feature),
            )
        )
        return 1

    _, slots, (_, process) = handler_kernel(handler, event=65)
    header, words, count, area, mask, feature = seen[0]
    assert header & 0x3FF & 0x7F == 65
    assert (words, count, area, mask, feature) == ([2, 0], 2, "mine", 3, (process.pid, 1))
    assert sum(code & 0x7F == 65 and code >> 10 == 2 and not code & 0x80 for code, *_ in lines(slots)) == len(seen)


def test_zero_suppresses_and_anything_else_passes() -> None:
    for answer, passes in ((0, False), (1, True), (-1, True)):
        _, slots, _ = handler_kernel(lambda _data, answer=answer: answer)
        entries = [code for code, *_ in lines(slots) if code >> 10 == 2 and not code & 0x80]
        assert bool(entries) is passes


def test_class_handler_first_and_both_must_pass() -> None:
    made, sink = kernel()
    order: list[str] = []

    def judge(name: str, answer: int) -> Any:
        def handler(_data: EventData) -> int:
            order.append(name)
            return answer

        return handler

    call(made, "ADDCLASSEVHANDLER", Class.KERCALLENTER, judge("class", 1), EventData())
    call(made, "ADDEVENTHANDLER", Class.KERCALLENTER, 65, judge("event", 0), EventData())
    made.spawn("ticking", _ticking)
    call(made, "STARTNOSTATE")
    run(made, 3)
    assert not [c for c, *_ in lines(finish(made, sink)) if c & ~0x200 == KER | 65]
    assert [c for c, *_ in lines(sink.slots()) if c & ~0x200 == KER | 75], "the sleep passes: it has no event handler"
    at = order.index("event")
    assert order[at - 1] == "class"


def test_handlers_are_requested_even_while_tracing_is_off_but_not_for_masked_events() -> None:
    requested = []
    handler_kernel(lambda data: requested.append(data.header) or 1, start=False)
    assert requested
    made, _ = kernel(modes=())
    call(made, "ADDCLASSEVHANDLER", Class.KERCALLENTER, lambda data: requested.append(data) or 1, EventData())
    before = len(requested)
    made.spawn("ticking", _ticking)
    run(made, 3)
    assert len(requested) == before, "the mask comes first"


def test_handlers_may_only_insert_and_switch() -> None:
    made, _ = kernel()
    errors = []

    def handler(_data: EventData) -> int:
        try:
            call(made, "ADDALLCLASSES")
        except QnxError as error:
            errors.append(error.name)
        return 1

    call(made, "ADDCLASSEVHANDLER", Class.KERCALLENTER, handler, EventData())
    made.spawn("ticking", _ticking)
    run(made, 3)
    assert set(errors) == {"EPERM"}


def test_what_a_handler_starts_is_not_judged_by_it() -> None:
    requested: list[int] = []

    def handler(data: EventData) -> int:
        requested.append(data.header)
        call(made, "STOP")
        call(made, "START")
        return 1

    made, sink = kernel()
    call(made, "ADDCLASSEVHANDLER", Class.THREAD, handler, EventData())
    call(made, "ADDEVENTHANDLER", Class.KERCALLENTER, 65, handler, EventData())
    made.spawn("ticking", _ticking)
    run(made, 3)
    dumps = sum(code == wire.PROC_CREATE_NAME for code, *_ in lines(finish(made, sink)))
    assert len(requested) > 4
    assert dumps >= len(requested), "every START dumped its state"


def test_handlers_that_exit_are_reported() -> None:
    made, sink = kernel()
    call(made, "ADDEVENTHANDLER", Class.KERCALLENTER, 65, lambda _data: sys.exit(3), EventData())
    made.spawn("ticking", _ticking)
    call(made, "STARTNOSTATE")
    run(made, 3)
    assert "event handler raised SystemExit" in str(made.machine.faults[0])
    assert any(code & ~0x200 == KER | 65 for code, *_ in lines(finish(made, sink))), "what nobody judged passes"


def test_answer_2_at_the_entry_lets_the_exit_pass_unasked() -> None:
    def exits(answer: int) -> bool:
        made, sink = kernel()
        call(made, "ADDCLASSEVHANDLER", Class.KERCALLENTER, lambda _data: answer, EventData())
        call(made, "ADDCLASSEVHANDLER", Class.KERCALLEXIT, lambda _data: 0, EventData())
        made.spawn("ticking", _ticking)
        call(made, "STARTNOSTATE")
        run(made, 5)
        return any(code >> 10 == 2 and code & 0x80 for code, *_ in lines(finish(made, sink)))

    assert exits(2)
    assert not exits(1)


def test_a_handler_stops_the_trace_at_the_tenth_message() -> None:
    def stop_at_the_tenth(event: EventData) -> Any:
        event.area[0] += 1
        if event.area[0] == 10:
            yield TraceEvent(mode("STOP"))
        return 1

    made, sink = kernel(modes=(("ADDALLCLASSES",),))
    call(made, "ADDEVENTHANDLER", Class.COMM, 2, stop_at_the_tenth, EventData(area=[0]))
    call(made, "START")
    registry.find("client-server").setup(made)
    run(made, 400)
    assert not made.emitter.is_tracing
    assert not made.machine.faults
    received = [code for code, *_ in lines(finish(made, sink)) if code == COMM | 2]
    assert len(received) == 9, "the tenth found tracing off"


def test_a_handler_gets_eperm_where_the_manual_says_so() -> None:
    caught: list[int] = []

    def handler(_event: EventData) -> Any:
        yield TraceEvent(mode("INSERTSUSEREVENT"), 7, 1, 2)
        try:
            yield TraceEvent(mode("DELALLCLASSES"))
        except QnxError as error:
            caught.append(error.errno)
        return 0

    made, sink = kernel(modes=(("ADDCLASS", Class.COMM), ("ADDCLASS", Class.USER)))
    call(made, "ADDEVENTHANDLER", Class.COMM, 2, handler, EventData())
    call(made, "STARTNOSTATE")
    registry.find("client-server").setup(made)
    run(made, 50)
    codes = [code for code, *_ in lines(finish(made, sink))]
    assert set(caught) == {1}
    assert codes.count(USER | 7) == len(caught) > 1
    assert COMM | 2 not in codes, "suppressed"
    assert COMM in codes, "nothing was switched off"


def test_a_forgotten_yield_in_a_handler_is_reported_once_with_its_line() -> None:
    def handler(_event: EventData) -> Any:
        TraceEvent(mode("STOP"))
        return 1

    made, _ = kernel(modes=(("ADDCLASS", Class.COMM),))
    call(made, "ADDEVENTHANDLER", Class.COMM, 2, handler, EventData())
    call(made, "STARTNOSTATE")
    registry.find("client-server").setup(made)
    run(made, 50)
    (fault,) = made.machine.faults
    assert fault.location == f"test_trace_event.py:{handler.__code__.co_firstlineno + 1}"
    assert "write `yield TraceEvent(...)`" in str(fault)


def test_what_a_handler_must_not_yield_is_its_fault_and_the_event_passes() -> None:
    def handler(_event: EventData) -> Any:
        yield Sleep(1)

    made, sink = kernel(modes=(("ADDCLASS", Class.COMM),))
    call(made, "ADDEVENTHANDLER", Class.COMM, 2, handler, EventData())
    call(made, "STARTNOSTATE")
    registry.find("client-server").setup(made)
    run(made, 5)
    assert "it may yield TraceEvent() calls only" in str(made.machine.faults[0])
    assert COMM | 2 in [code for code, *_ in lines(finish(made, sink))]


def test_handlers_go_with_their_process() -> None:
    def program() -> Program:
        yield ThreadCtl()
        yield TraceEvent(mode("ADDCLASSEVHANDLER"), Class.THREAD, lambda _data: 0, EventData())
        yield Sleep(3_000_000)

    made, _ = kernel()
    made.spawn("owner", program)
    run(made, 2)
    assert made.emitter.rules.class_handlers
    run(made, 5)
    assert not made.emitter.rules.class_handlers


def test_an_exit_that_was_off_does_not_free_the_next_one() -> None:
    """The answer 2 is for the exit of that call, and for no other."""
    made, sink = kernel()
    call(made, "DELEVENT", Class.KERCALLEXIT, 65)
    call(made, "ADDCLASSEVHANDLER", Class.KERCALLENTER, lambda data: 2 if data.header & 0x7F == 65 else 1, EventData())
    call(made, "ADDCLASSEVHANDLER", Class.KERCALLEXIT, lambda _data: 0, EventData())
    made.spawn("ticking", _ticking)
    call(made, "STARTNOSTATE")
    run(made, 5)
    assert not [code for code, *_ in lines(finish(made, sink)) if code >> 10 == 2 and code & 0x80]


def test_older_kernels_have_room_for_64_handlers() -> None:
    made = Kernel(target(Release.QNX_6, 1, "6.2.1"))
    for number in range(64):
        call(made, "ADDEVENTHANDLER", Class.KERCALLENTER, number, lambda _d: 1, EventData())
    assert fails(made, "ADDEVENTHANDLER", Class.KERCALLENTER, 64, lambda _d: 1, EventData()) == "ENOTSUP"
    assert call(made, "QUERYVERSION") == 621


def test_handler_table_is_full_after_128() -> None:
    made, _ = kernel(Release.QNX_7)
    for number in range(100):
        call(made, "ADDEVENTHANDLER", Class.KERCALLENTER, number, lambda _d: 1, EventData())
    for number in range(28):
        call(made, "ADDEVENTHANDLER", Class.KERCALLEXIT, number, lambda _d: 1, EventData())
    assert fails(made, "ADDEVENTHANDLER", Class.KERCALLEXIT, 28, lambda _d: 1, EventData()) == "ENOTSUP"
    call(made, "DELCLASSEVHANDLER", Class.THREAD)
    call(made, "DELEVENTHANDLER", Class.KERCALLEXIT, 3)
    call(made, "ADDEVENTHANDLER", Class.KERCALLEXIT, 28, lambda _d: 1, EventData())


# Inserting


def inserted(modes: tuple[tuple[Any, ...], ...], *calls: tuple[Any, ...]) -> list[tuple[int, int, int, int]]:
    made, sink = kernel(modes=modes)
    call(made, "STARTNOSTATE")
    for name, *args in calls:
        call(made, name, *args)
    return [line for line in lines(finish(made, sink)) if line[0] >> 10 != 1]


def test_user_events_on_the_wire() -> None:
    found = inserted(
        (("ADDCLASS", Class.USER),),
        ("INSERTSUSEREVENT", 5, 1, 2),
        ("INSERTCUSEREVENT", 6, [9], 1),
        ("INSERTCUSEREVENT", 7, [1, 2, 3], 3),
        ("INSERTUSRSTREVENT", 8, "seven c"),
        ("INSERTSUSEREVENT", 1024 + 9, 3, 4),
        ("INSERTSCLASSEVENT", 13, 5, 7, 8),
    )
    assert found[0] == (USER | 5, 0, 1, 2)
    assert found[1] == (USER | 6, 0, 9, 0), "one word: simple, with a zero"
    assert found[2][0] == USER | 7
    assert found[3][2:] == (int.from_bytes(b"seve", "little"), int.from_bytes(b"n c\0", "little"))
    assert found[4][0] == USER | 9, "codes are cut to 10 bits"
    assert found[5] == (13 << 10 | 5, 0, 7, 8)


def test_insertions_need_the_user_mask_but_raw_events_pass() -> None:
    assert inserted((), ("INSERTSUSEREVENT", 5, 1, 2), ("INSERTSCLASSEVENT", 5, 5, 7, 8)) == []
    assert inserted((), ("INSERTEVENT", 0x1405, 99, 1, 2)) == [(0x1405, 0, 1, 2)]


def test_a_raw_event_with_struct_bits_keeps_its_stamp() -> None:
    made, sink = kernel(modes=())
    call(made, "STARTNOSTATE")
    call(made, "INSERTEVENT", 0x40001405, 99, 1, 2)
    assert [0x40001405, 99, 1, 2] in finish(made, sink).tolist()


def test_a_raw_header_is_written_as_given() -> None:
    """Bits that no reader knows, and a CPU that is not there, too."""
    made, sink = kernel(modes=())
    call(made, "STARTNOSTATE")
    call(made, "INSERTEVENT", 0x3FFE1405, 0, 1, 2)
    call(made, "INSERTEVENT", -1, 5, 1, 2)
    slots = finish(made, sink).tolist()
    assert [0x3FFE1405, 1, 2] in [[head, first, second] for head, _, first, second in slots]
    assert [0xFFFFFFFF, 5, 1, 2] in slots


def test_bytes_are_words_of_the_target_and_classes_are_cut() -> None:
    found = inserted(
        (("ADDCLASS", Class.USER),),
        ("INSERTCUSEREVENT", 6, b"\1\0\0\0\2\0\0\0", 2),
        ("INSERTSCLASSEVENT", 32 + 13, 5, 7, 8),
        ("INSERTCCLASSEVENT", 1 << 40 | 5, 9, [3], 1),
    )
    assert found == [(USER | 6, 0, 1, 2), (13 << 10 | 5, 0, 7, 8), (SYSTEM | 9, 0, 3, 0)]


def test_8_0_marks_what_a_process_inserted() -> None:
    for release, flag in ((Release.QNX_7, 0), (Release.QNX_8, wire.PROCESS_INJECTED)):
        made, sink = kernel(release, modes=(("ADDCLASS", Class.USER),))
        call(made, "STARTNOSTATE")
        call(made, "INSERTSUSEREVENT", 5, 1, 2)
        assert USER | 5 | flag in finish(made, sink)[:, 0].tolist()


def test_insertion_calls_leave_no_kernel_call_from_6_4_on() -> None:
    def program() -> Program:
        yield Compute(1_000_000)
        yield TraceEvent(mode("INSERTSUSEREVENT"), 5, 1, 2)
        yield TraceEvent(mode("QUERYSUPPORT"))

    made, sink = kernel(modes=(("ADDCLASS", Class.KERCALL), ("ADDCLASS", Class.USER)))
    call(made, "STARTNOSTATE")
    made.spawn("inserting", program)
    run(made, 5)
    kinds = [code & ~0x200 for code, *_ in lines(finish(made, sink)) if code & ~0x200 in (KER | 1, KER | 129, USER | 5)]
    assert kinds == [USER | 5, KER | 1, KER | 129]


def test_a_failing_call_is_reported_with_the_line_of_its_program() -> None:
    def program() -> Program:
        yield TraceEvent(mode("ADDCLASS"), 99)

    made, _ = kernel()
    made.spawn("failing", program)
    run(made, 5)
    assert "at test_trace_event.py:" in str(made.machine.faults[0])


def test_a_failing_call_shows_minus_one_and_errno() -> None:
    caught = []

    def program() -> Program:
        yield Compute(1_000_000)
        try:
            yield TraceEvent(mode("ADDCLASS"), 99)
        except OSError as error:
            caught.append(error.errno)

    made, sink = kernel()
    call(made, "STARTNOSTATE")
    made.spawn("failing", program)
    run(made, 5)
    assert caught == [48]
    assert made.machine.faults == []
    assert (KER | 129, 0, 0xFFFFFFFF, 48) in lines(finish(made, sink))


@pytest.mark.thorough
def test_vectors_above_255_follow_the_class() -> None:
    state = settings((("ADDCLASS", Class.INTENTER), ("DELEVENT", Class.INTENTER, 5)))
    assert not state.logs(1, 5)
    assert state.logs(1, 256 + 5), "not the switch of vector 5"
    assert state.gate.rules.del_class(Class.INTENTER) == 0
    assert not state.logs(1, 0x80000000)


def test_the_example_of_the_page_runs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "capture.md").read_text(encoding="utf-8")
    example = next(code for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "kernel.trace_event" in code)
    values: dict[str, Any] = {}
    exec(example, values)
    kinds = {code >> 10 for code, *_ in lines(values["sink"].slots())}
    assert kinds == {COMM >> 10, CONTROL >> 10}
    assert values["address"] == [0x1F000000]
