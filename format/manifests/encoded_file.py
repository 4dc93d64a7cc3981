"""Data files as encoded manifest records, for numbers of files too large for objects.

A record is encoded once, where a file is described, and later copied unchanged into a manifest.
Millions of them may be stored on disk in between: `EncodedFiles` only iterates over them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from icecomb.format.avro.encoder import Encoder, encoder
from icecomb.format.avro.schema import avro_schema, plain_schema
from icecomb.format.errors import CorruptFileError, reason_of
from icecomb.format.manifests.manifest import (
    DataFile,
    FileFormat,
    ManifestContent,
    ManifestEntryStatus,
)
from icecomb.format.manifests.schema import (
    ENTRY_NAMES,
    STATISTICS,
    data_file_type,
    entry_type,
    stored_partition,
)
from icecomb.format.manifests.writer import EncodedEntry, check_entry, file_record
from icecomb.format.spec.types import StructType

if TYPE_CHECKING:
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.spec.schema import Schema


_NEW_NULLS: Final = bytes(3)
"""The encoded fields that version 3 adds to a record: first row id, offset and size."""


class EncodedFile(NamedTuple):
    """A data file as an encoded record of format version 2, with the values needed for totals."""

    record: bytes
    partition: tuple[Any, ...]
    record_count: int
    size: int


class EncodedFiles(Protocol):
    """Any number of data files of one partition spec with distinct paths.

    They are iterated over several times, and must be the same in the same order each time.
    """

    @property
    def form(self) -> DataFileForm:
        """The form they were encoded with."""

    def __iter__(self) -> Iterator[EncodedFile]:
        """Yield the files."""


@dataclass(frozen=True)
class DataFileForm:
    """The encoding of new data files of one partition spec."""

    spec: PartitionSpec
    schema: Schema
    partition: StructType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "partition", self.spec.partition_type(self.schema))
        stored = avro_schema(data_file_type(2, stored_partition(self.partition)), "data_file")
        plain = plain_schema(stored, ENTRY_NAMES)
        object.__setattr__(self, "_plain", plain)
        object.__setattr__(self, "_encode", encoder(plain))

    _plain: Any = field(init=False, repr=False, compare=False)
    _encode: Encoder = field(init=False, repr=False, compare=False)

    def encode(self, file: DataFile) -> EncodedFile:
        """Encode a file."""
        check_entry(file, ManifestContent.DATA, self.spec)
        record = self._encode(file_record(file, self.partition))
        return EncodedFile(record, file.partition, file.record_count, file.file_size_in_bytes)

    def decode(self, file: EncodedFile) -> DataFile:
        """Decode a file."""
        import fastavro

        try:
            found: Any = fastavro.schemaless_reader(BytesIO(file.record), self._plain, None)
        except Exception as error:  # damaged bytes surface as errors of many kinds
            raise CorruptFileError(
                f"The stored record of a data file does not decode: {reason_of(error)}",
                hint="Start again.",
            ) from error
        maps: dict[str, Any] = {
            name: None
            if found[name] is None
            else {pair["key"]: pair["value"] for pair in found[name]}
            for name in STATISTICS
        }
        offsets = found["split_offsets"]
        return DataFile(
            file_path=found["file_path"],
            file_format=FileFormat(found["file_format"].upper()),
            partition=file.partition,
            record_count=found["record_count"],
            file_size_in_bytes=found["file_size_in_bytes"],
            key_metadata=found["key_metadata"],
            split_offsets=None if offsets is None else tuple(offsets),
            sort_order_id=found["sort_order_id"],
            spec_id=self.spec.spec_id,
            **maps,
        )

    def entries(
        self, files: EncodedFiles, snapshot_id: int, format_version: int = 2
    ) -> Iterator[EncodedEntry]:
        """Yield entries that add the files in a snapshot."""
        head = StructType(entry_type(2, self.partition).fields[:-1])
        before = encoder(plain_schema(avro_schema(head, "manifest_entry"), ENTRY_NAMES))(
            {
                "status": ManifestEntryStatus.ADDED.value,
                "snapshot_id": snapshot_id,
                "sequence_number": None,
                "file_sequence_number": None,
            }
        )
        added = ManifestEntryStatus.ADDED
        # version 3 adds nulls only, beside the last field, which is null for a data file
        after = b"" if format_version < 3 else _NEW_NULLS
        for record, partition, rows, _ in files:
            yield EncodedEntry(before + record + after, added, rows, None, partition)
