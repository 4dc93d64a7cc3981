"""What another implementation reads of a table that our Spark has changed: PyIceberg, and in `full` Iceberg Java.

A module has the fixture by three lines:

    @pytest.fixture(params=READERS)
    def other(request):
        return reader(request)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import duckdb
import pytest

READERS = [
    "PyIceberg",
    pytest.param(
        "Iceberg Java", marks=pytest.mark.full("asks Iceberg's runtime in a Spark of its own")
    ),
]
_TABLE = re.compile(r"\bice\.(\w+\.\w+)(?: VERSION AS OF (?:'(\w+)'|(\d+)))?")


def reader(request: pytest.FixtureRequest) -> Callable[[str], list[list[Any]]]:
    """Return what answers a query of one table of catalog `ice`.

    DuckDB counts and orders what PyIceberg reads: the query must be one that both SQLs know.
    """
    if request.param == "Iceberg Java":
        return request.getfixturevalue("iceberg_java").sql
    catalog = request.getfixturevalue("pyiceberg")

    def answer(query: str) -> list[list[Any]]:
        found = _TABLE.search(query)
        assert found is not None, query
        table = catalog.load_table(found[1])
        snapshot = found[3] and int(found[3])
        if found[2]:
            snapshot = table.snapshot_by_name(found[2]).snapshot_id
        rows = table.scan(snapshot_id=snapshot).to_arrow()
        with duckdb.connect() as connection:
            connection.register("rows_of_table", rows)
            told = connection.execute(_TABLE.sub("rows_of_table", query, count=1))
            return [list(row) for row in told.fetchall()]

    return answer
