"""A read-only server of the Model Context Protocol over standard input and output.

The server opens only traces below the folders that it was started with, does not use the network, and writes nothing
except temporary files of pictures.
"""

from __future__ import annotations

import tempfile
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import wraps
from inspect import cleandoc
from pathlib import Path
from threading import RLock
from typing import Any, Final

from satview.analysis.reasons.why import why
from satview.analysis.timing import read_timing
from satview.analysis.verdicts.find import find_verdicts, verdicts_of
from satview.analysis.verdicts.rule import rules
from satview.analysis.verdicts.thresholds import read_thresholds
from satview.base.child import screenshot
from satview.base.errors import SatviewError, UsageError
from satview.base.extras import required
from satview.base.named_files import name_fault, only_below
from satview.base.resources import resource_path
from satview.base.safe_text import visible_line
from satview.base.time_text import parse_moment_inside
from satview.events.user_events import UserEvent
from satview.formats.registry import open_trace
from satview.look.answers import Subject, as_text, handle_of, lateness, look, verdict_details
from satview.session.events.event_text import why_details
from satview.store.arguments import describe_events
from satview.store.trace import Trace
from satview.tables.question import Limits
from satview.tables.result import value_text
from satview.tables.schema import SCHEMAS
from satview.tables.sql import start_query
from satview.tables.views import views

_MAX_OPEN: Final = 2
_MAX_ROWS: Final = 200
_LIMITS: Final = Limits(time_s=30.0, memory_bytes=1 << 30, answer_bytes=64 << 20)
_SIZE: Final = "1400x860"
_MAX_TRACES: Final = 500
_PATTERNS: Final = ("*.kev", "*.kev.gz", "*.kev.zst", "*.qst")
_Tool = Callable[..., str | bytes]


@dataclass(slots=True)
class Answers:
    """The tools of the server; the docstring of a tool is its description in the protocol.

    Attributes:
        roots: Folders below which traces are opened.
        opened: Cache of the traces used last, by path, size and modification time.
        one_at_a_time: Lock that a tool holds while it uses a trace; `sql` releases it while the query runs.
        described: Descriptions of events by code, for all traces.
    """

    roots: Sequence[Path]
    opened: OrderedDict[tuple[Path, int, int], Trace] = field(default_factory=OrderedDict)
    one_at_a_time: RLock = field(default_factory=RLock)
    described: Mapping[int, UserEvent] = field(default_factory=dict)

    def path(self, name: str) -> Path:
        """Return the path of a file below one of the folders.

        Raises:
            UsageError: There is no such file.
        """
        for root in self.roots if not name_fault(name) else ():
            path = (root / name).resolve()
            if self._is_open(path) and path.exists():
                return path
        raise UsageError(f"{name[:200]!a} is no file below {', '.join(map(str, self.roots))}; `traces` lists them")

    def trace(self, name: str) -> Trace:
        """Return an opened trace; a cached trace is used if its file has not changed."""
        path = self.path(name)
        status = path.stat()
        key = (path, status.st_size, status.st_mtime_ns)
        if key not in self.opened:
            with only_below(self.roots):
                self.opened[key] = open_trace(path)
            describe_events(self.opened[key], self.described)
            while len(self.opened) > _MAX_OPEN:
                self.opened.popitem(last=False)
        self.opened.move_to_end(key)
        return self.opened[key]

    def _is_open(self, path: Path) -> bool:
        """Return whether a path is below one of the folders after following links."""
        return any(path.resolve().is_relative_to(root.resolve()) for root in self.roots)

    def traces(self) -> str:
        """List the traces below the folders that the server was started with."""
        names = sorted(str(path.relative_to(root)) for root in self.roots for pattern in _PATTERNS
                       for path in root.rglob(pattern) if path.is_file() and self._is_open(path))  # fmt: skip
        more = f"\nand {len(names) - _MAX_TRACES:,} more" if len(names) > _MAX_TRACES else ""
        return "\n".join(names[:_MAX_TRACES]) + more if names else "there are none"

    def look(self, trace: str, handle: str = "") -> str:
        """Describe a trace or an object in it. Start here: without a handle, summarize the trace and its problems.

        Args:
            trace: Name of the file, as `traces` lists it.
            handle: t-N thread, p-N process, c-N CPU, e-N event, v-N verdict, m-N message; empty for the whole trace.
        """
        return as_text(look(self.trace(trace), handle))

    def verdicts(self, trace: str, timing: str = "") -> str:
        """List the problems found in a trace: deadlocks, priority inversions, starvation, slow servers, lost data.

        Args:
            trace: Name of the file.
            timing: A timing file with deadlines, periods and chains to check too; empty for none.
        """
        opened = self.trace(trace)
        answers = [as_text(look(opened, f"v-{number}")) for number in range(1, len(verdicts_of(opened)) + 1)]
        if timing:
            limits = read_thresholds(None, self.path(timing))
            kinds = [kind for kind, rule in rules().items() if rule.timing]
            answers += [as_text(verdict_details(opened, verdict)) for verdict in find_verdicts(opened, limits, kinds)]
        return "\n\n".join(answers) or "nothing found; look says what the trace cannot show"

    def why(self, trace: str, thread: str, at: str) -> str:
        """Explain why a thread runs, is ready or waits at a moment: the chain of causes, down to the root cause.

        Args:
            trace: Name of the file.
            thread: A handle t-N, a label, a name or PID:TID.
            at: The moment: a time such as 1.25s or 350us, or #4711 for the time of an event.
        """
        opened = self.trace(trace)
        cycles = parse_moment_inside(at, opened.time_axis)
        return as_text(why_details(opened, why(opened, _thread(thread), cycles)))

    def late(self, trace: str, activity: str = "", timing: str = "") -> str:
        """List the recurring activities with their deadlines, and explain where the worst instance spent its time.

        Args:
            trace: Name of the file.
            activity: Name of the activity to explain, or a unique part of it; empty for the one that is most late.
            timing: A timing file with deadlines, periods, chains and activities; empty for none.
        """
        return as_text(lateness(self.trace(trace), activity, read_timing(self.path(timing)) if timing else None))

    def tables(self) -> str:
        """List the SQL tables with their columns, and the views and macros."""
        lines = [f"{schema.name}({', '.join(schema.names)}): {schema.meaning}" for schema in SCHEMAS.values()]
        more = "call_NAME, exit_NAME, user_NUMBER, ...: events of a kind with their arguments; `show tables` lists them"
        return "\n".join([*lines, more, "", *(f"{view.usage}: {view.meaning}" for view in views().values())])

    def sql(self, trace: str, query: str, timing: str = "") -> str:
        """Run a DuckDB query over the tables of a trace, and return the first 200 rows as CSV.

        Args:
            trace: Name of the file.
            query: One SELECT statement; `tables` lists the tables. It is read-only and limited to 30 s.
            timing: A timing file for the tables of activities; empty for none, which leaves the table `chain` empty.
        """
        with self.one_at_a_time:
            timings = read_timing(self.path(timing)) if timing else None
            running = start_query(self.trace(trace), query, _LIMITS, timing=timings)
        result = running.answer(is_part_enough=True)
        rows = result.rows(_MAX_ROWS)
        lines = [",".join(map(_cell, result.columns)), *(",".join(map(_cell, row)) for row in rows)]
        if len(result) > _MAX_ROWS or result.is_cut:
            lines.append(f"... {result.summary}; add a LIMIT or add them up")
        return "\n".join(lines)

    def picture(self, trace: str, range: str = "", event: int = 0) -> bytes:  # noqa: A002  -- the name that callers see
        """Take a picture of the window.

        Args:
            trace: Name of the file.
            range: The part of the trace to show, such as 1.2s..1.5s; empty for all of it.
            event: Number of the event to select; 0 for none.

        Raises:
            UsageError: The picture cannot be taken; the message has the reason.
        """
        options = [*([f"--range={range}"] if range else []), *([f"--select={event}"] if event else [])]
        with tempfile.TemporaryDirectory(prefix="satview-mcp-") as folder:
            path = Path(folder) / "picture.png"
            with only_below(self.roots):
                why_not = screenshot(self.path(trace), path, [*options, "--no-cache"], _SIZE)
            if why_not:
                raise UsageError(why_not)
            return path.read_bytes()


def make_server(roots: Sequence[Path], described: Mapping[int, UserEvent] | None = None) -> Any:
    """Create the server without running it.

    Args:
        roots: Folders below which traces are opened.
        described: Descriptions of events by code; None = none.

    Raises:
        UsageError: The package mcp is not installed.
    """
    server_module, types = required("mcp.server"), required("mcp.types")
    answers = Answers(roots, described=described or {})
    server = server_module.MCPServer(
        "satview", instructions=resource_path("look/guide.md").read_text(encoding="utf-8"), log_level="ERROR"
    )
    reads = types.ToolAnnotations(
        read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    tools = (answers.traces, answers.look, answers.verdicts, answers.why, answers.late, answers.tables, answers.sql,
             answers.picture)  # fmt: skip
    for tool in tools:
        server.add_tool(
            _guarded(tool, answers), description=cleandoc(tool.__doc__ or ""), annotations=reads,
            structured_output=False,
        )  # fmt: skip
    return server


def _guarded(tool: _Tool, answers: Answers) -> Callable[..., Any]:
    """Wrap a tool: errors of satview become tool errors, and bytes become a PNG image."""
    mcpserver = required("mcp.server.mcpserver")
    tool_error = required("mcp.server.mcpserver.exceptions").ToolError

    @wraps(tool)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            with nullcontext() if tool == answers.sql else answers.one_at_a_time:
                answer = tool(*args, **kwargs)
        except (SatviewError, OSError) as error:
            raise tool_error(str(error)) from error
        return answer if isinstance(answer, str) else mcpserver.Image(data=answer, format="png")

    run.__annotations__ = {**run.__annotations__, "return": Any}
    return run


def _thread(text: str) -> int | str:
    """Return the row of a thread given by its handle; any other text is returned unchanged."""
    try:
        handle = handle_of(text)
    except UsageError:
        return text
    return handle.number if handle.subject is Subject.THREAD else text


def _cell(value: Any) -> str:
    text = visible_line(value_text(value))
    return f'"{text.replace(chr(34), chr(34) * 2)}"' if "," in text or '"' in text else text
