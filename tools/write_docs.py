"""Writes what docs take from the code: keys.md, traceevent.md, tables.md, lanes.md, commands.md, kev-structs.md, and
parts of answers.md, capture.md and doctor.md in docs.

`python tools/write_docs.py [--check]`. The check leaves out capture.md and doctor.md, which need captures: tests of
their own check them.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import construct
from emitted import lines as emitted_lines

from satview.__main__ import main as satview
from satview.analysis.verdicts.rule import Rule, rules
from satview.events.catalogue import catalogue
from satview.events.layout import layout_of, logged_list
from satview.events.modes import Mode
from satview.events.spec import Release
from satview.filters.expressions.semantics import FIELDS
from satview.formats.kev.header import HEADER, page_structs
from satview.formats.kev.payloads import REST, struct_of
from satview.session.commands import COMMANDS, MOUSE_HELP
from satview.tables.schema import SCHEMAS, views
from satview.timeline.lane_classes import LANE_CLASSES, Owner
from satview.viewer_command import commands_by_purpose, viewer_parser

ROOT = Path(__file__).resolve().parents[1]
_COMMANDS, _END_OF_COMMANDS = "<!-- commands -->", "<!-- /commands -->"
_EMITTED, _END_OF_EMITTED = "<!-- emitted: written by tools/write_docs.py -->", "<!-- /emitted -->"
_VERDICTS, _END_OF_VERDICTS = "<!-- verdicts: written by tools/write_docs.py -->", "<!-- /verdicts -->"


def keys_page() -> str:
    """Return docs/keys.md: every command of the viewer with its keys, then the mouse."""
    lines = [
        "# Keys and mouse",
        "",
        "Written from the command table by `python tools/write_docs.py`; press `?` in the viewer for the same list.",
        "",
        "| Menu | Command | Keys | What it does |",
        "| --- | --- | --- | --- |",
    ]
    for command in COMMANDS:
        title = command.whole_title
        keys = " or ".join(f"`{key}`" for key in command.keys)
        menu = command.menu.value.replace("&", "")
        lines.append(f"| {menu} | {title} | {keys} | {command.help} |".replace("| |", "|  |"))
    lines += ["", "| Mouse | What it does |", "| --- | --- |"]
    lines += [f"| {gesture} | {text} |" for gesture, text in MOUSE_HELP]
    return "\n".join(lines) + "\n"


_KINDS = {"filter": "rules, captures, C", "run": "captures", "insert": "captures, handlers"}


def modes_page() -> str:
    """Return docs/traceevent.md: the modes of TraceEvent(), and when the fields of conditions are known."""
    lines = [
        "# TraceEvent(): modes, and what conditions know",
        "",
        "<!-- Written by tools/write_docs.py from the tables that rules, the simulated kernel and C programs use. -->",
        "",
        "How rules are written: [filters.md](filters.md); how captures are made: [capture.md](capture.md).",
        "",
        "| n | value | `_NTO_TRACE_` | arguments after the mode | since | works in |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for mode in Mode:
        arguments = ", ".join(name.replace("_", " ") for name in mode.arguments)
        where = _KINDS[mode.kind] if mode.is_documented else "accepted; no manual says what it does"
        since = mode.since.value if mode.since.value != "6.x" else ""
        lines.append(f"| {int(mode)} | 0x{mode.word:08x} | {mode.name} | {arguments} | {since} | {where} |")
    lines += ["", "## Fields of conditions", "", "| Field | Means | Known |", "| --- | --- | --- |"]
    lines += [f"| `{name}` | {spec.help} | {spec.known} |" for name, spec in FIELDS.items()]
    return "\n".join(lines) + "\n"


_TABLES_HEAD = """\
# Tables and SQL

<!-- Written by tools/write_docs.py from satview/tables/schema.py and resources/tables/views.toml. -->

A trace is a set of tables: for Python, for SQL, and as files for other programs. Names and columns stay the same from
version to version; what goes is in the changelog.

## From Python

```python
import satview

trace = satview.open_trace("boot.kev")
states = trace.table("state")
states["length_cycles"][states["state"] == "READY"].sum()      # columns in numpy
states.arrow(), states.to_pandas(), states.to_polars()         # the first needs pyarrow
trace.sql("select * from ready_wait limit 10").to_pandas()

sent = trace.arguments("MSG_SENDV")                             # all events of a kind, arguments as columns
sent["coid"], sent.known("coid")
trace.arguments("EVENT 100")["d0"]                              # words of user events
```

Columns that the trace has already are not copied, and the others are made when a table is first requested. What is not
known is null in Arrow and SQL, and -1 (texts: the empty one) in numpy. Times are exact cycles of the target's counter,
and nanoseconds since the first event. A column called after another table holds rows of that table, from 0: join by it.

Arguments have the names of the details and of `arg.NAME` in filters; those of 64 bits above 2^63 are negative, with
the same bits. A name that an event has twice has a number the second time (`empty_2`). A sigevent of 6.x is its
members: `sigevent.notify`, `sigevent.value` and so on.

## SQL

`pip install '.[tables]'` brings DuckDB. `trace.sql("...")` and the command `satview query` take one query in its
SQL; the views and macros below are there too, and the three functions `time_ns(cycles)`, `duration_ns(cycles)` and
`cycles(ns)` convert times. A thread may be named as the window names it where a macro takes its row, and anywhere by
`thread_named('dumper[12] 1')`; a name that several have is an error that lists them. A table that is empty because the
trace cannot show its rows is named with the reason (`Result.cannot_tell`): no row of `message` is no proof that nothing
was sent. If there are rows, but not all, the answer gives the reasons of `satview doctor` (`Result.not_all`): events
that were lost, a class that was captured in part, threads whose first states nobody logged. Counts and sums are then
less than what happened, and means and percentiles may be off either way.

```
satview query boot.kev show tables                     # names, and what a row is
satview query boot.kev show macros                     # those alone
satview query boot.kev describe lock_contention        # columns
satview query boot.kev "select * from lock_contention"
satview query boot.kev "select * from load_per(100000000) where cpu = 0" --format csv
satview query boot.kev "select * from overruns('procnto-smp-instr 3', 5000000)"
satview query boot.kev "from state where state = 'MUTEX' and length_ns > 1000000" --format parquet -o waits.parquet
```

Arguments of events are in two forms:

* a table for each kind of event, with an argument a column: class and name in small letters, such as `thread_thready`
  and `comm_snd_message`; `call_msg_sendv` and `exit_msg_sendv` for a kernel call, `user_100` for `EVENT 100`. Each
  begins with `event`, `time_cycles`, `time_ns`, `cpu` and `thread`. `show tables` lists those that have events; one
  without events is empty, with the columns that the release lists. Names such as `msg[0]` need quotes: `"msg[0]"`.
* the table `argument`, an argument a row.

They are made when a query mentions them. What no list describes is there too: `word 3`, of user events `d0`, `d1` or
`text`; in the tables of kinds `more_words` has what comes behind the 32nd such word. An exit of a kernel call that
failed has `ret_val` and `errno`. Where a file describes events (`--user-events`) and says what values of `state` are
called, `state_text` is beside it.

```
satview query boot.kev "select coid, count(*) from call_msg_sendv group by coid"
satview query boot.kev "select errno, count(*) from exit_msg_sendv where errno is not null group by errno"
satview query boot.kev "select time_ns, d0 from user_100 where d0 > 50"
satview query boot.kev "select kind, count(*) from argument where argument = 'coid' group by kind"
```

In the window `Ctrl+Shift+Q` shows the panel SQL: type a query and press `Ctrl+Return`, or choose a view from the list.
A click on a row goes to its `event`, else to its range or moment (`start_ns`, `end_ns`, `time_ns`, or in cycles).
A result with times is a plot over the time of the lanes as well, one line for each text beside it; one with beginnings
and ends or lengths is lanes:

![Load of the CPUs in bins of 100 ms, from a query](images/sql-plot.png)

![Who waited for mutexes, from a query](images/sql-lanes.png)

A query only reads. It reaches neither files nor the network and loads no extension. It runs in a process of its own,
from the command line, the window, the server and Python alike, so that nothing it computes holds up anything else:

* `--time-limit`, `Limits.time_s`: 60 s of the clock, from when its tables are made; 30 s in `satview mcp`. Beyond it
  the process is ended, and a sentence says so.
* `--memory-limit`, `Limits.memory_bytes`: 2 GiB beside its tables; 1 GiB in `satview mcp`. Beyond it the query fails.
* `--answer-limit`, `Limits.answer_bytes`: 1 GiB of rows; 256 MiB in the window, 64 MiB in `satview mcp`. Beyond it
  there are the first rows and a note; `trace.sql` raises UsageError.
* `--threads`, `Limits.threads`: all processors.

`Ctrl+C`, SIGTERM and Stop end it at once. On Linux the system limits memory, and processor time as well. On macOS and
Windows the limit of memory is DuckDB's own, which does not count every text. A cut answer says so: the command prints
the rows until there, a sentence on standard error, in JSON a last entry `{"cut": "..."}`, and returns 1. The window
and the server write it beside the number of rows.

The process gets the tables that the query mentions, as far as it lacks them. It is kept for the next query and ends
with the panel, with the server or with Python. Queries of Python run there too, so that a notebook keeps its
variables when a query takes all memory.

Every type of DuckDB has a form everywhere. What Arrow, Python, CSV and Parquet do not all have is text, as DuckDB
writes it: intervals, bits, UUIDs, unions, variants, geometries, tuples, times with a zone or in nanoseconds,
`UHUGEINT`, `BIGNUM` and other whole numbers beyond 38 digits. Days and moments before the year 1, beyond 9999 and
infinite ones are texts in Python, CSV and JSON, and stay what they are in Parquet. In JSON, decimals, NaN and
infinities are texts, and a map is a list of pairs; CSV has lists, structs and maps as in SQL. Of two columns with one
name the second has a number behind it.

## Files

| ending of `satview export FILE -o OUT` | what it is | what is lost |
| --- | --- | --- |
| `.parquet` | one table (`--table`, the events by default) | arguments, without `--arguments` |
| `.arrow` | the same for Arrow (Feather, version 2) | the same |
| `.csv` | one table; texts that begin like a formula get a `'` before them | types; null is empty |
| `.jsonl` | one table, an object a line | types |
| `.pftrace` | a trace for Perfetto, or a part of it (`-e`, `--range`), see below | most arguments |
| `.json` | the whole trace for Chrome and viewers that read its format | arguments, wakers, priorities |
| `.kev` | a smaller trace (`-e`, `--range`), as `satview filter` writes it | only BUFFER events: it has its own |

Several tables, or the events with `--by-class`, are files of a new folder, whose name has none of these endings
(`--format` chooses, Parquet by default); programs that read data sets take it as a whole. The metadata of Parquet and
Arrow has `satview.cycles_per_s` and `satview.start_cycles`, which make nanoseconds of cycles. An event
takes 5 bytes as Parquet.

`--arguments` writes all arguments of the events: into a file the table `argument`, into a folder the tables of all
kinds of events that there are. `--table call_msg_sendv` is one of these; `-e` and `--range` choose the events of both.

For Perfetto, processes, threads and their states are written as QNX's own probe (`traced_qnx_probes`) does: packets
of a kernel that is not Linux, the process in the upper 32 bits of a thread's number. `sched_slice` has every run with
CPU and priority, `thread_state` every interval of every state: READY is `R`, RUNNING `Running`, STOPPED `T`, WAITPAGE
`D`, DEAD `Z`, all other waits `S`; a thread that was created and has no state yet is `Created`, an idle thread without
its CPU `R`. A state that is not known, as after lost events, is null: a thread `unknown (CPU N)` has the CPU meanwhile,
and a thread that waited has a run of no length there.

Tracks have what Perfetto has no packet for, below each process and named by thread: `State` by QNX's names with the
object, thread or process that is waited for; kernel calls; messages with arrows to their service; pulses and wake-ups
with arrows. CPUs have interrupts (those of 8.0, which have no exit, as moments), load, lost events, and events that are
in nothing else. User events, log, page faults, timers and what else has lanes, verdicts and marks have tracks of their
own; counters count. What has no end in the trace is a moment with the argument `end`; where the trace does not say
which thread called or sent, calls and messages are on their CPU. A clock snapshot has the wall clock, where the trace
has it. Lanes of more than 50,000 events in all are named without arguments.

`--range` cuts all of it at its ends. With `-e` there is what the selected events begin: calls by their entries, states
by the events that change to them. Losses and marks stay; there is no load.

Two columns of Perfetto are possible with packets of Linux alone, whose thread numbers have 32 bits: `waker_utid` and
`blocked_function`. Tracks say both, as above. For the same reason these tracks are not those of threads in Perfetto's
sense: version 52 cuts the thread number of a track to 32 bits.

The package of Perfetto is not needed.
"""


def tables_page() -> str:
    """Return docs/tables.md: every table with its columns, every view and macro."""
    lines = [_TABLES_HEAD, "## Tables", ""]
    for schema in SCHEMAS.values():
        lines += [f"### {schema.name}", "", schema.meaning, "", "| Column | Type | Meaning |", "| --- | --- | --- |"]
        for column in schema.columns:
            null = ", null" if column.is_nullable else ""
            lines.append(f"| `{column.name}` | {column.kind}{null} | {column.meaning} |")
        lines.append("")
    lines += [
        "## Views and macros",
        "",
        "The names of columns end in their unit; each in cycles has one in nanoseconds behind it.",
        "In a trace of a threads library `cpu_cycles` and `cpu_ns` are how long threads were RUNNING, which is not "
        "known to wait; the CPU time that threads measured themselves is in `satview stats` and `satview.Statistics`.",
        "",
    ]
    for group in dict.fromkeys(view.group for view in views().values()):
        lines += [f"### {group}", "", "| View or macro | A row is | Columns |", "| --- | --- | --- |"]
        lines += [
            f"| `{view.usage}` | {view.meaning} | {', '.join(view.columns)} |"
            for view in views().values()
            if view.group == group
        ]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


_WHERE = {
    Owner.TRACE: "below the CPUs",
    Owner.PROCESS: "below the CPUs, by process",
    Owner.CPU: "under its CPU",
    Owner.THREAD: "under its thread",
}


def lanes_page() -> str:
    """Return docs/lanes.md: labels, every class of lanes of events, user events."""
    rows = [
        f"| {row.menu.replace('&', '').removesuffix(' (x)')} | `{row.name}` | {_WHERE[row.owner_kind]} | {row.help} |"
        for row in LANE_CLASSES
    ]
    page = (ROOT / "tools" / "lanes_page.md").read_text(encoding="utf-8")
    return page.replace("{classes}", "\n".join(rows))


def commands_page() -> str:
    """Return docs/commands.md: every command by what it is for, from the parsers, above the examples that are there."""
    page = ROOT / "docs" / "commands.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(_COMMANDS)
    lines = [_COMMANDS, "", "<!-- From here on written by tools/write_docs.py from the parsers. -->", ""]
    for purpose, commands in commands_by_purpose().items():
        lines += [f"**{purpose.capitalize()}**", "", "| command | what it does |", "| --- | --- |"]
        lines += [f"| `satview {name}` | {text} |" for name, text in commands.items()]
        lines.append("")
    lines += [
        "`satview COMMAND --help` shows the options of a command, `satview --help-all` those of the viewer:",
        "",
        "```text",
    ]
    os.environ["COLUMNS"] = "110"
    lines += [viewer_parser().format_help().rstrip(), "```", ""]
    return before + "\n".join(lines) + _END_OF_COMMANDS + rest.partition(_END_OF_COMMANDS)[2]


_HEAD_STRUCTS = {
    "entry_old": "Entry of 6.x and 6.6, from byte 0",
    "entry_7": "Entry of 7.x, from byte 0, where its size is at least 262",
    "entry_8": "Entry of 8.0, from byte 0, where bit 0x1000 of `type` is set",
    "qtime": "Section qtime up to 7.x",
    "qtime_8": "Section qtime of 8.0",
    "cpu": "An entry of section cpuinfo up to 7.x",
    "cpu_8": "An entry of section cpuinfo of 8.0",
    "typed_string": "An entry of section typed_strings; each is filled to whole words of 4 bytes, type 0 is the last",
}
_LETTERS = {"B": "u8", "H": "u16", "h": "i16", "L": "u32", "I": "u32", "l": "i32", "i": "i32", "Q": "u64", "q": "i64"}
_UNTOLD = {"USREVENT", "INT_CALL"}  # words of no fixed meaning, and numbers that never occur in a trace


def _type_of(member: Any) -> str:
    if isinstance(member, construct.FormatField):
        return _LETTERS[member.fmtstr[-1]]
    if isinstance(member, construct.Struct):
        return ", ".join(f"{name} {kind}" for _, name, kind in _members(member))
    if isinstance(member, construct.Bytes):
        return "bytes" if callable(member.length) else f"{member.length} bytes"
    if isinstance(member, construct.NullTerminated):
        return "text up to a NUL"
    return _type_of(member.thensubcon if isinstance(member, construct.IfThenElse) else member.subcon)


def _members(struct: construct.Struct, offset: int = 0) -> Iterator[tuple[int, str, str]]:
    """Yield offset, name and type of every member; names of members of members with a dot."""
    for member in struct.subcons:
        inner = member.subcon if isinstance(member, construct.Renamed) else member
        if isinstance(inner, construct.Struct):
            yield from ((at, f"{member.name}.{name}", kind) for at, name, kind in _members(inner, offset))
        elif member.name not in (None, REST):
            yield offset, member.name, _type_of(inner)
        if member is not struct.subcons[-1]:
            offset += member.sizeof() if not isinstance(inner, construct.NullTerminated) else 0


def structs_page() -> str:
    """Return docs/kev-structs.md: the constructs of the head of a .kev file and of payloads."""
    lines = [
        "# What is where in a .kev file",
        "",
        "<!-- Written by tools/write_docs.py from satview/formats/kev/header.py and details.py. -->",
        "",
        "A file is a text header, the system page of the target, and slots of 16 bytes. Numbers have the byte order",
        "that the header names.",
        "",
        "## Header",
        "",
        "From `TRACE_HEADER_BEGIN::` to `TRACE_HEADER_END::`, pairs with nothing between them:",
        "",
        "| Member | Bytes |",
        "| --- | --- |",
    ]
    for part in HEADER.subcons[0].subcon.subcon.subcons:
        content = f"`{part.value.decode()}`" if isinstance(part, construct.Const) else _HEADER_BYTES[part.name]
        lines.append(f"| {part.name or 'constant'} | {content} |")
    lines += ["", "## System page", "", "Offsets of sections count from the start of the page.", ""]
    for name, title in _HEAD_STRUCTS.items():
        lines += [f"### {title}", "", "| Offset | Member | Type |", "| --- | --- | --- |"]
        lines += [
            f"| {at} | `{member}` | {kind} |" for at, member, kind in _members(vars(page_structs("little"))[name])
        ]
        lines.append("")
    lines += [
        "## Payloads of 7.x",
        "",
        "Events that are logged alike share a row. What comes behind the last member is shown as words.",
        "",
    ]
    for class_name, rows in _payloads(Release.QNX_7).items():
        lines += [f"### {class_name}", "", "| Events | Fast | Wide |", "| --- | --- | --- |"]
        lines += [f"| {', '.join(dict.fromkeys(names))} | {fast} | {wide} |" for (fast, wide), names in rows.items()]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


_HEADER_BYTES = {"key": "up to the next `::`", "value": "up to the next key; none after `HEADER_END`"}


def _payloads(release: Release) -> dict[str, dict[tuple[str, str], list[str]]]:
    """Return for every class the names of events by what their fast and wide form hold."""
    known, classes = catalogue(release), dict[str, dict[tuple[str, str], list[str]]]()
    for code in known.codes():
        spec = known.spec(code)
        if spec.class_name not in _UNTOLD:
            forms = _payload(release, code, False), _payload(release, code, True)
            classes.setdefault(spec.class_name, {}).setdefault(forms, []).append(spec.name)
    return classes


def _payload(release: Release, code: int, is_wide: bool) -> str:
    logged, fields = logged_list(release, code, is_wide=is_wide)
    if fields is None:
        return "not known"
    words = sum(field.words for field in fields)
    words += words % 2 + 2 * any(field.words == 0 for field in fields)  # some for a text, which ends the payload
    struct = struct_of(layout_of(release, logged, max(2, words)), "little")
    return ", ".join(f"`{name}` {kind}" for _, name, kind in _members(struct)) or "words"


def capture_page() -> str:
    """Return docs/capture.md with what the simulated kernel emits now."""
    head, _, rest = (ROOT / "docs" / "capture.md").read_text(encoding="utf-8").partition(_EMITTED)
    tail = rest.partition(_END_OF_EMITTED)[2]
    return "\n".join([head + _EMITTED, "", *emitted_lines(), "", _END_OF_EMITTED + tail])


def answers_page() -> str:
    """Return docs/answers.md with a row for every kind of verdict."""
    head, _, rest = (ROOT / "docs" / "answers.md").read_text(encoding="utf-8").partition(_VERDICTS)
    lines = ["", "| kind | what is wrong | needs |", "| --- | --- | --- |"]
    lines += [f"| `{rule.kind}` | {rule.meaning} | {_needs(rule)} |" for rule in rules().values()]
    return head + "\n".join([_VERDICTS, *lines, "", _END_OF_VERDICTS]) + rest.partition(_END_OF_VERDICTS)[2]


def _needs(rule: Rule) -> str:
    """Return what must be captured for all verdicts of a kind: classes, and what else the rule needs."""
    wide: dict[str, bool] = {}
    for need in (*rule.needs, *rule.bounds):
        for external in need.classes:
            name = external.name if external.name != "INT" else "INTR"
            wide[name] = wide.get(name, False) or need.is_wide
    words = [f"{name} wide" if is_wide else name for name, is_wide in wide.items()]
    words += [_OTHER_NEEDS[need.key] for need in rule.needs if need.key in _OTHER_NEEDS]
    words += ["a [timing file](late.md#verdicts)"] if rule.timing else []
    return ", ".join(words) or "nothing"


_OTHER_NEEDS = {"loss": "no losses", "opening": "the opening dump"}


def doctor_page() -> str:
    """Return docs/doctor.md with what the commands of its first block print now."""
    head, block, tail = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8").split("```", 2)
    printed = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        for command in block.splitlines():
            if command.startswith("$ satview "):
                print(command)
                satview(command.split()[2:])
    return f"{head}```\n{printed.getvalue()}```{tail}"


def main() -> int:
    """Write the pages, or with --check show whether they are current."""
    pages = {
        ROOT / "docs" / "keys.md": keys_page(),
        ROOT / "docs" / "traceevent.md": modes_page(),
        ROOT / "docs" / "tables.md": tables_page(),
        ROOT / "docs" / "lanes.md": lanes_page(),
        ROOT / "docs" / "commands.md": commands_page(),
        ROOT / "docs" / "kev-structs.md": structs_page(),
        ROOT / "docs" / "answers.md": answers_page(),
    }
    if "--check" in sys.argv:
        return int(any(not path.exists() or path.read_text(encoding="utf-8") != page for path, page in pages.items()))
    pages |= {ROOT / "docs" / "capture.md": capture_page(), ROOT / "docs" / "doctor.md": doctor_page()}
    for path, page in pages.items():
        path.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
