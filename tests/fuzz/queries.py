"""Queries in SQL: sound ones, damaged ones, and functions of DuckDB with texts and numbers that are too large."""

from __future__ import annotations

import io
import json
import random
from functools import cache
from pathlib import Path

from satview.base.errors import SatviewError
from satview.cli.ask.query import _json_rows
from satview.events.spec import Release
from satview.export.tables import WRITERS
from satview.session.panels.sql import cell_text, drawing_of, event_of_row, query_of, window_of_row
from satview.tables.schema import SCHEMAS, views
from satview.tables.sql import Limits, sql
from tests.fuzz.mutation import mutate
from tests.fuzz.texts import the_scene
from tests.helpers.sql_values import sql_kinds, sql_values

_LIMITS = Limits(time_s=1.5, memory_bytes=128 << 20, answer_bytes=1 << 20)
_SHAPES = (
    "select {value} as x from {table}",
    "select *, {value} from {table} where {column} = {value} order by {column}",
    "select {column}, count(*), {value} from {table} group by all",
    "with a as (select {value} as {column}) select * from a, {table} limit 100",
    "select {function}({column}, {value}) from {table}",
    "select {function}({value}) as time_ns, {function}({value}, {value}) as \"it's\"",
    "select {value}::{kind}, try_cast({value} as {kind}) from {table}",
    "select list({column}), map([1], [{value}]), {{'a': {value}}} from {table}",
    "select repeat({value}::varchar, {number}), unnest([{value}]) from range({number}) r(i)",
    "describe {table}", "summarize {table}", "explain select {value} from {table}", "from {table}",
    "select a.* from {table} a join {table} b on a.{column} < b.{column}",
    "with recursive r as (select 1 as i union all select i + 1 from r where i < {number}) select * from r",
    "pivot {table} on {column}", "select columns('.*') from {table}", "values ({value}), ({value})",
)  # fmt: skip
_NUMBERS = ("0", "1", "-1", "100", "1000000", "9223372036854775807", "1e308", "null")
_TOKENS = tuple(b"' \" ( ) , ; -- /* $$ :: [ ] { } * . select from where join union null limit over".split())


@cache
def _functions() -> tuple[str, ...]:
    """Return the names of the functions of DuckDB, without those that end or wait for something on purpose."""
    import duckdb

    connection = duckdb.connect()
    try:
        rows = connection.sql("select distinct function_name from duckdb_functions() order by 1").fetchall()
    finally:
        connection.close()
    return tuple(name for (name,) in rows if name.isidentifier())


def query(rng: random.Random) -> bytes:
    """Return a query, in half of the cases damaged."""
    trace = the_scene(Release.QNX_7)
    if rng.random() < 0.15:
        text = query_of(rng.choice([*views().values()]), trace, trace.window)
    else:
        name = rng.choice([*SCHEMAS])
        text = rng.choice(_SHAPES).format(
            table=name, column=rng.choice(SCHEMAS[name].names), value=rng.choice(sql_values()).sql,
            function=rng.choice(_functions()), kind=rng.choice(sorted(sql_kinds())), number=rng.choice(_NUMBERS),
        )  # fmt: skip
    return mutate(rng, text.encode(), _TOKENS) if rng.random() < 0.5 else text.encode()


def run_query(data: bytes, _folder: Path) -> None:
    """Run a query and write its rows in every form; only a sentence may come instead, and the next query works."""
    trace = the_scene(Release.QNX_7)
    try:
        found = sql(trace, data.decode("utf-8", "surrogateescape"), _LIMITS, is_part_enough=True)
    except SatviewError as error:
        assert str(error).strip()
        assert sql(trace, "select 1 as one", Limits(time_s=10)).rows() == [(1,)]
        return
    json.dumps(list(_json_rows(found)), allow_nan=False)
    for write in WRITERS.values():
        write(found.arrow(), io.BytesIO())
    found.numpy()
    repr(found)
    found._repr_html_()
    drawing_of(trace, found)
    for row in range(min(len(found), 20)):
        event_of_row(trace, found, row)
        window_of_row(trace, found, row)
        for name in found.columns:
            cell_text(found.value(row, name)).encode()
