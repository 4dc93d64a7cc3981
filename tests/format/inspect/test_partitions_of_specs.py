from __future__ import annotations

from icecomb.format.inspect.inspection import Inspect
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.operation.append import FastAppend
from icecomb.format.spec.change.update import (
    AddPartitionSpecUpdate,
    RemoveSnapshotsUpdate,
    update_table_metadata,
)
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import LongType, NestedField, StringType
from icecomb.format.storage.file_io import FileIO

IO = FileIO()
SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "day", StringType()))
DAY = PartitionField(2, 1000, parse_transform("identity"), "day")
BUCKET = PartitionField(1, 1001, parse_transform("bucket[4]"), "bucket")


def test_a_partition_that_specs_share_has_the_spec_of_the_last_file_not_of_an_expired_snapshot(
    tmp_path,
):
    """Nobody knows any more when files of expired snapshots came: they are nobody's last."""
    table = new_table_metadata(SCHEMA, PartitionSpec(DAY), UNSORTED_SORT_ORDER, str(tmp_path))
    table = update_table_metadata(table, [AddPartitionSpecUpdate(PartitionSpec(DAY, BUCKET))])
    # a bucket of null is no bucket: both files are of one partition
    for name, spec_id, partition in (("old", 1, ("mon", None)), ("new", 0, ("mon",))):
        file = DataFile(
            file_path=f"/lake/{name}",
            partition=partition,
            record_count=5,
            file_size_in_bytes=10,
            spec_id=spec_id,
        )
        added = FastAppend(IO).append_data_file(file).apply(table)
        table = update_table_metadata(table, added.updates)
    last = table.current_snapshot()
    table = update_table_metadata(table, [RemoveSnapshotsUpdate((last.parent_snapshot_id,))])
    [row] = Inspect(table, IO).partitions().to_pylist()
    assert row["partition"] == {"day": "mon", "bucket": None}
    assert (row["file_count"], row["record_count"]) == (2, 10)
    assert row["last_updated_snapshot_id"] == last.snapshot_id
    assert row["spec_id"] == 0
