"""What the first writers of format version 1 left out."""

from __future__ import annotations

from icecomb.format.spec.partition import PartitionSpec


def test_partition_fields_without_ids_are_counted_from_1000():
    """Manifests of such tables name them so, and readers find values by these ids."""
    raw = {
        "spec-id": 0,
        "fields": [
            {"name": "id_bucket", "transform": "bucket[16]", "source-id": 1},
            {"name": "day", "transform": "day", "source-id": 2},
        ],
    }
    assert [field.field_id for field in PartitionSpec.from_json(raw).fields] == [1000, 1001]
