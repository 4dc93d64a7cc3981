"""Whether a data file can be an Iceberg table's: its field ids, and the units of its times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icecomb.format.rows.column_check import ColumnCheck
from icecomb.format.rows.read.arrow_projection import file_fields
from icecomb.format.rows.read.data_file_reader import reading
from icecomb.format.spec.name_mapping import create_name_mapping

if TYPE_CHECKING:
    from icecomb.format.spec.schema import Schema
    from icecomb.format.storage.file_io import FileIO


def examine(io: FileIO, location: str, schema: Schema) -> tuple[bool, str | None]:
    """Whether a file has field ids, and what is wrong with it.

    A file with ids is read by them alone: one that lacks some, or has others than its schema, would
    lose columns. ORC files of Paimon have no ids that Iceberg knows.

    Args:
        io: Where the file lies.
        location: The file.
        schema: What it was written with.

    Returns:
        Whether there are ids; a sentence on the first thing that is wrong, None if nothing is.

    Raises:
        CorruptFileError: Its footer cannot be read.
        FileMissingError: There is no such file.
    """
    import pyarrow.parquet as pq

    if not location.endswith(".parquet"):
        return False, None
    with io.open_input(location) as source, reading(location):
        footer = pq.read_metadata(source).schema
        found = footer.to_arrow_schema()
    fields = file_fields(found, create_name_mapping(schema), location)
    problem = next(ColumnCheck(schema).problems(fields, footer), None)
    identified = any(not f.by_name for f in fields)
    if problem is None:
        return identified, None
    return identified, f"column {problem.column}: {problem.message}"
