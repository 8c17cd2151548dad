"""The pytest plug-in: fixtures `kev`, `kev_file`, `kev_names`, `kev_timing`; baselines; pictures of failed assertions.

pytest imports this module in every environment with satview installed, so what brings numpy is imported only when a
test uses `kev`, and options of other plug-ins are not overridden.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from satview.base.errors import SatviewError
from satview.base.safe_text import counted

if TYPE_CHECKING:
    from satview.opened import OpenedTrace
    from satview.testing.figure import Baseline, ClaimResults, Pictures
    from satview.testing.kev import Kev

_MAX_OPEN = 2  # maximum number of open traces cached between tests: the tests of one file mostly share a trace
_FOLDER = "kev-pictures"
_SETTINGS = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini")  # files that are settings in any case
_baseline: pytest.StashKey[Baseline] = pytest.StashKey()
_pictures: pytest.StashKey[Pictures] = pytest.StashKey()
_opened: pytest.StashKey[dict[Path, OpenedTrace]] = pytest.StashKey()
_claims: pytest.StashKey[ClaimResults] = pytest.StashKey()
_skipped: pytest.StashKey[int] = pytest.StashKey()
_fault: pytest.StashKey[str] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add options and settings, except `--baseline` (see `pytest_load_initial_conftests`)."""
    group = parser.getgroup("satview", "kernel traces of QNX (satview)")
    group.addoption("--kev", metavar="FILE", help="the trace that the fixture `kev` opens")
    group.addoption("--kev-baseline", dest="kev_baseline", metavar="FILE", help=_HELP_BASELINE)
    group.addoption("--update-kev-baseline", action="store_true", help="write the values of this run into that file")
    group.addoption(
        "--kev-pictures", metavar="DIR", help=f"where pictures of failures go (default: {_FOLDER}); `none` takes none"
    )
    parser.addini("kev_file", "the trace that the fixture `kev` opens, relative to the folder of this file")
    parser.addini("kev_timing", "file of deadlines, periods and chains, relative to the folder of this file")
    parser.addini("kev_pictures", f"where pictures of failures go (default: {_FOLDER}); `none` takes none", default="")


_HELP_BASELINE = "compare values with those of an earlier run in this file; it is made if it is not there"


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(parser: pytest.Parser) -> Generator[None, None, None]:
    """Add `--baseline` as an alias of `--kev-baseline`, unless another plug-in has added that option."""
    result = yield
    try:
        _, unknown = parser.parse_known_and_unknown_args(["--baseline=x"])
        if "--baseline=x" in unknown:
            group = parser.getgroup("satview")
            group.addoption("--baseline", dest="kev_baseline", metavar="FILE", help=_HELP_BASELINE)
    except Exception:  # noqa: BLE001, S110  -- the alias is optional and must not break other plug-ins
        pass
    return result


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker `kev`, and read the baseline file if the option is given.

    Raises pytest.UsageError if `--update-kev-baseline` is given without a baseline file, if the file cannot be read, or
    if pytest has mistaken the trace after `--kev` for a test file, and ignores the settings of the project.
    """
    folder = config.invocation_params.dir
    settings = next((path for name in _SETTINGS if (path := folder / name).is_file()), None)
    is_ignored = settings is not None and config.inipath != settings and not config.getoption("inifilename", None)
    if is_ignored and "--kev" in config.invocation_params.args:
        raise pytest.UsageError(
            f"pytest mistakes the file after --kev for a test file, and ignores {settings}: write "
            f"--kev={config.getoption('kev')}"
        )
    config.addinivalue_line("markers", "kev(path): the trace that the fixture `kev` opens, relative to the test's file")
    option = config.getoption("kev_baseline", None)
    if option is None:
        if config.getoption("update_kev_baseline", False):
            raise pytest.UsageError("--update-kev-baseline needs --baseline FILE")
        return
    from satview.testing.figure import read_baseline

    try:
        config.stash[_baseline] = read_baseline(_seen_from(config.invocation_params.dir, option))
    except SatviewError as error:
        raise pytest.UsageError(str(error)) from error


@pytest.fixture(scope="session")
def kev_names() -> Mapping[str, str]:
    """Return the project's own names of events, each with its expression; projects override this fixture."""
    return {}


@pytest.fixture(scope="session")
def kev_timing(pytestconfig: pytest.Config) -> Path | None:
    """Return the timing file of the setting `kev_timing`, or None; projects may override this fixture."""
    setting = pytestconfig.getini("kev_timing")
    return _seen_from(_settings_folder(pytestconfig), setting) if setting else None


@pytest.fixture
def kev_file(request: pytest.FixtureRequest) -> Path:
    """Return the trace file: of the marker `kev`, else `--kev`, else the setting `kev_file`; may be overridden."""
    config = request.config
    marker = request.node.get_closest_marker("kev")
    if marker is not None and marker.args:
        return _seen_from(request.path.parent, marker.args[0])
    if option := config.getoption("kev"):
        return _seen_from(config.invocation_params.dir, option)
    if setting := config.getini("kev_file"):
        return _seen_from(_settings_folder(config), setting)
    pytest.fail(
        "no trace: give --kev FILE, the setting kev_file, @pytest.mark.kev(FILE), or a fixture kev_file", pytrace=False
    )


@pytest.fixture
def kev(request: pytest.FixtureRequest, kev_file: Path, kev_names: Mapping[str, str], kev_timing: Path | None) -> Kev:
    """Return a trace with methods for assertions (docs/ci.md)."""
    from satview.analysis.activities import read_timing
    from satview.testing.figure import ClaimResults
    from satview.testing.kev import Kev

    config = request.config
    claims = request.node.stash[_claims] = ClaimResults(request.node.nodeid, config.stash.get(_baseline, None))
    timing = {} if kev_timing is None else read_timing(Path(kev_timing))
    return Kev(_trace(config, Path(kev_file)), kev_names, claims, timing)


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Explain a failed comparison of a `Figure` by its description and location instead of two numbers."""
    if type(left).__module__ != "satview.testing.figure" and type(right).__module__ != "satview.testing.figure":
        return None
    from satview.testing.figure import Figure, claim_lines

    if isinstance(left, Figure):
        return list(claim_lines(left, op, right))
    mirrored = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(op, op)
    return list(claim_lines(right, mirrored, left)) if isinstance(right, Figure) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add location, command and picture to the report of a failed assertion."""
    report = yield
    claims = item.stash.get(_claims, None)
    if claims is None or report.when != "call":
        return report
    item.config.stash[_skipped] = item.config.stash.get(_skipped, 0) + claims.skipped
    is_claim = call.excinfo is not None and call.excinfo.errisinstance(AssertionError)
    if report.failed and is_claim and claims.locations:
        location = claims.locations[-1]
        picture = _pictures_of(item.config).take(location, item.nodeid)
        lines = [f"{location}", location.command, f"picture: {picture}"]
        add_section = getattr(report.longrepr, "addsection", None)  # a failure without a traceback has none
        if add_section is not None:
            add_section("satview", "\n".join(lines))
        item.user_properties += [("satview.location", str(location)), ("satview.command", location.command),
                                 ("satview.picture", picture)]  # fmt: skip
        report.user_properties = list(item.user_properties)
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the baseline file; a pytest-xdist worker sends its values to the controller instead."""
    config = session.config
    baseline = config.stash.get(_baseline, None)
    if hasattr(config, "workeroutput"):
        config.workeroutput["satview"] = [baseline.now if baseline else {}, config.stash.get(_skipped, 0)]
        return
    if baseline is None or not baseline.now or not (baseline.before is None or config.getoption("update_kev_baseline")):
        return
    from satview.testing.figure import write_baseline

    try:
        write_baseline(_seen_from(config.invocation_params.dir, config.getoption("kev_baseline")), baseline.merged())
    except SatviewError as error:
        config.stash[_fault] = f"no baseline was written: {error}"
        session.exitstatus = pytest.ExitCode.USAGE_ERROR


def pytest_unconfigure(config: pytest.Config) -> None:
    """Release the cached traces, which map their files into memory."""
    if _opened in config.stash:
        config.stash[_opened].clear()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add the measured values and the number of skipped comparisons of a pytest-xdist worker."""
    measured, skipped = getattr(node, "workeroutput", {}).get("satview", ({}, 0))
    config: pytest.Config = node.config
    if _baseline in config.stash:
        config.stash[_baseline].add(measured)
    config.stash[_skipped] = config.stash.get(_skipped, 0) + skipped


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print how many values were compared with the baseline, and how many were not."""
    for line in _summary(config):
        terminalreporter.write_line(f"satview: {line}")


def _summary(config: pytest.Config) -> list[str]:
    baseline, skipped = config.stash.get(_baseline, None), config.stash.get(_skipped, 0)
    if fault := config.stash.get(_fault, ""):
        return [fault]
    if baseline is None:
        return [f"{_values(skipped)} with a baseline, not compared: no --baseline FILE"] if skipped else []
    if not baseline.now:
        return []
    name = config.getoption("kev_baseline")
    if baseline.before is None:
        return [f"{name}: made, with {_values(baseline.count)} of this run"]
    if config.getoption("update_kev_baseline"):
        return [f"{name}: written, with {_values(baseline.count)} of this run"]
    fresh = f", {baseline.new_count} new not: add with --update-kev-baseline" if baseline.new_count else ""
    return [f"{name}: {_values(baseline.count - baseline.new_count)} compared{fresh}"]


def _values(count: int) -> str:
    return counted(count, "value")


def _trace(config: pytest.Config, path: Path) -> OpenedTrace:
    """Return an opened trace, from the cache of the traces opened last if possible."""
    from satview.opened import open_trace

    cache = config.stash.setdefault(_opened, {})
    if path not in cache:
        try:
            cache[path] = open_trace(path)
        except (SatviewError, OSError) as error:
            pytest.fail(f"{path}: {error}", pytrace=False)
        for old in list(cache)[:-_MAX_OPEN]:
            del cache[old]
    return cache[path]


def _pictures_of(config: pytest.Config) -> Pictures:
    from satview.testing.figure import Pictures

    if _pictures not in config.stash:
        option = config.getoption("kev_pictures")
        name = str(option or config.getini("kev_pictures") or _FOLDER)
        home = config.invocation_params.dir if option else config.rootpath
        config.stash[_pictures] = Pictures(None if name == "none" else _seen_from(home, name))
    return config.stash[_pictures]


def _settings_folder(config: pytest.Config) -> Path:
    return config.inipath.parent if config.inipath else config.rootpath


def _seen_from(folder: Path, name: str | Path) -> Path:
    return folder / Path(name).expanduser()
