"""Default values of fields (spec: Default values), of format version 3 on.

The initial default of a field is what rows have in it that were written before it was added; it
never changes. The write default is what writers put where no value is given. A struct's default
is null or has no values: those of its fields are theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icecomb.format.errors import IcecombError, UnsupportedError, ValidationError
from icecomb.format.spec import single_value
from icecomb.format.spec.promotion import can_go_on
from icecomb.format.spec.schema import V3_FORMAT_VERSION, walk
from icecomb.format.spec.types import NestedField, StructType

if TYPE_CHECKING:
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.types import IcebergType


def check_defaults(schema: Schema, format_version: int, base: Schema | None = None) -> None:
    """Check that the defaults of a schema are values of their types, and may be there.

    Args:
        base: The schema that it comes after, which a table of a version before 3 may have from
            another writer with defaults.
    """
    for f in walk(schema.as_struct()):
        old = base.find_field(f.field_id) if base and base.contains(f.field_id) else None
        defaults = f.initial_default, f.write_default
        known = (None, None) if old is None else (old.initial_default, old.write_default)
        if defaults == known:
            continue
        path = schema.find_column_name(f.field_id) or f.name
        for which, value in zip(("initial_default", "write_default"), defaults, strict=True):
            checked_default(f.field_type, value, path)
            if value is not None and isinstance(f.field_type, StructType):
                _check_filled(f.field_type, which, path)
        if format_version < V3_FORMAT_VERSION and defaults != (None, None):
            raise no_defaults(path, format_version)
        # a table that was replaced may have another column under the id
        if old is not None and can_go_on(old.field_type, f.field_type):
            _check_unchanged(f, old, path)


def no_defaults(path: str, format_version: int) -> UnsupportedError:
    """Return the error for a new default value in a table of a version before 3."""
    return UnsupportedError(
        f"Column {path!r} has a default value: that belongs to format version 3 (v3), and the "
        f"table has version {format_version}",
        hint="Set the property format-version to 3, which every reader of the table must support; "
        "or leave the default out, and write the value.",
    )


def checked_default(field_type: IcebergType, value: Any, path: str) -> Any:
    """Return a default value, None for null, as it is read from metadata."""
    if value is None:
        return None
    try:
        if isinstance(field_type, StructType) and value:
            raise ValidationError(
                f"{value!r} has values of fields: those are defaults of the fields themselves",
                hint="Give {} or None.",
            )
        return single_value.from_json(field_type, single_value.to_json(field_type, value))
    except IcecombError as error:
        raise ValidationError(
            f"Column {path!r} of type {field_type} cannot have the default {value!r}: "
            f"{error.message}",
            hint="Give a value of the column's type, for dates and times its internal value.",
            column=path,
        ) from error


def _check_filled(struct: StructType, which: str, path: str) -> None:
    """Check that the default of a struct, which is made of those of its fields, is complete."""
    for f in struct.fields:
        if f.required and getattr(f, which) is None:
            raise ValidationError(
                f"Column {path!r} cannot have a default that is not null: its field {f.name!r} is "
                "required, and has no default",
                hint="Give the field a default, or make it optional.",
                column=path,
            )


def _check_unchanged(field: NestedField, old: NestedField, path: str) -> None:
    first, before = field.initial_default, old.initial_default
    converted = field.field_type != old.field_type and None not in {first, before}
    if first == before or converted:
        return
    raise ValidationError(
        f"The initial default of column {path!r} cannot change from {old.initial_default!r} to "
        f"{field.initial_default!r}: rows from before the column was added would change",
        hint="Change its write default, or update the rows.",
        column=path,
    )
