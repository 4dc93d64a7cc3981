"""Adding data files to a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from icecomb.format.errors import ValidationError
from icecomb.format.manifests.manifest import DataFile, DataFileContent, ManifestFile
from icecomb.format.operation.snapshot_producer import (
    SnapshotProducer,
    check_new_file,
    parent_manifests,
)
from icecomb.format.spec.snapshot import MAIN_BRANCH, Operation

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO


class FastAppend(SnapshotProducer):
    """Adds data files by new manifests only; those of the table stay as they are.

    Args:
        io: Writes manifests and manifest lists.
        snapshot_properties: More keys for the snapshot's summary.
        branch: The branch to commit to.
        stage_only: Add the snapshot to the table without moving the branch.
    """

    def __init__(
        self,
        io: FileIO,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = MAIN_BRANCH,
        *,
        stage_only: bool = False,
    ) -> None:
        super().__init__(io, snapshot_properties, branch, stage_only=stage_only)
        self._files: dict[str, DataFile] = {}
        self._written: list[ManifestFile] | None = None

    def append_data_file(self, file: DataFile) -> FastAppend:
        """Add a data file; a path that was added before is passed over.

        Raises:
            ValidationError: It is no data file.
        """
        if file.content is not DataFileContent.DATA:
            raise ValidationError(
                f"Cannot append {file.file_path!r}: it holds deletes",
                hint="Add delete files by a row delta.",
                path=file.file_path,
            )
        if self._written is not None:
            raise ValidationError(
                "Cannot add a file to an append that was applied already",
                hint="Begin another append.",
            )
        self._files.setdefault(file.file_path, file)
        return self

    def clean_up(self, committed: TableMetadata | None) -> None:
        """See `SnapshotProducer.clean_up`."""
        super().clean_up(committed)
        if committed is None:
            self._written = None

    @property
    def operation(self) -> str:
        """`append`."""
        return Operation.APPEND

    def validate(self, base: TableMetadata, parent: Snapshot | None) -> None:  # noqa: ARG002
        """See `SnapshotProducer.validate`: the files must fit the table's partition specs."""
        if self._written is None:
            for file in self._files.values():
                check_new_file(base, file)

    def manifests(self, base: TableMetadata, parent: Snapshot | None) -> Sequence[ManifestFile]:
        """See `SnapshotProducer.manifests`."""
        if self._written is None:
            by_spec: dict[int, list[DataFile]] = {}
            for file in self._files.values():
                by_spec.setdefault(file.spec_id, []).append(file)
            self._written = [
                manifest
                for spec_id, files in by_spec.items()
                for manifest in self.write_manifests(base, spec_id, files)
            ]
        return [*self._written, *parent_manifests(self.io, base, parent)]

    def summary(self, base: TableMetadata) -> Mapping[str, str]:
        """See `SnapshotProducer.summary`."""
        counts = self.new_summary(base)
        for file in self._files.values():
            counts.add_file(file, base.spec_by_id(file.spec_id))
        return counts.to_map()
