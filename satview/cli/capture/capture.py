"""`satview capture ssh://board -o run.kev`: capture on a target over ssh; `satview targets` lists known targets."""

from __future__ import annotations

import argparse
import os
import re
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from satview.base.errors import SatviewError, UsageError
from satview.base.new_file import find_target, refuse_ending
from satview.base.process import COST_DATA, FINE, collected_signals, say
from satview.base.safe_text import counted, visible, visible_line
from satview.capture.flight_recorder import Bounds, disk_bytes
from satview.cli.convert.filter import print_report, report_nothing
from satview.cli.shared.files import InputFile, OutputFile, RuleFile, add_command
from satview.cli.shared.terminal import going_on, working, working_on
from satview.cli.shared.traces import seconds
from satview.export.kev import SubsetReport
from satview.filters.diagnostics import RuleError
from satview.filters.rules.handlers import Handlers
from satview.filters.rules.text import read_rule_text
from satview.store.axis import SUFFIX
from satview.target.capture import Captured, capture_all, check_names, write_captures_axis
from satview.target.line import Profile, check_profile, find_profile, read_profiles, targets_file
from satview.target.request import TargetRequest, filter_capture

_FILTERS: Final = range(12)
_MOST_S: Final = 86_400
_RECORDER_DAYS: Final = 366
_FILES_SHOWN: Final = 3
_EPILOG: Final = """\
satview uses your own ssh with its config, keys and agent; it installs nothing on the target and leaves it as it was.

  satview capture ssh://root@192.168.1.20 --for 10s -o run.kev
  satview capture ssh://root@board:2222 -w -F 2 --until-key
  satview capture host guest --for 5s -o both.sataxis
  satview capture rig -r mine.satrules --ring -o incident.kev      (rig: see `satview targets`)

Exit status: 0 success, 1 the file is not all that was asked for (the line broke, the disk was full, buffers were lost),
2 nothing was captured. See docs/target.md.
"""


def add_parser(subparsers: Any) -> None:
    """Add the parsers of `capture` and `targets` to `subparsers`, argparse's group of commands."""
    parser = add_command(subparsers, "capture", "capture a trace on a target over ssh",
                         "Start tracelogger on a target over ssh, and write what it sends to a file as it arrives.",
                         _EPILOG)  # fmt: skip
    add = parser.add_argument
    add("targets_named", metavar="TARGET", nargs="+",
        help="ssh://[user@]host[:port], sim:// for a running simulated target, or a name that `satview targets` "
        "lists; several end as one axis")  # fmt: skip
    add("-o", "--output", metavar="OUT", type=OutputFile,
        help="the file to write (default: TARGET.kev); of several targets X.sataxis, beside X-TARGET.kev")  # fmt: skip
    add("-r", "--rules", metavar="RULES", type=RuleFile, default="",
        help="capture what these rules let pass; what no option of tracelogger can say is filtered later")  # fmt: skip
    add("--allow-code", action="store_true", help="let the rules call Python functions")
    add("-w", dest="wide", action="store_true", help="wide events")
    add("-F", dest="without", metavar="num", type=int, action="append", default=[],
        help="leave out: 1 kernel calls, 2 interrupts, 3 processes, 4 threads, 5 virtual threads, 6 communication, "
        "7 system")  # fmt: skip
    add("-k", dest="kernel_buffers", metavar="num", type=int, help="kernel buffers of 16 KiB (32)")
    add("-b", dest="own_buffers", metavar="num", type=int, help="buffers in the logger itself (64)")
    add("--ring", action="store_true", help="keep the newest buffers on the target, and fetch them at the end")
    add("--every", action="store_true",
        help="with --ring and a rule WHEN ... THEN STOP: a file for each incident, then the next one")  # fmt: skip
    add("--files", metavar="N", type=int, default=0, help="with --every: keep the newest N files")
    add("--disk", metavar="SIZE", help="with --every: keep the newest files, up to this size in all: 500M, 2GB")
    end = parser.add_mutually_exclusive_group()
    end.add_argument("--for", dest="seconds", metavar="TIME", type=seconds,
                     help="capture for this long: seconds, or 500ms, 2min")  # fmt: skip
    end.add_argument("--until-key", action="store_true",
                     help="capture until a key is pressed, the default on a terminal; Ctrl+C ends it too")  # fmt: skip
    _add_targets_file(add)
    add("--ssh-option", dest="ssh_options", metavar="WORD", action="append", default=[],
        help="one more word for ssh, as in --ssh-option=-F --ssh-option=board.config; repeatable")  # fmt: skip
    parser.set_defaults(run=run)
    listing = subparsers.add_parser(
        "targets",
        help="list the targets that have a name",
        description="List the targets that satview capture knows by name, from targets.toml in the folder of settings.",
    )
    _add_targets_file(listing.add_argument)
    listing.set_defaults(run=_list_targets)


def _add_targets_file(add: Any) -> None:
    add("--targets", metavar="FILE.toml", type=InputFile, default="",
        help="file of targets (default: targets.toml in the folder of settings)")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Run `capture` or `targets`; return the exit code."""
    return int(args.run(args)) if args.run is not run else _capture(args)


def _targets_file(args: argparse.Namespace) -> Path:
    return Path(args.targets) if args.targets else targets_file()


def _list_targets(args: argparse.Namespace) -> int:
    file = _targets_file(args)
    profiles = read_profiles(file)
    if not profiles:
        print(f"no target has a name yet; write {visible_line(str(file))}, for example:\n")
        print('[rig]\naddress = "ssh://root@192.168.1.20"')
    width = max(map(len, profiles), default=0)
    for name, profile in profiles.items():
        more = [f"rules {profile.rules}"] * bool(profile.rules) + ["wide"] * profile.is_wide
        print(visible_line("  ".join([f"{name:<{width}}", profile.address, *more])))
    return FINE


def _capture(args: argparse.Namespace) -> int:
    is_axis = len(args.targets_named) > 1
    if is_axis and Path(args.output or "").suffix != SUFFIX:
        raise UsageError(f"several targets end as one time axis; write -o NAME{SUFFIX}")
    requests = [_request(args, target) for target in args.targets_named]
    check_names(requests)
    names = [request.profile.title for request in requests]
    with collected_signals() as caught, _key(args) as is_pressed:
        hint = " (a key ends it)" if is_pressed is not None else ""
        with going_on(f"capturing on {', '.join(names)}{hint}") as tell:
            results = capture_all(requests, lambda: bool(caught or (is_pressed and is_pressed())), tell, say)
    is_whole, captures = True, []
    for name, request, result in zip(names, requests, results, strict=True):
        if isinstance(result, RuleError):
            for fault in result.diagnostics:
                print(visible(f"{Path(request.rules_name).name}:{fault.line}:{fault.column}: {fault.message}"),
                      file=sys.stderr)  # fmt: skip
            raise UsageError("the rules have errors; nothing was captured")
        if isinstance(result, SatviewError):
            if not is_axis:
                raise result
            say(str(result))
            is_whole = False
            continue
        _report(result, name)
        is_whole &= not result.faults
        if result.path != request.path:
            is_whole &= _filter(result.path, request)
        captures.append((name, request.path, result))
    if is_axis:
        if len(captures) < 2:
            raise UsageError(f"{Path(args.output).name}: an axis needs two traces, and {len(captures)} came")
        write_captures_axis(Path(args.output), captures)
    return FINE if is_whole else COST_DATA


def _request(args: argparse.Namespace, target: str) -> TargetRequest:
    """Return the capture that the options request on one target."""
    file = _targets_file(args)
    profile: Profile = find_profile(target, file)
    profile = check_profile(replace(
        profile,
        ssh_options=(*profile.ssh_options, *args.ssh_options),
        kernel_buffers=profile.kernel_buffers if args.kernel_buffers is None else args.kernel_buffers,
        own_buffers=profile.own_buffers if args.own_buffers is None else args.own_buffers,
    ))  # fmt: skip
    rules = args.rules or ("" if args.wide or args.without else _beside(file, profile.rules))
    if args.rules and (args.wide or args.without):
        raise UsageError("-r says which events there are and which are wide; leave out -w and -F, or -r")
    if bad := [number for number in args.without if number not in _FILTERS]:
        raise UsageError(f"-F {bad[0]} is not a filter of tracelogger; there are 1 to 7, and 11 in 6.x")
    days = _RECORDER_DAYS if args.every else 1
    if args.seconds is not None and not 0 < args.seconds <= days * _MOST_S:
        raise UsageError(f"--for {args.seconds:g}: must be more than 0, and {counted(days, 'day')} at most")
    is_wide = not rules and (args.wide or profile.is_wide)
    title = re.sub(r"[^\w.-]", "_", profile.title)
    output = Path(args.output or f"{title}.kev")
    if len(args.targets_named) > 1:
        output = output.with_name(f"{output.stem}-{title}.kev")
    if str(output) == "-":
        raise UsageError("-o -: a capture needs a file; follow it with `satview --follow FILE` while it grows")
    find_target(output, [rules] if rules else [])
    refuse_ending(output, ".kev")  # fails before anything starts on the target
    return TargetRequest(
        profile,
        output,
        filters=(*["-w"] * is_wide, *(word for number in args.without for word in ("-F", str(number)))),
        rules=read_rule_text(rules) if rules else "",
        rules_name=rules,
        functions_of=lambda release: Handlers(lambda _path: args.allow_code, release, Path(rules).parent, say),
        seconds=args.seconds or 0.0,
        is_ring=args.ring,
        bounds=_bounds(args, profile),
    )


def _bounds(args: argparse.Namespace, profile: Profile) -> Bounds | None:
    """Return the limits that --every, --files and --disk set; None without these options."""
    if not args.every and not args.files and not args.disk:
        return None
    if len(args.targets_named) > 1:
        raise UsageError("--every writes many files, and an axis is of one file for each target; capture one target")
    if not args.every:
        raise UsageError("--files and --disk are for --every; without it there is one file")
    if args.files < 0:
        raise UsageError(f"--files {args.files}: must be a number of files")
    if not args.ring:
        raise UsageError("--every needs --ring, and a rule that ends an incident: WHEN ... THEN STOP")
    limit = disk_bytes(args.disk, "--disk") if args.disk else 0
    return Bounds(profile.kernel_buffers, args.every, args.files, limit)


def _beside(file: Path, name: str) -> str:
    """Return the path of a file named in the targets file, relative to the folder of that file; empty for no name."""
    return str(file.parent / name) if name else ""


@contextmanager
def _key(args: argparse.Namespace) -> Iterator[Callable[[], bool] | None]:
    """Yield a function that tells whether a key was pressed; None without a terminal, or if --for ends the capture."""
    if args.seconds:
        yield None
        return
    if sys.stdin is None or not sys.stdin.isatty():
        if args.until_key:
            raise UsageError("--until-key needs a terminal; use --for 10s, or end the capture with Ctrl+C")
        yield None
        return
    if os.name == "nt":
        import msvcrt

        yield lambda: bool(msvcrt.kbhit())  # type: ignore[attr-defined,unused-ignore]
        return
    import termios
    import tty

    terminal = sys.stdin.fileno()
    if os.tcgetpgrp(terminal) != os.getpgrp():  # in the background (`&`): keys go to another program
        yield None
        return
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)  # keys need no Enter; Ctrl+C stays a signal
    try:
        yield lambda: bool(select.select([terminal], [], [], 0)[0])
    finally:
        termios.tcsetattr(terminal, termios.TCSAFLUSH, before)


def _report(captured: Captured, name: str) -> None:
    """Print the files and figures of a capture, and report its faults and notes."""
    release = f"QNX {captured.board.sys_release}" if captured.board.sys_release else "of an unknown release"
    lost = f"{counted(captured.lost, 'buffer')} lost" if captured.lost else "none lost"
    soon = f", the first after {captured.first_buffer_s:.1f} s" if captured.first_buffer_s else ""
    shown = ", ".join(map(str, captured.files[-_FILES_SHOWN:])) or str(captured.path)
    more = f"{len(captured.files)} files, the last ones " * (len(captured.files) > _FILES_SHOWN)
    print(visible_line(
        f"{more}{shown}: {captured.received / 1e6:.1f} MB in {captured.seconds:.1f} s from {name} ({release}), "
        f"{counted(captured.buffers, 'buffer')}{soon}, {lost}"
    ))  # fmt: skip
    if captured.offset is not None:
        print(f"clock of {name}: {captured.offset}")
    for text in (*captured.faults, *captured.notes):
        say(visible_line(text))


def _filter(path: Path, request: TargetRequest) -> bool:
    """Write the events of a captured file that pass the rules to the requested file; return whether any passed."""

    def tell(written: SubsetReport, reason: str) -> None:
        print_report(written)
        if reason:
            report_nothing(reason)

    with working(working_on("filtering", request.path)) as report:
        return filter_capture(path, request, report, tell=tell)
