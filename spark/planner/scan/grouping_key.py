"""Grouping of a scan's tasks by partition, which lets Spark join tables without a shuffle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from icecomb.format.rows.values.scan_task import FileScanTask, ScanTaskGroup, plan_task_groups
from icecomb.format.spec.transform import BucketTransform, IdentityTransform, TimeTransform
from icecomb.format.spec.types import NANO_TYPES, UUIDType
from icecomb.spark.partitioning import spark_transform
from icecomb.spark.planner.protocol.scans import GroupingField
from icecomb.spark.schema import spark_type
from icecomb.spark.values import value_to_json

if TYPE_CHECKING:
    from icecomb.format.spec.partition import PartitionField, PartitionSpec
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.types import IcebergType
    from icecomb.spark.planner.scan.split_size import SplitSize


class GroupingKey:
    """The partition fields by which the tasks of a scan are grouped.

    As in Iceberg Java these are the fields shared by all specs of the scan's files, if their column
    is read. Fields that cannot be described to Spark are left out:

    * `truncate`: Spark up to 4.3 supports no transform with an argument but `bucket`, and would
      consider two widths equal;
    * `bucket` of a uuid: Spark sees text, whose bucket differs;
    * `identity` of nanoseconds: Spark sees microseconds, the same of several partitions;
    * fields inside structs: Spark supports top-level columns only.
    """

    def __init__(
        self,
        fields: Sequence[tuple[PartitionField, str, IcebergType]] = (),
        specs: Iterable[PartitionSpec] = (),
    ) -> None:
        self.fields = tuple(
            GroupingField(
                transform=spark_transform(field.transform, [name]),
                type=spark_type(field.transform.result_type(source)),
            )
            for field, name, source in fields
        )
        self._types = [field.transform.result_type(source) for field, _, source in fields]
        ids = [field.field_id for field, _, _ in fields]
        self._places: dict[int, list[int]] = {}
        for spec in specs:
            places = {field.field_id: place for place, field in enumerate(spec.fields)}
            self._places[spec.spec_id] = [places[field_id] for field_id in ids]

    @classmethod
    def of(
        cls, tasks: Iterable[FileScanTask], schema: Schema, read_ids: Iterable[int]
    ) -> GroupingKey:
        """Return the key of the tasks of one scan, for a schema as given to Spark."""
        specs = {task.spec.spec_id: task.spec for task in tasks}
        if not specs:
            return cls()
        columns = {f.field_id: f for f in schema.fields if f.field_id in set(read_ids)}
        first, *others = (specs[spec_id] for spec_id in sorted(specs, reverse=True))
        shared = [
            field
            for field in first.fields
            if field.source_id in columns and all(map(_has(field), others))
        ]
        keyed = [(f, columns[f.source_id].name, columns[f.source_id].field_type) for f in shared]
        return cls([each for each in keyed if _is_known(each[0], each[2])], specs.values())

    def task_groups(
        self, tasks: Iterable[FileScanTask], size: SplitSize
    ) -> Iterator[tuple[tuple[Any, ...], ScanTaskGroup]]:
        """Yield what each Spark task reads, with the JSON of its one value of `fields`."""
        for key, members in self._by_key(tasks):
            values = tuple(map(value_to_json, self._types, key))
            groups = plan_task_groups(members, size.target, size.lookback, size.open_cost)
            for group in groups:
                yield values, group

    def _by_key(
        self, tasks: Iterable[FileScanTask]
    ) -> Iterable[tuple[tuple[Any, ...], Iterable[FileScanTask]]]:
        if not self.fields:
            return [((), tasks)]
        found: dict[tuple[Any, ...], list[FileScanTask]] = {}
        for task in tasks:
            places = self._places[task.spec.spec_id]
            key = tuple(task.file.partition[place] for place in places)
            found.setdefault(key, []).append(task)
        return found.items()


def _has(field: PartitionField) -> Any:
    def check(spec: PartitionSpec) -> bool:
        wanted = (field.field_id, field.source_id, field.transform)
        return any(wanted == (f.field_id, f.source_id, f.transform) for f in spec.fields)

    return check


def _is_known(field: PartitionField, source: IcebergType) -> bool:
    if isinstance(field.transform, BucketTransform):
        return not isinstance(source, UUIDType)
    if isinstance(field.transform, IdentityTransform):
        return source.is_primitive and not isinstance(source, NANO_TYPES)
    return isinstance(field.transform, TimeTransform)
