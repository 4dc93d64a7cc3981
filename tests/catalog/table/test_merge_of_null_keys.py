"""Rows of a source without a key belong to no row, wherever they stand in it."""

from __future__ import annotations

from itertools import permutations

import pyarrow as pa
import pytest

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])


def frame(*rows):
    return pa.table([[row[0] for row in rows], [row[1] for row in rows]], SCHEMA)


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
@pytest.mark.parametrize("clauses", ["insert", "update and insert"])
def test_a_row_without_a_key_is_inserted_and_no_other_takes_its_place(lake, order, clauses):
    table = lake.create_table("db.t", SCHEMA)
    table.append(frame((1, "old"), (5, "stays")))
    source = [(None, "nobody"), (1, "new"), (2, "more")]
    merge = table.merge(frame(*(source[at] for at in order)), ["id"])
    if clauses != "insert":
        merge = merge.when_matched_update_all()
    result = merge.when_not_matched_insert_all().execute()
    updated = clauses != "insert"
    assert (result.rows_inserted, result.rows_updated) == (2, int(updated))
    found = table.scan().to_arrow().to_pylist()
    assert sorted((row["id"] or 0, row["v"]) for row in found) == [
        (0, "nobody"),
        (1, "new" if updated else "old"),
        (2, "more"),
        (5, "stays"),
    ]
