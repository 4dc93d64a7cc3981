"""Changes of the partition spec of a table (spec: Partition Evolution).

Existing files keep the spec they were written with. In format version 1 a removed field becomes
void, so that the ids stay 1000, 1001, ...; in version 2 it is dropped, and gets its old id if it is
added again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from icecomb.format.errors import CommitFailedError, ValidationError
from icecomb.format.evolution.pending_update import Commit, RecordedUpdate
from icecomb.format.spec.change.requirement import (
    AssertDefaultSpecId,
    AssertLastAssignedPartitionId,
    AssertTableUUID,
)
from icecomb.format.spec.change.update import AddPartitionSpecUpdate, Changes, SetDefaultSpecUpdate
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.transform import (
    BucketTransform,
    IdentityTransform,
    TimeTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    as_transform,
)

if TYPE_CHECKING:
    from typing_extensions import Self

    from icecomb.format.spec.metadata import TableMetadata


class UpdateSpec(RecordedUpdate["SpecEdit"]):
    """An update that adds, removes and renames partition fields.

    Args:
        base: The table's metadata.
        commit: See `PendingUpdate`.
        case_sensitive: Whether given column names distinguish `Id` from `id`.
    """

    def __init__(
        self, base: TableMetadata, commit: Commit | None = None, *, case_sensitive: bool = True
    ) -> None:
        super().__init__(base, commit)
        self._case_sensitive = case_sensitive

    def add_field(
        self,
        source_column_name: str,
        transform: str | Transform,
        partition_field_name: str | None = None,
    ) -> Self:
        """Add a partition field after the others.

        Args:
            source_column_name: The column; a field inside one is given with dots.
            transform: The transform of its values, for example ``"day"`` or ``"bucket[16]"``.
            partition_field_name: The field's name; by default ``<column>_day``,
                ``<column>_bucket_16``, ``<column>_trunc_4``, and for identity that of the column.

        Raises:
            ValidationError: If there is no such column, the transform does not fit it, or the field
                or its name exists already.
        """
        given = as_transform(transform)
        self._record(lambda edit: edit.add(source_column_name, given, partition_field_name))
        return self

    def add_identity(self, source_column_name: str) -> Self:
        """Partition by the values of a column, without a transform."""
        return self.add_field(source_column_name, IdentityTransform())

    def remove_field(self, name: str) -> Self:
        """Remove a partition field: new files are no longer partitioned by it.

        Raises:
            ValidationError: If there is no such partition field, or it is changed in this update.
        """
        self._record(lambda edit: edit.remove(name))
        return self

    def rename_field(self, name: str, new_name: str) -> Self:
        """Rename a partition field.

        Raises:
            ValidationError: If there is no such partition field, or the name is taken.
        """
        self._record(lambda edit: edit.rename(name, new_name))
        return self

    def apply(self, base: TableMetadata) -> Changes:
        edit = self._replayed(base)
        if moved := [n for n, i in self._edit.found.items() if edit.found.get(n, i) != i]:
            raise CommitFailedError(
                f"{moved[0]!r} is another field now: the table was changed concurrently",
                hint="Refresh the table, and check its partition spec before you change it.",
            )
        spec = edit.result()
        if spec.fields == base.spec().fields:
            return Changes()
        return Changes(
            (
                AssertTableUUID(base.table_uuid),
                AssertLastAssignedPartitionId(base.last_partition_id),
                AssertDefaultSpecId(base.default_spec_id),
            ),
            (AddPartitionSpecUpdate(spec), SetDefaultSpecUpdate()),
        )

    def _begin(self, base: TableMetadata) -> SpecEdit:
        return SpecEdit(base, case_sensitive=self._case_sensitive)


class SpecEdit:
    """A partition spec being edited, beginning with the table's default spec."""

    def __init__(self, base: TableMetadata, *, case_sensitive: bool = True) -> None:
        self._base = base
        self._case_sensitive = case_sensitive
        self._fields = {f.name: f for f in base.spec().fields}
        self._adds: dict[str, PartitionField] = {}
        self._deletes: set[int] = set()
        self._renames: dict[str, str] = {}
        self._last_id = base.last_partition_id
        self.found: dict[str, int] = {}

    def add(self, column: str, transform: Transform, name: str | None) -> None:
        """Add a field."""
        schema = self._base.schema()
        source = schema.find_field(column, self._case_sensitive)
        transform.check(source.field_type, schema.find_column_name(source.field_id))
        for field in self._fields.values():
            if (field.source_id, field.transform) == (source.field_id, transform):
                if field.field_id not in self._deletes:
                    raise ValidationError(
                        f"The table is partitioned by {field.name!r} already",
                        hint="Keep it, or rename it with rename_field.",
                    )
                self._restore(field, name)
                return
        for added in self._adds.values():
            self._check_beside(added, source.field_id, transform)
        new = self._new_field(source.field_id, transform, name)
        if new.name in self._adds:
            raise ValidationError(
                f"Cannot add two partition fields named {new.name!r}",
                hint="Give one of them another name.",
            )
        self._free_name(new.name)
        self.found[f"column {column}"] = source.field_id
        self._last_id = max(self._last_id, new.field_id)
        self._adds[new.name] = new

    def remove(self, name: str) -> None:
        """Remove a field."""
        field = self._existing(name, "remove")
        if name in self._renames:
            raise ValidationError(
                f"Cannot rename and remove partition field {name!r} at once", hint="Do only one."
            )
        self._deletes.add(field.field_id)

    def rename(self, name: str, new_name: str) -> None:
        """Rename a field."""
        field = self._existing(name, "rename")
        if field.field_id in self._deletes:
            raise ValidationError(
                f"Cannot remove and rename partition field {name!r} at once", hint="Do only one."
            )
        if new_name != name:
            self._free_name(new_name)
            if new_name in self._adds or new_name in self._renames.values():
                raise ValidationError(
                    f"Cannot have two partition fields named {new_name!r}",
                    hint="Choose another name.",
                )
        self._renames[name] = new_name

    def result(self) -> PartitionSpec:
        """Return the spec after the edit."""
        fields = []
        for field in self._base.spec().fields:
            kept = replace(field, name=self._renames.get(field.name, field.name))
            if field.field_id not in self._deletes:
                fields.append(kept)
            elif self._base.format_version == 1:
                fields.append(replace(kept, transform=VoidTransform()))
        spec = PartitionSpec(self._base.default_spec_id, (*fields, *self._adds.values()))
        spec.check(self._base.schema())
        return spec

    def _existing(self, name: str, verb: str) -> PartitionField:
        if name in self._adds:
            raise ValidationError(
                f"Cannot add and {verb} partition field {name!r} at once",
                hint="Do one of the two, or make two updates.",
            )
        field = self._fields.get(name)
        if field is None:
            names = ", ".join(self._fields)
            raise ValidationError(
                f"Cannot {verb} partition field {name!r}: there is none of this name",
                hint=f"Partition fields are: {names}."
                if names
                else "The table is not partitioned.",
            )
        self.found[name] = field.field_id
        return field

    def _restore(self, field: PartitionField, name: str | None) -> None:
        self._deletes.remove(field.field_id)
        if name is not None and name != field.name:
            self.rename(field.name, name)

    def _check_beside(self, added: PartitionField, source_id: int, transform: Transform) -> None:
        both_time = isinstance(added.transform, TimeTransform) and isinstance(
            transform, TimeTransform
        )
        if added.source_id == source_id and (both_time or added.transform == transform):
            raise ValidationError(
                f"Cannot add a partition field {transform}({source_id}) beside {added}",
                hint="Keep one of them: the finer one serves filters on the other, too.",
            )

    def _new_field(self, source_id: int, transform: Transform, name: str | None) -> PartitionField:
        if self._base.format_version > 1:
            for spec in self._base.partition_specs:
                for field in spec.fields:
                    same = field.source_id == source_id and field.transform == transform
                    if same and name in (None, field.name):
                        return field
        column = self._base.schema().find_column_name(source_id) or ""
        chosen = default_name(column, transform) if name is None else name
        return PartitionField(source_id, self._last_id + 1, transform, chosen)

    def _free_name(self, name: str) -> None:
        """Rename a void or removed field that has the name of a new one."""
        field = self._fields.get(name)
        if field is None or name in self._renames:
            return
        if field.field_id not in self._deletes and not isinstance(field.transform, VoidTransform):
            raise ValidationError(
                f"The table has a partition field {name!r} already",
                hint="Choose another name, or remove that field first.",
            )
        self._renames[name] = f"{name}_{field.field_id}"


def default_name(column: str, transform: Transform) -> str:
    """Return the reference implementation's default name for a new partition field."""
    if isinstance(transform, IdentityTransform):
        return column
    if isinstance(transform, BucketTransform):
        return f"{column}_bucket_{transform.num_buckets}"
    if isinstance(transform, TruncateTransform):
        return f"{column}_trunc_{transform.width}"
    if isinstance(transform, VoidTransform):
        return f"{column}_null"
    return f"{column}_{transform}"
