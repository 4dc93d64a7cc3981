"""Manifests as values: the files of a snapshot and the entries that track them (spec: Manifests).

A manifest is an Avro file of entries, each a data or delete file that was added, kept or deleted.
`decoder` decodes one, `writer` writes one, `manifest_list` reads and writes the list of a
snapshot's manifests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from icecomb.format.errors import ValidationError

if TYPE_CHECKING:
    from icecomb.format.storage.file_io import FileIO

UNASSIGNED_SEQ = -1
"""The sequence number of a manifest whose commit has not been attempted yet."""


FileIdentity: TypeAlias = tuple[str, "int | None", "int | None"]
"""Path, offset and length of a file: a Puffin file holds many deletion vectors."""


class _Code(int, Enum):
    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


class DataFileContent(_Code):
    """The content of a file tracked by a manifest."""

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2


class ManifestContent(_Code):
    """The content of a manifest: data files or delete files, never both."""

    DATA = 0
    DELETES = 1


class ManifestEntryStatus(_Code):
    """The change to a file in the snapshot that wrote the manifest."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


class FileFormat(str, Enum):
    """The format of a data or delete file; manifests spell it in either case."""

    AVRO = "AVRO"
    ORC = "ORC"
    PARQUET = "PARQUET"
    PUFFIN = "PUFFIN"

    @classmethod
    def _missing_(cls, value: object) -> FileFormat | None:
        return cls.__members__.get(str(value).upper())

    def __repr__(self) -> str:
        return f"FileFormat.{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A data or delete file of a table (spec: Manifests, `data_file`).

    Attributes:
        content: Data, position deletes or equality deletes.
        file_path: Location, spelled as delete files refer to it.
        file_format: Parquet, ORC or Avro; Puffin for deletion vectors.
        partition: Partition tuple in the order of the spec's fields, internal values.
        record_count: Number of rows.
        file_size_in_bytes: Length of the file.
        column_sizes: Column id to bytes on disk.
        value_counts: Column id to number of values, nulls and NaNs included.
        null_value_counts: Column id to number of nulls.
        nan_value_counts: Column id to number of NaNs.
        lower_bounds: Column id to a value not greater than any, serialized as in Appendix D.
        upper_bounds: Column id to a value not less than any, serialized likewise.
        key_metadata: Encryption key metadata, kept unchanged.
        split_offsets: Ascending offsets at which the file may be split.
        equality_ids: Columns that an equality delete file compares.
        sort_order_id: Sort order of the rows; None = unknown.
        first_row_id: Row id of the first row of a data file; the others' follow. None before
            format version 3, and for a file that no commit has given ids.
        referenced_data_file: The only data file that these position deletes refer to.
        content_offset: Offset of a deletion vector in its Puffin file.
        content_size_in_bytes: Length of a deletion vector in its Puffin file.
        spec_id: Partition spec of `partition`; a manifest stores it once for all its files.
        sequence_number: Data sequence number of its entry; None before it is committed.
        has_exact_bounds: Whether icecomb wrote the data file, so that bounds that are not
            truncated are values in it; those of other writers may be wider. Kept by manifests that
            have such files only (`EXACT_BOUNDS`).
    """

    content: DataFileContent = DataFileContent.DATA
    file_path: str
    file_format: FileFormat = FileFormat.PARQUET
    partition: tuple[Any, ...] = ()
    record_count: int
    file_size_in_bytes: int
    column_sizes: Mapping[int, int] | None = None
    value_counts: Mapping[int, int] | None = None
    null_value_counts: Mapping[int, int] | None = None
    nan_value_counts: Mapping[int, int] | None = None
    lower_bounds: Mapping[int, bytes] | None = None
    upper_bounds: Mapping[int, bytes] | None = None
    key_metadata: bytes | None = None
    split_offsets: tuple[int, ...] | None = None
    equality_ids: tuple[int, ...] | None = None
    sort_order_id: int | None = None
    first_row_id: int | None = None
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size_in_bytes: int | None = None
    spec_id: int = 0
    sequence_number: int | None = field(default=None, compare=False)
    has_exact_bounds: bool = field(default=False, compare=False)

    def __hash__(self) -> int:
        return hash((self.file_path, self.content_offset))

    @property
    def is_deletion_vector(self) -> bool:
        """Whether this is a deletion vector: position deletes in a Puffin file."""
        return (
            self.content is DataFileContent.POSITION_DELETES
            and self.file_format is FileFormat.PUFFIN
        )

    @property
    def identity(self) -> FileIdentity:
        """Path, offset and length: a Puffin file holds many deletion vectors."""
        return self.file_path, self.content_offset, self.content_size_in_bytes

    @property
    def content_length(self) -> int:
        """Length of what is read of the file: of a deletion vector not the whole Puffin file."""
        size = self.content_size_in_bytes
        return self.file_size_in_bytes if size is None else size


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEntry:
    """One file in one manifest, with the values inherited from the manifest filled in.

    Attributes:
        status: Existing, added or deleted.
        snapshot_id: Snapshot that added or deleted the file.
        sequence_number: Data sequence number, which decides which deletes apply to the rows.
        file_sequence_number: Sequence number of the commit that added the file.
        data_file: The file.
    """

    status: ManifestEntryStatus
    snapshot_id: int | None = None
    sequence_number: int | None = None
    file_sequence_number: int | None = None
    data_file: DataFile

    @property
    def is_live(self) -> bool:
        """Whether the file belongs to the snapshot."""
        return self.status is not ManifestEntryStatus.DELETED


@dataclass(frozen=True, slots=True)
class PartitionFieldSummary:
    """A summary of the values of one partition field in all files of a manifest.

    Attributes:
        contains_null: Whether any value is null.
        contains_nan: Whether any value is NaN; None = unknown.
        lower_bound: The least value that is neither, serialized as in Appendix D, or None.
        upper_bound: The greatest such value, or None.
    """

    contains_null: bool
    contains_nan: bool | None = None
    lower_bound: bytes | None = None
    upper_bound: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFile:
    """One manifest of a snapshot, as its manifest list describes it.

    A count that the writer did not state is None; there may be such files then.

    Attributes:
        manifest_path: Location of the manifest.
        manifest_length: Length of the file in bytes.
        partition_spec_id: Partition spec of all its files.
        content: Data files or delete files.
        sequence_number: Sequence number of the commit that added it; 0 in format version 1.
        min_sequence_number: Least data sequence number of its live files.
        added_snapshot_id: Snapshot that added the manifest.
        added_files_count: Number of entries with status ADDED.
        existing_files_count: Number of entries with status EXISTING.
        deleted_files_count: Number of entries with status DELETED.
        added_rows_count: Number of rows in the added files.
        existing_rows_count: Number of rows in the existing files.
        deleted_rows_count: Number of rows in the deleted files.
        partitions: Summary of each partition field, in the order of the spec.
        key_metadata: Encryption key metadata, kept unchanged.
        first_row_id: Row id from which data files without one of their own are numbered; None
            for delete files, and before format version 3.
    """

    manifest_path: str
    manifest_length: int
    partition_spec_id: int = 0
    content: ManifestContent = ManifestContent.DATA
    sequence_number: int = 0
    min_sequence_number: int = 0
    added_snapshot_id: int | None = None
    added_files_count: int | None = None
    existing_files_count: int | None = None
    deleted_files_count: int | None = None
    added_rows_count: int | None = None
    existing_rows_count: int | None = None
    deleted_rows_count: int | None = None
    partitions: tuple[PartitionFieldSummary, ...] | None = None
    key_metadata: bytes | None = None
    first_row_id: int | None = None

    def has_added_files(self) -> bool:
        """Return whether there may be files with status ADDED."""
        return self.added_files_count != 0

    def has_existing_files(self) -> bool:
        """Return whether there may be files with status EXISTING."""
        return self.existing_files_count != 0

    def has_deleted_files(self) -> bool:
        """Return whether there may be files with status DELETED."""
        return self.deleted_files_count != 0

    def has_live_files(self) -> bool:
        """Return whether there may be files that belong to the snapshot."""
        return self.has_added_files() or self.has_existing_files()

    def fetch_manifest_entry(
        self,
        io: FileIO,
        discard_deleted: bool = True,  # noqa: FBT001, FBT002
    ) -> list[ManifestEntry]:
        """Read the entries of the manifest.

        Args:
            io: File system that holds the manifest.
            discard_deleted: Whether to leave out entries with status DELETED; true by default.
        """
        from icecomb.format.manifests.reader import read_manifest

        return read_manifest(io, self, discard_deleted=discard_deleted)


def check_data_file(file: DataFile) -> None:
    """Refuse a file that no manifest could describe; the message names it and the reason."""
    problem = None
    if not file.file_path:
        problem = "has no path"
    elif file.record_count < 0 or file.file_size_in_bytes < 0:
        problem = "has a negative size"
    elif file.content is DataFileContent.EQUALITY_DELETES and not file.equality_ids:
        problem = "holds equality deletes but names no columns"
    elif file.content is not DataFileContent.EQUALITY_DELETES and file.equality_ids:
        problem = "names equality columns but holds no equality deletes"
    if problem:
        raise ValidationError(
            f"File {file.file_path!r} {problem}",
            hint="Describe the file as it is.",
            path=file.file_path,
        )
