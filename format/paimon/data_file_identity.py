"""Whether the field ids in a data file are those of the schema it was written with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icecomb.format.name_mapping import MappedField, NameMapping, create_name_mapping
from icecomb.format.rows.arrow_projection import FileField, file_fields
from icecomb.format.rows.parquet_reader import reading

if TYPE_CHECKING:
    from icecomb.format.file_io import FileIO
    from icecomb.format.schema import Schema


def misidentified(io: FileIO, location: str, schema: Schema) -> tuple[bool, str | None]:
    """Whether a file has field ids, and which of them is wrong.

    A file with ids is read by them alone: one that lacks some, or has others than its schema, would
    lose columns. ORC files of Paimon have no ids that Iceberg knows.

    Args:
        io: Where the file lies.
        location: The file.
        schema: What it was written with.

    Returns:
        Whether there are ids; a sentence on the first wrong one, None if all are right.

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
    if not any(_identified(f) for f in fields):
        return False, None
    return True, _wrong(fields, create_name_mapping(schema).fields, "")


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
