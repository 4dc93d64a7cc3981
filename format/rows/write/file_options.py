"""Options for writing files, loaded from a table's properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from icecomb.format.property.property import flag, optional_number
from icecomb.format.rows.parquet.writer import ParquetOptions
from icecomb.format.rows.write.file_settings import FileOptions

if TYPE_CHECKING:
    from icecomb.format.rows.avro.writer import AvroOptions
    from icecomb.format.rows.orc.writer import OrcOptions


_DELETE_PREFIX = "write.delete."


def load_file_options(file_format: str, properties: Mapping[str, str]) -> FileOptions:
    """Return the options, set by a table's properties, for `parquet`, `orc` or `avro`."""
    choices: dict[str, Callable[[Mapping[str, str]], FileOptions]] = {
        "parquet": ParquetOptions.from_properties,
        "orc": _orc,
        "avro": _avro,
    }
    return choices[file_format](properties)


def delete_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that apply to delete files.

    `write.delete.parquet.*`, `write.delete.orc.*` and `write.delete.avro.*` take precedence over
    `write.parquet.*` and so on.
    """
    own = {}
    for key, value in properties.items():
        name = key.removeprefix(_DELETE_PREFIX)
        if name != key and name.startswith(("parquet.", "orc.", "avro.")):
            own[f"write.{name}"] = value
    return {**properties, **own}


def _orc(properties: Mapping[str, str]) -> OrcOptions:
    from icecomb.format.rows.orc.writer import OrcOptions

    return OrcOptions.from_properties(properties)


def _avro(properties: Mapping[str, str]) -> AvroOptions:
    from icecomb.format.rows.avro.writer import AvroOptions

    return AvroOptions.from_properties(properties)


OUTPUT_SPEC: Final = optional_number("output-spec-id", "Partition spec of new files.")
USE_TABLE_LAYOUT: Final = flag(
    "use-table-distribution-and-ordering",
    "Whether rows are distributed and sorted as the table's properties and order say.",
    default=True,
)
