"""`satview target`: run a simulated target, open shells on it, and write an SDK for its C programs."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from satview.base.errors import UsageError
from satview.base.process import FINE, collected_signals, say
from satview.capture.sim.target import target
from satview.capture.workloads import registry
from satview.cli.shared.files import InputFile, add_command
from satview.cli.shared.tracelogger_options import RELEASES
from satview.events.spec import Release
from satview.target import shell
from satview.target.c_programs import write_sdk
from satview.target.line import TargetError
from satview.target.simulated import SimulatedTarget, checked_name

# Options that say what a new target is, and their defaults.
_OF_BOOT: Final[dict[str, Any]] = {"release": Release.QNX_7.value, "cpus": 2, "seed": 1, "workload": ()}
_DEFAULTS: Final[dict[str, Any]] = {"name": shell.DEFAULT_NAME, **_OF_BOOT}
_EPILOG = """\
One terminal runs the target, others are shells on it:

  satview target                                    until Ctrl+C, or `satview target --end`
  satview target --shell                            a shell: pidin, slay, tracelogger, and every workload as a program
  satview target --run 'inversion & tracelogger -w -s 2 -f run.kev; kill $!'
  satview capture sim:// --for 2s -o run.kev        captures as from a board

See docs/target.md, "Without a board".
"""


def add_parser(subparsers: Any) -> None:
    """Add the parser of the command `target` to `subparsers`, argparse's group of commands."""
    parser = add_command(subparsers, "target", "run a simulated target that stays, or a shell on it",
                         "Boot a simulated target once and keep it: shells, loggers and captures come and go.",
                         _EPILOG)  # fmt: skip
    add = parser.add_argument
    add("--name", help="name of the target, if there are several; sim://NAME captures from it")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--shell", action="store_true", help="open a shell on a running target")
    what.add_argument("--run", metavar="COMMANDS", help="run commands as in a shell on it")
    what.add_argument("--sdk", metavar="FOLDER",
                      help="write what C programs for --release compile with: headers, library, examples")  # fmt: skip
    what.add_argument("--end", action="store_true", help="end a running target")
    group = parser.add_argument_group("the target")
    group.add_argument("--release", choices=RELEASES, help="release (7.x)")
    group.add_argument("--cpus", type=int, help="1 to 64 (2)")
    group.add_argument("--seed", type=int, help="seed for everything that varies (1)")
    group.add_argument(
        "--workload", metavar="NAME|FILE.py", type=InputFile, action="append",
        help="a workload that runs as long as the target; may be given several times",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Run `satview target` with parsed arguments; return the exit code.

    Raises:
        UsageError: Options that go with a new target are given without one.
        TargetError: There is no such target.
    """
    _refuse_options_without_effect(args)
    try:
        folder = shell.folder_of(checked_name(args.name))
        if args.end:
            with shell.connect(folder) as line:
                shell.ask(line, {"do": "end"})
                list(shell.frames(line))
            return FINE
        if args.sdk is not None:
            files = write_sdk(Path(args.sdk), Release(args.release))
            print(f"{args.sdk}: {files} files; `make -C {shlex.quote(args.sdk)}` compiles the examples")
            return FINE
        if args.shell or args.run is not None:
            shell.connect(folder).close()
            return _shell(folder, args)
        return _serve(args)
    except shell.NoTargetError as error:
        raise TargetError(str(error)) from error


def _refuse_options_without_effect(args: argparse.Namespace) -> None:
    """Refuse options that say what a new target is if none is booted; set the others to their defaults."""
    others = {"--shell": args.shell, "--run": args.run is not None, "--end": args.end}
    named = [name for name in _DEFAULTS if getattr(args, name) is not None]
    if args.sdk is not None and (useless := [name for name in named if name != "release"]):
        raise UsageError(f"--sdk: cannot be used with {_flags(useless)}, because it writes files and needs no target")
    for flag, is_given in others.items():
        if is_given and (of_boot := [name for name in named if name in _OF_BOOT]):
            raise UsageError(f"{flag}: cannot be used with {_flags(of_boot)}, because it boots no target")
    for name, default in _DEFAULTS.items():
        if getattr(args, name) is None:
            setattr(args, name, default)


def _flags(names: list[str]) -> str:
    return ", ".join(f"--{name}" for name in names)


def _serve(args: argparse.Namespace) -> int:
    for name in args.workload:
        registry.find(name)
    kind = target(Release(args.release), args.cpus)
    with collected_signals() as caught:
        simulated = SimulatedTarget(args.name, kind, args.seed, say)
        try:
            for name in args.workload:
                simulated.start_workload(name)
            named = shell.named(args.name)
            print(f"QNX {kind.sys_release} (simulated, CPUs: {kind.cpus}) is up; Ctrl+C ends it\n"
                  f"  satview target{named} --shell\n"
                  f"  satview capture {shell.address(args.name)} --for 5s -o run.kev", flush=True)  # fmt: skip
            simulated.serve(lambda: bool(caught))
        finally:
            simulated.close()
    return FINE


def _shell(folder: Path, args: argparse.Namespace) -> int:
    """Run this machine's shell with the target's programs first in its path."""
    words = ["/bin/sh", *([] if args.run is None else ["-c", args.run])]
    environment = {**os.environ, **shell.variables(folder)}
    if args.run is None and sys.stdin.isatty():
        print("pidin, slay, uname, tracelogger and the workloads are those of the target; everything else, and every "
              "file, is of this machine; exit or Ctrl+D leaves it")  # fmt: skip
    return subprocess.run(words, env=environment, check=False).returncode % 256  # noqa: S603  -- the user's own shell
