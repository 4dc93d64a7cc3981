"""Changes of the schema of a table (spec: Schema Evolution)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from icecomb.format.argument import checked_flag
from icecomb.format.errors import CommitFailedError, SchemaError, ValidationError
from icecomb.format.evolution.pending_update import Commit, RecordedUpdate
from icecomb.format.evolution.schema_edit import (
    Path,
    SchemaEdit,
    find_deleted_column,
    with_given_defaults,
)
from icecomb.format.property.table_property import NAME_MAPPING
from icecomb.format.spec.change.requirement import (
    AssertCurrentSchemaId,
    AssertLastAssignedFieldId,
    AssertTableUUID,
)
from icecomb.format.spec.change.update import (
    AddSchemaUpdate,
    Changes,
    RemovePropertiesUpdate,
    SetCurrentSchemaUpdate,
    SetPropertiesUpdate,
)
from icecomb.format.spec.name_mapping import update_name_mapping
from icecomb.format.spec.promotion import is_date_promotion
from icecomb.format.spec.schema import as_schema
from icecomb.format.spec.transform import (
    DayTransform,
    MonthTransform,
    VoidTransform,
    YearTransform,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa
    from typing_extensions import Self

    from icecomb.format.spec.change.update import TableUpdate
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.types import IcebergType

_COLUMN_PROPERTIES: Final = (
    "write.metadata.metrics.column.",
    "write.parquet.bloom-filter-enabled.column.",
    "write.parquet.stats-enabled.column.",
)


_SAME_OF_DATES: Final = (VoidTransform, YearTransform, MonthTransform, DayTransform)


class UpdateSchema(RecordedUpdate[SchemaEdit]):
    """An update that adds, changes, drops and moves columns, and fields inside them.

    Fields are given by their names before the update, fields inside columns with dots or as a
    tuple: ``"address.street"``, ``("address", "street")``. For structs in lists and maps
    ``"points.x"`` is short for ``"points.element.x"``. Existing files are not changed: fields are
    found in them by id.

    Args:
        base: The table's metadata.
        commit: See `PendingUpdate`.
        allow_incompatible_changes: Whether changes are allowed that existing rows may contradict.
        case_sensitive: Whether given names distinguish `Id` from `id`.
    """

    def __init__(
        self,
        base: TableMetadata,
        commit: Commit | None = None,
        *,
        allow_incompatible_changes: bool = False,
        case_sensitive: bool = True,
    ) -> None:
        super().__init__(base, commit)
        self._allow_incompatible = allow_incompatible_changes
        self._case_sensitive = case_sensitive

    def case_sensitive(self, case_sensitive: bool) -> Self:  # noqa: FBT001 - PyIceberg's signature
        """Set whether names given from now on distinguish `Id` from `id`."""
        checked_flag("argument case_sensitive", case_sensitive)

        def choose(edit: SchemaEdit) -> None:
            edit.case_sensitive = case_sensitive

        self._record(choose)
        return self

    def add_column(
        self,
        path: Path,
        field_type: IcebergType | str,
        doc: str | None = None,
        required: bool = False,  # noqa: FBT001, FBT002 - PyIceberg's signature
        default_value: Any = None,
    ) -> Self:
        """Add a column, or a field inside one, after the others.

        Args:
            path: The name of the new field.
            field_type: The type, or the string of a primitive one such as ``"decimal(9, 2)"``;
                field ids inside it are reassigned.
            doc: A comment.
            required: Whether to reject nulls; only with a default value or
                `allow_incompatible_changes`.
            default_value: The value that existing rows have in the column, and new rows for which
                none is given; only in tables of format version 3. None is null.

        Raises:
            ValidationError: If the default is not a value of the type.
            UnsupportedError: If the format version of the table lacks the type.
            SchemaError: If the name is taken, even in another case, or the parent does not exist.
        """
        self._record(
            lambda edit: edit.add(path, field_type, doc, required=required, default=default_value)
        )
        return self

    def delete_column(self, path: Path) -> Self:
        """Drop a column with all fields inside it.

        Raises:
            ValidationError: If there is no such column.
            SchemaError: If it is a list element, a map's key or value, or changed in this update.
        """
        self._record(lambda edit: edit.delete(path))
        return self

    def undelete_column(
        self,
        path: Path,
        required: bool | None = None,  # noqa: FBT001 - as the other arguments of this name
    ) -> Self:
        """Add a dropped column again under its old ids, so that its values in files are back.

        Rows that were written, or rewritten by a compaction, without the column have its initial
        default, mostly null. It comes after the others, and is not an identifier field.

        Args:
            path: Its last name; a field inside a struct comes back to the struct that had it.
            required: False to allow nulls; by default as it was.

        Raises:
            SchemaError: If no schema of the table had it, its name is taken or its id in use, or it
                is required and rows may have been written without it, see
                `allow_incompatible_changes`.
        """
        if required is not None:
            checked_flag("required", required, SchemaError)
        self._record(lambda edit: edit.undelete(path, required=required))
        return self

    def rename_column(self, path_from: Path, new_name: str) -> Self:
        """Rename a field.

        Args:
            path_from: The field to rename.
            new_name: The new name, without those of its parents.

        Raises:
            ValidationError: If there is no such field.
        """
        self._record(lambda edit: edit.rename(path_from, new_name))
        return self

    def update_column(
        self,
        path: Path,
        field_type: IcebergType | str | None = None,
        required: bool | None = None,  # noqa: FBT001 - PyIceberg's signature
        doc: str | None = None,
    ) -> Self:
        """Widen a field's type, change whether it may be null, or replace its comment.

        Args:
            path: The field to change.
            field_type: The wider type: long for int, double for float, a decimal of more digits;
                in format version 3 also timestamp or timestamp_ns for date, unless files are
                partitioned by its days themselves.
            required: False to allow nulls; True only with `allow_incompatible_changes`.
            doc: The new comment.

        Raises:
            SchemaError: If the type is not wider, or nulls were allowed.
        """
        self._record(lambda edit: edit.update(path, field_type, doc, required=required))
        return self

    def set_default_value(self, path: Path, default_value: Any) -> Self:
        """Set the value of later rows for which none is given; existing rows stay unchanged.

        Args:
            path: The field to change; it may be added in the same update.
            default_value: The value; None for null. Only in tables of format version 3.

        Raises:
            UnsupportedError: If the table's format version has no defaults.
            ValidationError: If it is not a value of the field's type.
            SchemaError: If the default of a required field would be removed.
        """
        self._record(lambda edit: edit.set_default(path, default_value))
        return self

    def make_column_optional(self, path: Path) -> Self:
        """Allow nulls in a field."""
        self._record(lambda edit: edit.update(path, required=False))
        return self

    def move_first(self, path: Path) -> Self:
        """Move a field before all its siblings."""
        self._record(lambda edit: edit.move(path, "first"))
        return self

    def move_before(self, path: Path, before_path: Path) -> Self:
        """Move a field before a sibling."""
        self._record(lambda edit: edit.move(path, "before", before_path))
        return self

    def move_after(self, path: Path, after_name: Path) -> Self:
        """Move a field after a sibling."""
        self._record(lambda edit: edit.move(path, "after", after_name))
        return self

    def set_identifier_fields(self, *fields: str) -> Self:
        """Set the fields that identify a row, by their names after the update.

        Raises:
            ValidationError: If there is no such field, or it cannot identify a row.
        """
        self._record(lambda edit: edit.set_identifiers(fields))
        return self

    def union_by_name(self, new_schema: Schema | pa.Schema) -> Self:
        """Add the columns that only another schema has, and widen those that are wider there.

        Columns that only this table has, and types that are narrower there, stay; so do columns of
        microseconds where an Arrow schema has nanoseconds, which fit if they end in zeros.

        Raises:
            SchemaError: If a column's types are incompatible, or the argument is not a schema.
        """
        import pyarrow as pa

        version = self._base.format_version
        new = with_given_defaults(as_schema(new_schema, version)).as_struct()
        of_frame = isinstance(new_schema, pa.Schema)
        self._record(lambda edit: edit.union(new, of_frame=of_frame))
        return self

    def apply(self, base: TableMetadata) -> Changes:
        edit = self._replayed(base)
        if moved := [n for n, i in self._edit.found.items() if edit.found.get(n, i) != i]:
            raise CommitFailedError(
                f"Column {moved[0]!r} is another one now: the schema was changed concurrently",
                hint="Refresh the table, and check its schema before you change it.",
            )
        schema = edit.result()
        before = edit.schema
        if schema.fields == before.fields and set(schema.identifier_field_ids) == set(
            before.identifier_field_ids
        ):
            return Changes()
        _check_uses(base, schema)
        return Changes(
            (
                AssertTableUUID(base.table_uuid),
                AssertCurrentSchemaId(base.current_schema_id),
                AssertLastAssignedFieldId(base.last_column_id),
            ),
            (AddSchemaUpdate(schema), SetCurrentSchemaUpdate(), *_properties(base, edit, schema)),
        )

    def _begin(self, base: TableMetadata) -> SchemaEdit:
        edit = SchemaEdit(
            base.schema(),
            base.last_column_id,
            base.format_version,
            case_sensitive=self._case_sensitive,
            allow_incompatible=self._allow_incompatible,
            deleted=lambda parent_id, name: find_deleted_column(
                base, parent_id, name, case_sensitive=edit.case_sensitive
            ),
        )
        return edit


def _check_uses(base: TableMetadata, schema: Schema) -> None:
    """Check that the partition spec and the sort order still fit the schema."""
    uses = [
        (f"partition field {f.name!r}", f.source_id)
        for f in base.spec().fields
        if not isinstance(f.transform, VoidTransform)
    ]
    uses += [(f"sort field {f.transform}", f.source_id) for f in base.sort_order().fields]
    for user, source_id in uses:
        if not schema.contains(source_id):
            name = base.schema().find_column_name(source_id)
            raise SchemaError(
                f"Cannot drop column {name!r}: {user} needs it",
                hint="Change the partition spec or the sort order first.",
            )
    _check_labels(base, schema)
    for used in (base.spec(), base.sort_order()):
        try:
            used.check(base.schema())
        except ValidationError:
            continue  # it did not fit before, so this change is not at fault
        used.check(schema)


def _check_labels(base: TableMetadata, schema: Schema) -> None:
    """Check that no date by which files are partitioned becomes a timestamp of another value.

    Years, months and days of both are the same (spec: Schema Evolution).
    """
    before = base.schema()
    for field in (field for spec in base.partition_specs for field in spec.fields):
        same = isinstance(field.transform, _SAME_OF_DATES)
        if same or not (before.contains(field.source_id) and schema.contains(field.source_id)):
            continue
        old, new = before.find_type(field.source_id), schema.find_type(field.source_id)
        if is_date_promotion(old, new):
            raise SchemaError(
                f"Cannot change the type of column {before.find_column_name(field.source_id)!r} "
                f"from {old} to {new}: partition field {field.name!r} would have other values",
                hint="Add a column of the new type.",
            )


def _properties(base: TableMetadata, edit: SchemaEdit, schema: Schema) -> Iterable[TableUpdate]:
    changed: dict[str, str] = {}
    mapping = base.name_mapping()
    if mapping is not None:
        updated = update_name_mapping(mapping, edit.schema, schema)
        if updated != mapping:
            changed[NAME_MAPPING.key] = updated.to_json()
    renamed = {
        name: schema.find_column_name(field_id)
        for field_id in edit.schema.field_ids
        if (name := edit.schema.find_column_name(field_id)) != schema.find_column_name(field_id)
    }
    gone, moved = _column_properties(base.properties, renamed)
    changed.update(moved)
    if gone := gone - changed.keys():
        yield RemovePropertiesUpdate(tuple(sorted(gone)))
    if changed:
        yield SetPropertiesUpdate(changed)


def _column_properties(
    properties: Mapping[str, str], renamed: Mapping[str | None, str | None]
) -> tuple[set[str], dict[str, str]]:
    """Return the column properties to remove, and those to set under a new column name."""
    gone: set[str] = set()
    moved: dict[str, str] = {}
    for key, value in properties.items():
        for prefix in _COLUMN_PROPERTIES:
            column = key.removeprefix(prefix)
            if column != key and column in renamed:
                gone.add(key)
                if (name := renamed[column]) is not None:
                    moved[prefix + name] = value
    return gone, moved
