"""Adding rows, and deleting rows with delete files, in one snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from icecomb.format.errors import ValidationError
from icecomb.format.expressions.expression import BooleanExpression
from icecomb.format.expressions.sql.parser import parse
from icecomb.format.manifests.manifest import DataFile, ManifestContent, ManifestFile
from icecomb.format.operation.conflict import VectorConflictError
from icecomb.format.operation.merging import MergingProducer
from icecomb.format.operation.position_rule import refuse_shared
from icecomb.format.operation.snapshot_producer import parent_manifests
from icecomb.format.spec.snapshot import Operation

if TYPE_CHECKING:
    from typing_extensions import Self

    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot

_DATA, _DELETES = ManifestContent.DATA, ManifestContent.DELETES


class RowDelta(MergingProducer):
    """An operation that adds data files and delete files (format versions 2 and 3)."""

    _conflict_filter: BooleanExpression | None = None
    _referenced: frozenset[str] = frozenset()
    _validate_deleted_files = False
    _no_conflicting_deletes = False
    _no_removed_rows = False
    _by_lineage = False

    def add_rows(self, file: DataFile) -> Self:
        """Add a data file."""
        self._add(file, _DATA)
        return self

    def add_deletes(self, file: DataFile) -> Self:
        """Add a delete file."""
        self._add(file, _DELETES)
        return self

    def remove_rows(self, file: DataFile) -> Self:
        """Remove a data file."""
        self._remove(file)
        return self

    def remove_deletes(self, file: DataFile) -> Self:
        """Remove a delete file that a new one replaces."""
        self._remove(file)
        return self

    def conflict_detection_filter(self, row_filter: str | BooleanExpression) -> Self:
        """Limit conflicts to commits about matching rows; by default, about any rows."""
        self._conflict_filter = parse(row_filter) if isinstance(row_filter, str) else row_filter
        return self

    def found_by_lineage(self) -> Self:
        """Refuse deletes of rows of files that the table has more than once.

        Deletes are about the rows of all entries of a file; ids of rows are about those of one.
        """
        self._by_lineage = True
        return self

    def validate_data_files_exist(self, paths: Iterable[str]) -> Self:
        """Refuse the commit when a file that the position deletes name was rewritten meanwhile."""
        self._referenced |= frozenset(paths)
        return self

    def validate_deleted_files(self) -> Self:
        """Let `validate_data_files_exist` also refuse files that a `delete` snapshot removed.

        It is then a conflict, too, if data files to remove are gone. Delete files to remove may be
        gone: others have replaced them by delete files for the same rows, or more.
        """
        self._validate_deleted_files = True
        self.filters[_DATA].require_paths = True
        return self

    def validate_no_conflicting_data_files(self) -> Self:
        """Refuse the commit when matching data was added meanwhile (serializable isolation)."""
        self._no_conflicting_data = True
        return self

    def validate_no_conflicting_delete_files(self) -> Self:
        """Refuse the commit when matching rows were deleted meanwhile."""
        self._no_conflicting_deletes = True
        return self

    def validate_no_removed_data_files(self) -> Self:
        """Refuse the commit when data files with matching rows were removed meanwhile.

        Used if rows are not added because the table already has such rows. A compaction removes
        none.
        """
        self._no_removed_rows = True
        return self

    @property
    def operation(self) -> str:
        """The operation `append`, `delete` or `overwrite`, depending on what it does."""
        if self.adds_data_files and not self.adds_delete_files and not self.removes_data_files:
            return Operation.APPEND
        if self.adds_delete_files and not self.adds_data_files:
            return Operation.DELETE
        return Operation.OVERWRITE

    def validate(self, base: TableMetadata, parent: Snapshot | None) -> None:
        super().validate(base, parent)
        vectors = self.added_vectors
        targets = [vector.referenced_data_file or "" for vector in vectors]
        named = self._referenced.union(targets)
        if self.adds_delete_files and named:
            manifests = parent_manifests(self.io, base, parent)
            refuse_shared(self.io, base, manifests, named, by_lineage=self._by_lineage)
        both = sorted(named & self.removed_data_files.keys())
        if both:
            raise ValidationError(
                f"Data file {both[0]} is removed and also named by new deletes",
                hint="Remove the file, or delete rows of it.",
                path=both[0],
            )
        if parent is None and self.starting_snapshot_id is None:
            return
        history = self.since_start(base, parent)
        if self.starting_snapshot_id is not None:
            # walking the history proves that it begins with the starting snapshot
            _ = history.snapshots
        history.files_exist(self._referenced, ignore_deletes=not self._validate_deleted_files)
        if vectors:
            history.no_new_vectors(vectors)
            # without its data file, a vector would be left alone
            history.files_exist(targets, kind=VectorConflictError)
        wanted = self._conflict_filter
        rows = None if wanted is None else self.rows(base, wanted)
        if self._no_conflicting_data:
            history.no_new_data(rows)
        if self._no_conflicting_deletes:
            history.no_new_deletes_for(self.removed_data_files.values())
            history.no_new_deletes(rows)
        if self._no_removed_rows:
            history.no_removed_data(rows, ignore_rewrites=True)

    def manifests(self, base: TableMetadata, parent: Snapshot | None) -> Sequence[ManifestFile]:
        manifests = super().manifests(base, parent)
        self._refuse_others_removed()
        return manifests
