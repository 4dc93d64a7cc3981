"""What Iceberg Java reads where another writer states odd bounds: the rows that icecomb reads."""

from __future__ import annotations

import pyarrow as pa

from icecomb.catalog import load_catalog
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import LongType, NestedField
from tests.catalog.metadata_of_others import NO_CACHE, again, told_otherwise

PATH = 2147483546
SCHEMA = Schema(NestedField(1, "id", LongType()))
LOWER, UPPER = "lower_bounds", "upper_bounds"


def stated(column, lower, upper):
    """A file's bounds of one column."""

    def file(record):
        if (column == PATH) is (record["content"] == 1):
            for name, bound in ((LOWER, lower), (UPPER, upper)):
                record[name] = None if bound is None else {column: bound}
            record["referenced_data_file"] = None

    return file


def test_iceberg_java_reads_the_same_rows(metastore, iceberg_library):
    """Bounds of paths upside down, and bounds of values wider than the file or missing."""
    warehouse = f"{metastore.warehouse.as_uri()}/hadoop"
    least, most = (number.to_bytes(8, "little", signed=True) for number in (-(1 << 40), 1 << 40))
    with load_catalog("files", type="hadoop", warehouse=warehouse, **NO_CACHE) as catalog:
        catalog.create_namespace("odd")
        table = catalog.create_table(
            "odd.t",
            SCHEMA,
            properties={"format-version": "2", "write.delete.mode": "merge-on-read"},
        )
        for first in (0, 10):
            table.append(pa.table({"id": pa.array(range(first, first + 4), pa.int64())}))
        table.delete("id in (1, 11)")
        for file in (
            stated(PATH, b"zzz", b"a"),
            stated(PATH, None, None),
            stated(1, least, most),
            stated(1, None, most),
        ):
            table = told_otherwise(again(table), file)
            for text, left in (("id >= 0", [0, 2, 3, 10, 12, 13]), ("id > 2 and id < 12", [3, 10])):
                found = iceberg_library.scan("hadoop:odd.t", text, columns=["id"])
                assert sorted(row[0] for row in found) == left
                assert sorted(table.scan(text).to_arrow()["id"].to_pylist()) == left
        table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
        found = iceberg_library.scan("hadoop:odd.t", columns=["id"])
        assert sorted(row[0] for row in found) == [0, 2, 3, 10, 12, 13]
        catalog.purge_table("odd.t")
        catalog.drop_namespace("odd")
