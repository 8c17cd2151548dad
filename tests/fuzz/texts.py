"""Rules, expressions and C programs: generators and targets. The first byte of an input chooses the release."""

from __future__ import annotations

import random
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from satview.base.errors import SatviewError
from satview.events.modes import RULE_MODES
from satview.events.spec import Release
from satview.export.c_program import c_program
from satview.filters.derived_columns import event_contexts
from satview.filters.expressions.expression import Expression
from satview.filters.expressions.nodes import FUNCTIONS
from satview.filters.expressions.semantics import FIELDS
from satview.filters.external import ExternalClass
from satview.filters.rules.building import build, tracelogger_command
from satview.filters.rules.capturing import for_capture
from satview.filters.rules.text import check_rules, parse_rules, rules_text
from satview.filters.rules.triggers import Scan, Trigger, Watch
from satview.store.trace import Trace
from tests.fuzz.mutation import mutate, mutate_lines
from tests.helpers.scene import scene

RELEASES = (Release.QNX_7, Release.QNX_6, Release.QNX_6_6, Release.QNX_8)
_CLASSES = tuple(ExternalClass.__members__)
_SIGNS = ("==", "!=", "<", ">=", "~", "!~", "in", "=", "&&", "is", "is not")
_JOINS = (" and ", " or ", " and not ", "&", "+", "-", "*", "/", "%", "<<", ">>", " ")
_VALUES = (
    "0",
    "1",
    "7",
    "2ms",
    "1.5s",
    "0xffffffff",
    '"client"',
    '"*li*"',
    "/^c.*t$/i",
    "/(a+)+$/",
    "READY",
    "MSG_SENDV",
    "KERCALL",
    "(1, 2)",
    '("client", 2)',
    "-1",
    "9" * 30,
    "arg.coid",
    "word[1]",
    "word[9999]",
    "known",
    "not true",
    '"',
    "'",
    "\\",
    "\N{SNOWMAN}",
)
_TOKENS = tuple(text.encode() for text in (
    *_VALUES, *_SIGNS, *_JOINS, *FIELDS, *FUNCTIONS, "(", ")", "WHERE", "not ", "WHEN", " THEN ", ";", "STOP", "MARK",
    "KEEP", " buffers", 'latency("THREADY", 7)',
))  # fmt: skip


def condition(rng: random.Random, depth: int = 0) -> str:
    """Return a condition that is mostly sound."""
    if depth < 4 and rng.random() < 0.4:
        joined = f"({condition(rng, depth + 1)}{rng.choice(_JOINS)}{condition(rng, depth + 1)})"
        return joined + rng.choice(("", "", "", " is false", " is not true"))
    if rng.random() < 0.1:
        return f"{rng.choice((*FIELDS, 'arg.coid', 'arg.name'))} is {rng.choice(('known', 'unknown'))}"
    left = rng.choice((*FIELDS, *FIELDS, "arg.coid", "word[0]", *(f"{name}(pid)" for name in FUNCTIONS)))
    return f"{left} {rng.choice(_SIGNS)} {rng.choice(_VALUES)}"


def expression(rng: random.Random) -> bytes:
    """Return a byte for the release, then a condition, often damaged."""
    text = condition(rng).encode()
    return bytes((rng.randrange(256),)) + (mutate(rng, text, _TOKENS) if rng.random() < 0.6 else text)


def rules(rng: random.Random) -> bytes:
    """Return a byte for the release, then a rule file, often damaged."""
    lines = []
    modes = [mode.name for mode in RULE_MODES]
    for _ in range(rng.choice((0, 1, 3, 10))):
        words = [rng.choice(modes), rng.choice(_CLASSES)]
        words += [
            rng.choice(("MSG_SENDV", "THREADY", "1", "client", "77", "REPLY", "0x1|0x2"))
            for _ in range(rng.randrange(3))
        ]
        if rng.random() < 0.5:
            words.append(rng.choice((f"WHERE {condition(rng)}", "CALL x.py:f", "# note")))
        lines.append(" ".join(words) if rng.random() < 0.9 else f"WHERE {condition(rng)}")
        if rng.random() < 0.2:
            pair = rng.choice(("", 'latency("THREADY", "THRUNNING") > 1us and ', 'latency(1, "x") is known or '))
            lines.append(
                f'WHEN {pair}{condition(rng)} THEN MARK "late"; KEEP {rng.choice((1, 20, 9999))} buffers; STOP'
            )
    text = "\n".join(["ADDALLCLASSES", *lines]).encode() + b"\n"
    return bytes((rng.randrange(256),)) + (mutate_lines(rng, text, _TOKENS) if rng.random() < 0.6 else text)


_folders: list[tempfile.TemporaryDirectory[str]] = []  # removed when the process ends: their traces stay open


@cache
def the_scene(release: Release) -> Trace:
    """Return a small trace of a release, left open."""
    from satview.formats.registry import open_trace
    from tests.fuzz.traces import start_bytes

    folder = tempfile.TemporaryDirectory(prefix="satview-fuzz-")
    _folders.append(folder)
    made = scene(Path(folder.name))
    if release is not Release.QNX_7:
        slots = made.read_bytes()[len(start_bytes("7.1.0")) :]
        made.write_bytes(start_bytes({"6": "6.4.1", "8": "8.0.0"}.get(str(release)[0], "6.6.0")) + slots)
    return open_trace(made)


def _split(data: bytes) -> tuple[Release, str]:
    return RELEASES[data[0] % len(RELEASES) if data else 0], data[1:].decode("utf-8", "replace")


def run_expression(data: bytes, _folder: Path) -> None:
    """Check an expression; hold the answer for a whole trace against that for one event at a time.

    It is true, false or unknown: what holds for no event twice, and alike for the text with a `not` before it.
    """
    release, text = _split(data)
    trace = the_scene(release)
    try:
        found = Expression(text, trace.release)
        mask = found.mask(trace)
        opposite = Expression(text, trace.release, negated=True)
        false = opposite.mask(trace)
        single_false = [bool(opposite(info)) for info in event_contexts(trace, np.arange(len(trace.events)))]
        single = [bool(found(info)) for info in event_contexts(trace, np.arange(len(trace.events)))]
    except SatviewError as error:
        str(error)
        return
    assert mask.tolist() == single, "columns and single events do not agree"
    assert false.tolist() == single_false, "columns and single events do not agree on what is false"
    assert not (mask & false).any(), "true and false at once"
    try:
        asked = [Expression(f"({text}) is {word}", trace.release) for word in ("true", "false", "not true")]
    except SatviewError:
        return  # brackets are nested too deep
    answers = [expression.mask(trace).tolist() for expression in asked]
    assert answers == [mask.tolist(), false.tolist(), (~mask).tolist()], "is true, is false do not agree"


def run_rules(data: bytes, _folder: Path) -> None:
    """Read rules, write them, read them again; build and apply them, query what a capture would do."""
    release, text = _split(data)
    read, _faults = check_rules(text, release)
    written = rules_text(read, release)
    try:
        again = parse_rules(written, release)
    except SatviewError as error:
        raise AssertionError(f"{written[:300]!r} was written and is not read: {error}") from error
    assert again == read, f"written as {written[:300]!r}"
    try:
        built = build(read, release)
        for_capture(built)
        tracelogger_command(built)
        trace = the_scene(release)
        if trace.release is release:
            built.mask(trace)
            for trigger in built.triggers:
                check_trigger(trigger, trace)
    except SatviewError as error:
        str(error)


def check_trigger(trigger: Trigger, trace: Trace) -> None:
    """Hold the hits in a whole trace against those found one event at a time."""
    rows = np.arange(len(trace.events))
    at_once = Scan(trigger).hits(trace, rows).tolist()
    watch = Watch(trigger, trace.clock.cycles_per_s)
    contexts = zip(event_contexts(trace, rows), trace.events.time_cycles.tolist(), strict=True)
    one_by_one = [row for row, (context, cycles) in enumerate(contexts) if watch.hits(context, cycles)]
    assert at_once == one_by_one, "columns and single events do not agree on the hits"


def run_c(data: bytes, _folder: Path) -> None:
    """Export rules as C: no text of the rules leaves its literal or comment."""
    release, text = _split(data)
    try:
        program = c_program(build(check_rules(text, release)[0], release), 'title */ "\n#error')
    except SatviewError:
        return
    assert all(char == "\n" or " " <= char <= "~" for char in program.source), "the source is not printable ASCII"
    assert "#error" not in program.source.splitlines(), "the title became a directive"
