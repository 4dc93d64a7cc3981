"""Data files without field ids, which were added to a table unchanged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import IcecombError
from icecomb.format.rows.files.described_file import FileDescriber
from icecomb.format.rows.values.arrow_projection import file_fields
from icecomb.format.rows.values.data_metrics import MetricsConfig

if TYPE_CHECKING:
    from collections.abc import Iterable

    from icecomb.format.inspect.file_census import Source
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO

_SNAPSHOTS: Final = 16


@dataclass(frozen=True, slots=True)
class FilesWithoutIds:
    """The number of data files without field ids, as far as files were examined.

    Attributes:
        looked_at: The number of snapshots of which a file was examined.
        not_looked_at: The number of files that were not judged.
    """

    files: int = 0
    looked_at: int = 0
    not_looked_at: int = 0
    example: str | None = None


def files_without_ids(
    metadata: TableMetadata, io: FileIO, sources: Iterable[Source]
) -> FilesWithoutIds:
    """Examine one file of each of the snapshots that added the most files: those of one are alike.

    Without a name mapping, no file is examined; else the tails of up to 16.
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
            unread += one.files  # a scan will report what is wrong with the file
            continue
        looked_at += 1
        if fields and all(each.by_name for each in fields):
            files += one.files
            example = example or one.path
    return FilesWithoutIds(files, looked_at, unread, example)
