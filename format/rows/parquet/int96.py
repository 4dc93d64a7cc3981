"""INT96 timestamps, as Hive, Impala and old Sparks write them, in their nanoseconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icecomb.format.errors import UnsupportedError
from icecomb.format.rows.read.data_file_reader import reading
from icecomb.format.spec.values.temporal import NANOS_PER_MICRO


class Int96Nanoseconds:
    """A second reader of the INT96 columns of a Parquet file, which keeps their nanoseconds.

    Arrow's values wrap around beyond the range of nanoseconds, so that they are compared with those
    in microseconds.
    """

    def __init__(
        self, source: pa.NativeFile, location: str, metadata: pq.FileMetaData, names: Sequence[str]
    ) -> None:
        self._location = location
        self._names = frozenset(names)
        self._file = pq.ParquetFile(source, metadata=metadata, coerce_int96_timestamp_unit="ns")

    def joined(
        self, batches: Iterator[pa.RecordBatch], size: int, row_groups: list[int], names: list[str]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the batches of the first reader with these columns in nanoseconds."""
        own = [name for name in names if name in self._names]
        if not own:
            yield from batches
            return
        with reading(self._location):
            others = self._file.iter_batches(size, row_groups, own, use_threads=False)
        for batch in batches:
            with reading(self._location):
                other = next(others)
            yield pa.RecordBatch.from_arrays(
                [
                    self._checked(name, other.column(name), array) if name in own else array
                    for name, array in zip(batch.schema.names, batch.columns, strict=True)
                ],
                batch.schema.names,
            )

    def _checked(self, name: str, fine: pa.Array, coarse: pa.Array) -> pa.Array:
        pair = (pc.fill_null(each.cast(pa.int64()), 0).to_numpy() for each in (fine, coarse))
        nanoseconds, microseconds = pair
        if np.array_equal(nanoseconds // NANOS_PER_MICRO, microseconds):
            return fine
        raise UnsupportedError(
            f"Column {name!r} of data file {self._location} has times that nanoseconds cannot "
            "hold: they reach from 1677-09-21 to 2262-04-11",
            hint="Rewrite the file, or make the column a timestamp of microseconds.",
            path=self._location,
            column=name,
        )
