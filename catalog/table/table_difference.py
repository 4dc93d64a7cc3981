"""Differences between two states of a table: files, row counts, and the layout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc

from icecomb.catalog.table.field_difference import (
    ROOT,
    Difference,
    FieldPosition,
    field_differences,
)
from icecomb.format.spec.schema import children, walk
from icecomb.format.spec.snapshot import ancestors_of

if TYPE_CHECKING:
    import pyarrow as pa

    from icecomb.catalog.table.table import Table
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.partition import PartitionField
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.spec.sort import SortField
    from icecomb.format.spec.types import IcebergType


FILE_COLUMNS: Final = (
    "content",
    "file_path",
    "file_format",
    "spec_id",
    "partition",
    "record_count",
    "file_size_in_bytes",
)
"""The columns shown of a file."""
CONTENTS: Final = ("data", "position_deletes", "equality_deletes")
"""The words for a file's content."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A state to compare.

    Attributes:
        snapshot: The snapshot to read; None for a table without snapshots.
        metadata: The metadata of that state; None if it is not known any more.
        missing: The reason why it is not known.
    """

    snapshot: Snapshot | None
    metadata: TableMetadata | None
    missing: str | None = None

    def schema(self, table: Table) -> Schema | None:
        """Return the schema of that state; None if it is unknown."""
        if self.metadata is not None:
            return self.metadata.schema()
        if self.snapshot is None or self.snapshot.schema_id is None:
            return None
        return table.metadata.schema_by_id(self.snapshot.schema_id)


@dataclass(frozen=True, slots=True)
class TableDifference:
    """The differences from one state to another.

    Attributes:
        commits: Numbers of commits by operation in the history of only the second; None if unknown.
        undone: Numbers of commits by operation in the history of only the first; None if unknown.
        added: Added files, as rows of `FILE_COLUMNS`, with the place of deletion vectors.
        changes: Subjects (column, partition field, sort order, property) with their differences.
        unknown: Sentences on differences that are unknown.
    """

    commits: Mapping[str, int] | None
    undone: Mapping[str, int] | None
    added: pa.Table
    removed: pa.Table
    changes: tuple[tuple[str, Difference], ...]
    unknown: tuple[str, ...]


def table_difference(table: Table, before: Endpoint, after: Endpoint) -> TableDifference:
    """Compare two states of a table; the second may be older, or of another branch.

    Reads the manifest lists of both, and the manifests that only one of them has; no data.
    """
    from icecomb.format.inspect.file_difference import IDENTITY, file_difference

    metadata = table.metadata
    there = {field.name for field in table.inspect.scan("files").schema.fields}
    columns = [name for name in dict.fromkeys((*FILE_COLUMNS, *IDENTITY)) if name in there]
    added, removed = file_difference(metadata, table.io, before.snapshot, after.snapshot, columns)
    commits = _commits(metadata, before.snapshot, after.snapshot)
    unknown = [
        *_unknown_layout(table, before, after),
        *([] if commits is not None else [_EXPIRED]),
        *_unknown_rows(added, removed),
    ]
    changes = tuple(_layout(table, before, after))
    came, undone = commits or (None, None)
    return TableDifference(came, undone, added, removed, changes, tuple(unknown))


def file_counts(files: pa.Table) -> dict[str, int]:
    """Count files, rows and bytes by content."""
    found: dict[str, int] = {}
    for number, word in enumerate(CONTENTS):
        chosen = files.filter(pc.equal(files["content"], number))
        name = word.removesuffix("s")
        found[f"{name}_files"] = len(chosen)
        found[f"{name}_rows"] = sum(chosen["record_count"].to_pylist())
        sizes = pc.coalesce(chosen["content_size_in_bytes"], chosen["file_size_in_bytes"])
        found[f"{name}_bytes"] = sum(sizes.to_pylist())
    return found


def layout_changes(first: TableMetadata, second: TableMetadata) -> Iterator[tuple[str, Difference]]:
    """Yield differences in columns, partition fields, order, properties, location, version."""
    yield from _column_changes(first.schema(), second.schema())
    for found in _spec_differences(first, second):
        yield "partition field", found
    before_order, after_order = (
        ", ".join(key_text(key, one.schema()) for key in one.sort_order().fields)
        for one in (first, second)
    )
    if before_order != after_order:
        yield "sort order", Difference("changed", "sorted by", before_order, after_order)
    for key in sorted(first.properties.keys() | second.properties.keys()):
        was, is_ = first.properties.get(key), second.properties.get(key)
        if was != is_:
            yield "property", Difference(_kind(was, is_), key, was, is_)
    told: Mapping[str, Callable[[TableMetadata], Any]] = {
        "location": lambda one: one.location,
        "format version": lambda one: one.format_version,
    }
    for name, of in told.items():
        if of(first) != of(second):
            yield "table", Difference("changed", name, of(first), of(second))


_EXPIRED: Final = "which commits lie between: snapshots that the two states came from have expired"


def _commits(
    metadata: TableMetadata, before: Snapshot | None, after: Snapshot | None
) -> tuple[Mapping[str, int], Mapping[str, int]] | None:
    """Count the operations since the last common snapshot: of the second, of the first."""
    first, second = (
        list(ancestors_of(metadata, None if one is None else one.snapshot_id))
        for one in (before, after)
    )
    ids = [{snapshot.snapshot_id for snapshot in some} for some in (first, second)]
    meet = bool(ids[0] & ids[1])
    whole = all(not some or some[-1].parent_snapshot_id is None for some in (first, second))
    if not meet and not whole:
        return None
    came, went = (
        Counter(s.operation or "unknown" for s in some if s.snapshot_id not in others)
        for some, others in ((second, ids[0]), (first, ids[1]))
    )
    return came, went


def _unknown_layout(table: Table, before: Endpoint, after: Endpoint) -> Iterator[str]:
    for which, one in (("first", before), ("second", after)):
        if one.metadata is None:
            columns = "" if one.schema(table) else "columns, "
            what = f"{columns}properties, partition spec and sort order of the {which}"
            yield f"{what}: {one.missing}"


def _unknown_rows(added: pa.Table, removed: pa.Table) -> Iterator[str]:
    came, went = file_counts(added), file_counts(removed)
    if came["data_files"] and went["data_files"]:
        yield "which rows were copied: rows of files that were rewritten count as removed and added"
    for counts in (came, went):
        verb = "delete" if counts is came else "no longer delete"
        if counts["position_delete_files"]:
            yield (
                f"how many rows {counts['position_delete_files']} position delete files {verb}: "
                f"at most the {counts['position_delete_rows']} that they name"
            )
        if counts["equality_delete_files"]:
            yield (
                f"how many rows {counts['equality_delete_files']} equality delete files {verb}: "
                "only reading all rows tells"
            )


def _layout(table: Table, before: Endpoint, after: Endpoint) -> Iterator[tuple[str, Difference]]:
    if before.metadata is not None and after.metadata is not None:
        yield from layout_changes(before.metadata, after.metadata)
        return
    old, new = before.schema(table), after.schema(table)
    if old is not None and new is not None:
        yield from _column_changes(old, new)


def _column_changes(old: Schema, new: Schema) -> Iterator[tuple[str, Difference]]:
    for found in field_differences(_positions(old), _positions(new)):
        yield "column", found


def _spec_differences(first: TableMetadata, second: TableMetadata) -> Iterator[Difference]:
    old, new = (
        {
            field.field_id: (field.name, term_text(field, one.schema()))
            for field in one.spec().fields
        }
        for one in (first, second)
    )
    for field_id in old | new:
        was_name, was = old.get(field_id, (None, None))
        name, is_ = new.get(field_id, (None, None))
        if was is None or is_ is None:
            yield Difference(_kind(was, is_), name or was_name or "", was, is_, field_id)
            continue
        if name != was_name:
            yield Difference("renamed", name or "", was_name, name, field_id)
        # only its source may have been renamed
        if _transform(first, field_id) != _transform(second, field_id):
            yield Difference("changed", name or "", was, is_, field_id)


def _transform(metadata: TableMetadata, field_id: int) -> list[tuple[int, str]]:
    return [
        (f.source_id, str(f.transform)) for f in metadata.spec().fields if f.field_id == field_id
    ]


def _kind(was: Any, is_: Any) -> str:
    return "added" if was is None else "dropped" if is_ is None else "changed"


def _positions(schema: Schema) -> Iterator[FieldPosition]:
    for field in walk(schema.as_struct()):
        parent = schema.find_parent_id(field.field_id)
        path = schema.find_column_name(field.field_id) or field.name
        raw = field.to_json()
        aspects = {
            "type": own_type(field.field_type),
            "required": field.required,
            "identifier": field.field_id in schema.identifier_field_ids,
            "doc": field.doc,
            "default": raw.get("write-default"),
            "initial default": raw.get("initial-default"),
        }
        yield FieldPosition(
            field.field_id,
            field.name,
            path,
            ROOT if parent is None else parent,
            f"{field.field_type}{field.default_text}",
            aspects,
        )


def column_name(schema: Schema, field_id: int) -> str:
    """Return the full name of a column; its number if the schema does not have it."""
    return schema.find_column_name(field_id) or f"#{field_id}"


def term_text(field: PartitionField, schema: Schema) -> str:
    """Format the term of a partition field: ``day(ts)``."""
    return f"{field.transform}({column_name(schema, field.source_id)})"


def key_text(key: SortField, schema: Schema) -> str:
    """Format a key of a sort order: ``bucket[4](id) asc nulls first``."""
    source, transform = column_name(schema, key.source_id), str(key.transform)
    term = source if transform == "identity" else f"{transform}({source})"
    nulls = "" if key.null_order is None else f" {key.null_order.value.replace('-', ' ')}"
    return f"{term} {key.direction.value}{nulls}"


def own_type(field_type: IcebergType) -> str:
    """Return a type without its inner fields, which are printed separately."""
    text = str(field_type)
    return text.partition("<")[0] if children(field_type) else text
