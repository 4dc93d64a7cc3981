"""Reading of ORC data files as record batches with their positions in the file.

Field ids are in the type attribute `iceberg.id` (spec: ORC); files of Hive have none and are read
through the name mapping. One stripe is read at a time, and only if its statistics allow a matching
row. pyarrow reads timestamps as nanoseconds and rejects years before 1678 and after 2261: stripes
with such timestamps are read by `fallback`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import accumulate
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.errors import CorruptFileError, UnsupportedError
from icecomb.format.input_limit import UNPACKED, unpacked_bytes
from icecomb.format.rows.orc.file_tail import count_types, has_place_names, open_file, types_of
from icecomb.format.rows.read.data_file_reader import DataFileReader, empty_batches, reading
from icecomb.format.rows.values.arrow_projection import FileField, file_fields
from icecomb.format.rows.values.statistics import ChunkStatistics
from icecomb.format.spec.arrow_schema import child_fields
from icecomb.format.spec.name_mapping import NameMapping
from icecomb.format.spec.types import IcebergType
from icecomb.format.storage.file_io import FileIO

_JUSTIFIED: Final = 64
"""Bytes of rows in memory that each byte of a stripe justifies, whatever the limit is."""
_OFFSET_BITS: Final = 32


class OrcReader(DataFileReader):
    """An open ORC file; one shorter than the bytes that its manifest states is rejected.

    It raises UnsupportedError if columns are named by number, as in files of Hive before version 2.
    """

    def __init__(
        self,
        io: FileIO,
        location: str,
        name_mapping: NameMapping | None = None,
        size: int | None = None,
    ) -> None:
        super().__init__(io, location, size)
        self._file, schema, self._tail = open_file(self._source, location)
        self.row_count = sum(stripe.rows for stripe in self._tail.stripes)
        self._statistics_loaded = False
        if has_place_names(schema):
            raise UnsupportedError(
                f"The columns of ORC file {location} have numbers for names (_col0, ...)",
                hint="Hive before version 2 wrote such files; rewrite them with a later one.",
                path=location,
            )
        self.fields: tuple[FileField, ...] = file_fields(schema, name_mapping, location)
        self._padding = Padding(schema, self._tail.padded)

    def row_groups(self, start: int = 0, length: int | None = None) -> list[int]:
        """Return the stripes that begin in a range of bytes, as Iceberg Java splits files."""
        end = self._source.size() if length is None else start + length
        return [n for n, stripe in enumerate(self._tail.stripes) if start <= stripe.offset < end]

    def statistics(
        self, field_id: int, field_type: IcebergType
    ) -> Callable[[int], ChunkStatistics | None] | None:
        """Return a function for a column's statistics by stripe; None for repeated columns."""
        numbers = {t.field.field_id: t.number for t in types_of(self.fields) if not t.repeated}
        if field_id not in numbers or self._tail.type_count != count_types(self.fields) + 1:
            return None
        self._load_statistics()
        number = numbers[field_id]
        return lambda stripe: self._tail.chunk(stripe, number, field_type)

    def batches(
        self,
        columns: Sequence[int],
        row_groups: Sequence[int],
        batch_size: int,
        *,
        use_threads: bool = True,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Read columns of stripes in the calling thread; see `DataFileReader.batches`."""
        del use_threads
        wanted = set(columns)
        names = [f.name for f in self.fields if wanted.intersection(f.leaves)]
        starts = list(accumulate((s.rows for s in self._tail.stripes), initial=0))
        for number in row_groups:
            if not names:
                rows = self._tail.stripes[number].rows
                yield from empty_batches(starts[number], rows, batch_size)
                continue
            self._check_size(number, names)
            with reading(self.location):
                stripe = self._padding.removed(self._stripe(number, names))
            rows = self._tail.stripes[number].rows
            if stripe.num_rows != rows:
                raise CorruptFileError(
                    f"Data file {self.location} has {rows} rows in stripe {number}, but "
                    f"{stripe.num_rows} can be read",
                    hint="Rewrite it with the engine that wrote it, or read other columns of it.",
                    path=self.location,
                )
            for start in range(0, stripe.num_rows, batch_size):
                yield starts[number] + start, stripe.slice(start, batch_size)

    def _check_size(self, number: int, names: Collection[str]) -> None:
        """Refuse a stripe of more rows than its bytes justify: it is read as a whole."""
        stripe = self._tail.stripes[number]
        size = stripe.rows * sum(_bits(f.arrow_type) for f in self.fields if f.name in names) // 8
        if size > max(unpacked_bytes(), stripe.length * _JUSTIFIED):
            raise CorruptFileError(
                f"Data file {self.location} has {stripe.rows} rows in {stripe.length} bytes, "
                f"stripe {number}: they take {size >> 20} MiB, more than the limit ({UNPACKED})",
                hint="If the file is sound, set that environment variable to more.",
                path=self.location,
            )

    def _stripe(self, number: int, names: list[str]) -> pa.RecordBatch:
        try:
            return self._file.read_stripe(number, columns=names)
        except pa.ArrowInvalid:
            places = {f.name: n for n, f in enumerate(self.fields) if f.name in names}
            timed = [
                name for name, n in places.items() if _has_timestamp(self.fields[n].arrow_type)
            ]
            if not timed:
                raise
        from icecomb.format.rows.orc.fallback import read_columns

        # the fallback cuts nanoseconds, so that only columns get it that pyarrow cannot read
        far = [name for name in timed if not self._is_near(number, name)]
        schema, numbers = self._file.schema, [places[name] for name in far]
        arrays = read_columns(self._source, self.location, schema, number, numbers)
        found = dict(zip(far, arrays, strict=True))
        others = [name for name in names if name not in found]
        if others:
            rest = self._file.read_stripe(number, columns=others)
            found |= {name: rest.column(name) for name in others}
        return pa.record_batch({name: found[name] for name in names})

    def _is_near(self, number: int, name: str) -> bool:
        """Return whether the timestamps of a column in a stripe are in the range of nanoseconds."""
        try:
            self._file.read_stripe(number, columns=[name])
        except pa.ArrowInvalid:
            return False
        return True

    def _load_statistics(self) -> None:
        if self._statistics_loaded:
            return
        self._statistics_loaded = True
        start, end = self._tail.metadata_range
        with reading(self.location):
            section = self._source.read_at(end - start, start)
        # Without statistics every stripe is read.
        with suppress(ValueError):
            self._tail.load_statistics(section)


def _has_timestamp(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) or any(_has_timestamp(f.type) for f in child_fields(kind))


@lru_cache(maxsize=256)
def _bits(kind: pa.DataType) -> int:
    """Return the least size of a value in bits; what its length decides does not count."""
    if pa.types.is_struct(kind):
        return sum(_bits(child.type) for child in child_fields(kind))
    try:
        return int(kind.bit_width)
    except ValueError:
        return _OFFSET_BITS


class Padding:
    """The padded columns of one file.

    Args:
        padded: Whether each type is `char`; types are counted depth-first, the row being 0.
    """

    def __init__(self, schema: pa.Schema, padded: Sequence[bool]) -> None:
        self._places: dict[str, frozenset[int]] = {}
        number = 1
        for field in schema:
            end = number + 1 + _inside(field.type)
            places = frozenset(
                n - number for n in range(number, end) if padded[n : n + 1] == [True]
            )
            if places:
                self._places[field.name] = places
            number = end

    def removed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch of any of the columns without the padding."""
        for name in self._places.keys() & set(batch.schema.names):
            at = batch.schema.get_field_index(name)
            array = _removed(batch.column(at), self._places[name], 0)
            batch = batch.set_column(at, batch.schema.field(at), array)
        return batch


def _inside(kind: pa.DataType) -> int:
    return sum(1 + _inside(child.type) for child in child_fields(kind))


def _removed(array: pa.Array, places: frozenset[int], number: int) -> pa.Array:
    kind = array.type
    if number in places:
        return pc.utf8_rtrim(array, " ")
    children = child_fields(kind)
    if not children:
        return array
    numbers = [number + 1]
    for child in children[:-1]:
        numbers.append(numbers[-1] + 1 + _inside(child.type))
    if pa.types.is_struct(kind):
        parts = [_removed(array.field(i), places, n) for i, n in enumerate(numbers)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(parts, fields=children, mask=mask)
    if pa.types.is_map(kind):
        keys, items = array.keys, array.items
        parts = [_removed(part, places, n) for part, n in zip((keys, items), numbers, strict=True)]
        values: pa.Array = pa.StructArray.from_arrays(parts, fields=children)
    else:
        values = _removed(array.values, places, numbers[0])
    validity, offsets = array.buffers()[:2]
    return pa.Array.from_buffers(
        kind, len(array), [validity, offsets], array.null_count, array.offset, [values]
    )
