"""The replacement of files by rewritten groups, despite concurrent changes of the sources.

Other writers may delete rows of a file while it is rewritten, or replace it as a whole. The rows
that they deleted are deleted from the new files in the same snapshot: it is known where each row
went. Only if that is unknown, or would leave too little of a group, is the group rewritten again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from icecomb.format.errors import ConflictError, NoSuchSnapshotError, ValidationError
from icecomb.format.expressions.expression import AlwaysTrue
from icecomb.format.maintenance.file_rewriter import RewrittenGroup
from icecomb.format.manifests.manifest import DataFile, DataFileContent
from icecomb.format.operation.conflict import History, index_key
from icecomb.format.operation.file_addition import known_paths
from icecomb.format.operation.overwrite import RewriteFiles
from icecomb.format.operation.snapshot_producer import WrittenWith, check_no_ids_since
from icecomb.format.rows.deletes.deletion_vector_writer import delete_writer
from icecomb.format.rows.deletes.position_delete import PositionDeletes, Positions
from icecomb.format.scan.scan_planner import ScanPlanner
from icecomb.format.spec.metadata import with_properties

if TYPE_CHECKING:
    from icecomb.format.scan.delete_index import DeleteFileIndex
    from icecomb.format.spec.change.update import Changes
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.name_mapping import NameMapping
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO


class RewriteConflictError(ConflictError):
    """Error raised if groups, by number, have to be rewritten again; nothing was committed."""

    def __init__(self, groups: Mapping[int, str], *, hint: str) -> None:
        super().__init__(
            f"{len(groups)} groups of files were changed while they were rewritten: "
            f"{next(iter(groups.values()))}",
            hint=hint,
        )
        self.groups = frozenset(groups)


@dataclass(frozen=True, slots=True)
class RewriteStart:
    """The state of a table that a rewrite read.

    Attributes:
        written_with: The schema and specs of the table, and of new data files.
    """

    written_with: WrittenWith
    name_mapping: NameMapping | None
    snapshot: Snapshot
    branch: str
    format_version: int

    @classmethod
    def of(cls, metadata: TableMetadata, branch: str) -> RewriteStart:
        """Return the current state of a branch."""
        snapshot = head_of(metadata, branch)
        if snapshot is None:
            raise NoSuchSnapshotError(
                f"Branch {branch!r} of {metadata.location} has no snapshot",
                hint="There is nothing to rewrite.",
            )
        return cls(
            WrittenWith.of(metadata),
            metadata.name_mapping(),
            snapshot,
            branch,
            metadata.format_version,
        )

    @property
    def schema(self) -> Schema:
        """The columns of the table."""
        return self.written_with.schema

    def check_names(self, base: TableMetadata, groups: int) -> None:
        """Check that the name mapping is unchanged, and the format version below 3 if it was.

        It raises RewriteConflictError, for all groups, if one of them has changed.
        """
        if base.name_mapping() != self.name_mapping:
            # new files have field ids; those of the sources came from the mapping, which changed
            why = "the names of columns were mapped to others"
            raise _of_all(groups, why)
        if self.format_version < 3 <= base.format_version:
            # version 3 has deletion vectors instead of position delete files, and ids of rows
            why = f"the table was upgraded to format version {base.format_version}"
            raise _of_all(groups, why)

    def moved_to(self, io: FileIO, base: TableMetadata, groups: int) -> Snapshot | None:
        """Return the head of the branch if it has changed; None if it has not.

        It raises RewriteConflictError, for all groups, if the head does not descend from the
        snapshot that was read.
        """
        head = head_of(base, self.branch)
        if head is not None and head.snapshot_id == self.snapshot.snapshot_id:
            return None
        try:
            since = History(io, base, head, self.snapshot.snapshot_id).snapshots
        except ValidationError as error:
            raise _of_all(groups, error.message) from error
        if head is None or not since:
            raise _of_all(groups, "the branch was rolled back")
        return head


def _of_all(groups: int, why: str) -> RewriteConflictError:
    return RewriteConflictError(dict.fromkeys(range(groups), why), hint="Rewrite them again.")


def head_of(base: TableMetadata, branch: str) -> Snapshot | None:
    """Return the head of a branch, if it has one."""
    return base.snapshot_by_name(branch) or (base.current_snapshot() if branch == "main" else None)


_MOST_REMOVED: Final = 0.3
"""The share of removed rows above which a group is rewritten again."""


@dataclass(slots=True)
class _Meanwhile:
    """The changes that other writers made to the sources, by number, of one group."""

    removed: set[int] = field(default_factory=set)
    deletes: dict[int, tuple[DataFile, ...]] = field(default_factory=dict)

    def signature(self) -> object:
        """Return a value that is equal for equal changes."""
        return (
            frozenset(self.removed),
            {
                number: frozenset(f.identity for f in files)
                for number, files in self.deletes.items()
            },
        )


class RewriteCommit:
    """The commit of some rewritten groups, for `icecomb.catalog.commit.commit`.

    Args:
        groups: The groups that were written. Their data files still belong to the caller, and
            are not deleted if the commit fails.
        keeps_age: Whether the new files are as old as the snapshot that was read, so that
            equality deletes added since by other writers apply to them.
        write_properties: Properties that take precedence over the table's for new delete files.
    """

    writes_files: ClassVar[bool] = True

    def __init__(
        self,
        io: FileIO,
        start: RewriteStart,
        groups: Sequence[RewrittenGroup],
        *,
        keeps_age: bool,
        snapshot_properties: Mapping[str, str] | None = None,
        write_properties: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._io = io
        self._start = start
        self._groups = groups
        self._keeps_age = keeps_age
        self._snapshot_properties = snapshot_properties
        self._write_properties = write_properties
        self._meanwhile: object = None
        self._operation: RewriteFiles | None = None
        self._deletes: list[DataFile] = []
        self._read_deletes = PositionDeletes(io)

    @property
    def starting_point(self) -> tuple[str, int] | None:
        """The branch and starting snapshot; see `SnapshotProducer.starting_point`."""
        return self._start.branch, self._start.snapshot.snapshot_id

    def apply(self, base: TableMetadata) -> Changes:
        """Implement `SnapshotProducer.apply`; RewriteConflictError if groups must be rewritten."""
        if self._operation is not None:
            self._operation.check_not_committed(base)
        self._start.written_with.check(base)
        self._start.check_names(base, len(self._groups))
        self._check_ids(base)
        meanwhile = self._look(base)
        # the age of the new files depends on the format version
        signature = (base.format_version, [one.signature() for one in meanwhile])
        if self._operation is None or signature != self._meanwhile:
            self._discard()
            self._operation = self._new_operation(base, meanwhile)
            self._meanwhile = signature
        head = head_of(base, self._start.branch)
        self._operation.validate_from_snapshot(None if head is None else head.snapshot_id)
        return self._operation.apply(base)

    def clean_up(self, committed: TableMetadata | None) -> None:
        if self._operation is None:
            return
        self._operation.clean_up(committed)
        if committed is None and not self._operation.is_committed:
            self._discard()

    def _discard(self) -> None:
        """Discard the files that an attempt wrote."""
        if self._operation is not None and not self._operation.is_committed:
            self._operation.clean_up(None)
            self._operation = None
        self._io.delete(dict.fromkeys(file.file_path for file in self._deletes))
        self._deletes = []

    def _check_ids(self, base: TableMetadata) -> None:
        """Raise RewriteConflictError if rows were read without ids that may have some by now."""
        start = self._start
        try:
            check_no_ids_since(base, start.branch, start.snapshot.snapshot_id)
        except ConflictError as error:
            without = {
                number: error.message
                for number, group in enumerate(self._groups)
                if any(task.file.first_row_id is None for task in group.group.tasks)
            }
            if without:
                raise RewriteConflictError(without, hint="Rewrite them again.") from error

    def _look(self, base: TableMetadata) -> list[_Meanwhile]:
        """Return the changes that other writers made to each group since the start."""
        head = self._start.moved_to(self._io, base, len(self._groups))
        if head is None:
            return [_Meanwhile() for _ in self._groups]
        paths = [t.file_path for group in self._groups for t in group.group.tasks]
        # a file added since is another file of that name, with its own rows and deletes
        history = History(self._io, base, head, self._start.snapshot.snapshot_id)
        there = known_paths(self._io, base, head, paths, set()) - history.added(paths)
        planner = ScanPlanner(base, self._io, base.schema(), AlwaysTrue())
        _, index = planner.live(head)
        found = [self._of_group(base, group, there, index) for group in self._groups]
        if conflicts := {at: one for at, one in enumerate(found) if isinstance(one, str)}:
            raise RewriteConflictError(conflicts, hint="Rewrite them again.")
        return [one for one in found if isinstance(one, _Meanwhile)]

    def _of_group(
        self,
        base: TableMetadata,
        group: RewrittenGroup,
        there: set[str],
        index: DeleteFileIndex,
    ) -> _Meanwhile | str:
        """Return the changes to a group's sources, or why they cannot be applied to new files."""
        meanwhile = _Meanwhile()
        age = self._start.snapshot.sequence_number
        known = {file.identity for task in group.group.tasks for file in task.delete_files}
        equality: set[frozenset[str]] = set()
        for number, task in enumerate(group.group.tasks):
            if task.file_path not in there:
                meanwhile.removed.add(number)
                continue
            added = [
                file
                for file in index.files_for_data_file(
                    age, index_key(task.file), task.file_path, is_own=False
                )
                if file.identity not in known
            ]
            positional = [f for f in added if f.content is DataFileContent.POSITION_DELETES]
            if positional:
                meanwhile.deletes[number] = tuple(positional)
            newer = [f for f in added if f.content is DataFileContent.EQUALITY_DELETES]
            equality.add(frozenset(f.file_path for f in newer))
            for file in newer:
                if (problem := self._problem(file, task.file_path)) is not None:
                    return problem
        for file in group.files:
            applying = index.files_for_data_file(age, index_key(file), file.file_path)
            equality.add(
                frozenset(
                    f.file_path
                    for f in applying
                    if f.content is DataFileContent.EQUALITY_DELETES and f.identity not in known
                )
            )
        if len(equality) > 1:
            return "equality deletes were added that apply to some of its files only"
        if meanwhile.removed and base.format_version < 2:
            return "others removed files, whose rows only version 2 can delete from new ones"
        gone = sum(group.group.tasks[number].record_count for number in meanwhile.removed)
        rows, files = group.group.record_count, len(group.group.tasks)
        if len(meanwhile.removed) == files or gone > _MOST_REMOVED * rows:
            return (
                f"others removed {len(meanwhile.removed)} of {files} files, {gone} of {rows} rows"
            )
        if group.origins is None and (meanwhile.removed or meanwhile.deletes):
            return "others deleted rows of its files, and Spark does not say where these went"
        return meanwhile

    def _problem(self, file: DataFile, path: str) -> str | None:
        """Return why new equality deletes would delete other rows of the new files, if so."""
        schema = self._start.schema
        if not self._keeps_age:
            why = "the new files would be newer than they are"
        elif all(schema.contains(field_id) for field_id in file.equality_ids or ()):
            return None
        else:
            why = "they compare columns that the new files do not have"
        return f"equality deletes {file.file_path} were added for {path}, and {why}"

    def _new_operation(self, base: TableMetadata, meanwhile: Iterable[_Meanwhile]) -> RewriteFiles:
        operation = RewriteFiles(self._io, self._snapshot_properties, self._start.branch)
        written = with_properties(base, self._write_properties)
        writer = delete_writer(self._io, written, str(uuid.uuid4()))
        removed: list[DataFile] = []
        added: list[DataFile] = []
        rows_gone = 0
        try:
            for group, what in zip(self._groups, meanwhile, strict=True):
                for number, task in enumerate(group.group.tasks):
                    if number in what.removed:
                        rows_gone += task.record_count
                    else:
                        removed.append(task.file)
                added += group.files
                positions = self._positions(group, what)
                if group.origins is None:
                    continue
                for file, gone in group.origins.affected(what.removed, positions):
                    writer.add(file, gone)
            self._deletes = writer.close()
        except BaseException:
            writer.abort()
            raise
        return operation.rewrite_files(
            removed,
            [*added, *self._deletes],
            sequence_number=self._sequence_number(base),
            rows_removed_by_others=rows_gone,
        )

    def _positions(self, group: RewrittenGroup, what: _Meanwhile) -> dict[int, Positions]:
        found: dict[int, Positions] = {}
        for number, files in what.deletes.items():
            positions = self._read_deletes.of(group.group.tasks[number].file, files)
            if positions is not None:
                found[number] = positions
        return found

    def _sequence_number(self, base: TableMetadata) -> int | None:
        if not self._keeps_age or base.format_version < 2:
            return None
        return self._start.snapshot.sequence_number
