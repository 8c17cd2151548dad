"""`satview traceprinter`: print a trace as the vendor's traceprinter does, or as rows for other programs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

from satview.base.errors import SatviewError, UsageError, reading_fault
from satview.base.new_file import find_target, new_text_file
from satview.base.process import BAD_USE, COST_DATA, FINE, drop_output, standard_input
from satview.base.safe_text import counted, visible
from satview.base.time import TimeWindow, parse_since_start
from satview.cli.shared.files import InputFile, OutputFile, add_range, add_user_events
from satview.cli.shared.terminal import working, working_on
from satview.cli.shared.traces import open_trace, read_descriptions, window_of
from satview.events.wire import SLOT_BYTES
from satview.export.listing.forms import Style
from satview.export.listing.printer import ListedEvents, Printer
from satview.export.listing.rows import FORMATS, TIMES, PrintedFormat, RecordRows, TextRows, default_time, layout_of
from satview.formats.source import TraceSource, opened
from satview.store.problems import Problems

LAYOUTS = ("6", "6.1", "7", "8")
DEFAULT_INPUT = "/dev/shmem/tracebuffer.kev"  # noqa: S108  -- where the vendor's tools look
_SHOWN_PROBLEMS = 10


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Add the parser of the command `traceprinter` to `subparsers`; return the parser."""
    parser = subparsers.add_parser(
        "traceprinter",
        help="print a trace as text, CSV or JSON",
        description="Print a kernel event trace, or a listing of one, in the layout of the vendor's traceprinter.",
        epilog="Exit status: 0 success; 1 printed, but the trace is damaged (see standard error); 2 not a trace, or "
        "wrong usage. --from and --to take a time since the first event: 1.5s, 20ms, 300us, 7ns. They also take -5s "
        "(before the end), 25%, #1200 (an event), 06:19:01 and 0x1f00c (cycles); these need a file instead of standard "
        "input, because it is read twice.",
    )
    parser.add_argument("-f", dest="file", metavar="FILE", type=InputFile,
                        help=f"the trace; - is standard input (default: {DEFAULT_INPUT})")  # fmt: skip
    parser.add_argument("file_argument", nargs="?", metavar="FILE", type=InputFile, help="the same without -f")
    parser.add_argument(
        "-n", dest="one_line", action="store_true", help="print the arguments of long events on one line"
    )
    parser.add_argument("-v", dest="verbose", action="store_true", help="also print the system page and every raw slot")
    parser.add_argument(
        "-o", dest="output", metavar="OUT", type=OutputFile, help="write to a file instead of standard output"
    )
    parser.add_argument(
        "-p",
        dest="event_format",
        metavar="FMT",
        help="format of the text before the arguments (7.0 and later): %%c cycles, %%C CPU, %%e event, %%t time, "
        "%%Z class, %%z event, %%%% percent, with flags, width and precision as in printf(); a "
        "negative precision drops leading characters",
    )
    parser.add_argument(
        "--vendor",
        action="store_true",
        help="reproduce the bugs of the vendor's program, so that outputs match byte for byte",
    )
    parser.add_argument("--layout", choices=LAYOUTS, help="use the layout of this release (default: that of the trace)")
    parser.add_argument("--time", choices=TIMES, help="cycles: low word; full: 64 bits; ns: seconds since the first "
                        "event; wall: approximate date (default: set by the layout)")  # fmt: skip
    parser.add_argument("--format", choices=("text", *FORMATS), default="text", help="output format (default: text); "
                        "-n, -p, -v, --vendor, --layout and --time are only for text")  # fmt: skip
    selected = parser.add_argument_group("events to print; options are repeatable and take comma-separated lists")
    for name, what in (
        ("class", "class, for example KER_CALL or THREAD"),
        ("event", "event, for example MSG_SENDV or THREADY"),
        ("pid", "process"),
        ("tid", "thread number"),
        ("cpu", "CPU"),
    ):
        selected.add_argument(
            f"--{name}", action="append", default=[], metavar=name.upper(), dest=f"{name}_", help=what
        )
    selected.add_argument("--from", dest="from_", metavar="TIME", help="not before this time")
    selected.add_argument("--to", metavar="TIME", help="before this time")
    add_range(selected.add_argument, "--from and --to in one option")
    add_user_events(parser.add_argument)
    return parser


def run(args: argparse.Namespace) -> int:
    """Print a trace; return the exit code."""
    try:
        if args.file and args.file_argument:
            raise UsageError(f"two traces are given, -f {args.file} and {args.file_argument}; one is printed at a time")
        args.file = args.file or args.file_argument or InputFile(DEFAULT_INPUT)
        if args.format != "text":
            _refuse_options_of_text(args)
        selection = _selection(args)
        with opened(args.file, standard_input()) as source, _output(args) as out:
            printer = _print(source, args, selection, out)
            code = _report(source.problems)
        if not printer.printed and selection != ListedEvents():
            print(visible(f"satview traceprinter: no event matched: {_why_nothing(printer, args)}"), file=sys.stderr)
            return COST_DATA
        return code
    except BrokenPipeError:
        # The reader of the pipe has closed it; Python would report an error when it flushes at exit.
        drop_output()
        return FINE
    except SatviewError as error:
        print(visible(f"satview traceprinter: {error}"), file=sys.stderr)
    except OSError as error:
        if error.filename is None:  # standard output, whose errors the caller reports
            raise
        print(f"satview traceprinter: {error.filename}: {reading_fault(error)}", file=sys.stderr)
    return BAD_USE


def _print(source: TraceSource, args: argparse.Namespace, selection: ListedEvents, out: TextIO) -> Printer:
    """Print the events; return the printer, which knows their number."""
    layout = args.layout or layout_of(source.release)
    is_text = args.format == "text"
    style = Style(layout, source.release, source.byte_order, args.vendor, args.one_line, source.notations)
    shown = _event_format(args, style)
    described = read_descriptions(args.user_events).events if args.user_events else {}
    rows = (
        TextRows(
            source,
            style,
            args.time or ("" if args.layout is None else default_time(layout)),
            args.verbose,
            format=shown,
            described=described,
        )
        if is_text
        else RecordRows(source, args.format, described=described)
    )
    is_ahead = Path(args.file).is_file()
    printer = Printer(source, rows, selection, is_verbose=args.verbose and is_text, is_ahead=is_ahead)
    if out.isatty():
        for text in printer.text():
            out.write(visible(text))
            out.flush()
    else:
        out.flush()
        slots = _slots_of(source)
        with working(working_on("printing", source.path)) as report:
            for piece in printer.encoded(  # names stay byte for byte
                lambda batch: report((batch.first_slot + len(batch.slots)) / slots) if slots else None
            ):
                out.buffer.write(piece)
                out.buffer.flush()
    printer.selector.refuse_beyond()
    return printer


def _why_nothing(printer: Printer, args: argparse.Namespace) -> str:
    """Return the reason why no event was printed, as a sentence without a full stop."""
    selector = printer.selector
    if not selector.events:
        return "the trace has no events"
    for part, fitting in selector.fitting.items():
        if not fitting and part == "time":
            return "no event is in the range"
        if not fitting:
            chosen = {name: _items(getattr(args, f"{name}_")) for name in part.split(" and ")}
            options = " ".join(f"--{name} {','.join(items)}" for name, items in chosen.items() if items)
            return f"none of {counted(selector.events, 'event')} fits {options}"
    return "each option lets some events pass, but none of them passes all"


def _slots_of(source: TraceSource) -> int:
    """Return the approximate number of slots of a file, for the progress line; 0 if its size does not show it."""
    return source.path.stat().st_size // SLOT_BYTES if source.format == "kev" and source.path.is_file() else 0


def _refuse_options_of_text(args: argparse.Namespace) -> None:
    """Refuse options that change only the text, as the rows of other formats are always the same."""
    of_text = {"-n": args.one_line, "-v": args.verbose, "--vendor": args.vendor, "--layout": args.layout,
               "--time": args.time}  # fmt: skip
    if names := [name for name, value in of_text.items() if value]:
        raise UsageError(
            f"{', '.join(names)}: only for text; rows of --format {args.format} have time_ns since the first event, "
            "time_cycles and all arguments"
        )


def _event_format(args: argparse.Namespace, style: Style) -> PrintedFormat | None:
    if args.event_format is None:
        return None
    if args.format != "text" or args.time:
        raise UsageError("-p sets how an event begins, so it cannot be combined with --format and --time")
    if style.is_old:
        raise UsageError("-p: the printers of 6.x have no such option; that of 7.0 has (--layout 7)")
    return PrintedFormat.parse(args.event_format)


@contextmanager
def _output(args: argparse.Namespace) -> Iterator[TextIO]:
    """Yield the output stream: UTF-8 with line feeds on every platform."""
    if args.output is None:
        if isinstance(sys.stdout, TextIOWrapper):
            find_target("-", streams=True)  # `>> t.kev` would never end
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape", newline="\n")
        yield sys.stdout
        return
    with new_text_file(args.output, streams=True, errors="surrogateescape") as out:
        yield out


def _report(problems: Problems) -> int:
    """Report problems of the trace on standard error; return the exit code."""
    costly = [problem for problem in problems if problem.kind.costs_data]
    for problem in costly[:_SHOWN_PROBLEMS]:
        position = f" at byte 0x{problem.offset:x}" if problem.offset is not None else ""
        print(visible(f"satview traceprinter: {problem.kind.title}{position}: {problem.detail}"), file=sys.stderr)
    if len(costly) > _SHOWN_PROBLEMS:
        counts = ", ".join(f"{count} {slug}" for slug, count in problems.counts().items())
        print(f"satview traceprinter: {len(costly) - _SHOWN_PROBLEMS} more problems; in all {counts}", file=sys.stderr)
    return COST_DATA if problems.cost_data else FINE


def _selection(args: argparse.Namespace) -> ListedEvents:
    """Return the selection that the options request."""
    window = _window(args)
    from_ns, to_ns = parse_since_start(args.from_ or ""), parse_since_start(args.to or "")
    if to_ns is not None and to_ns <= (from_ns or 0):
        raise UsageError(f"the range from {args.from_ or 'the start'} to {args.to} is empty")
    return ListedEvents(
        frozenset(_items(args.class_)),
        frozenset(_items(args.event_)),
        _numbers("--pid", args.pid_),
        _numbers("--tid", args.tid_),
        _numbers("--cpu", args.cpu_),
        from_ns,
        to_ns,
        window,
    )


def _window(args: argparse.Namespace) -> TimeWindow | None:
    """Return the requested range if its notation needs the whole trace (end, event numbers, wall time), else None."""
    others = [text for text in (args.from_, args.to) if text is not None and parse_since_start(text) is None]
    if not others and not args.range:
        return None
    if str(args.file) == "-":
        raise UsageError("standard input is read once; of it --from and --to take times since the first event: 1.5s")

    return window_of(open_trace(args.file), args.from_, args.to, args.range)


def _items(texts: list[str]) -> list[str]:
    return [item.strip() for text in texts for item in text.split(",") if item.strip()]


def _numbers(option: str, texts: list[str]) -> frozenset[int]:
    try:
        return frozenset(int(item, 0) for item in _items(texts))
    except ValueError as error:
        raise UsageError(f"{option} takes numbers, not {', '.join(texts)}") from error
