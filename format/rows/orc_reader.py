"""ORC data files as record batches with their place in the file.

Field ids stand in the type attribute `iceberg.id` (spec: ORC); files of Hive have none and are read
through the name mapping. pyarrow reads whole stripes, and timestamps as nanoseconds: years before
1678 and after 2261 are refused by it, never read wrongly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyarrow import orc

from icecomb.format.errors import CorruptFileError, UnsupportedError
from icecomb.format.file_io import FileIO
from icecomb.format.name_mapping import NameMapping
from icecomb.format.rows.arrow_projection import FileField, file_fields
from icecomb.format.rows.parquet_reader import reading
from icecomb.format.rows.parquet_statistics import ChunkStatistics
from icecomb.format.types import IcebergType

_FIRST_STRIPE = 3
"""Where the first stripe of every ORC file begins: after the magic number."""
_PLACE_NAME = re.compile(r"_col\d+")


class OrcReader:
    """An open ORC file.

    Args:
        io: Where the file lies.
        location: The file.
        name_mapping: The table's name mapping, for a file without field ids.
        size: The length its manifest states; a shorter file is refused.

    Raises:
        CorruptFileError: It is not an ORC file, or is shorter than stated.
        FileMissingError: There is no such file.
        UnsupportedError: Its columns have no names, as in files of Hive before version 2.
    """

    def __init__(
        self,
        io: FileIO,
        location: str,
        name_mapping: NameMapping | None = None,
        size: int | None = None,
    ) -> None:
        self.location = location
        self._source = io.open_input(location)
        actual = self._source.size()
        if size is not None and actual < size:
            raise CorruptFileError(
                f"Data file {location} has {actual} bytes, its manifest says {size}",
                hint="The file was cut; restore it, or remove it from the table.",
                path=location,
            )
        with reading(location):
            self._file = orc.ORCFile(self._source)
            schema = self._file.schema
        if len(schema) and all(_PLACE_NAME.fullmatch(name) for name in schema.names):
            raise UnsupportedError(
                f"The columns of ORC file {location} have numbers for names (_col0, ...)",
                hint="Hive before version 2 wrote such files; rewrite them with a later one.",
                path=location,
            )
        self.fields: tuple[FileField, ...] = file_fields(schema, name_mapping, location)

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    def row_groups(self, start: int = 0, length: int | None = None) -> list[int]:
        """All stripes for the part of a file that holds the first one, none for other parts.

        pyarrow does not tell where a stripe begins.
        """
        if length is not None and not start <= _FIRST_STRIPE < start + length:
            return []
        return list(range(self._file.nstripes))

    def statistics(
        self, field_id: int, field_type: IcebergType
    ) -> Callable[[int], ChunkStatistics] | None:
        """None: pyarrow does not tell the statistics of stripes."""
        del field_id, field_type
        return None

    def batches(
        self,
        columns: Sequence[int],
        row_groups: Sequence[int],
        batch_size: int,
        *,
        use_threads: bool = True,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Read columns of all stripes.

        Args:
            columns: Numbers of physical columns; without any, the first one is read for its rows.
            row_groups: The stripes, from the first on.
            batch_size: The most rows a batch has.
            use_threads: Not used: stripes are decoded by the calling thread.
        """
        del use_threads
        wanted = set(columns)
        fields = [f for f in self.fields if wanted.intersection(f.leaves)] or self.fields[:1]
        names = [f.name for f in fields]
        position = 0
        for number in row_groups:
            with reading(self.location):
                stripe = self._file.read_stripe(number, columns=names)
            for start in range(0, stripe.num_rows, batch_size):
                batch = stripe.slice(start, batch_size)
                yield position + start, batch
            position += stripe.num_rows
