"""The replacement of delete files by rewritten ones, despite concurrent commits.

New deletes of other writers stay as they are, and it does no harm if a data file is gone. A group
has to be rewritten again if its delete files are gone, if a data file that they name was added
again or has another age, or if converted equality deletes apply to a data file that was not
searched: a file that replaces older ones may be as old as these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

from icecomb.format.errors import ConflictError, NoSuchFileError
from icecomb.format.expressions.expression import AlwaysTrue
from icecomb.format.maintenance.equality_conversion import EqualityGroup, reached_files
from icecomb.format.maintenance.live_files import changed_ages
from icecomb.format.maintenance.rewrite_commit import RewriteConflictError, RewriteStart, head_of
from icecomb.format.maintenance.rewritten_deletes import RewrittenDeletes
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.operation.conflict import History
from icecomb.format.operation.file_addition import known_paths
from icecomb.format.operation.overwrite import ConvertDeletes, RewriteFiles
from icecomb.format.scan.scan_planner import ScanPlanner

if TYPE_CHECKING:
    from icecomb.format.manifests.manifest import ManifestFile
    from icecomb.format.scan.delete_index import DeleteFileIndex
    from icecomb.format.spec.change.update import Changes
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO


class DeleteReplacement:
    """The commit of some rewritten groups of delete files, for `icecomb.catalog.commit.commit`.

    The groups' files still belong to the caller, and are not deleted if the commit fails.
    """

    writes_files: ClassVar[bool] = True

    def __init__(
        self,
        io: FileIO,
        start: RewriteStart,
        groups: Sequence[RewrittenDeletes],
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> None:
        self._io = io
        self._start = start
        self._groups = groups
        converts = any(isinstance(one.group, EqualityGroup) for one in groups)
        kind = ConvertDeletes if converts else RewriteFiles
        self._operation = kind(io, snapshot_properties, start.branch).rewrite_files(
            [
                *(delete.file for one in groups for delete in one.group.tasks),
                *(file for one in groups for file in one.replaced),
            ],
            [file for one in groups for file in one.files],
            delete_sequence_numbers={
                file.file_path: one.number
                for one in groups
                if one.number is not None
                for file in one.files
            },
        )

    @property
    def starting_point(self) -> tuple[str, int] | None:
        """The branch and starting snapshot; see `SnapshotProducer.starting_point`."""
        return self._start.branch, self._start.snapshot.snapshot_id

    def apply(self, base: TableMetadata) -> Changes:
        """Implement `SnapshotProducer.apply`; RewriteConflictError if groups must be rewritten."""
        self._operation.check_not_committed(base)
        self._start.written_with.check(base)
        self._start.check_names(base, len(self._groups))
        self._check(base)
        head = head_of(base, self._start.branch)
        self._operation.validate_from_snapshot(None if head is None else head.snapshot_id)
        return self._operation.apply(base)

    def clean_up(self, committed: TableMetadata | None) -> None:
        self._operation.clean_up(committed)

    def _check(self, base: TableMetadata) -> None:
        """Refuse groups with which other commits since the start conflict."""
        head = self._start.moved_to(self._io, base, len(self._groups))
        if head is None:
            return
        planner = ScanPlanner(base, self._io, base.schema(), AlwaysTrue())
        manifests, index = planner.live(head)
        # files in the same manifests as before are unchanged
        before: set[str] = set()
        with suppress(NoSuchFileError):  # the snapshot has expired: all manifests are checked
            before = {m.manifest_path for m in read_manifests(self._io, self._start.snapshot)}
        new = [m for m in manifests if m.manifest_path not in before]
        problems: dict[int, str] = {}
        there = {file.identity for file in index.files}
        for at, one in enumerate(self._groups):
            asked = (*(delete.file for delete in one.group.tasks), *one.replaced)
            gone = [file.file_path for file in asked if file.identity not in there]
            if gone:
                problems[at] = f"delete file {gone[0]} is gone"
        problems |= self._changed_data(base, new)
        problems |= self._changed_vectors(base, head)
        problems |= self._not_looked_at(planner, new, index)
        if problems:
            raise RewriteConflictError(problems, hint="Rewrite them again.")

    def _changed_data(
        self, base: TableMetadata, manifests: Sequence[ManifestFile]
    ) -> dict[int, str]:
        """Return the groups for which the age of a data file has changed, with the reason."""
        problems: dict[int, str] = {}
        for at, one in enumerate(self._groups):
            for path in changed_ages(self._io, base, manifests, one.ages):
                problems[at] = f"data file {path} was added again"
        return problems

    def _changed_vectors(self, base: TableMetadata, head: Snapshot) -> dict[int, str]:
        """Return the groups whose vectors do not fit their data files any more, with the reason.

        A vector stands for all position deletes of its data file, and must not outlive it.
        """
        vectors = [[f for f in one.files if f.is_deletion_vector] for one in self._groups]
        targets = [[f.referenced_data_file or "" for f in of_group] for of_group in vectors]
        every = [path for of_group in targets for path in of_group]
        if not every:
            return {}
        history = History(self._io, base, head, self._start.snapshot.snapshot_id)
        there = known_paths(self._io, base, head, every, set())
        problems: dict[int, str] = {}
        for at, of_group in enumerate(vectors):
            gone = [path for path in targets[at] if path not in there]
            if gone:
                problems[at] = f"data file {gone[0]} is gone"
                continue
            try:
                history.no_new_vectors(of_group)
            except ConflictError as error:
                problems[at] = error.message
        return problems

    def _not_looked_at(
        self, planner: ScanPlanner, manifests: Sequence[ManifestFile], index: DeleteFileIndex
    ) -> dict[int, str]:
        """Return the groups whose equality deletes apply to data files that were not searched."""
        owners = {
            delete.file_path: at
            for at, one in enumerate(self._groups)
            if isinstance(one.group, EqualityGroup)
            for delete in one.group.tasks
        }
        problems: dict[int, str] = {}
        for file in reached_files(planner, manifests if owners else (), index, owners):
            for delete in file.deletes:
                at = owners[delete.file_path]
                if file.task.file_path not in self._groups[at].ages:
                    problems[at] = (
                        f"equality deletes {delete.file_path} apply to {file.task.file_path}, too"
                    )
        return problems
