"""Data files without field ids: those that were taken into a table as they were."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import IcecombError
from icecomb.format.rows.data_metrics import MetricsConfig
from icecomb.format.rows.described_file import FileDescriber
from icecomb.format.rows.read.arrow_projection import file_fields

if TYPE_CHECKING:
    from collections.abc import Iterable

    from icecomb.format.inspect.file_census import Source
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO

_SNAPSHOTS: Final = 16


@dataclass(frozen=True, slots=True)
class FilesWithoutIds:
    """How many data files have no field ids.

    Attributes:
        files: How many there are, as far as it was looked.
        looked_at: The files of so many snapshots.
        not_looked_at: So many files were not judged.
        example: One of them; None where there is none.
    """

    files: int = 0
    looked_at: int = 0
    not_looked_at: int = 0
    example: str | None = None


def files_without_ids(
    metadata: TableMetadata, io: FileIO, sources: Iterable[Source]
) -> FilesWithoutIds:
    """Look at one file of each of the snapshots that added most files.

    Files that one commit added were made alike: a migration takes over what another system wrote,
    a writer of Iceberg's writes ids.

    Args:
        metadata: The table, which has a name mapping.
        io: Reads the tails of up to 16 files.
        sources: See `FileCensus.sources`.
    """
    mapping = metadata.name_mapping()
    if mapping is None:
        return FilesWithoutIds()
    schema = metadata.schema()
    config = MetricsConfig.from_properties(metadata.properties, schema)
    describer = FileDescriber(io, schema, config)
    ordered = sorted(sources, key=lambda one: (-one.files, one.path))
    files = looked_at = 0
    unread = sum(one.files for one in ordered[_SNAPSHOTS:])
    example = None
    for one in ordered[:_SNAPSHOTS]:
        try:
            tail, _ = describer.look(one.path, one.size)
            fields = file_fields(tail.schema, mapping, one.path)
        except (IcecombError, OSError):
            unread += one.files  # a scan says what is wrong with it
            continue
        looked_at += 1
        if fields and all(each.by_name for each in fields):
            files += one.files
            example = example or one.path
    return FilesWithoutIds(files, looked_at, unread, example)
