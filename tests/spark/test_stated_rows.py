"""Files with another number of rows than their manifest states, and delete files that are longer: in Spark."""

from __future__ import annotations

import itertools
import uuid
from dataclasses import replace

import pyarrow as pa
import pytest

from icecomb.format.operation.row_delta import RowDelta
from tests.catalog.metadata_of_others import UNKNOWN, with_its_file
from tests.format.rows.equality_delete_writer import EqualityDeleteWriter
from tests.rings import sampled

NAMESPACE = "stated_rows"
COUNT = 100
ROWS = pa.table({"id": pa.array(range(COUNT), pa.int64())})
FRESH = itertools.count()
SPARKS = sampled(["4.3", "3.5", "4.1"], keep=1)


def stating(catalog, kind, rows, deletes=None):
    """A table with a file of which the manifest states so many rows; its name in Spark.

    `deletes` are changes to the manifest's entry of an equality delete of 0, 1, and 2.
    """
    names = [(NAMESPACE, f"t{next(FRESH)}") for _ in range(2)]
    properties = {"write.format.default": kind}
    right = catalog.create_table(names[0], ROWS.schema, properties=properties)
    right.append(ROWS)
    wrong = {"record_count": rows, **UNKNOWN}
    made = with_its_file(catalog, right, names[1], lambda _: wrong)
    if deletes is not None:
        writer = EqualityDeleteWriter(made.io, made.metadata, uuid.uuid4().hex, ["id"])
        for batch in ROWS.slice(0, 3).to_batches():
            writer.write(batch)
        [file] = writer.close()
        made.commit(RowDelta(made.io).add_deletes(replace(file, **deletes(file), **UNKNOWN)))
    return f"lake.{NAMESPACE}.{names[1][1]}"


@pytest.mark.parametrize("minor", SPARKS)
def test_they_are_named_with_both_numbers(sql_on, catalog, namespace, minor):
    sql = sql_on(minor)
    for kind in ("parquet", "orc", "avro"):
        for stated in (COUNT - 1, COUNT + 1):
            table = stating(catalog, kind, stated)
            for statement in (f"SELECT sum(id) FROM {table}", f"DELETE FROM {table} WHERE id = 1"):
                with pytest.raises(
                    Exception, match=f"has {COUNT} rows, its manifest says {stated}"
                ):
                    sql(statement)
        table = stating(catalog, kind, COUNT, lambda _: {"record_count": 2})
        with pytest.raises(Exception, match="has 3 rows, its manifest says 2"):
            sql(f"SELECT sum(id) FROM {table}")


@pytest.mark.parametrize("minor", SPARKS)
def test_a_delete_file_that_is_longer_than_stated_is_read_to_its_end(
    sql_on, catalog, namespace, minor
):
    sql = sql_on(minor)
    for kind in ("parquet", "orc", "avro"):
        table = stating(catalog, kind, COUNT, lambda _: {"file_size_in_bytes": 10})
        assert sql(f"SELECT count(id), min(id) FROM {table}") == [[COUNT - 3, 3]]
