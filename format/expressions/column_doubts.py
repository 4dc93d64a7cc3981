"""Bounds and partition values in manifests that have another type than the column read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from icecomb.format.arrow.array_build import integers
from icecomb.format.errors import ValidationError
from icecomb.format.spec.column_history import unlike_in_snapshot, unlike_in_table
from icecomb.format.spec.transform import VoidTransform

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from icecomb.format.manifests.columns import ManifestColumns
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.spec.schema import Schema

_NONE: frozenset[int] = frozenset()


class ColumnDoubts:
    """Ids of columns whose metrics are not trusted, because their ids were reused.

    The schema of a file is that of the snapshot that added it; if that has expired, it may be any
    schema of the table.
    """

    def __init__(self, metadata: TableMetadata, schema: Schema) -> None:
        self.ids = unlike_in_table(metadata, schema)
        self._metadata = metadata
        self._schema = schema
        self._known: dict[int | None, frozenset[int] | None] = {}

    def of(self, columns: ManifestColumns) -> frozenset[int]:
        """Return the ids of columns that may have another type in files of a manifest."""
        if not self.ids:
            return _NONE
        found = [self._added_by(owner) for owner in _owners(columns, None)]
        return _NONE.union(*(self.ids if ids is None else ids for ids in found))

    def check(
        self, columns: ManifestColumns, rows: Sequence[int] | None, read: Collection[int] | None
    ) -> None:
        """Check that no column to read (None: all) is known to have another type in the files."""
        if not self.ids:
            return
        for owner in _owners(columns, rows):
            unlike = self._added_by(owner) or _NONE
            for field_id in sorted(unlike if read is None else unlike.intersection(read)):
                name = self._schema.find_column_name(field_id)
                raise ValidationError(
                    f"Column {name!r} is {self._schema.find_type(field_id)}, which files of "
                    f"snapshot {owner} cannot be read as: the table was replaced, and the id "
                    f"{field_id} reused",
                    hint=f"Read that snapshot by its id {owner}, with the column that it has.",
                    snapshot_id=owner,
                    field_id=field_id,
                )

    def _added_by(self, owner: int | None) -> frozenset[int] | None:
        if owner not in self._known:
            self._known[owner] = unlike_in_snapshot(self._metadata, owner, self._schema)
        return self._known[owner]


def _owners(columns: ManifestColumns, rows: Sequence[int] | None) -> list[int | None]:
    owners = columns.column("snapshot_id")
    chosen = owners if rows is None else owners.take(integers(list(rows)))
    found: list[int | None] = pc.unique(chosen).to_pylist()
    return found


def believed_spec(spec: PartitionSpec, doubted: Collection[int]) -> PartitionSpec:
    """Return the spec with the fields of doubted columns void; all keep their positions."""
    if not any(field.source_id in doubted for field in spec.fields):
        return spec
    return replace(
        spec,
        fields=tuple(
            replace(field, transform=VoidTransform()) if field.source_id in doubted else field
            for field in spec.fields
        ),
    )
