"""The metadata column `_partition` for Spark: its type, and its value in each file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icecomb.format.errors import UnsupportedError, ValidationError
from icecomb.format.rows.values.partition_union import partition_union
from icecomb.spark.schema import check_has_type, spark_struct
from icecomb.spark.values import shown_to_json

if TYPE_CHECKING:
    from icecomb.format.manifests.manifest import DataFile
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.schema import Schema


def partition_struct(
    metadata: TableMetadata, schema: Schema | None = None, *, downcast: bool = False
) -> dict[str, Any] | None:
    """Return the fields of all specs as Spark's struct; None if Spark cannot represent them.

    Args:
        schema: The schema its files are read with, see `partition_union`.
        downcast: Whether nanoseconds are shown as microseconds.
    """
    try:
        fields = partition_union(metadata, schema).fields
        for field in fields:
            check_has_type(field, downcast=downcast)
        return spark_struct(fields)
    except (UnsupportedError, ValidationError):
        return None


class PartitionValues:
    """The values of `_partition` in the files of a table.

    Args:
        schema: The schema its files are read with, see `partition_union`.
    """

    def __init__(self, metadata: TableMetadata, schema: Schema) -> None:
        self._fields = partition_union(metadata, schema).fields
        self._specs = metadata.specs()

    def of(self, file: DataFile) -> dict[str, Any] | None:
        """Return the value for a file's rows, by field name; None in an unpartitioned table."""
        if not self._fields:
            return None
        places = {f.field_id: place for place, f in enumerate(self._specs[file.spec_id].fields)}
        return {
            f.name: shown_to_json(f.field_type, file.partition[places[f.field_id]])
            if f.field_id in places
            else None
            for f in self._fields
        }
