"""Conditions in C against conditions in Python, on numbers and texts that no workload has."""

import random
import struct

import pytest

from satview.events.catalogue import catalogue
from satview.events.layout import arguments_of
from satview.events.spec import Release
from satview.events.wire import KER_64BIT, WireClass, code
from satview.export.c_program import c_program
from satview.filters.expressions.expression import Expression
from satview.filters.external import EventContext
from satview.filters.rules.building import build
from satview.filters.rules.text import parse_rules
from tests.export.c_target import Runner, compiled
from tests.helpers.extent import fewer

CALLS = [number for number in range(2, 98) if number not in (0x45, 0x46)]
EDGES = (0, 1, 2, 3, 7, 63, 64, 255, 260, 1023, 1024, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)
NUMBERS = (*EDGES, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)


def random_value(rng, depth=0):
    if depth < 3 and rng.random() < 0.6:
        one, other = random_value(rng, depth + 1), random_value(rng, depth + 1)
        sign = rng.choice(("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"))
        return rng.choice(
            (f"({one} {sign} {other})",) * 6
            + (
                f"-{one}",
                f"abs({one})",
                f"signed({one})",
                f"bit({one}, {other})",
                f"min({one}, {other})",
                f"max({one}, {other})",
            )
        )
    return rng.choice(
        (
            str(rng.choice(NUMBERS)),
            f"-{rng.choice(NUMBERS)}",
            f"word[{rng.randrange(9)}]",
            "pid",
            "tid",
            "cpu",
            "words",
            "number",
            "code",
            "errno",
        )
    )


def random_condition(rng, depth=0):
    shape = rng.random()
    if depth < 2 and shape < 0.4:
        return f"({random_condition(rng, depth + 1)} {rng.choice(('and', 'or'))} {random_condition(rng, depth + 1)})"
    if shape < 0.5:
        return f"not ({random_condition(rng, depth + 1)})"
    if shape < 0.6:
        candidates = ", ".join(random_value(rng, 2) for _ in range(rng.randrange(1, 4)))
        return f"{random_value(rng)} in ({candidates})"
    if shape < 0.65:
        return rng.choice(("failed", "failed is unknown", f"{random_value(rng)} is known"))
    if shape < 0.7:
        return f"({random_condition(rng, depth + 1)}) is {rng.choice(('', 'not '))}{rng.choice(('true', 'false'))}"
    return f"{random_value(rng)} {rng.choice(('==', '!=', '<', '<=', '>', '>='))} {random_value(rng)}"


def random_call(rng, number):
    """Return a kernel call or an exit, which may have failed, with words that are near the edges of everything."""
    is_exit = rng.random() < 0.6
    event_code = code(WireClass.KER_CALL, number + 128 * is_exit) | rng.choice((0, KER_64BIT))
    count = rng.choice((0, 1, 2, 2, 3, 4, 4, 5, 8))
    words = [rng.choice((*EDGES, rng.getrandbits(32))) for _ in range(count)]
    if is_exit and rng.random() < 0.5:
        words[:4] = rng.choice(([0xFFFFFFFF, rng.choice(EDGES)], [0xFFFFFFFF, 0xFFFFFFFF, rng.choice(EDGES), 0]))
    return call(event_code, words, rng.choice((0, 1, 7, 260, (1 << 31) - 1)), rng.choice((0, 1, 2)), rng.randrange(64))


def call(event_code, words, pid=7, tid=1, cpu=0, **more):
    size = max(2, len(words))
    padded = (*words, *[0] * (size + size % 2 - len(words)))
    return EventContext(event_code, pid, tid, padded, cpu, word_count=len(words) or 2, **more)


@pytest.mark.thorough
def test_arithmetic_comparisons_and_errors_are_those_of_views(tmp_path):
    release, rng = Release.QNX_7, random.Random(5)
    lines, conditions, events = ["ADDALLCLASSES"], {}, []
    for number in CALLS[:63]:
        conditions[number] = Expression(random_condition(rng), release)
        halves = ("ENTER", "EXIT")
        lines += [f"ADDEVENTHANDLER KERCALL{half} {number} WHERE {conditions[number].text}" for half in halves]
        events += [random_call(rng, number) for _ in range(60)]
    built = build(parse_rules("\n".join(lines), release), release)
    program = c_program(built)
    # Some of the conditions cannot hold, which rules are reported; here what they compile to counts.
    assert all("can fit" in fault.message or "at the exit" in fault.message for fault in program.faults)
    source = "\n".join(line for line in program.source.splitlines() if not line.strip().startswith("#error"))
    target, _ = compiled([source], release, tmp_path)
    ran = Runner(release, {}, events).run(target, 0)
    expected = [bool(conditions[info.code & 0x7F](info)) for info in events]
    wrong = [
        (conditions[info.code & 0x7F].text, info)
        for info, one, other in zip(events, ran.passes, expected, strict=True)
        if one != other
    ]
    assert not wrong, wrong[0]
    assert 0.1 < sum(expected) / len(expected) < 0.8


@pytest.mark.thorough
@pytest.mark.parametrize("release", fewer([Release.QNX_7, Release.QNX_6, Release.QNX_6_6], 1))
def test_arguments_are_where_views_find_them(release, tmp_path):
    """Every call and exit, payloads of every size, failed and doubtful ones, calls that count their arguments."""
    rng = random.Random(11)
    lines, conditions, events = ["ADDALLCLASSES"], {}, []
    positions = [
        (half, number, code(WireClass.KER_CALL, number + 128 * half)) for half in (0, 1) for number in range(128)
    ]
    known = catalogue(release).codes()
    # Every exit can have failed, those of calls without a name too.
    positions = [position for position in positions if numbers_of(release, position[2])]
    positions = [(0, 1, code(WireClass.KER_CALL, 1)), *rng.sample(positions[1:], min(125, len(positions) - 1))]
    for half, number, event_code in positions:
        names = numbers_of(release, event_code)
        if event_code | KER_64BIT in known:
            names |= numbers_of(release, event_code | KER_64BIT)
        name = f'arg."{rng.choice(sorted(names))}"'
        condition = Expression(f"{name} & 3 > 0 and {name} > -7 or errno in (2, 260, -1)", release)
        conditions[half, number] = condition
        lines.append(f"ADDEVENTHANDLER KERCALL{('ENTER', 'EXIT')[half]} {number} WHERE {condition.text}")
        for size in (2, 2, 2, 3, 4, 4, 5, 6, 7, 8, 9, 10, 12, 14, 20) * 3:
            words = [rng.choice((0, 1, 2, 3, 260, 0xFFFFFFFF, rng.getrandbits(32))) for _ in range(size)]
            if rng.random() < 0.4:
                words[0] = rng.choice((0xFFFFFFFF, size << 28 & 0xFFFFFFFF))
                words[1] = rng.choice((0xFFFFFFFF, 260, 5000))
            wide = rng.choice((0, KER_64BIT)) if event_code | KER_64BIT in known else 0
            events.append(call(event_code | wide, words))
    source = c_program(build(parse_rules("\n".join(lines), release), release)).source
    source = "\n".join(line for line in source.splitlines() if not line.strip().startswith("#error"))
    target, _ = compiled([source], release, tmp_path)
    passes = Runner(release, {}, events).run(target, 0).passes
    for info, found in zip(events, passes, strict=True):
        condition = conditions[info.code >> 7 & 1, info.code & 0x7F]
        assert found == bool(condition(info)), (condition.text, info)
    assert 0.05 < sum(passes) / len(passes) < 0.95


def numbers_of(release, event_code):
    return {part.name for part in arguments_of(release, event_code) if part.words in (1, 2)}


ALPHABET = ("a", "b", ".", "/", "x", "-", "\u00e9", "\u00c9", "\u212a", "k", "K", "\U0001f600", "\n", "\ufffd", "0")
PATTERNS = (
    "~ /a+b/",
    "~ /^a|b$/",
    "~ /^$/",
    "~ /(?:ab){2,3}x?/",
    "~ /[^a-b]k/i",
    "~ /\\d|[.x]$/i",
    '~ "a*b?"',
    '~ "*"',
    '~ ""',
    '~ "[a-b]*"',
    '~ "*/[!x]*"',
    "~ /^.[^a]\\D./",
    '== "ab"',
    '== "\u00e9"',
    'in ("a", "\ufffd", "/b")',
    '== ""',
    "~ /a.*b.*x/",
    f'~ "{"?" * 70}*"',
    "~ /(?:[abk]|x|0){55,60}/",
    '!~ "*a*"',
    '!= "ab"',
    "is known",
    "is unknown",
    "~ /^K/i",
    '== "a\\"?\\\\"',
)


def random_bytes(rng):
    if rng.random() < 0.3:
        return bytes(
            rng.choice((0x61, 0x80, 0xBF, 0xC2, 0xC3, 0xE2, 0xE0, 0xED, 0xA0, 0xF0, 0x9F, 0xF4, 0x90, 0xFF))
            for _ in range(rng.randrange(1, 9))
        )
    size = rng.choice((1, 2, 3, 5, 9, 80))
    letters = "abk0x" if size == 80 else ALPHABET
    return "".join(rng.choice(letters) for _ in range(size)).encode()


@pytest.mark.thorough
def test_names_and_patterns_are_those_of_views(tmp_path):
    release, rng = Release.QNX_6, random.Random(7)
    known_names = [b'a"?\\', b"ab", b"/b", b"x" * 1000, *(random_bytes(rng) for _ in range(300))]
    names = dict(enumerate(known_names, 1))
    conditions = {number: Expression(f"name {pattern}", release) for number, pattern in enumerate(PATTERNS, 2)}
    lines = [f"ADDEVENTHANDLER KERCALLENTER {number} WHERE {known.text}" for number, known in conditions.items()]
    lines = ["ADDALLCLASSES", *lines]
    events = [
        call(code(WireClass.KER_CALL, number), (0, 0), pid, process_name=name.decode("utf-8", "replace"))
        for number in conditions
        for pid, name in names.items()
    ]
    # A process that is not known.
    events += [call(code(WireClass.KER_CALL, number), (0, 0), 5000) for number in conditions]
    program = c_program(build(parse_rules("\n".join(lines), release), release))
    assert program.faults == ()
    target, _ = compiled([program.source], release, tmp_path)
    passes = Runner(release, names, events).run(target, 0).passes
    for info, found in zip(events, passes, strict=True):
        known = conditions[info.code & 0x7F]
        assert found == bool(known(info)), (known.text, info.process_name)
    for number, known in conditions.items():
        fit = {found for info, found in zip(events, passes, strict=True) if info.code & 0x7F == number}
        assert len(fit) == 2 or known.text in ('name ~ ""', 'name == ""', "name ~ /^$/", "name is unknown"), known.text


def test_patterns_that_posix_lacks_are_refused_with_pattern_and_position():
    rules = """ADDALLCLASSES
SETALLCLASSESWIDE
ADDCLASSEVHANDLER COMM WHERE pid == 7 and name ~ /caf\u00e9|x/
ADDCLASSEVHANDLER PROCESS WHERE text ~ /lost$/
"""
    program = c_program(build(parse_rules(rules, Release.QNX_7), Release.QNX_7))
    remedy = "filter the trace afterwards"
    assert sorted((fault.line, fault.column, fault.message) for fault in program.faults) == [
        (3, 43, f"C cannot test this: /caf\u00e9|x/: the target compares bytes, and U+00E9 is none of ASCII; {remedy}"),
        (
            4,
            33,
            "C cannot test this: /lost$/: an event handler must not call regexec(), only a glob can be tested there; "
            + remedy,
        ),
    ]
    errors = [line for line in program.source.splitlines() if line.startswith("#error")]
    assert sorted("/caf" in line for line in errors) == [False, True]


@pytest.mark.thorough
def test_texts_end_with_the_payload_or_a_nul(tmp_path):
    release = Release.QNX_6
    name = code(WireClass.PR_TH, 192)
    payloads = {
        b"/bin/ab\0": True,
        b"/bin/ab\0zz": True,
        b"/bin/abc": False,
        b"/bin/ab": True,
        b"": False,  # two words are the fast form, which has no text
        b"\0": True,
        b"/sbin/ab\0\0\0\0/bin/ab": False,
        "/bin/\u00e9b".encode(): True,
    }
    events = []
    for text in payloads:
        data = text + bytes(-len(text) % 4)
        events.append(call(name, (1, 7, *struct.unpack(f"={len(data) // 4}I", data))))
    condition = 'text == "/bin/ab" and arg.name ~ "*ab" and not text == "x" or text !~ "*[ab]*" and arg.name is known'
    condition += ' or text ~ "*/?b" and text == "/bin/\u00e9b"'  # the text is not changed by the first test
    rules = f"ADDALLCLASSES\nADDCLASSEVHANDLER PROCESS WHERE {condition}"
    expected = [bool(Expression(condition, release)(info)) for info in events]
    assert expected == [*payloads.values()]
    program = c_program(build(parse_rules(rules, release), release))
    target, _ = compiled([program.source], release, tmp_path)
    assert Runner(release, {}, events).run(target, 0).passes == expected


@pytest.mark.thorough
@pytest.mark.parametrize("order", ["little", "big"])
def test_arguments_of_64_bits_are_read_in_the_order_of_the_target(order, tmp_path):
    release = Release.QNX_7
    exit_64 = code(WireClass.KER_CALL, 11 + 128) | KER_64BIT
    first, second = (5, 1) if order == "little" else (1, 5)
    events = [
        call(exit_64, (first, second), is_little_endian=order == "little"),
        call(exit_64, (second, first), is_little_endian=order == "little"),
        call(exit_64 & ~KER_64BIT, (5, 1), is_little_endian=order == "little"),
    ]
    condition = Expression("arg.status == 0x100000005", release)
    rules = f"ADDALLCLASSES\nADDCLASSEVHANDLER KERCALLEXIT WHERE {condition.text}"
    program = c_program(build(parse_rules(rules, release), release))
    source = program.source
    if order == "big":  # the host is not; a target would answer so
        answer = "return *(const unsigned char *)&one"
        assert source.count(answer) == 1
        source = source.replace(answer, f"{answer} - 1")
    target, _ = compiled([source], release, tmp_path)
    expected = [bool(condition(info)) for info in events]
    assert expected == [True, False, False]
    assert Runner(release, {}, events).run(target, 0).passes == expected
