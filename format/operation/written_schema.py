"""Checks that files or snapshots still fit a table whose schema or specs have changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from icecomb.format.errors import ValidationError
from icecomb.format.operation.clash import VectorConflictError
from icecomb.format.spec.column_history import reading_schema
from icecomb.format.spec.promotion import unlike_columns
from icecomb.format.spec.snapshot import MAIN_BRANCH

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class WrittenWith:
    """The schema and specs that files were written with, to compare with the table at commit."""

    schema: Schema
    specs: Mapping[int, PartitionSpec]

    @classmethod
    def of(cls, metadata: TableMetadata) -> WrittenWith:
        """Return the schema and specs that files of this table are currently written with."""
        return cls(metadata.schema(), metadata.specs())

    def check(self, now: TableMetadata) -> None:
        """Refuse a table in which the columns or specs of the files have another meaning."""
        check_written_schema(self.schema, now.schema())
        # cleaning up metadata may free the id of a spec, and the next spec may get it
        specs = now.specs()
        for spec_id, old in self.specs.items():
            new = specs.get(spec_id, old)
            if new.fields != old.fields:
                raise _refusal(f"partition spec {spec_id} is {new}, the files have {old}")


def check_written_schema(written: Schema, now: Schema) -> None:
    """Refuse files whose columns have another meaning in the current schema.

    A schema that replaced theirs may have reused an id for a column of another type, may have
    another column under a name, which would be null in all rows, or may have required columns that
    older files lack.
    """
    if written == now:
        return
    if changed := changed_column(written, now):
        raise _refusal(changed)
    for field in now.fields:
        if (
            field.required
            and field.initial_default is None
            and not written.contains(field.field_id)
        ):
            raise _refusal(f"the rows have no column {field.name!r}, which is required now")


def changed_column(written: Schema, now: Schema) -> str | None:
    """Describe the first column that would be read with other values, or not under its name."""
    unlike = unlike_columns(written, now)
    for field_id in sorted(written.field_ids):
        old, name = written.find_field(field_id), written.find_column_name(field_id) or ""
        if field_id in unlike:
            field = now.find_field(field_id)
        elif not now.contains(field_id) and now.contains(name):
            field = now.find_field(name)
        else:
            continue
        return (
            f"column {name!r} is {field.field_type} (id {field.field_id}), the rows have "
            f"{old.field_type} (id {field_id}) there"
        )
    return None


def check_branch(metadata: TableMetadata, head: Snapshot | None, branch: str) -> None:
    """Refuse to write to a branch that is read with other columns than the table has.

    `main` has the table's columns; files of it with other columns are refused when they are read.
    """
    if head is not None and branch != MAIN_BRANCH:
        check_moved(
            metadata,
            head,
            f"Cannot write to branch {branch!r}, which is of an older table",
            f"Read its rows by snapshot id {head.snapshot_id}, and write them to the table again; "
            "remove the branch, or point it to a snapshot of the current table.",
        )


def check_moved(metadata: TableMetadata, snapshot: Snapshot, refused: str, hint: str) -> None:
    """Refuse a snapshot whose values the current schema would read as other values."""
    own, now = reading_schema(metadata, snapshot), metadata.schema()
    if own is not now and (changed := changed_column(own, now)):
        raise ValidationError(f"{refused}: the table's {changed}", hint=hint)


def check_no_ids_since(base: TableMetadata, branch: str, start: int | None) -> None:
    """Refuse rows that were moved without ids to a table whose rows may have got ids since.

    The first commit after an upgrade to format version 3 gives ids to all rows of its branch.
    """
    head = base.snapshot_by_name(branch if branch in base.refs else MAIN_BRANCH)
    if base.format_version < 3 or head is None or head.snapshot_id == start:
        return
    raise VectorConflictError(
        f"Snapshot {head.snapshot_id} may have given ids to rows that were read without ids from "
        f"snapshot {start}, and would lose them",
        hint="Load the table again and repeat the operation.",
        snapshot_id=head.snapshot_id,
    )


def _refusal(what: str) -> ValidationError:
    return ValidationError(
        f"The table was changed while rows were written to it: {what}",
        hint="Load the table again and write the rows again.",
    )
