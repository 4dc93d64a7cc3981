"""Removing and replacing data files: by file, by row filter, or by partition."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import ValidationError
from icecomb.format.expressions.expression import (
    AlwaysTrue,
    BooleanExpression,
    EqualTo,
    IsNaN,
    IsNull,
    conjunction,
    disjunction,
)
from icecomb.format.expressions.sql.parser import parse
from icecomb.format.expressions.term import Reference, UnboundTransform
from icecomb.format.manifests.manifest import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestFile,
)
from icecomb.format.operation.merging import MergingProducer
from icecomb.format.operation.snapshot_producer import parent_manifests
from icecomb.format.spec.partition import PartitionSpec, partition_key
from icecomb.format.spec.snapshot import Operation
from icecomb.format.spec.transform import IdentityTransform, VoidTransform

if TYPE_CHECKING:
    from typing_extensions import Self

    from icecomb.format.expressions.term import Term
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.partition import PartitionField
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.snapshot import Snapshot


_DATA, _DELETES = ManifestContent.DATA, ManifestContent.DELETES


class DeleteFiles(MergingProducer):
    """A removal of data files, by path or by a filter that every row matches."""

    def delete_by_predicate(self, row_filter: str | BooleanExpression) -> Self:
        """Remove the files whose every row matches.

        The commit is refused when a file holds rows that match and rows that may not match.
        """
        for found in self.filters.values():
            found.add_expression(_expression(row_filter))
        return self

    def delete_data_file(self, file: DataFile | str) -> Self:
        """Remove a file, given as a `DataFile` or by its path."""
        self.filters[_DATA].remove_file(file)
        return self

    def validate_files_exist(self) -> Self:
        """Refuse the commit when a file given by `delete_data_file` does not exist."""
        self.filters[_DATA].require_paths = True
        return self

    @property
    def operation(self) -> str:
        """The operation `delete`."""
        return Operation.DELETE


class OverwriteFiles(MergingProducer):
    """A replacement of data files by others, in one snapshot."""

    _row_filter: BooleanExpression | None = None
    _conflict_filter: BooleanExpression | None = None
    _no_conflicting_deletes = False
    _unchanged: tuple[DataFile, ...] = ()

    def overwrite_by_row_filter(self, row_filter: str | BooleanExpression) -> Self:
        """Remove the files whose every row matches; see `DeleteFiles.delete_by_predicate`."""
        self._row_filter = _expression(row_filter)
        for found in self.filters.values():
            found.add_expression(self._row_filter)
        return self

    def append_data_file(self, file: DataFile) -> Self:
        """Add a data file."""
        self._add(file, _DATA)
        return self

    def delete_data_file(self, file: DataFile) -> Self:
        """Remove a data file."""
        self._remove(file)
        return self

    def remove_deletes(self, file: DataFile) -> Self:
        """Remove a delete file that applies to removed data files only; it may be gone."""
        self._remove(file)
        return self

    def conflict_detection_filter(self, row_filter: str | BooleanExpression) -> Self:
        """Limit conflicts to commits about matching rows; by default, those of the row filter."""
        self._conflict_filter = _expression(row_filter)
        return self

    def validate_no_conflicting_data(self) -> Self:
        """Refuse the commit when matching data was added meanwhile (serializable isolation)."""
        self._no_conflicting_data = True
        self.filters[_DATA].require_paths = True
        return self

    def validate_no_conflicting_deletes(self) -> Self:
        """Refuse the commit when matching rows were deleted meanwhile (snapshot isolation)."""
        self._no_conflicting_deletes = True
        self.filters[_DATA].require_paths = True
        return self

    def validate_files_unchanged(self, files: Iterable[DataFile]) -> Self:
        """Refuse the commit when one of these data files was removed, or got deletes, meanwhile."""
        self._unchanged = (*self._unchanged, *files)
        return self

    @property
    def operation(self) -> str:
        """The operation `append`, `delete` or `overwrite`, depending on what it does."""
        if self.removes_data_files and not self.adds_data_files:
            return Operation.DELETE
        if self.adds_data_files and not self.removes_data_files:
            return Operation.APPEND
        return Operation.OVERWRITE

    def validate(self, base: TableMetadata, parent: Snapshot | None) -> None:
        super().validate(base, parent)
        history = self.since_start(base, parent)
        wanted = self._conflict_filter
        if wanted is None and self._row_filter is not None and not self.removed_data_files:
            wanted = self._row_filter
        if self._no_conflicting_data:
            history.no_new_data(None if wanted is None else self.rows(base, wanted))
        if self._no_conflicting_deletes:
            if self._row_filter is not None:
                chosen = (
                    self._row_filter if self._conflict_filter is None else self._conflict_filter
                )
                rows = self.rows(base, chosen)
                history.no_new_deletes(rows)
                history.no_removed_data(rows)
            if self.removed_data_files:
                history.no_new_deletes_for(self.removed_data_files.values())
        if self._unchanged:
            history.files_exist([file.file_path for file in self._unchanged])
            history.no_new_deletes_for(self._unchanged)

    def manifests(self, base: TableMetadata, parent: Snapshot | None) -> Sequence[ManifestFile]:
        manifests = super().manifests(base, parent)
        if self._no_conflicting_deletes:  # the rows of the files were read and are in the new ones
            self._refuse_others_removed()
        return manifests


class ReplacePartitions(MergingProducer):
    """A replacement of all files in the partitions that the new files belong to.

    Files of other specs are removed if all of their rows belong to the partitions; the commit is
    refused if only some of them may, where Iceberg Java leaves both.
    """

    _no_conflicting_deletes = False

    def append_data_file(self, file: DataFile) -> Self:
        """Add a file, and remove the existing files of its partition."""
        self._add(file, _DATA)
        return self

    def validate_no_conflicting_data(self) -> Self:
        """Refuse the commit when data was added to the partitions meanwhile."""
        self._no_conflicting_data = True
        return self

    def validate_no_conflicting_deletes(self) -> Self:
        """Refuse the commit when rows of the partitions were deleted meanwhile."""
        self._no_conflicting_deletes = True
        return self

    @property
    def operation(self) -> str:
        """The operation `overwrite`."""
        return Operation.OVERWRITE

    def validate(self, base: TableMetadata, parent: Snapshot | None) -> None:
        super().validate(base, parent)
        added = self.added[_DATA].values()
        partitions = {(f.spec_id, partition_key(f.partition)) for f in added}
        everything = any(not values for _, values in partitions)
        rows = None if everything else self._rows_elsewhere(base, parent)
        for found in self.filters.values():
            if everything:
                found.expression = AlwaysTrue()
            else:
                found.partitions, found.expression = partitions, rows
                found.hint = OTHER_SPEC_HINT
        history = self.since_start(base, parent)
        where = None if everything or rows is not None else partitions
        wanted = None if rows is None else self.rows(base, rows)
        if self._no_conflicting_data:
            history.no_new_data(wanted, where)
        if self._no_conflicting_deletes:
            history.no_new_deletes(wanted, where)
            history.no_removed_data(wanted, where)

    def _rows_elsewhere(
        self, base: TableMetadata, parent: Snapshot | None
    ) -> BooleanExpression | None:
        """Return the filter of the partitions' rows, if the table has files of other specs."""
        added = self.added[_DATA].values()
        manifests = parent_manifests(self.io, base, parent) if len(base.specs()) > 1 else ()
        if not has_other_specs(manifests, (file.spec_id for file in added)):
            return None
        return partition_rows(base, self._schema or base.schema(), added)

    def summary(self, base: TableMetadata) -> Mapping[str, str]:
        return {"replace-partitions": "true", **super().summary(base)}


class RewriteFiles(MergingProducer):
    """A replacement of files by others that hold the same rows, as in a compaction."""

    _rows_removed_by_others = 0
    _replaced: tuple[DataFile, ...] = ()

    def rewrite_files(
        self,
        delete_files: Iterable[DataFile],
        add_files: Iterable[DataFile],
        *,
        sequence_number: int | None = None,
        delete_sequence_numbers: Mapping[str, int] | None = None,
        rows_removed_by_others: int = 0,
    ) -> Self:
        """Replace files.

        Args:
            delete_files: Data and delete files to remove; a data file that the table has
                several times is given as often.
            sequence_number: The data sequence number of the added data files, so that deletes
                newer than the replaced rows still apply to them; None for that of the commit.
            delete_sequence_numbers: The data sequence numbers of added delete files, by path;
                the other delete files get that of the commit.
            rows_removed_by_others: The number of rows in the added files that come from files
                that are already gone, and that the added deletes cover.
        """
        removed = tuple(delete_files)
        for file in removed:
            self._remove(file)
        data = (file for file in removed if file.content is DataFileContent.DATA)
        self._replaced = (*self._replaced, *data)
        for file in add_files:
            self._add(file, _DATA if file.content is DataFileContent.DATA else _DELETES)
        self.data_sequence_number = sequence_number
        self.delete_sequence_numbers = {
            **self.delete_sequence_numbers,
            **(delete_sequence_numbers or {}),
        }
        self._rows_removed_by_others += rows_removed_by_others
        self._require_removed()
        return self

    @property
    def operation(self) -> str:
        """The operation `replace`."""
        return Operation.REPLACE

    def validate(self, base: TableMetadata, parent: Snapshot | None) -> None:
        """Check that the rows stay the same, even if other writers added deletes."""
        super().validate(base, parent)
        if not self.removes_data_files and not self.filters[_DELETES].removes_files:
            raise ValidationError(
                "There is nothing to rewrite: no file is removed", hint="Name the files to replace."
            )
        rows = sum(file.record_count for file in self.added[_DATA].values())
        replaced = self.removed_data_files.values()
        before = sum(file.record_count for file in self._replaced) + self._rows_removed_by_others
        is_known = all(file.record_count >= 0 for file in self._replaced)
        if is_known and rows > before:
            raise ValidationError(
                f"A rewrite of {before} rows cannot add {rows}",
                hint="A rewrite keeps rows as they are: add rows by an append or an overwrite.",
            )
        self.since_start(base, parent).no_new_deletes_for(
            replaced, ignore_equality_deletes=self.data_sequence_number is not None
        )

    def manifests(self, base: TableMetadata, parent: Snapshot | None) -> Sequence[ManifestFile]:
        """Return the manifests, after checking that each file is removed as often as rewritten."""
        manifests = super().manifests(base, parent)
        given = Counter(file.file_path for file in self._replaced)
        there = Counter(file.file_path for file in self.filters[_DATA].removed)
        for path, count in there.items():
            if count != given[path]:
                raise ValidationError(
                    f"Cannot replace file {path}: the table has it {count} times, and rows of "
                    f"{given[path]} were rewritten",
                    hint="Replace all of them in one commit: they can only be removed together.",
                    path=path,
                )
        return manifests


class ConvertDeletes(RewriteFiles):
    """A replacement of equality delete files by position delete files for the same rows.

    No row changes. Yet its snapshot is named `delete`: Iceberg Java and PyIceberg look for
    conflicting deletes only in `delete` and `overwrite` snapshots.
    """

    @property
    def operation(self) -> str:
        """The operation `delete`, or `replace` if no row remains to be deleted."""
        return Operation.DELETE if self.adds_delete_files else Operation.REPLACE


def _expression(row_filter: str | BooleanExpression) -> BooleanExpression:
    return parse(row_filter) if isinstance(row_filter, str) else row_filter


OTHER_SPEC_HINT: Final = (
    "rewrite_data_files with the option rewrite-all=true writes the files under the current "
    "partitioning; then repeat the change"
)


def partition_rows(
    metadata: TableMetadata, schema: Schema, files: Iterable[DataFile]
) -> BooleanExpression:
    """Return the filter that matches the rows of the partitions of data files of any spec."""
    found = {(file.spec_id, partition_key(file.partition)): file for file in files}
    return disjunction(
        _rows_of(metadata.spec_by_id(file.spec_id), schema, file.partition)
        for file in found.values()
    )


def has_other_specs(manifests: Iterable[ManifestFile], spec_ids: Iterable[int]) -> bool:
    """Return whether there are data files of other specs than some."""
    known = frozenset(spec_ids)
    return any(
        manifest.content is ManifestContent.DATA
        and manifest.partition_spec_id not in known
        and manifest.has_live_files()
        for manifest in manifests
    )


def _rows_of(spec: PartitionSpec, schema: Schema, values: tuple[Any, ...]) -> BooleanExpression:
    return conjunction(
        _compared(_term(field, schema), value)
        for field, value in zip(spec.fields, values, strict=True)
        if not isinstance(field.transform, VoidTransform)
    )


def _term(field: PartitionField, schema: Schema) -> Term:
    name = schema.find_column_name(field.source_id)
    assert name is not None  # noqa: S101 - a column that files are written by
    column = Reference(name)
    if isinstance(field.transform, IdentityTransform):
        return column
    return UnboundTransform(field.transform, column)


def _compared(term: Term, value: Any) -> BooleanExpression:
    if value is None:
        return IsNull(term)
    if isinstance(value, float) and math.isnan(value):
        return IsNaN(term)
    return EqualTo(term, value)
