"""The base class of operations that add and remove files and merge manifests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from icecomb.format.errors import REPEATED_FILE, ValidationError
from icecomb.format.evolution.staging import ONTO_PARENT
from icecomb.format.expressions.column_names import ColumnNames
from icecomb.format.manifests.manifest import (
    DataFile,
    DataFileContent,
    FileIdentity,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from icecomb.format.operation.conflict import History
from icecomb.format.operation.manifest_filter import ManifestFilter
from icecomb.format.operation.manifest_merge import ManifestMerge
from icecomb.format.operation.position_rule import VectorRule, check_delete_files
from icecomb.format.operation.snapshot_producer import (
    SnapshotProducer,
    check_new_file,
    parent_manifests,
)
from icecomb.format.rows.deletes.deletion_vector_writer import (
    DeletionVectorWriter,
    joined_vectors,
    several_targets,
)
from icecomb.format.rows.values.metadata_columns import filter_columns
from icecomb.format.spec.snapshot import MAIN_BRANCH, Operation

if TYPE_CHECKING:
    from typing_extensions import Self

    from icecomb.format.expressions.expression import BooleanExpression
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO

_DATA, _DELETES = ManifestContent.DATA, ManifestContent.DELETES


class MergingProducer(SnapshotProducer):
    """An operation that adds files, removes files, and merges the resulting manifests.

    Args:
        stage_only: Add the snapshot to the table without moving the branch.
        schema: The schema whose column names row filters use; by default the table schema at
            the first attempt. The same columns are meant in every attempt.
    """

    _no_conflicting_data = False

    def __init__(
        self,
        io: FileIO,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = MAIN_BRANCH,
        *,
        stage_only: bool = False,
        case_sensitive: bool = True,
        schema: Schema | None = None,
    ) -> None:
        super().__init__(io, snapshot_properties, branch, stage_only=stage_only)
        self.case_sensitive = case_sensitive
        self._schema = schema
        self.added: dict[ManifestContent, dict[FileIdentity, DataFile]] = {_DATA: {}, _DELETES: {}}
        self.filters = {content: ManifestFilter(content) for content in ManifestContent}
        self.removed_data_files: dict[str, DataFile] = {}
        self._removals: Counter[str] = Counter()
        self.data_sequence_number: int | None = None
        self.delete_sequence_numbers: Mapping[str, int] = {}
        self._merges = {content: ManifestMerge(content) for content in ManifestContent}
        self._written: dict[ManifestContent, list[ManifestFile]] = {}
        self._written_version: int | None = None
        self._joined: tuple[DeletionVectorWriter, list[DataFile]] | None = None

    def name_columns_by(self, schema: Schema) -> None:
        """Set the schema whose column names row filters use, unless it is set already."""
        if self._schema is None:
            self._schema = schema

    def rows(self, base: TableMetadata, expression: BooleanExpression) -> BooleanExpression:
        """Return a row filter with the current names of its columns."""
        schema = base.schema()
        seen = filter_columns(self._schema or schema)
        return ColumnNames(seen, self.case_sensitive).now(expression, filter_columns(schema))

    def validate_from_snapshot(self, snapshot_id: int | None) -> Self:
        """Check for conflicts with commits since this snapshot; None for the whole history."""
        self.starting_snapshot_id = snapshot_id
        return self

    @property
    def adds_data_files(self) -> bool:
        """Whether data files are added."""
        return bool(self.added[_DATA])

    @property
    def adds_delete_files(self) -> bool:
        """Whether delete files are added."""
        return bool(self.added[_DELETES])

    @property
    def added_vectors(self) -> list[DataFile]:
        """The deletion vectors that are added."""
        return [file for file in self.added[_DELETES].values() if file.is_deletion_vector]

    @property
    def removes_data_files(self) -> bool:
        """Whether data files are to be removed."""
        return self.filters[_DATA].removes_files

    def validate(self, base: TableMetadata, parent: Snapshot | None) -> None:  # noqa: ARG002
        """Check that the new files fit the table."""
        self.name_columns_by(base.schema())
        if self.adds_delete_files:
            check_delete_files(base.format_version, self.added[_DELETES].values())
        if not self._written:
            for files in self.added.values():
                for file in files.values():
                    check_new_file(base, file)

    def manifests(self, base: TableMetadata, parent: Snapshot | None) -> Sequence[ManifestFile]:
        """Implement `SnapshotProducer.manifests`."""
        if self._written_version not in {None, base.format_version}:
            # manifests of version 1 have no sequence numbers
            self._discard()
        self._written_version = base.format_version
        parents = parent_manifests(self.io, base, parent)
        data = self.filters[_DATA].apply(self, base, [m for m in parents if m.content is _DATA])
        numbers = (m.min_sequence_number for m in data if m.has_live_files())
        oldest = min((n for n in numbers if n >= 0), default=base.last_sequence_number)
        if self.data_sequence_number is not None:
            oldest = min(oldest, self.data_sequence_number)
        rule = VectorRule()
        if base.format_version >= 3:  # older tables have no vectors
            rule = VectorRule(self.filters[_DATA].removed, self.added_vectors)
        deletes = self.filters[_DELETES].apply(
            self, base, [m for m in parents if m.content is _DELETES], oldest, rule
        )
        for content, found in self.filters.items():
            if missing := found.missing():
                self.history(base, parent).refuse_missing(missing, content)
        out: list[ManifestFile] = []
        for content, kept in ((_DATA, data), (_DELETES, deletes)):
            useful = [
                m for m in kept if m.has_live_files() or m.added_snapshot_id == self.snapshot_id
            ]
            new = self.new_manifests(base, content)
            out += self._merges[content].apply(self, base, [*new, *useful])
        return out

    def summary(self, base: TableMetadata) -> Mapping[str, str]:
        """Implement `SnapshotProducer.summary`."""
        counts = self.new_summary(base)
        for content in ManifestContent:
            for file in self._added_files(base, content):
                counts.add_file(file, base.spec_by_id(file.spec_id))
        for found in self.filters.values():
            for file in found.removed:
                counts.remove_file(file, base.spec_by_id(file.spec_id))
        # on main, too: a commit there may be lost, or rolled back and picked
        onto_parent = self._no_conflicting_data and self.operation == Operation.APPEND
        return {**counts.to_map(), **({ONTO_PARENT: "true"} if onto_parent else {})}

    def replaced_manifest_count(self) -> int:
        """Implement `SnapshotProducer.replaced_manifest_count`."""
        filtered = sum(found.replaced for found in self.filters.values())
        return filtered + sum(merge.replaced for merge in self._merges.values())

    def clean_up(self, committed: TableMetadata | None) -> None:
        """Implement `SnapshotProducer.clean_up`."""
        super().clean_up(committed)
        if committed is None:
            self._discard()
        if self._joined is not None and not self.is_committed and not self._written_manifests:
            self._joined[0].abort()
            self._joined = None

    def _discard(self) -> None:
        """Discard all written manifests, so that the next attempt writes them again."""
        self._written = {}
        for content in ManifestContent:
            self.filters[content].discard()
            self._merges[content].discard()

    def history(self, base: TableMetadata, parent: Snapshot | None) -> History:
        """Return the history since `validate_from_snapshot`."""
        start = self.starting_snapshot_id
        return History(self.io, base, parent, start)

    def new_manifests(self, base: TableMetadata, content: ManifestContent) -> list[ManifestFile]:
        """Return the manifests of the added files, which are written only once."""
        written = self._written.get(content)
        if written is None:
            by_spec: dict[int, list[DataFile]] = {}
            for file in self._added_files(base, content):
                by_spec.setdefault(file.spec_id, []).append(file)
            written = [
                manifest
                for spec_id, files in by_spec.items()
                for manifest in self.write_manifests(
                    base, spec_id, self._entries(content, files), content
                )
            ]
            self._written[content] = written
        return written

    def _added_files(self, base: TableMetadata, content: ManifestContent) -> list[DataFile]:
        """Return the files to add; of several vectors of a data file one with the rows of all.

        Iceberg Java writes it likewise (MergingSnapshotProducer.mergeDVs).
        """
        files = list(self.added[content].values())
        several = several_targets(files)
        if not several:
            return files
        if self._joined is None:
            for path, vectors in several.items():
                if any(one.file_path in self.delete_sequence_numbers for one in vectors):
                    raise ValidationError(
                        f"Cannot join two deletion vectors for data file {path}: one keeps a "
                        "sequence number of its own",
                        hint="Give one that deletes the rows of both.",
                        path=path,
                    )
            name = f"{self.commit_uuid}-joined-{self._attempt}"
            writer = DeletionVectorWriter(self.io, base, name)
            try:
                self._joined = writer, joined_vectors(self.io, writer, several)
            except BaseException:
                writer.abort()
                raise
        kept = (file for file in files if file.referenced_data_file not in several)
        return [*kept, *self._joined[1]]

    def _entries(
        self, content: ManifestContent, files: Iterable[DataFile]
    ) -> Iterable[ManifestEntry]:
        for file in files:
            number = (
                self.data_sequence_number
                if content is _DATA
                else self.delete_sequence_numbers.get(file.file_path)
            )
            yield ManifestEntry(
                status=ManifestEntryStatus.ADDED, sequence_number=number, data_file=file
            )

    def _remove(self, file: DataFile) -> None:
        content = _DATA if file.content is DataFileContent.DATA else _DELETES
        self.filters[content].remove_file(file)
        if content is _DATA:
            self.removed_data_files[file.file_path] = file
            self._removals[file.file_path] += 1

    def _refuse_others_removed(self) -> None:
        """Refuse to remove a data file that the table has more often than it was given."""
        there = Counter(file.file_path for file in self.filters[_DATA].removed)
        for path, given in self._removals.items():
            if there[path] > given:
                raise ValidationError(
                    f"Cannot replace file {path}: the table has it {there[path]} times, and rows "
                    f"of {given} were rewritten",
                    hint=REPEATED_FILE,
                    path=path,
                )

    def _require_removed(self) -> None:
        for found in self.filters.values():
            found.require_paths = True

    def _add(self, file: DataFile, content: ManifestContent) -> None:
        if (file.content is DataFileContent.DATA) is not (content is _DATA):
            wanted = "data" if content is _DATA else "deletes"
            raise ValidationError(
                f"File {file.file_path!r} does not hold {wanted}",
                hint="Name it among the files of its own content.",
                path=file.file_path,
            )
        if self._attempt:
            raise ValidationError(
                "Cannot change an operation that was applied already",
                hint="Begin another operation.",
            )
        self.added[content].setdefault(file.identity, file)
