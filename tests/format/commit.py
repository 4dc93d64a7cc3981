"""Changes of metadata that are applied as a commit does."""

from __future__ import annotations

from icecomb.format.operation.append import FastAppend
from icecomb.format.spec.change.update import update_table_metadata
from icecomb.format.spec.metadata import TableMetadata
from icecomb.format.storage.file_io import FileIO


def commit(base: TableMetadata, change) -> TableMetadata:
    """What a change makes of a table that meets its requirements."""
    changes = change.apply(base)
    for requirement in changes.requirements:
        requirement.check(base)
    return update_table_metadata(base, changes.updates)


def append(base: TableMetadata, *files, **options) -> TableMetadata:
    """A table with more data files."""
    operation = FastAppend(FileIO(), **options)
    for file in files:
        operation.append_data_file(file)
    return commit(base, operation)
