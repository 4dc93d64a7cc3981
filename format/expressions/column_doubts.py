"""Which bounds and partition values of a manifest's files are of another type than is asked for."""

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
    """What is not believed of files, because the ids of columns were used again.

    A file is known by the snapshot that added it; where that has expired, the file may be of any
    schema of the table.

    Args:
        metadata: The table.
        schema: What the files are read with.

    Attributes:
        ids: The columns of which some files of the table may have another type.
    """

    def __init__(self, metadata: TableMetadata, schema: Schema) -> None:
        self.ids = unlike_in_table(metadata, schema)
        self._metadata = metadata
        self._schema = schema
        self._known: dict[int | None, frozenset[int] | None] = {}

    def of(self, columns: ManifestColumns) -> frozenset[int]:
        """The columns of which files of a manifest may have another type."""
        if not self.ids:
            return _NONE
        found = [self._added_by(owner) for owner in _owners(columns, None)]
        return _NONE.union(*(self.ids if ids is None else ids for ids in found))

    def check(
        self, columns: ManifestColumns, rows: Sequence[int] | None, read: Collection[int] | None
    ) -> None:
        """Refuse to read files of which a column is known to have another type.

        Args:
            columns: A manifest.
            rows: Which of its entries are read; all by default.
            read: Which columns are read; all by default.

        Raises:
            ValidationError: Names the column, the types and the snapshot.
        """
        if not self.ids:
            return
        for owner in _owners(columns, rows):
            unlike = self._added_by(owner) or _NONE
            for field_id in sorted(unlike if read is None else unlike.intersection(read)):
                name = self._schema.find_column_name(field_id)
                raise ValidationError(
                    f"Column {name!r} is {self._schema.find_type(field_id)}, which files of "
                    f"snapshot {owner} cannot be read as: the table was replaced, and the id "
                    f"{field_id} used again",
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
    """The spec without what it says of some columns; its fields keep their places."""
    if not any(field.source_id in doubted for field in spec.fields):
        return spec
    return replace(
        spec,
        fields=tuple(
            replace(field, transform=VoidTransform()) if field.source_id in doubted else field
            for field in spec.fields
        ),
    )
