"""Snapshot summaries: counts of what a snapshot added and removed, and running totals.

Keys and rules are those of Iceberg Java: a count of zero is omitted, and a total is carried over
from the previous snapshot as long as it is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.argument import property_texts
from icecomb.format.errors import ValidationError
from icecomb.format.manifests.manifest import DataFile, DataFileContent

if TYPE_CHECKING:
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.spec.schema import Schema

_COUNT_KEYS: Final = (
    "added-data-files",
    "deleted-data-files",
    "added-equality-delete-files",
    "removed-equality-delete-files",
    "added-position-delete-files",
    "removed-position-delete-files",
    "added-dvs",
    "removed-dvs",
    "added-delete-files",
    "removed-delete-files",
    "added-records",
    "deleted-records",
    "added-files-size",
    "removed-files-size",
    "added-position-deletes",
    "removed-position-deletes",
    "added-equality-deletes",
    "removed-equality-deletes",
)
_TOTALS: Final = (
    ("total-records", "added-records", "deleted-records"),
    ("total-files-size", "added-files-size", "removed-files-size"),
    ("total-data-files", "added-data-files", "deleted-data-files"),
    ("total-delete-files", "added-delete-files", "removed-delete-files"),
    ("total-position-deletes", "added-position-deletes", "removed-position-deletes"),
    ("total-equality-deletes", "added-equality-deletes", "removed-equality-deletes"),
)
_COMPUTED: Final = frozenset(
    (
        "operation",
        *_COUNT_KEYS,
        *(total for total, _, _ in _TOTALS),
        "changed-partition-count",
        "partition-summaries-included",
        "manifests-created",
        "manifests-kept",
        "manifests-replaced",
        "entries-processed",
        "replace-partitions",
        "source-snapshot-id",
    )
)
_PARTITION: Final = "partitions."


def snapshot_texts(properties: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the keys that a caller adds to a summary, as strings (see `property_texts`).

    Keys that commits set are refused: readers and later commits rely on them.
    """
    given = property_texts("snapshot property", properties)
    ours = sorted(key for key in given if key in _COMPUTED or key.startswith(_PARTITION))
    if ours:
        raise ValidationError(
            f"Cannot set snapshot properties: {', '.join(ours)}",
            hint="A commit sets these itself; use other names for additional properties.",
        )
    return given


class SnapshotSummary:
    """The counts of one commit.

    Args:
        schema: The table's schema, for the names of partitions.
        partition_limit: Describe each changed partition when there are at most this many
            (table property `write.summary.partition-limit`).
    """

    def __init__(self, schema: Schema, partition_limit: int = 0) -> None:
        self._schema = schema
        self._limit = partition_limit
        self._counts: Counter[str] = Counter()
        # Counts per partition are kept as long as there are not too many partitions.
        self._partitions: dict[tuple[Any, ...], Counter[str] | None] = {}
        self._specs: dict[int, PartitionSpec] = {}

    def add_file(self, file: DataFile, spec: PartitionSpec) -> None:
        """Count a file that this commit adds."""
        keys = _ADDED_VECTOR if file.is_deletion_vector else _ADDING[file.content]
        self._count(file, spec, keys, "added")

    def add_data_file(
        self, spec: PartitionSpec, partition: tuple[Any, ...], rows: int, size: int
    ) -> None:
        """Count a data file that this commit adds.

        Args:
            spec: The partition spec of the file.
            partition: The partition of the file.
            rows: The number of rows in the file.
            size: The length of the file in bytes.
        """
        keys = _ADDING[DataFileContent.DATA]
        self._count_one(spec, partition, keys, {keys[-1]: rows, "added-files-size": size})

    def remove_file(self, file: DataFile, spec: PartitionSpec) -> None:
        """Count a file that this commit removes."""
        keys = _REMOVED_VECTOR if file.is_deletion_vector else _REMOVING[file.content]
        self._count(file, spec, keys, "removed")

    def to_map(self) -> dict[str, str]:
        """Return the summary keys for the changes, without totals."""
        out = _stated(self._counts)
        out["changed-partition-count"] = str(len(self._partitions))
        if 0 < len(self._partitions) <= self._limit:
            out["partition-summaries-included"] = "true"
            for (spec_id, *values), counts in self._partitions.items():
                if counts is None:
                    continue
                path = self._specs[spec_id].partition_to_path(tuple(values), self._schema)
                stated = ",".join(f"{key}={value}" for key, value in _stated(counts).items())
                out[f"partitions.{path}"] = stated
        return out

    def _count(self, file: DataFile, spec: PartitionSpec, keys: tuple[str, ...], verb: str) -> None:
        # a deletion vector is a part of its file
        size = file.content_size_in_bytes if file.is_deletion_vector else file.file_size_in_bytes
        amounts = {keys[-1]: file.record_count, f"{verb}-files-size": size or 0}
        self._count_one(spec, file.partition, keys, amounts)

    def _count_one(
        self,
        spec: PartitionSpec,
        partition: tuple[Any, ...],
        keys: tuple[str, ...],
        amounts: Mapping[str, int],
    ) -> None:
        key = (spec.spec_id, *partition)
        self._specs.setdefault(spec.spec_id, spec)
        if key not in self._partitions:
            described = len(self._partitions) < self._limit
            if not described and len(self._partitions) == self._limit:
                self._partitions = dict.fromkeys(self._partitions)
            self._partitions[key] = Counter() if described else None
        for counts in (self._counts, self._partitions[key]):
            if counts is not None:
                for name in keys[:-1]:
                    counts[name] += 1
                for name, amount in amounts.items():
                    counts[name] += amount


_ADDING: Final = {
    DataFileContent.DATA: ("added-data-files", "added-records"),
    DataFileContent.POSITION_DELETES: (
        "added-delete-files",
        "added-position-delete-files",
        "added-position-deletes",
    ),
    DataFileContent.EQUALITY_DELETES: (
        "added-delete-files",
        "added-equality-delete-files",
        "added-equality-deletes",
    ),
}
_REMOVING: Final = {
    DataFileContent.DATA: ("deleted-data-files", "deleted-records"),
    DataFileContent.POSITION_DELETES: (
        "removed-delete-files",
        "removed-position-delete-files",
        "removed-position-deletes",
    ),
    DataFileContent.EQUALITY_DELETES: (
        "removed-delete-files",
        "removed-equality-delete-files",
        "removed-equality-deletes",
    ),
}
_ADDED_VECTOR: Final = ("added-delete-files", "added-dvs", "added-position-deletes")
_REMOVED_VECTOR: Final = ("removed-delete-files", "removed-dvs", "removed-position-deletes")


def with_totals(changes: Mapping[str, str], previous: Mapping[str, str] | None) -> dict[str, str]:
    """Return a summary with its running totals, which start at zero without a previous one."""
    before = (
        dict.fromkeys((total for total, _, _ in _TOTALS), "0") if previous is None else previous
    )
    out = dict(changes)
    for total, added, removed in _TOTALS:
        value = _number(before.get(total))
        plus, minus = _number(changes.get(added, "0")), _number(changes.get(removed, "0"))
        if value is not None and plus is not None and minus is not None:
            sum_ = value + plus - minus
            if sum_ >= 0:
                out[total] = str(sum_)
    return out


def _stated(counts: Mapping[str, int]) -> dict[str, str]:
    return {key: str(counts[key]) for key in _COUNT_KEYS if counts.get(key, 0) > 0}


def _number(text: str | None) -> int | None:
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None
