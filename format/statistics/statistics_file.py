"""Statistics files: Puffin files about snapshots (spec: Table Statistics)."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import mmh3
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icecomb.format.arrow.number_view import numbers_of, truths_of
from icecomb.format.arrow.plain_layout import plain_array
from icecomb.format.errors import CorruptFileError, NoSuchSnapshotError, reason_of
from icecomb.format.evolution.pending_update import PendingUpdate
from icecomb.format.optional_library import optional_library
from icecomb.format.rows.deletes.puffin_file import PuffinWriter
from icecomb.format.spec.change.requirement import AssertTableUUID
from icecomb.format.spec.change.update import (
    Changes,
    SetPartitionStatisticsUpdate,
    SetStatisticsUpdate,
)
from icecomb.format.spec.metadata_file import metadata_folder
from icecomb.format.spec.single_value import to_bytes
from icecomb.format.spec.snapshot import ancestors_of
from icecomb.format.spec.types import BooleanType, DecimalType, StringType

if TYPE_CHECKING:
    from icecomb.format.rows.deletes.puffin_file import Blob
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.spec.types import PrimitiveType
    from icecomb.format.storage.file_io import FileIO


def newest_statistics(metadata: TableMetadata, snapshot_id: int | None) -> Mapping[str, Any] | None:
    """Return the statistics file of a snapshot, or of its newest ancestor that has one."""
    if not metadata.statistics:
        return None
    by_snapshot = {
        number: file
        for file in metadata.statistics
        if isinstance(number := file.get("snapshot-id"), int)
        and isinstance(file.get("statistics-path"), str)
    }
    line = (snapshot.snapshot_id for snapshot in ancestors_of(metadata, snapshot_id))
    return next((by_snapshot[each] for each in line if each in by_snapshot), None)


def write_statistics(
    io: FileIO,
    metadata: TableMetadata,
    snapshot: Snapshot,
    sketches: Mapping[int, ThetaSketch],
    others: Iterable[tuple[Blob, bytes]] = (),
) -> dict[str, Any]:
    """Write the statistics file of a snapshot; return its description in table metadata.

    The file has `sketches` by field id, and `others`: more blobs, with their bytes as stored.
    """
    location = f"{metadata_folder(metadata)}/{snapshot.snapshot_id}-{uuid.uuid4()}.stats"
    sequence_number = snapshot.sequence_number or 0
    with io.create_stream(location) as stream:
        puffin = PuffinWriter(stream)
        blobs = [
            puffin.add(
                sketch.content(),
                BLOB_TYPE,
                [field_id],
                {"ndv": str(sketch.estimate())},
                snapshot_id=snapshot.snapshot_id,
                sequence_number=sequence_number,
            )
            for field_id, sketch in sketches.items()
        ]
        blobs += [
            puffin.add(
                content,
                blob.type,
                blob.fields,
                blob.properties,
                snapshot_id=blob.snapshot_id,
                sequence_number=blob.sequence_number,
                codec=blob.codec,
            )
            for blob, content in others
        ]
        size = puffin.finish()
    return {
        "snapshot-id": snapshot.snapshot_id,
        "statistics-path": location,
        "file-size-in-bytes": size,
        "file-footer-size-in-bytes": puffin.footer_size,
        "blob-metadata": [
            {
                "type": blob.type,
                "snapshot-id": blob.snapshot_id,
                "sequence-number": blob.sequence_number,
                "fields": list(blob.fields),
                "properties": dict(blob.properties),
            }
            for blob in blobs
        ],
    }


class SetStatistics(PendingUpdate):
    """An update that sets the statistics file of a snapshot.

    Args:
        statistics: The file's description in table metadata.
        delete: A function that deletes the file, if nothing was committed.
        of_partitions: Whether it has partition statistics.
    """

    def __init__(
        self,
        statistics: Mapping[str, Any],
        delete: Callable[[str], object],
        *,
        of_partitions: bool = False,
    ) -> None:
        super().__init__()
        self._statistics = statistics
        self._delete = delete
        self._update = SetPartitionStatisticsUpdate if of_partitions else SetStatisticsUpdate

    def apply(self, base: TableMetadata) -> Changes:
        """Implement `PendingUpdate.apply`; NoSuchSnapshotError if the snapshot has expired."""
        snapshot_id = self._statistics["snapshot-id"]
        if base.snapshot_by_id(snapshot_id) is None:
            raise NoSuchSnapshotError(
                f"Cannot set the statistics of snapshot {snapshot_id} of the table at "
                f"{base.location}: it has expired meanwhile",
                hint="Compute those of a newer snapshot.",
                snapshot_id=snapshot_id,
            )
        return Changes((AssertTableUUID(base.table_uuid),), (self._update(self._statistics),))

    def clean_up(self, committed: TableMetadata | None) -> None:
        if committed is None:
            self._delete(str(self._statistics["statistics-path"]))


BLOB_TYPE: Final = "apache-datasketches-theta-v1"
_LOG_ENTRIES: Final = 12
"""At most 4096 hashes, as Iceberg Java has them: an error of 1.6 % in two of three cases."""
_MAX_THETA: Final = (1 << 63) - 1
# a compact sketch of all its hashes in order: number of longs, version, family, two unused, flags
_PREAMBLE: Final = struct.Struct("<BBBBBBHII")
_ORDERED: Final = 0b11010
_WHOLE_PART: Final = struct.pack("<f", 1.0)
"""The share of values that was sampled, which the Java library writes and nobody reads."""


class ThetaSketch:
    """A sketch of one column's distinct values, as Iceberg Java's `compute_table_stats`.

    The result does not depend on how values are divided among sketches.
    """

    def __init__(self) -> None:
        self._library = _library()
        self._union = self._library.theta_union(_LOG_ENTRIES, seed=SEED)
        self._seed_hash = self._library.update_theta_sketch(_LOG_ENTRIES).compact().get_seed_hash()
        self._theta = np.uint64(_MAX_THETA)

    def add(self, values: pa.Array, field_type: PrimitiveType) -> None:
        """Add values in the Arrow type of `field_type`; nulls do not count."""
        hashes = distinct_hashes(values, field_type)
        hashes = np.unique(hashes[hashes < self._theta])
        if len(hashes):
            head = _PREAMBLE.pack(2, 3, 3, 0, 0, _ORDERED, self._seed_hash, len(hashes), 0)
            self._add(self._library.compact_theta_sketch.deserialize(head + hashes.tobytes()))

    def add_sketch(self, content: bytes, path: str) -> None:
        """Add the values of another sketch, in compact form and of the default seed."""
        try:
            self._add(self._library.compact_theta_sketch.deserialize(content))
        except (RuntimeError, ValueError, IndexError) as error:
            raise CorruptFileError(
                f"A theta sketch of {len(content)} bytes in {path} is damaged: {reason_of(error)}",
                hint="Compute the statistics again.",
                path=path,
            ) from error

    def content(self) -> bytes:
        """Return the compact form, as the Java library writes it."""
        found = bytearray(self._union.get_result().serialize())
        if len(found) > 16:
            found[12:16] = _WHOLE_PART
        return bytes(found)

    def estimate(self) -> int:
        """Return the estimated number of distinct values, rounded down as in Iceberg Java."""
        return int(self._union.get_result().get_estimate())

    def _add(self, sketch: Any) -> None:
        self._union.update(sketch)
        self._theta = np.uint64(self._union.get_result().theta64)


def _library() -> Any:
    return optional_library(
        "datasketches", "Statistics of columns need datasketches", "icecomb[statistics]"
    )


Hashes = npt.NDArray[np.uint64]

SEED: Final = 9001
"""The default seed of Apache DataSketches, which the Puffin specification asks for."""
_LONG_DIGITS: Final = 18
"""The most digits of a decimal whose unscaled value is a whole number of 64 bits."""
_C1: Final = np.uint64(0x87C37B91114253D5)
_C2: Final = np.uint64(0x4CF5AD432745937F)
_F1: Final = np.uint64(0xFF51AFD7ED558CCD)
_F2: Final = np.uint64(0xC4CEB9FE1A85EC53)


def distinct_hashes(values: pa.Array, field_type: PrimitiveType) -> Hashes:
    """Return the hashes of values, of 63 bits; some may be there several times.

    Nulls have none, and neither has empty text or a value of no bytes: DataSketches leaves them
    out. Values are in the Arrow type of the Iceberg type.
    """
    array = plain_array(values.drop_null())
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind = array.type
    if pa.types.is_null(kind) or not len(array):
        return np.empty(0, np.uint64)
    if isinstance(field_type, BooleanType):
        hashes = _hashes(truths_of(array).astype(np.uint64), 1)
    elif isinstance(field_type, DecimalType):
        hashes = _decimal_hashes(array, field_type)
    elif pa.types.is_primitive(kind) and kind.bit_width in {32, 64}:
        numbers = numbers_of(array.view(pa.int32() if kind.bit_width == 32 else pa.int64()))
        hashes = _hashes(_unsigned(numbers), kind.bit_width // 8)
    else:
        if isinstance(field_type, StringType):
            array = array.cast(pa.large_binary() if pa.types.is_large_string(kind) else pa.binary())
        hashes = _byte_hashes(array.unique().to_pylist())
    halved = hashes >> np.uint64(1)
    found: Hashes = halved[halved != 0]
    return found


def _decimal_hashes(array: pa.Array, field_type: DecimalType) -> Hashes:
    if field_type.precision > _LONG_DIGITS:
        values = array.unique().to_pylist()
        return _byte_hashes([to_bytes(field_type, value) for value in values])
    size = 16
    words = np.frombuffer(array.buffers()[1], np.int64, 2 * len(array), size * array.offset)
    unscaled = words[::2]
    found = np.empty(len(unscaled), np.uint64)
    # as few bytes as hold the number and its sign, the highest first
    done = np.zeros(len(unscaled), np.bool_)
    for width in range(1, 9):
        limit = 1 << (8 * width - 1)
        fits = ~done & (unscaled >= -limit) & (unscaled <= limit - 1)
        if fits.any():
            highest_first = _unsigned(unscaled[fits]).byteswap()
            found[fits] = _hashes(highest_first >> np.uint64(64 - 8 * width), width)
            done |= fits
    return found


def _unsigned(numbers: npt.NDArray[np.signedinteger]) -> Hashes:
    """Return the bits of whole numbers of 32 or 64 bits."""
    bits: Hashes = numbers.view(f"u{numbers.dtype.itemsize}").astype(np.uint64)
    return bits


def _byte_hashes(values: list[bytes]) -> Hashes:
    found = [mmh3.hash64(value, SEED, signed=False)[0] for value in values if value]
    return np.array(found, np.uint64)


def _hashes(words: Hashes, width: int) -> Hashes:
    """Return the first half of MurmurHash3_x64_128 of values of at most 8 bytes.

    The first of a value's `width` bytes is in the lowest bits of its word.
    """
    mixed = _rotated(words * _C1) * _C2
    first = mixed ^ np.uint64(SEED ^ width)
    second = np.uint64(SEED ^ width)
    first = first + second
    second = first + second
    return _final(first) + _final(second)


def _rotated(words: Hashes) -> Hashes:
    rotated: Hashes = (words << np.uint64(31)) | (words >> np.uint64(33))
    return rotated


def _final(words: Hashes) -> Hashes:
    for factor in (_F1, _F2):
        words = (words ^ (words >> np.uint64(33))) * factor
    mixed: Hashes = words ^ (words >> np.uint64(33))
    return mixed
