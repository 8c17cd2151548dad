"""Rules for every field and every class that takes handlers, with values taken from a trace so that they divide it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from satview.events.catalogue import catalogue
from satview.events.spec import Release, Show
from satview.filters.derived_columns import TraceDerivedColumns
from satview.filters.expressions.reach import items_logged
from satview.filters.external import ExternalClass, classes_of, external_of
from satview.filters.rules.handlers import HANDLER_CLASSES
from satview.store.trace import Trace
from tests.helpers.extent import usually

FIELDS = (
    "class", "event", "state", "number", "code", "pid", "tid", "name", "thread_name", "time", "cpu", "words", "failed",
    "errno", "priority", "text", "argument", "word", "mixed",
)  # fmt: skip


def classes_with_handlers(release: Release) -> list[ExternalClass]:
    """Return the classes of a release that take handlers, CONTROL left out: its TIME events depend on buffers."""
    return [c for c in classes_of(release) if c in HANDLER_CLASSES and c is not ExternalClass.CONTROL]


def rules(trace: Trace, *, wide: bool) -> Iterator[str]:
    """Yield rule texts; in all of them together, every class is evaluated for every field.

    In the usual run every class is evaluated for half of the fields in wide events and about the others in fast ones.
    """
    known = classes_with_handlers(trace.release)
    width = "SETALLCLASSESWIDE" if wide else "SETALLCLASSESFAST"
    step = usually(4, complete=1, thorough=2)
    for offset in range(wide % step, len(FIELDS), step):
        lines = ["ADDALLCLASSES", width]
        for position, external in enumerate(known):
            field = FIELDS[(offset + position) % len(FIELDS)]
            lines += [
                f"ADDCLASSEVHANDLER {external.name} WHERE {condition}"
                for condition in condition_on(trace, external, field, wide)
            ]
        yield "\n".join(lines) + "\n"


def condition_on(trace: Trace, external: ExternalClass, field: str, wide: bool) -> list[str]:
    """Return a condition on a field that about half of a class's events fit; none where the class has no such thing."""
    rows = rows_of(trace, external)
    if not len(rows):
        return []
    code = Counter(trace.events.code[rows].tolist()).most_common(1)[0][0]
    thread = Counter(trace.events.thread[rows].tolist()).most_common(1)[0][0]
    book, threads = trace.catalogue, trace.threads
    simple = {
        "class": f"class == {external.name}",
        "event": f'event == "{book.name(code)}"',
        "number": f"number >= {np.median(code & 0x7F):.0f}",
        "code": f"code == {code}",
        "pid": f"pid == {threads.pid[thread]}",
        "tid": f"tid <= {max(1, int(threads.tid[thread]))}",
        "name": f'name ~ "*{trace.processes.names[threads.process[thread]][-4:]}"',
        "thread_name": 'thread_name ~ "*e*"',
        "time": f"time > {int(trace.duration_ns // 2)}ns",
        "cpu": f"cpu == {trace.events.cpu[rows[0]]}",
        "words": "words > 2",
        "word": f"word[0] == {trace.payloads.column(rows, 0)[len(rows) // 2]}",
        "mixed": f"not (pid == {threads.pid[thread]} and word[1] & 1 == 0) or code == {code}",
    }
    if field in simple:
        return [simple[field]]
    if field == "state" and external in (ExternalClass.THREAD, ExternalClass.VTHREAD):
        return ["state in (READY, RUNNING)"]
    if field in ("failed", "errno") and external is ExternalClass.KERCALLEXIT:
        return ["failed" if field == "failed" else "not errno in (EAGAIN, ETIMEDOUT)"]
    if field == "text" and external is ExternalClass.PROCESS:
        return ['text ~ "*/*"']
    if field == "priority":
        values = TraceDerivedColumns(trace).priority(rows)
        return [f"priority >= {int(np.median(values[values >= 0]))}"] if (values >= 0).any() and wide else []
    if field == "argument":
        return [test for test in [_argument_test(trace, rows, wide)] if test]
    return []


def _argument_test(trace: Trace, rows: np.ndarray, wide: bool) -> str:
    """Return a comparison of the numeric argument that most of the events have."""
    found: Counter[str] = Counter()
    for code, count in Counter(trace.events.code[rows].tolist()).items():
        for item in items_logged(trace.release, code, wide):
            if item.show not in (Show.STRING, Show.STRUCT) and item.name != "empty" and " " not in item.name:
                found[item.name] += count
    return f"arg.{found.most_common(1)[0][0]} > 1" if found else ""


def rows_of(trace: Trace, external: ExternalClass) -> np.ndarray:
    """Return the rows of a class's events."""
    codes = [
        code
        for code in catalogue(trace.release).codes()
        if trace.code_counts[code] and external_of(code, trace.release).external is external
    ]
    return np.flatnonzero(np.isin(trace.events.code, codes))
