"""The options of `satview tracelogger`: definitions, checks of their combinations, and the resulting settings."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from satview.base.errors import UsageError
from satview.base.new_file import is_standard_output
from satview.capture.buffers import DAY_S, MOST_BUFFERS, LoggerOptions
from satview.capture.flight_recorder import Bounds, QstForm, disk_bytes
from satview.capture.run import RECORDER_DAYS
from satview.capture.sim.target import target
from satview.capture.workloads.registry import is_wide
from satview.cli.shared.files import InputFile, OutputFile, RuleFile
from satview.cli.shared.traces import seconds
from satview.events.spec import Release
from satview.filters.external import NO_RING0

DEFAULT_FILE = "tracebuffer.kev"
DEFAULT_WORKLOAD = "automotive"
RELEASES = tuple(release.value for release in Release if release.is_qnx)
_SIZE = re.compile(r"(\d+)([kKmM]?)")
_FILTERS = {
    0: "none",
    1: "kernel calls",
    2: "interrupts",
    3: "processes",
    4: "threads",
    5: "virtual threads",
    6: "communication",
    7: "system",
    11: "RING0 calls (6.x)",
}
# Options that older releases lack: name, default, the first release that has it.
_SINCE: tuple[tuple[str, str, Any, Release], ...] = (
    ("-a", "security", False, Release.QNX_7),
    ("-D", "flush", 0, Release.QNX_6_6),
    ("-p", "address", None, Release.QNX_6_6),
    ("-u", "unknown", False, Release.QNX_8),
)
_DISK_MS = 0.15
_MOST_FILES = 1_000_000
# Options of the target that have an effect with --events, too.
_WITH_EVENTS = ("fast", "workload", "target", "list_workloads", "seed", "cpus", "release", "events", "allow_code")


def add_logger_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of QNX's tracelogger, with its letters."""
    add = parser.add_argument
    add("-A", dest="attributes", metavar="name=value", action="append", default=[],
        help="add an attribute to the header")  # fmt: skip
    add("-a", dest="security", action="store_true", help="also log the Security class (7.x and later)")
    add("-b", dest="own_buffers", metavar="num", type=int, default=64, help="buffers in the logger itself (64)")
    add("-c", dest="continuous", action="store_true", help="log until a signal, same as -n 0")
    add("-D", dest="flush", metavar="sec", type=seconds, default=0,
        help="flush the kernel buffers at this interval")  # fmt: skip
    add("-d", dest="daemon", metavar="1", help="daemon mode: a control program sets filters and starts the trace")
    add("-E", dest="enable", action="store_true", help="with -d1: set the filters as in normal mode")
    add("-F", dest="without", metavar="num", type=int, action="append", default=[],
        help="leave out: " + ", ".join(f"{n} {what}" for n, what in _FILTERS.items()))  # fmt: skip
    add("-f", dest="file", metavar="file", type=OutputFile, default=DEFAULT_FILE,
        help=f"output file ({DEFAULT_FILE}); - is standard output")  # fmt: skip
    add("-k", dest="kernel_buffers", metavar="num", type=int, default=32, help="kernel buffers of 16 KiB (32)")
    add("-M", dest="mapped", action="store_true", help="map the output file; needs -S")
    add("-n", dest="iterations", metavar="num", type=int, help="buffers to log, 0 = no limit (32)")
    add("-P", dest="keep", action="store_true", help="keep the kernel buffers afterwards")
    add("-p", dest="address", metavar="addr", help="physical address of the buffers")
    add("-R", dest="reuse", action="store_true", help="reuse buffers left by -P")
    add("-r", dest="ring", action="store_true",
        help="ring mode: keep the newest buffers and save them at a signal or STOP")  # fmt: skip
    add("-S", dest="size", metavar="size", help="maximum size of the output; k, K, m, M")
    add("-s", dest="seconds", metavar="sec", type=seconds, default=0, help="log for this many (simulated) seconds")
    add("-u", dest="unknown", action="store_true",
        help="accepted but ignored; 8.0 has it without documenting its meaning")  # fmt: skip
    add("-v", dest="verbose", action="count", default=0,
        help="more messages; -vvv: also a line per buffer with interrupts, iterations, events")  # fmt: skip
    add("-w", dest="wide", action="store_true", help="wide events")


def add_target_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the simulated target; they are long words, which no release of tracelogger has."""
    group = parser.add_argument_group("simulated target")
    group.add_argument(
        "--fast", action="store_true", help="fast events, even for a workload that defaults to wide events"
    )
    group.add_argument("--workload", metavar="NAME|FILE.py", type=InputFile, default=DEFAULT_WORKLOAD,
                       help=f"program that the target runs ({DEFAULT_WORKLOAD})")  # fmt: skip
    group.add_argument("--target", metavar="NAME",
                       help="log on the target of this name that `satview target` runs, as its shells do")  # fmt: skip
    group.add_argument("--list-workloads", action="store_true", help="print the names of all workloads")
    group.add_argument("--seed", type=int, default=1, help="the same seed gives the same file (1)")
    group.add_argument("--cpus", type=int, help="1 to 64 (set by the workload)")
    group.add_argument("--release", choices=RELEASES, default=Release.QNX_7.value, help="release of the target (7.x)")
    group.add_argument(
        "--skew", metavar="ns", type=int, help="largest difference between the counters of two CPUs (40 in 6.x, else 0)"
    )
    group.add_argument(
        "--duration",
        metavar="sec",
        type=seconds,
        help="simulated time until the signal that ends a continuous or ring capture: seconds, or 350ms",
    )
    group.add_argument(
        "--events",
        metavar="N",
        type=int,
        help="write N events (up to 10^8 and beyond) by repeating a simulated span of the workload",
    )
    group.add_argument(
        "--control", metavar="FILE.py", type=InputFile, help="control program: main() yields TraceEvent() calls"
    )
    group.add_argument("--rules", metavar="FILE.satrules", type=RuleFile,
                       help="log only what these rules let through, instead of all classes")  # fmt: skip
    group.add_argument(
        "--every",
        action="store_true",
        help="with -r and a rule WHEN ... THEN STOP: a file for each incident, then the next one",
    )
    group.add_argument("--files", metavar="N", type=int, default=0, help="with --every: keep the newest N files")
    group.add_argument(
        "--disk-limit", metavar="SIZE", help="with --every: keep the newest files, up to this size in all: 500M, 2GB"
    )
    group.add_argument("--allow-code", action="store_true", help="let the rules call Python functions")
    group.add_argument(
        "--no-privilege",
        action="store_true",
        help="let programs attach handlers without ThreadCtl(_NTO_TCTL_IO); a real target fails with EPERM",
    )
    group.add_argument(
        "--pace",
        metavar="X",
        type=float,
        default=0,
        help="simulated seconds per real second, to watch the file grow; 0 is as fast as possible",
    )
    group.add_argument(
        "--probe",
        action="store_true",
        help="read the buffers from outside: no logger runs on the target, so the same seed gives the same "
        "run under any rules",
    )
    group.add_argument(
        "--qst",
        choices=[form.value for form in QstForm],
        help="keep the newest -k buffers and write them at the end as a QST file of this version, like a tracer on "
        "the target (7.x and 8.0); no logger runs",
    )
    group.add_argument(
        "--no-flush",
        action="store_true",
        help="leave the partly filled last buffer in the kernel, as tracelogger does in linear mode",
    )
    group.add_argument(
        "--disk",
        metavar="ms",
        type=float,
        default=_DISK_MS,
        help=f"time the disk needs for one buffer; a large value makes the logger too slow ({_DISK_MS})",
    )


def check_numbers(args: argparse.Namespace) -> None:
    """Refuse times that are negative, no numbers, or too long to simulate, and impossible CPU counts (UsageError)."""
    if args.cpus is not None:
        target(Release(args.release), args.cpus)
    longest = DAY_S * (RECORDER_DAYS if args.every else 1)
    if args.duration is not None and not 1e-6 <= args.duration <= longest:
        raise UsageError(f"--duration {args.duration:g}: must be from 1e-06 to {longest:g}")
    for flag, value, least, most in (
        ("-s", args.seconds, 1e-6, DAY_S),
        ("-D", args.flush, 1e-3, DAY_S),
        ("--disk", args.disk, 0, 60_000),
        ("--pace", args.pace, 1e-3, 1e6),
    ):
        if value and not least <= value <= most:
            raise UsageError(f"{flag} {value:g}: must be 0, or from {least:g} to {most:g}")


def check_release(args: argparse.Namespace) -> None:
    """Raise a UsageError for an option that tracelogger of the target's release does not have.

    The text names the first release that has it.
    """
    for flag, name, default, since in _SINCE:
        if getattr(args, name) != default and RELEASES.index(args.release) < RELEASES.index(since.value):
            raise UsageError(
                f"{flag}: tracelogger of {args.release} has no such option; it was added in {since.value} "
                f"(--release {since.value})"
            )
    if args.file == "-" and args.release == Release.QNX_6.value:
        raise UsageError("-f -: tracelogger of 6.x cannot write to standard output; that of 6.6 can (--release 6.6)")


def check_stays(args: argparse.Namespace) -> None:
    """Refuse options of a new simulated target if the logger runs on an existing target (UsageError)."""
    not_there = (("--workload", args.workload != DEFAULT_WORKLOAD), ("--seed", args.seed != 1),
                 ("--cpus", args.cpus is not None), ("--skew", args.skew is not None),
                 ("--duration", args.duration is not None), ("--events", args.events is not None),
                 ("--control", args.control), ("--no-privilege", args.no_privilege), ("--pace", args.pace),
                 ("--probe", args.probe), ("--qst", args.qst), ("--allow-code", args.allow_code))  # fmt: skip
    if given := [flag for flag, is_given in not_there if is_given]:
        raise UsageError(f"--target: cannot be used with {', '.join(given)}; the target runs already, and its shell "
                         "starts programs on it")  # fmt: skip


def check_qst(args: argparse.Namespace) -> None:
    """Refuse options of the logger together with `--qst`, which runs no logger (UsageError)."""
    not_there = (("-d1", args.daemon), ("--control", args.control), ("-S", args.size), ("-n", args.iterations),
                 ("-A", args.attributes), ("-D", args.flush))  # fmt: skip
    if given := [flag for flag, value in not_there if value]:
        raise UsageError(f"--qst: cannot be used with {', '.join(given)}, because no logger writes the file")
    if is_standard_output(args.file):
        raise UsageError("--qst needs a file")


def logger_options(args: argparse.Namespace) -> LoggerOptions:
    """Return the settings of the logger from the options; UsageError if a number is out of bounds."""
    for number, what in ((args.own_buffers, "-b"), (args.kernel_buffers, "-k")):
        if not 1 <= number <= MOST_BUFFERS:
            raise UsageError(f"{what} {number}: must be 1 to {MOST_BUFFERS} buffers")
    if bad := [n for n in args.without if n not in _FILTERS]:
        raise UsageError(f"-F {bad[0]}: filters are {', '.join(f'{n} {what}' for n, what in _FILTERS.items())}")
    unlimited = args.continuous or args.ring or (args.seconds and args.iterations is None)
    iterations = 0 if unlimited else 32 if args.iterations is None else args.iterations
    if iterations < 0:
        raise UsageError(f"-n {iterations}: must be a number of buffers, or 0")
    return LoggerOptions(
        iterations=iterations,
        kernel_buffers=args.kernel_buffers,
        own_buffers=args.own_buffers,
        seconds=args.seconds,
        is_daemon=args.daemon is not None,
        sets_filters=args.enable,
        is_ring=args.ring,
        is_wide=args.wide or is_wide_by_itself(args),
        without=tuple(args.without),
        with_security=args.security,
        flush_every_s=args.flush,
        keeps_buffers=args.keep,
        reuses_buffers=args.reuse,
        physical_address=_address(args.address),
        flushes_at_end=not args.no_flush,
        disk_ns_per_buffer=int(args.disk * 1_000_000),
        is_probe=args.probe,
    )


def is_wide_by_itself(args: argparse.Namespace) -> bool:
    """Return whether events are wide only because the workload needs that: no option selects them or their form."""
    is_selected = args.wide or args.fast or args.rules or args.daemon is not None or args.control or args.events
    return not is_selected and is_wide(args.workload)


def recorder_bounds(args: argparse.Namespace) -> Bounds | None:
    """Return the limits that --every, --files and --disk-limit set; None without these options.

    Raises:
        UsageError: A number is out of bounds.
    """
    if not args.every and not args.files and not args.disk_limit:
        return None
    if not 0 <= args.files <= _MOST_FILES:
        raise UsageError(f"--files {args.files}: must be 1 to {_MOST_FILES}")
    limit = disk_bytes(args.disk_limit, "--disk-limit") if args.disk_limit else 0
    if is_standard_output(args.file):
        raise UsageError("--every needs the name of a file: it writes one for each incident")
    return Bounds(args.kernel_buffers, args.every, args.files, limit)


def notes(args: argparse.Namespace, limit: int) -> Iterator[str]:
    """Yield a sentence for each option that has no effect here; UsageError if options exclude each other."""
    _check_together(args, limit)
    if is_wide_by_itself(args):
        yield f"events are wide because {args.workload} needs priorities and owners; use --fast for fast events"
    if args.unknown:
        yield "-u: accepted as tracelogger of 8.0 does; its meaning is not documented, and it is ignored here"
    if args.mapped:
        yield "-M: the file is written, not mapped; its content is the same"
    if args.keep and not args.target:
        yield "-P: has no effect; the simulated target and its buffers end with this command"
    if args.reuse and not args.target:
        yield "-R: there are no buffers of an earlier run; new ones are allocated"
    if NO_RING0 in args.without and args.release != Release.QNX_6.value:
        yield f"-F {NO_RING0}: has no effect; only tracelogger of 6.x has it"
    if args.enable and args.daemon is None:
        yield "-E: has no effect without -d1"
    if args.daemon is not None and not args.control and not args.target:
        yield "-d1: no --control program is given, so nothing will start the trace"
    if args.flush and args.ring:
        yield "-D: has no effect with -r; a ring is not flushed while tracing is on"
    if args.control and args.daemon is None:
        yield "--control: without -d1 the trace starts at once, and the program changes it while it runs"


def _check_together(args: argparse.Namespace, limit: int) -> None:
    if args.daemon not in (None, "1"):
        raise UsageError(f"-d {args.daemon}: the only daemon mode is -d1")
    if args.wide and args.fast:
        raise UsageError("--fast: cannot be used with -w")
    if args.probe and (args.daemon is not None or args.control):
        raise UsageError("--probe: cannot be used with -d1 and --control, because no logger waits for a program")
    if args.mapped and not limit:
        raise UsageError("-M needs -S: the size of a mapped file must be known")


def _address(text: str | None) -> int:
    try:
        address = int(text or "0", 0)
    except ValueError:
        address = -1
    if not 0 <= address < 1 << 64:
        raise UsageError(f"-p {text}: must be an address, for example 0x40000000")
    return address


def size_of(text: str | None) -> int:
    """Return the size of -S in bytes, 0 without -S; UsageError if the text is no number of bytes."""
    if text is None:
        return 0
    size = _SIZE.fullmatch(text)
    if not size or not int(size[1]):
        raise UsageError(f"-S {text}: must be a number of bytes, with k or m for KiB or MiB")
    return int(size[1]) * {"": 1, "k": 1024, "m": 1024 * 1024}[size[2].lower()]


def attributes(args: argparse.Namespace) -> list[tuple[str, str]]:
    """Return the header pairs of -A, in reverse order as tracelogger writes them; the command line comes last.

    Raises UsageError if -A is not of the form name=value, or would be read as a key.
    """
    pairs = [("TRACELOGGER_ARGS", _command_line(args))]
    for text in args.attributes:
        name, equals, value = text.partition("=")
        if not equals or not name or "::" in text or "TRACE_" in text or not text.isprintable():
            raise UsageError(f"-A {text!a}: must be name=value on one line, without '::' and 'TRACE_'")
        pairs.append((name, value))
    return pairs[::-1]


def _command_line(args: argparse.Namespace) -> str:
    """Return the command line as tracelogger would get it, without the options of the simulated target."""
    flags, values, _ = _options()
    words = ["tracelogger", *(flag.option_strings[0] for flag in _given(args, flags))]
    words += ["-d1"] * (args.daemon is not None)
    for option in _given(args, values):
        value = getattr(args, option.dest)
        words += [option.option_strings[0], f"{value:g}" if isinstance(value, float) else str(value)]
    for number in args.without:
        words += ["-F", str(number)]
    words += ["-" + "v" * args.verbose] * bool(args.verbose)
    words += ["-f", Path(args.file).name if args.file != "-" else "-"]
    return " ".join(words).replace("::", ":").replace("TRACE_", "TRACE-")


def unused_with_events(args: argparse.Namespace) -> list[str]:
    """Return the given options that have no effect with --events."""
    options = (option for part in _options() for option in part if option.dest != "wide")
    return [option.option_strings[0] for option in _given(args, options)]


def _given(args: argparse.Namespace, options: Iterable[argparse.Action]) -> list[argparse.Action]:
    return [option for option in options if getattr(args, option.dest) != option.default]


@cache
def _options() -> tuple[list[argparse.Action], ...]:
    """Return tracelogger's flags, tracelogger's options with a value, and all other options that --events ignores."""
    logger, on_target = argparse.ArgumentParser(add_help=False), argparse.ArgumentParser(add_help=False)
    add_logger_options(logger)
    add_target_options(on_target)
    by_dest = {option.dest: option for option in logger._actions}
    rest = [by_dest.pop("daemon"), by_dest.pop("without")]
    rest += [option for option in on_target._actions if option.dest not in _WITH_EVENTS]
    for elsewhere in ("attributes", "file", "verbose"):
        del by_dest[elsewhere]
    flags = [option for option in by_dest.values() if option.nargs == 0]
    return flags, [option for option in by_dest.values() if option.nargs != 0], rest
