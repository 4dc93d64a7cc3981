"""The footer of a Parquet file as its writer wrote it, needed to copy parts of the file.

pyarrow shows only the fields it knows, and writes only footers that it created itself. The numbers
below are those of the fields in Parquet's `parquet.thrift`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from icecomb.format.errors import CorruptFileError
from icecomb.format.rows.parquet.compact_protocol import CompactError, Struct, read_struct
from icecomb.format.rows.parquet.footer_reading import check_footer_size
from icecomb.format.rows.read.data_file_reader import other_count, reading

if TYPE_CHECKING:
    from icecomb.format.storage.file_io import FileIO

MAGIC: Final = b"PAR1"
_ENCRYPTED: Final = b"PARE"
_TAIL_BYTES: Final = 64 << 10
_END_BYTES: Final = 8

VERSION, SCHEMA, NUM_ROWS, ROW_GROUPS, KEY_VALUES, CREATED_BY, COLUMN_ORDERS = range(1, 8)
_ENCRYPTION: Final = 8
_SIGNING_KEY: Final = 9
GROUP_COLUMNS, GROUP_BYTES, GROUP_ROWS, _SORTING, GROUP_OFFSET, GROUP_SIZE, ORDINAL = range(1, 8)
(CHUNK_FILE, CHUNK_OFFSET, META_DATA, OFFSET_INDEX, OFFSET_INDEX_LENGTH, COLUMN_INDEX,
 COLUMN_INDEX_LENGTH, _CRYPTO, _ENCRYPTED_META) = range(1, 10)  # fmt: skip
(_PHYSICAL, _ENCODINGS, PATH, _CODEC, NUM_VALUES, UNCOMPRESSED, COMPRESSED, _META_VALUES,
 DATA_PAGE, INDEX_PAGE, DICTIONARY_PAGE) = range(1, 12)  # fmt: skip
BLOOM: Final = 14
BLOOM_LENGTH: Final = 15
_GEOSPATIAL: Final = 17
(TYPE, TYPE_LENGTH, REPETITION, NAME, NUM_CHILDREN, CONVERTED, SCALE, PRECISION, FIELD_ID,
 LOGICAL) = range(1, 11)  # fmt: skip
REPEATED: Final = 2

_KNOWN: Final[Mapping[str, int]] = {
    "the footer": _SIGNING_KEY,
    "the schema": LOGICAL,
    "a row group": ORDINAL,
    "a column chunk": _ENCRYPTED_META,
    "a column's metadata": _GEOSPATIAL,
}
"""The last known field of each structure; a later one might hold an offset in the file."""


class NotCopyableError(Exception):
    """Row groups of a file cannot be copied, only decoded; the text gives the reason."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """The values of one column in one row group.

    Attributes:
        start: The offset of its pages, in bytes.
        length: The length of its pages, in bytes.
        fields: Its structure in the footer (ColumnChunk).
        metadata: The metadata of its content (ColumnMetaData).
    """

    start: int
    length: int
    fields: Struct
    metadata: Struct


class RawFooter:
    """An open Parquet file with its footer, checked against the file; `close` it after use.

    A file that is encrypted or has unknown fields raises NotCopyableError.
    """

    def __init__(
        self,
        io: FileIO,
        location: str,
        size: int,
        record_count: int,
        *,
        source: pa.NativeFile | None = None,
    ) -> None:
        self.location = location
        self.source = io.open_input(location, size) if source is None else source
        try:
            with reading(location):
                data = self._data(size)
                self.digest = hashlib.sha256(data).digest()
                self.parsed = pq.read_metadata(pa.BufferReader(enclosed(data)))
            try:
                self._fields, end = read_struct(data)
                if end != len(data):
                    raise self.wrong("its footer is shorter than the file says")
                self._check(record_count)
            except (CompactError, AttributeError, TypeError) as problem:
                raise self.wrong(f"its footer cannot be read: {problem}") from problem
        except BaseException:
            self.source.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self.source.close()

    @property
    def created_by(self) -> str:
        """The name of the writer; "" if it is not recorded."""
        return str(self._fields.get(CREATED_BY, b"").decode(errors="replace"))

    @property
    def version(self) -> int:
        """The version of the format."""
        return int(self._fields[VERSION])

    @property
    def elements(self) -> Sequence[Struct]:
        """The elements of the schema, depth-first."""
        found: Sequence[Struct] = self._fields[SCHEMA].values
        return found

    @property
    def column_orders(self) -> Any:
        """The orders by which bounds are compared; None if not recorded."""
        return self._fields.get(COLUMN_ORDERS)

    @property
    def row_groups(self) -> Sequence[Struct]:
        """The row groups."""
        found: Sequence[Struct] = self._fields[ROW_GROUPS].values
        return found

    def numbered_groups(self) -> Iterator[tuple[int, Struct]]:
        """Return the row groups that have rows, each with its number."""
        return ((at, one) for at, one in enumerate(self.row_groups) if one[GROUP_ROWS])

    def length(self, group: Struct) -> int:
        """Return the total length of a row group's chunks, in bytes."""
        return sum(chunk.length for chunk in self.chunks(group))

    def chunks(self, group: Struct) -> Iterator[Chunk]:
        """Yield the chunks of a row group, in the order of its columns."""
        for fields in group[GROUP_COLUMNS].values:
            metadata = fields[META_DATA]
            start, dictionary = metadata[DATA_PAGE], metadata.get(DICTIONARY_PAGE, 0)
            if 0 < dictionary < start:
                start = dictionary
            yield Chunk(start, metadata[COMPRESSED], fields, metadata)

    def read(self, start: int, length: int, what: str) -> pa.Buffer:
        """Read a range of bytes before the footer; `what` names its content in the error."""
        self._check_range(start, length, what)
        with reading(self.location):
            self.source.seek(start)
            found = self.source.read_buffer(length)
        if found.size != length:
            raise self.wrong(f"it ends at {start + found.size}, within {what}")
        return found

    def read_into(self, buffer: memoryview, start: int, what: str) -> None:
        """Fill a buffer with bytes from `start`; otherwise as `read`."""
        self._check_range(start, len(buffer), what)
        with reading(self.location):
            self.source.seek(start)
            found = self.source.readinto(buffer)
        if found != len(buffer):
            raise self.wrong(f"it ends at {start + found}, within {what}")

    def read_near(self, start: int, most: int, what: str) -> bytes:
        """Read `most` bytes, or fewer if the footer begins earlier; otherwise as `read`."""
        data = self.read(start, max(min(most, self._rows_end - start), 0), what)
        return bytes(data.to_pybytes())

    def wrong(self, what: str) -> CorruptFileError:
        """Return an error about the file."""
        return CorruptFileError(
            f"Data file {self.location} is damaged: {what}",
            hint="Restore the file, or read an older snapshot.",
            path=self.location,
        )

    def _check_range(self, start: int, length: int, what: str) -> None:
        if start < len(MAGIC) or length < 0 or start + length > self._rows_end:
            raise self.wrong(
                f"{what} are {length} bytes at {start}, of {self._rows_end} before its footer"
            )

    def _data(self, size: int) -> bytes:
        """Read the bytes of the footer."""
        actual = self.source.size()
        if actual < size or actual < 3 * len(MAGIC):
            raise self.wrong(f"it has {actual} bytes, its manifest says {size}")
        self.source.seek(max(actual - _TAIL_BYTES, 0))
        tail: bytes = self.source.read()
        if tail[-len(MAGIC) :] == _ENCRYPTED:
            raise NotCopyableError("it is encrypted")
        length = int.from_bytes(tail[-_END_BYTES : -len(MAGIC)], "little")
        self._rows_end = actual - _END_BYTES - length
        self.source.seek(0)
        if tail[-len(MAGIC) :] != MAGIC or self.source.read(len(MAGIC)) != MAGIC:
            raise self.wrong("it does not begin and end as Parquet files do")
        if self._rows_end < len(MAGIC):
            raise self.wrong(f"its footer of {length} bytes is longer than the file")
        check_footer_size(self.source, self.location)
        if length + _END_BYTES <= len(tail):
            return tail[-_END_BYTES - length : -_END_BYTES]
        self.source.seek(self._rows_end)
        found: bytes = self.source.read(length)
        return found

    def _check(self, record_count: int) -> None:
        known("the footer", self._fields)
        if _ENCRYPTION in self._fields or _SIGNING_KEY in self._fields:
            raise NotCopyableError("it is encrypted")
        for element in self.elements:
            known("the schema", element)
        rows = sum(group[GROUP_ROWS] for group in self.row_groups)
        if rows != self._fields[NUM_ROWS]:
            raise self.wrong(f"its row groups have {rows} rows, its footer says {self._rows()}")
        if rows != record_count:
            raise other_count(self.location, rows, record_count)
        for number, group in self.numbered_groups():
            self._check_group(number, group)

    def _rows(self) -> int:
        return int(self._fields[NUM_ROWS])

    def _check_group(self, number: int, group: Struct) -> None:
        known("a row group", group)
        columns = group[GROUP_COLUMNS].values
        if len(columns) != self.parsed.num_columns:
            raise self.wrong(f"row group {number} has {len(columns)} columns")
        for fields in columns:
            known("a column chunk", fields)
            if CHUNK_FILE in fields or META_DATA not in fields:
                raise NotCopyableError("its columns are in other files")
            if _CRYPTO in fields or _ENCRYPTED_META in fields:
                raise NotCopyableError("it is encrypted")
            known("a column's metadata", fields[META_DATA])
            if _GEOSPATIAL in fields[META_DATA]:
                raise NotCopyableError("it has geospatial statistics")
        for at, chunk in enumerate(self.chunks(group)):
            if chunk.start < len(MAGIC) or chunk.start + chunk.length > self._rows_end:
                raise self.wrong(
                    f"column {at} of row group {number} is {chunk.length} bytes at {chunk.start}, "
                    f"beyond the {self._rows_end} before its footer"
                )


def known(what: str, fields: Struct) -> None:
    """Reject a structure with unknown fields by NotCopyableError."""
    last = _KNOWN[what]
    for number in fields:
        if not 0 < number <= last:
            raise NotCopyableError(f"{what} has field {number}, which is not known here")


def enclosed(footer: bytes) -> bytes:
    """Return the bytes of a file that consists only of this footer."""
    return MAGIC + footer + len(footer).to_bytes(4, "little") + MAGIC
