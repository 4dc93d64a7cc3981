"""Whether files that were written for one state of a table fit another one: schema and specs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from icecomb.format.errors import ValidationError
from icecomb.format.evolution.schema_edit import can_promote

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.spec.schema import Schema


@dataclass(frozen=True, slots=True)
class WrittenWith:
    """What files were written by, to be compared with what the table has when they are committed.

    Attributes:
        schema: The columns of the files.
        specs: The partition specs by id, as they were then.
    """

    schema: Schema
    specs: Mapping[int, PartitionSpec]

    @classmethod
    def of(cls, metadata: TableMetadata) -> WrittenWith:
        """Return what is written by now."""
        return cls(metadata.schema(), metadata.specs())

    def check(self, now: TableMetadata) -> None:
        """Refuse a table to which the files say something else.

        Raises:
            ValidationError: Names a column, or a partition spec.
        """
        check_written_schema(self.schema, now.schema())
        # whoever cleans up metadata may free the id of a spec, and the next spec may get it
        specs = now.specs()
        for spec_id, old in self.specs.items():
            new = specs.get(spec_id, old)
            if new.fields != old.fields:
                raise _refusal(f"partition spec {spec_id} is {new}, the files have {old}")


def check_written_schema(written: Schema, now: Schema) -> None:
    """Refuse files whose columns mean something else by now.

    A schema that evolves reads its older files. One that replaced it may have used an id again for
    a column of another type, or have columns that no older file has and that must have values.

    Args:
        written: The schema that the files were written with.
        now: The schema of the table that they are added to.

    Raises:
        ValidationError: Names the first such column.
    """
    if written == now:
        return
    for field_id in now.field_ids:
        field = now.find_field(field_id)
        name = now.find_column_name(field_id)
        if not written.contains(field_id):
            top = now.find_parent_id(field_id) is None
            if top and field.required and field.initial_default is None:
                raise _refusal(f"the rows have no column {name!r}, which is required now")
            continue
        old = written.find_field(field_id).field_type
        kept = old.is_primitive and can_promote(old, field.field_type)
        if not kept and (old.is_primitive or type(old) is not type(field.field_type)):
            raise _refusal(f"column {name!r} is {field.field_type}, the rows have {old} there")


def _refusal(what: str) -> ValidationError:
    return ValidationError(
        f"The table was changed while rows were written to it: {what}",
        hint="Load the table again and write the rows anew.",
    )
