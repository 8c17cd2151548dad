"""Every type that SQL can return: from Python, as table, CSV, JSON and Parquet."""

import csv
import json

import duckdb
import numpy as np
import pyarrow.parquet as parquet
import pytest

from satview.__main__ import main
from satview.opened import with_answers
from satview.tables.result import value_text
from tests.helpers.kev import TraceBuilder
from tests.helpers.sql_values import one_row_of, sql_kinds, sql_values


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return TraceBuilder().time_event(0).write(tmp_path_factory.mktemp("types") / "a.kev")


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    return with_answers(TraceBuilder().time_event(0).open(tmp_path_factory.mktemp("types")))


def test_as_values_of_python(trace):
    found = trace.sql(one_row_of(sql_values()))
    [row] = found.rows()
    assert [value_text(value) for value in row] == [each.text for each in sql_values()]
    assert [value_text(found.value(0, name)) for name in found.columns] == [each.text for each in sql_values()]
    for name, each in zip(found.columns, sql_values(), strict=True):
        column = found[name]
        assert column.shape == (1,), each
        # numpy's own types write themselves: 2020-02-29T01:02:03
        if column.dtype.kind not in "Mfb":
            assert value_text(column[0]) == each.text


def run(path, tmp_path, form):
    out = tmp_path / f"out.{form}"
    assert main(["query", str(path), one_row_of(sql_values()), "--format", form, "-o", str(out)]) == 0
    return out


def test_as_json(path, tmp_path):
    [row] = json.loads(run(path, tmp_path, "json").read_text())
    assert list(row.values()) == [each.json for each in sql_values()]


def test_as_csv(path, tmp_path):
    with run(path, tmp_path, "csv").open(newline="") as file:
        _, row = csv.reader(file)
    assert row == [each.text if each.csv is None else each.csv for each in sql_values()]


def test_as_parquet(path, tmp_path):
    out = run(path, tmp_path, "parquet")
    assert parquet.read_metadata(out).num_rows == 1
    row = duckdb.sql(f"select columns(*)::varchar from '{out}'").fetchall()[0]
    for text, each in zip(row, sql_values(), strict=True):
        if each.kind not in ("boolean", "double", "time", "null", "struct", "list"):  # written otherwise by DuckDB
            assert text == each.text, each


@pytest.mark.thorough
def test_as_table(path, capsys):
    for start in range(0, len(sql_values()), 4):  # as many as fit into a line
        values = sql_values()[start : start + 4]
        assert main(["query", str(path), one_row_of(values)]) == 0
        row = capsys.readouterr().out.splitlines()[1]
        assert row.split() == " ".join(each.text for each in values).split()


@pytest.mark.thorough
def test_every_type_is_there(trace):
    """A type that comes with a new DuckDB has a null at least; most need arguments or a value to be made."""
    made = {"enum", "struct", "map", "union", "list", "array", "row", "lambda", "tuple", "null", "decimal"}
    for kind in sorted(sql_kinds() - made):
        assert trace.sql(f'select null::"{kind}" as x').rows() == [(None,)], kind


def test_nulls_beside_what_python_has_not(trace):
    found = trace.sql("select * from (values (date 'infinity'), (null), (date '2020-01-01')) t(d)")
    assert [str(value) for value in found["d"]] == ["infinity", "None", "2020-01-01"]
    assert trace.sql("select unnest([1, null]) as x")["x"].tolist() == [1, None]
    assert trace.sql("select unnest([[1], null]) as x")["x"].tolist() == [[1], None]
    assert trace.sql("select unnest([1.5, 'nan'::double]) as x")["x"].dtype == np.float64


def test_names_that_are_there_twice(trace, path, tmp_path):
    found = trace.sql("select 1 as a, 2 as a, 3 as a_1, 4 as A")
    assert found.columns == ("a", "a_2", "a_1", "A")
    assert found.rows() == [(1, 2, 3, 4)]
    out = tmp_path / "out.json"
    assert main(["query", str(path), "select 1 as a, 2 as a", "--format", "json", "-o", str(out)]) == 0
    assert json.loads(out.read_text()) == [{"a": 1, "a_1": 2}]
