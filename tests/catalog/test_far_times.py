"""Dates and times that Python's `datetime` cannot hold, where a table is partitioned by them."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.row_changes.key_index import key_text
from icecomb.format.spec.types import DateType, NestedField, TimestampType
from icecomb.spark.planner.scan.metadata_rows import _for_spark
from tests.rings import sampled

FAR = {
    "date32[day]": [2_932_897, -719_163, 0],
    "timestamp[us]": [253_402_300_800_000_000, -62_135_596_801_000_000, 0],
    "timestamp[ns]": [1_500_000_000_000_000_001, 1, 0],
}
KINDS = {str(kind): kind for kind in (pa.date32(), pa.timestamp("us"), pa.timestamp("ns"))}


def column(kind):
    numbers = pa.array(FAR[kind], pa.int64())
    return (
        numbers.cast(pa.int32()).cast(pa.date32())
        if kind == "date32[day]"
        else numbers.cast(KINDS[kind])
    )


@pytest.mark.parametrize(
    ("kind", "file_format"),
    sampled([(k, f) for k in KINDS for f in ("parquet", "orc", "avro")], keep=2),
)
def test_the_partition_of_each_row_is_read(tmp_path, file_format, kind):
    with load_catalog("files", type="hadoop", warehouse=str(tmp_path)) as catalog:
        catalog.create_namespace("db")
        rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "at": column(kind)})
        table = catalog.create_table(
            "db.t",
            rows.schema,
            properties={"format-version": "3", "write.format.default": file_format},
        )
        with table.update_spec() as spec:
            spec.add_identity("at")
        table.append(rows)
        found = (
            table.scan(selected_fields=("id", "_partition"))
            .to_arrow()
            .sort_by("id")
            .combine_chunks()
        )
    assert found["id"].to_pylist() == [1, 2, 3]
    places = found["_partition"].combine_chunks().field("at")
    assert places.cast(rows["at"].type).equals(rows["at"].combine_chunks())


def test_a_key_is_shown():
    fields = [NestedField(1, "day", DateType()), NestedField(2, "at", TimestampType())]
    values = [column(kind)[0] for kind in ("date32[day]", "timestamp[us]")]
    assert key_text(fields, values) == "day='+10000-01-01', at='+10000-01-01T00:00:00'"


def test_a_metadata_table_goes_to_spark():
    """Beside a UUID in one struct, as in `partition` and `readable_metrics`."""
    ids = pa.array([uuid.UUID(int=1).bytes, None, uuid.UUID(int=2).bytes], pa.uuid())
    whole = pa.StructArray.from_arrays([column("date32[day]"), ids], names=["day", "id"])
    lists = pa.ListArray.from_arrays(pa.array([0, 1, None, 3], pa.int32()), whole)
    batch = pa.RecordBatch.from_arrays([whole, lists], ["partition", "row"])
    found = _for_spark(batch.slice(1))
    found.validate(full=True)
    [one, many] = found.columns
    assert one.field(0).equals(column("date32[day]").slice(1))
    assert one.field(1).to_pylist() == [None, str(uuid.UUID(int=2))]
    assert many.is_null().to_pylist() == [False, True]
    assert many.flatten().field(1).to_pylist() == [None, str(uuid.UUID(int=2))]
