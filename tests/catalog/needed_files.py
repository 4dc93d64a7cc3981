"""The files that a table cannot do without."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from icecomb.format.manifests.manifest_list import read_manifests

if TYPE_CHECKING:
    from icecomb.catalog.table.table import Table


def path(location: str) -> Path:
    return Path(location.removeprefix("file://").removeprefix("file:"))


def needed_files(table: Table) -> set[str]:
    """What its metadata and every snapshot refer to, as they write it."""
    needed = {table.metadata_location}
    needed |= {one.metadata_file for one in table.metadata.metadata_log}
    needed |= {one["statistics-path"] for one in table.metadata.statistics}
    for snapshot in table.metadata.snapshots:
        needed.add(snapshot.manifest_list or "")
        needed |= {m.manifest_path for m in read_manifests(table.io, snapshot)}
        for task in table.scan(snapshot_id=snapshot.snapshot_id).plan_files():
            needed |= {file.file_path for file in (task.file, *task.delete_files)}
    return needed
