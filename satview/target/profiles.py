"""Addresses and settings of targets, given as an address such as `ssh://root@board:2222` or a name in the user's file.

`sim://` is the simulated target that `satview target` runs on this machine, `sim://NAME` the simulated target NAME.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Final

import msgspec
from platformdirs import user_config_path

from satview.base.errors import SatviewError, UsageError
from satview.base.shared_file import DamagedFileError, as_declared, read_shared
from satview.target import shell

_FILE_BYTES_MAX: Final = 1 << 20
MOST_BUFFERS: Final = 4096
# A host never begins with `-`, which ssh would take for an option; names in ssh's config have the same characters.
_ADDRESS: Final = re.compile(
    r"ssh://(?:(?P<user>[\w][\w.\\-]*)@)?(?P<host>[\w][\w.-]*|\[[0-9a-fA-F:]+(?:%\w+)?\])(?::(?P<port>[0-9]{1,5}))?/?",
    re.ASCII,
)
_SIMULATED: Final = re.compile(rf"sim://(?P<name>{shell.NAME.pattern})?/?", re.ASCII)
_FOLDER: Final = "^(/[A-Za-z0-9_.-]+)+$"  # inserted into a script for the target's shell
Buffers = Annotated[int, msgspec.Meta(ge=1, le=MOST_BUFFERS)]


class TargetError(SatviewError):
    """A target, or the connection to it, cannot be used for a capture; the text states the problem and the remedy."""


class GivenUpError(TargetError):
    """The caller gave up before the target answered."""

    def __init__(self) -> None:
        super().__init__("stopped before the capture began; nothing was started")


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A target, and default settings for its captures.

    Attributes:
        address: `ssh://[user@]host[:port]`, where the host may be a name in the user's ssh config; or `sim://[name]`.
        ssh_options: Additional options for ssh, such as `["-F", "board.config"]`.
        rules: File with rules; empty = all events.
        is_wide: Log wide events, unless the rules specify the form.
        kernel_buffers: `-k` of tracelogger.
        own_buffers: `-b` of tracelogger.
        memory_folder: Folder for the trace file on a target before 6.6, whose tracelogger cannot stream.
        qcc: Command of the C compiler for the target; it builds a program from rules that tracelogger's options cannot
            express. Empty = no compiler, such rules filter the trace on this machine.
        name: Name in files and messages; empty = the host name.
    """

    address: str
    ssh_options: tuple[str, ...] = ()
    rules: str = ""
    is_wide: bool = msgspec.field(default=False, name="wide")
    kernel_buffers: Buffers = 32
    own_buffers: Buffers = 64
    memory_folder: Annotated[str, msgspec.Meta(pattern=_FOLDER)] = "/dev/shmem"  # noqa: S108  -- on the target
    qcc: str = ""
    name: str = ""

    @property
    def simulated(self) -> str:
        """Name of the simulated target on this machine; empty for a target reached by ssh."""
        match = _SIMULATED.fullmatch(self.address)
        return (match["name"] or shell.DEFAULT_NAME) if match is not None else ""

    @property
    def host(self) -> str:
        """The host in the form that ssh accepts, or the name of a simulated target."""
        return self.simulated or self._parts()["host"].strip("[]")

    @property
    def title(self) -> str:
        """Name of the target in messages."""
        return self.name or self.host

    def ssh_words(self) -> list[str]:
        """Return the ssh arguments for user, port and host; the command for the target follows them.

        Raises:
            UsageError: The address is invalid.
        """
        if self.simulated:
            return []
        parts = self._parts()
        user = ["-l", parts["user"]] if parts["user"] else []
        port = ["-p", parts["port"]] if parts["port"] else []
        return [*user, *port, "--", self.host]

    def _parts(self) -> dict[str, str]:
        match = _ADDRESS.fullmatch(self.address)
        if match is None or not 0 < int(match["port"] or 22) < 1 << 16:
            raise UsageError(f"{self.address[:80]!a} is no address of a target; write ssh://user@host:port, for "
                             "example ssh://root@192.168.1.20, or sim:// for the target that `satview target` runs"
                             )  # fmt: skip
        return match.groupdict()


def check_profile(profile: Profile) -> Profile:
    """Return the profile unchanged if all of its values are valid.

    Raises:
        UsageError: A value is not valid.
    """
    try:
        as_declared(msgspec.to_builtins(profile), Profile)
    except DamagedFileError as error:
        raise UsageError(f"{profile.title}: {error}") from error
    return profile


def targets_file() -> Path:
    """Return the path of the user's file of targets; the file may not exist."""
    return user_config_path("satview", appauthor=False) / "targets.toml"


def read_profiles(path: Path) -> dict[str, Profile]:
    """Return the targets in a file by name; an empty dict if the file does not exist.

    Raises:
        UsageError: The file cannot be read, or has invalid content; the text states where.
    """
    try:
        data = read_shared(path, _FILE_BYTES_MAX) or b""
        profiles = as_declared(tomllib.loads(data.decode("utf-8")), dict[str, Profile])
    except (DamagedFileError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path.name}: {error}; correct it there, or remove the file") from error
    except OSError as error:
        raise UsageError(f"{path.name}: {error.strerror or error}") from error
    named = {name: msgspec.structs.replace(profile, name=name) for name, profile in profiles.items()}
    for name, profile in named.items():
        try:
            profile.ssh_words()
        except UsageError as error:
            raise UsageError(f"{path.name}: target {name!a}: {error}") from None
    return named


def find_profile(text: str, path: Path) -> Profile:
    """Return the target that `text` specifies: by an address, or by a name in a file of targets.

    Raises:
        UsageError: The address is invalid, or the file has no such name; the text lists the names in the file.
    """
    if "://" in text:
        profile = Profile(text)
        profile.ssh_words()
        return _on_this_machine(profile) if profile.simulated else profile
    profiles = read_profiles(path)
    if text not in profiles:
        known = ", ".join(sorted(profiles)) or "none yet"
        raise UsageError(f"there is no target {text[:60]!a} in {path.name} (there are: {known}); write its address as "
                         "ssh://user@host, or add it to that file")  # fmt: skip
    return _on_this_machine(profiles[text]) if profiles[text].simulated else profiles[text]


def _on_this_machine(profile: Profile) -> Profile:
    """Return the profile of a simulated target with `memory_folder` set to a folder on this machine.

    Raises:
        UsageError: This system does not support simulated targets.
    """
    try:
        folder = shell.folder_of(profile.simulated)
    except shell.NoTargetError as error:
        raise UsageError(str(error)) from error
    return msgspec.structs.replace(profile, memory_folder=str(folder / "shmem"))
