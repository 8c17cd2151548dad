"""Rules as a program of the target: built here by the user's compiler, copied there, started beside tracelogger.

`qcc` in the file of targets is the command, for example "/opt/qnx710/host/linux/x86_64/usr/bin/qcc -Vgcc_ntoaarch64le".
The shell that starts tracelogger ends the program and removes its file, however the capture ends.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from satview.base.child import absolute_program
from satview.base.new_file import write_file
from satview.base.safe_text import visible_line
from satview.target.arrival import Checksum
from satview.target.line import OWN_WORDS, Line
from satview.target.profiles import Profile, TargetError

_BUILD_S: Final = 120.0
_PROGRAM_BYTES_MAX: Final = 64 << 20
_ERROR: Final = re.compile(r"\berror\b|undefined reference", re.IGNORECASE)
PROGRAM, ENDED = f"{OWN_WORDS}program", f"{OWN_WORDS}program-ended"  # with its pid, and with its status
# tracelogger has to wait for the trace by then. If the program ends by itself, nothing ends the logger but this.
START: Final = f"""( trap exit TERM; sleep 1; {{program}} & child=$!; is_over=; trap 'is_over=1; kill -TERM $child' TERM
echo {PROGRAM} $child >&2; wait $child; code=$?; wait $child
[ $is_over ] || {{{{ echo {ENDED} $code >&2; kill -TERM $logger; }}}} ) </dev/null 3<&- >&2 &
program=$!"""
END: Final = """kill -TERM $program 2>/dev/null
wait $program
rm -f {program}"""


def built_program(source: str, profile: Profile, say: Callable[[str], None]) -> bytes:
    """Return the program that the user's compiler makes of a source.

    Args:
        source: In C.
        profile: Whose `qcc` is the command.
        say: Gets the command.

    Raises:
        TargetError: There is no such compiler, or it reports an error; says the first one.
    """
    try:
        words = shlex.split(profile.qcc)
    except ValueError as error:
        raise TargetError(f"qcc of {profile.title} is no command: {error}; correct it in targets.toml") from error
    compiler = absolute_program(words[0]) if words else None
    if compiler is None:
        raise TargetError(f"there is no compiler {profile.qcc[:80]!a} here; correct qcc of {profile.title} in "
                          "targets.toml")  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="satview-") as folder:
        write_file(Path(folder, "rules.c"), source)
        command = [compiler, *words[1:], "-o", "rules", "rules.c"]
        say(visible_line(f"the rules run on {profile.title} as a program in C: {shlex.join(command)}"))
        try:
            done = subprocess.run(  # noqa: S603  -- the command that the user's own file names, just shown
                command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=_BUILD_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise TargetError(f"the compiler of {profile.title} did not build the rules: {error}") from error
        lines = (done.stderr + done.stdout).decode("utf-8", "replace").splitlines()
        program = Path(folder, "rules")
        if done.returncode or not program.is_file():
            said = next(filter(_ERROR.search, lines), next(iter(lines), f"exit status {done.returncode}"))
            raise TargetError(f"the compiler of {profile.title} did not build the rules: {visible_line(said)[:300]}; "
                              "correct qcc in targets.toml, or remove it there to filter here")  # fmt: skip
        if program.stat().st_size > _PROGRAM_BYTES_MAX:
            raise TargetError(f"the program of the rules has more than {_PROGRAM_BYTES_MAX >> 20} MB")
        return program.read_bytes()


def copy_program(program: bytes, file: str, line: Line) -> None:
    """Copy a program to the target, where only its user may run it.

    Raises:
        TargetError: It did not come there as a whole; nothing is left of it.
    """
    checksum = Checksum()
    checksum.add(program)
    said = line.ask(f"umask 077; trap 'rm -f {file}' HUP INT TERM; cat > {file} && chmod 700 {file} && cksum < {file}",
                    data=program)  # fmt: skip
    if said.split()[:2] != [str(checksum.value()), str(len(program))]:
        line.ask(f"rm -f {file}; true")
        raise TargetError(f"the program of the rules could not be copied to {file} on {line.profile.title}; make room "
                          "there, or name another memory_folder in targets.toml")  # fmt: skip
