"""Data files as the records that manifests have of them, where there are too many for objects.

A record is made once, where a file is described, and is written into a manifest as it is. Millions
of them lie on a disk meanwhile: whoever has them only says how to go through them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

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


class EncodedFile(NamedTuple):
    """A data file as a record, and what is counted of it.

    Attributes:
        record: Its `data_file` as manifests of format version 2 have it.
        partition: Its partition.
        record_count: Rows in the file.
        size: Its length in bytes.
    """

    record: bytes
    partition: tuple[Any, ...]
    record_count: int
    size: int


class EncodedFiles(Protocol):
    """Any number of data files of one partition spec, each path once.

    They are gone through several times, and are the same in the same order each time.
    """

    @property
    def form(self) -> DataFileForm:
        """What they were encoded by."""

    def __iter__(self) -> Iterator[EncodedFile]:
        """The files."""


@dataclass(frozen=True)
class DataFileForm:
    """How new data files of one partition spec are encoded.

    Attributes:
        spec: The partition spec.
        schema: The table's schema.
        partition: What a partition tuple is.
    """

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
        """Encode a file.

        Raises:
            ValidationError: It cannot be a data file of this spec.
        """
        check_entry(file, ManifestContent.DATA, self.spec)
        record = self._encode(file_record(file, self.partition))
        return EncodedFile(record, file.partition, file.record_count, file.file_size_in_bytes)

    def decode(self, file: EncodedFile) -> DataFile:
        """What was encoded.

        Raises:
            CorruptFileError: The record does not decode.
        """
        import fastavro

        try:
            found: Any = fastavro.schemaless_reader(BytesIO(file.record), self._plain, None)
        except Exception as error:  # damaged bytes surface as errors of many kinds
            raise CorruptFileError(
                f"What was kept of a data file does not decode: {reason_of(error)}",
                hint="begin again",
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

    def entries(self, files: EncodedFiles, snapshot_id: int) -> Iterator[EncodedEntry]:
        """The files as added ones of a snapshot, for manifests of format version 2."""
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
        for record, partition, rows, _ in files:
            yield EncodedEntry(before + record, added, rows, None, partition)
