"""Adding data files to a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from icecomb.format.errors import ValidationError
from icecomb.format.manifests.manifest import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestFile,
)
from icecomb.format.operation.merging import MergingProducer
from icecomb.format.operation.position_rule import refuse_added_again
from icecomb.format.operation.snapshot_producer import (
    SnapshotProducer,
    check_known_transforms,
    check_new_file,
    parent_manifests,
)
from icecomb.format.spec.snapshot import MAIN_BRANCH, Operation

if TYPE_CHECKING:
    from typing_extensions import Self

    from icecomb.format.manifests.encoded_file import DataFileForm, EncodedFiles
    from icecomb.format.manifests.writer import EncodedEntry
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO


class FastAppend(SnapshotProducer):
    """An append that adds data files in new manifests and leaves existing manifests as they are.

    Args:
        io: File system to write manifests and manifest lists to.
        snapshot_properties: Additional keys for the snapshot summary.
        branch: The branch to commit to.
        stage_only: Add the snapshot to the table without moving the branch.
        fresh: Whether the files were written for this append, so that no table can have them.
    """

    def __init__(
        self,
        io: FileIO,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = MAIN_BRANCH,
        *,
        stage_only: bool = False,
        fresh: bool = False,
    ) -> None:
        super().__init__(io, snapshot_properties, branch, stage_only=stage_only)
        self._fresh = fresh
        self._files: dict[str, DataFile] = {}
        self._sources: list[EncodedFiles] = []
        self._written: list[ManifestFile] | None = None

    def append_data_file(self, file: DataFile) -> FastAppend:
        """Add a data file; a path that was already added is ignored.

        Raises:
            ValidationError: If the file is not a data file.
        """
        if file.content is not DataFileContent.DATA:
            raise ValidationError(
                f"Cannot append {file.file_path!r}: it holds deletes",
                hint="Add delete files by a row delta.",
                path=file.file_path,
            )
        self._check_open()
        self._files.setdefault(file.file_path, file)
        return self

    @property
    def added_data_files(self) -> list[DataFile]:
        return list(self._files.values())

    def append_encoded_files(self, files: EncodedFiles) -> FastAppend:
        """Add any number of data files, which are read when manifests are written.

        Args:
            files: The files, whose paths are in no other source and were not added otherwise.
        """
        self._check_open()
        self._sources.append(files)
        return self

    def clean_up(self, committed: TableMetadata | None) -> None:
        super().clean_up(committed)
        if committed is None:
            self._written = None

    @property
    def operation(self) -> str:
        """The operation `append`."""
        return Operation.APPEND

    def validate(self, base: TableMetadata, parent: Snapshot | None) -> None:
        """Check that the files fit the table's partition specs, and have no deletion vectors."""
        if self._written is None:
            for file in self._files.values():
                check_new_file(base, file)
            for source in self._sources:
                _check_form(base, source.form)
        if self._files and not self._fresh and base.format_version >= 3:
            manifests = parent_manifests(self.io, base, parent)
            refuse_added_again(self.io, base, manifests, self._files)

    def manifests(self, base: TableMetadata, parent: Snapshot | None) -> Sequence[ManifestFile]:
        if self._written is None:
            by_spec: dict[int, list[DataFile]] = {}
            for file in self._files.values():
                by_spec.setdefault(file.spec_id, []).append(file)
            self._written = [
                manifest
                for spec_id, files in by_spec.items()
                for manifest in self.write_manifests(base, spec_id, files)
            ]
            for source in self._sources:
                entries = self._entries(base, source)
                spec_id = source.form.spec.spec_id
                self._written += self.write_manifests(base, spec_id, entries)
        return [*self._written, *parent_manifests(self.io, base, parent)]

    def summary(self, base: TableMetadata) -> Mapping[str, str]:
        counts = self.new_summary(base)
        for file in self._files.values():
            counts.add_file(file, base.spec_by_id(file.spec_id))
        for source in self._sources:
            spec = source.form.spec
            for _, partition, rows, size in source:
                counts.add_data_file(spec, partition, rows, size)
        return counts.to_map()

    def _entries(
        self, base: TableMetadata, source: EncodedFiles
    ) -> Iterable[DataFile] | Iterable[EncodedEntry]:
        form = source.form
        if base.format_version == 1:
            return map(form.decode, source)
        return form.entries(source, self.snapshot_id, base.format_version)

    def _check_open(self) -> None:
        if self._written is not None:
            raise ValidationError(
                "Cannot add a file to an append that was applied already",
                hint="Begin another append.",
            )


def _check_form(base: TableMetadata, form: DataFileForm) -> None:
    """Refuse files that were encoded for another table."""
    spec = base.spec_by_id(form.spec.spec_id)
    check_known_transforms(spec)
    if spec != form.spec or spec.partition_type(base.schema_of(spec)) != form.partition:
        raise ValidationError(
            f"The files were described for the partition spec {form.spec}, the table has {spec}",
            hint="Describe the files by the partition spec of the table.",
        )


class MergeAppend(MergingProducer):
    """An append that also merges small manifests (`commit.manifest.*` properties)."""

    def append_data_file(self, file: DataFile) -> Self:
        """Add a data file; a path that was already added is ignored."""
        self._add(file, ManifestContent.DATA)
        return self

    @property
    def operation(self) -> str:
        """The operation `append`."""
        return Operation.APPEND
