"""Whether a data file can be an Iceberg table's: its field ids, and the units of its times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icecomb.format.name_mapping import MappedField, NameMapping, create_name_mapping
from icecomb.format.rows.arrow_projection import FileField, file_fields
from icecomb.format.rows.parquet_reader import reading

if TYPE_CHECKING:
    from icecomb.format.file_io import FileIO
    from icecomb.format.schema import Schema


def examine(io: FileIO, location: str, schema: Schema) -> tuple[bool, str | None]:
    """Whether a file has field ids, and what is wrong with it.

    A file with ids is read by them alone: one that lacks some, or has others than its schema, would
    lose columns. ORC files of Paimon have no ids that Iceberg knows. Times in Parquet files of
    Iceberg are microseconds (spec, Appendix A): Iceberg Java reads others, too, but its filters
    take the numbers in a row group's statistics for microseconds and skip rows that match.

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
        found = pq.read_metadata(source).schema.to_arrow_schema()
    fields = file_fields(found, NameMapping(), location)
    coarse = _coarse(fields, "")
    if not any(_identified(f) for f in fields):
        return False, coarse
    return True, coarse or _wrong(fields, create_name_mapping(schema).fields, "")


def _coarse(fields: Sequence[FileField], path: str) -> str | None:
    import pyarrow as pa

    for field in fields:
        name, kind = f"{path}{field.name}", field.arrow_type
        if (pa.types.is_timestamp(kind) or pa.types.is_time(kind)) and kind.unit != "us":
            return (
                f"column {name} is {kind}, Iceberg has microseconds in Parquet: filters of other "
                "engines would skip rows; write the rows into a new table"
            )
        inner = _coarse(field.children, f"{name}.")
        if inner is not None:
            return inner
    return None


def _identified(field: FileField) -> bool:
    return field.field_id is not None or any(map(_identified, field.children))


def _wrong(fields: Sequence[FileField], known: Sequence[MappedField], path: str) -> str | None:
    nested = bool(path) and {name for one in known for name in one.names} <= {
        *("element", "key", "value")
    }
    for at, field in enumerate(fields):
        expected = next((one for one in known if field.name in one.names), None)
        if expected is None and nested and at < len(known):
            expected = known[at]
        name = f"{path}{field.name}"
        if expected is None:
            return f"its schema has no column {name}"
        if field.field_id != expected.field_id:
            return f"column {name} has the id {field.field_id}, in its schema {expected.field_id}"
        wrong = _wrong(field.children, expected.fields, f"{name}.")
        if wrong is not None:
            return wrong
    return None
