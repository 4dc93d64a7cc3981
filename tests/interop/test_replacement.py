"""A table replaced by us is what Iceberg Java makes of the same table."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import LongType, NestedField, StringType

pytestmark = pytest.mark.full("Iceberg Java in a second Spark")

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "s": ["a", "b"]})
SCHEMA = Schema(
    (
        NestedField(1, "n", LongType()),
        NestedField(2, "s", StringType()),
        NestedField(3, "id", LongType()),
    )
)


def spec(source_id, transform, name):
    return PartitionSpec(0, (PartitionField(source_id, 1000, parse_transform(transform), name),))


def shape(metadata):
    return (
        [(s.schema_id, [(f.field_id, f.name) for f in s.fields]) for s in metadata.schemas],
        [
            (
                s.spec_id,
                [(f.source_id, f.field_id, str(f.transform), f.name) for f in s.fields],
            )
            for s in metadata.partition_specs
        ],
        (metadata.current_schema_id, metadata.default_spec_id, metadata.default_sort_order_id),
        (metadata.last_column_id, metadata.last_partition_id, metadata.format_version),
        (sorted(metadata.refs), metadata.current_snapshot_id, len(metadata.snapshots)),
        metadata.properties["write.parquet.compression-codec"],
    )


def test_iceberg_java_replaces_a_table_the_same_way_and_reads_ours(catalog, iceberg_java):
    catalog.create_namespace("replacement")
    for version in ("1", "2"):
        ours, theirs = f"replacement.ours{version}", f"replacement.theirs{version}"
        for name in (ours, theirs):
            catalog.create_table(
                name,
                ROWS.schema,
                partition_spec=spec(2, "identity", "s"),
                properties={
                    "format-version": version,
                    "write.parquet.compression-codec": "gzip",
                },
            ).append(ROWS)
        iceberg_java.sql(
            f"create or replace table ice.{theirs} (n bigint, s string, id bigint) using iceberg "
            f"partitioned by (bucket(4, id)) tblproperties ('format-version'='{version}')"
        )
        with catalog.replace_table_transaction(
            ours, SCHEMA, partition_spec=spec(3, "bucket[4]", "id_bucket")
        ) as new:
            replaced = new.metadata
            new.append(pa.table({"n": [7], "s": ["x"], "id": [4]}))
        assert shape(replaced) == shape(catalog.load_table(theirs).metadata)
        assert iceberg_java.sql(f"select * from ice.{ours}") == [[7, "x", 4]]
        old = catalog.load_table(ours).snapshots()[0].snapshot_id
        past = iceberg_java.sql(f"select id, s from ice.{ours} version as of {old} order by id")
        assert past == [[1, "a"], [2, "b"]]
