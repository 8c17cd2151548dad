"""A value of every type that SQL can return, how it is written, and which process computes a query."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import psutil


@dataclass(frozen=True, slots=True)
class SqlValue:
    """A value.

    Attributes:
        kind: Its type, as `duckdb_types()` names it.
        sql: As SQL has it.
        text: In the tables of command line and window, and in the server's answers.
        json: In JSON.
        csv: In CSV; None = as the text.
    """

    kind: str
    sql: str
    text: str
    json: Any
    csv: str | None = None


_DAY = "2020-02-29"
_VALUES = (
    SqlValue("boolean", "true", "True", True, "true"),
    SqlValue("tinyint", "(-128)::tinyint", "-128", -128),
    SqlValue("smallint", "(-32768)::smallint", "-32768", -32768),
    SqlValue("integer", "7", "7", 7),
    SqlValue("bigint", "(-9223372036854775807)::bigint", "-9223372036854775807", -(2**63 - 1)),
    SqlValue("utinyint", "255::utinyint", "255", 255),
    SqlValue("usmallint", "65535::usmallint", "65535", 65535),
    SqlValue("uinteger", "4294967295::uinteger", "4294967295", 2**32 - 1),
    SqlValue("ubigint", "18446744073709551615::ubigint", "18446744073709551615", 2**64 - 1),
    SqlValue("hugeint", "9223372036854775808::hugeint", str(2**63), str(2**63)),
    SqlValue("hugeint", f"{2**127 - 1}::hugeint", str(2**127 - 1), str(2**127 - 1)),
    SqlValue("uhugeint", f"'{2**128 - 1}'::uhugeint", str(2**128 - 1), str(2**128 - 1)),
    SqlValue("bignum", f"'{10**45}'::bignum", str(10**45), str(10**45)),
    SqlValue("float", "1.5::float", "1.5", 1.5),
    SqlValue("double", "1e300::double", "1e+300", 1e300, "1e+300"),
    SqlValue("double", "'nan'::double", "nan", "nan"),
    SqlValue("double", "'-inf'::double", "-inf", "-inf"),
    SqlValue("decimal", "1.5::decimal(5,2)", "1.50", "1.50"),
    SqlValue("varchar", "'a, \"b\"'", 'a, "b"', 'a, "b"'),
    SqlValue("json", "'{\"a\": 1}'::json", '{"a": 1}', '{"a": 1}'),
    SqlValue("blob", "'\\xAA\\x00z'::blob", "\\xAA\\x00z", "\\xAA\\x00z"),
    SqlValue("bit", "'0101'::bit", "0101", "0101"),
    SqlValue("date", f"date '{_DAY}'", _DAY, _DAY),
    SqlValue("date", "date '10000-01-01'", "10000-01-01", "10000-01-01"),
    SqlValue("date", "date '0044-03-15 (BC)'", "0044-03-15 (BC)", "0044-03-15 (BC)"),
    SqlValue("date", "date 'infinity'", "infinity", "infinity"),
    SqlValue("time", "time '12:00:00.5'", "12:00:00.500000", "12:00:00.500000"),
    SqlValue("time", "time '24:00:00'", "24:00:00", "24:00:00"),
    SqlValue("time_ns", "'12:00:00.123456789'::time_ns", "12:00:00.123456789", "12:00:00.123456789"),
    SqlValue("timetz", "'12:00:00+05:30'::timetz", "12:00:00+05:30", "12:00:00+05:30"),
    SqlValue(
        "timestamp", f"timestamp '{_DAY} 01:02:03'", f"{_DAY} 01:02:03", f"{_DAY} 01:02:03", f"{_DAY} 01:02:03.000000"
    ),
    SqlValue("timestamp", "timestamp '12000-01-01 00:00:01'", "12000-01-01 00:00:01", "12000-01-01 00:00:01"),
    SqlValue(
        "timestamp", "timestamp '0001-12-31 (BC) 00:00:00'", "0001-12-31 (BC) 00:00:00", "0001-12-31 (BC) 00:00:00"
    ),
    SqlValue("timestamp", "timestamp '-infinity'", "-infinity", "-infinity", "'-infinity"),  # else a formula
    SqlValue("timestamp_s", f"'{_DAY} 01:02:03'::timestamp_s", f"{_DAY} 01:02:03", f"{_DAY} 01:02:03"),
    SqlValue(
        "timestamp_ms",
        f"'{_DAY} 01:02:03'::timestamp_ms",
        f"{_DAY} 01:02:03",
        f"{_DAY} 01:02:03",
        f"{_DAY} 01:02:03.000",
    ),
    SqlValue(
        "timestamp_ns",
        f"'{_DAY} 01:02:03.123456789'::timestamp_ns",
        f"{_DAY} 01:02:03.123456789",
        f"{_DAY} 01:02:03.123456789",
    ),
    SqlValue("timestamptz", "'infinity'::timestamptz", "infinity", "infinity"),
    SqlValue("interval", "interval '1 month 2 days 3 seconds'", "1 month 2 days 00:00:03", "1 month 2 days 00:00:03"),
    SqlValue(
        "uuid",
        "'00000000-0000-0000-0000-0000000000ff'::uuid",
        "00000000-0000-0000-0000-0000000000ff",
        "00000000-0000-0000-0000-0000000000ff",
    ),
    SqlValue("enum", "'b'::enum('a', 'b')", "b", "b"),
    SqlValue("null", "null", "", None),
    SqlValue("list", "[1, null, 3]", "[1, NULL, 3]", [1, None, 3]),
    SqlValue("list", "[]", "[]", []),
    SqlValue("list", "[date '10000-01-01']", "[10000-01-01]", ["10000-01-01"]),
    SqlValue("list", "[['b'::enum('a', 'b')]]", "[[b]]", [["b"]]),
    SqlValue("list", "[1, 2]::integer[2]", "[1, 2]", [1, 2]),
    SqlValue("struct", "{'a': 1, 'b c': ['x']}", "{'a': 1, 'b c': [x]}", {"a": 1, "b c": ["x"]}),
    SqlValue(
        "struct", "{'a': interval 1 day, 'b': 'nan'::double}", "{'a': 1 day, 'b': nan}", {"a": "1 day", "b": "nan"}
    ),
    SqlValue("map", "map {'k': 1, 'l': null}", "{k=1, l=NULL}", [["k", 1], ["l", None]]),
    SqlValue("map", "map {1: interval 1 day}", "{1=1 day}", [[1, "1 day"]]),
    SqlValue("union", "union_value(a := 1)", "1", "1"),
    SqlValue("union", "[union_value(a := 1)]", "[1]", ["1"]),
    SqlValue("variant", "1::variant", "1", "1"),
    SqlValue("geometry", "'POINT(1 2)'::geometry", "POINT (1 2)", "POINT (1 2)"),
    SqlValue("tuple", "row(1, 'x')", "(1, x)", "(1, x)"),
)


@cache
def sql_kinds() -> frozenset[str]:
    """Return the names of all types of DuckDB."""
    import duckdb

    connection = duckdb.connect()
    try:
        rows = connection.sql("select distinct lower(type_name) from duckdb_types()").fetchall()
    finally:
        connection.close()
    return frozenset(name for (name,) in rows) | {"null", "timetz", "timestamptz", "tuple"}


@cache
def sql_values() -> tuple[SqlValue, ...]:
    """Return the values whose types the installed DuckDB has."""
    import duckdb

    has_tuple = tuple(map(int, duckdb.__version__.split(".")[:1])) >= (2,)
    return tuple(each for each in _VALUES if each.kind in sql_kinds() and (has_tuple or each.kind != "tuple"))


def one_row_of(values: Sequence[SqlValue]) -> str:
    """Return a query of one row with some of them, as the columns `v0`, `v1`, ..."""
    return "select " + ", ".join(f"{each.sql} as v{number}" for number, each in enumerate(values))


def query_at_work(pid: int | None = None) -> psutil.Process | None:
    """Return the process that computes a query for a process, this one by default; None before it does."""
    for child in psutil.Process(pid).children():
        try:
            if "query_child" not in " ".join(child.cmdline()):
                continue
            # Others that answered long queries before may wait idly for the next one.
            used_s = child.cpu_times().user
            time.sleep(0.1)
            if used_s > 0.4 and child.cpu_times().user > used_s + 0.03:  # more than its start, and still at it
                return child
        except psutil.Error:
            continue
    return None
