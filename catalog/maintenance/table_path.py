"""Copies of a table's metadata for another location: Iceberg's procedure rewrite_table_path."""

from __future__ import annotations

import csv
import io as text_io
import uuid
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from icecomb.catalog.report.progress import SILENT
from icecomb.format.argument import checked_flag, checked_text
from icecomb.format.errors import FileAlreadyExistsError, NoSuchFileError, ValidationError
from icecomb.format.relocation.relocation import Relocation
from icecomb.format.relocation.route import LocationChange, MovedFile, joined

if TYPE_CHECKING:
    from collections.abc import Iterable

    from icecomb.catalog.report.progress import Progress
    from icecomb.catalog.table.table import Table
    from icecomb.format.storage.file_io import FileIO

_FILE_LIST: Final = "file-list"
_NO_LIST: Final = "N/A"


@dataclass(frozen=True, slots=True)
class RewrittenTablePath:
    """The copies that were made.

    Attributes:
        latest_version: Name of the newest metadata file among them.
        file_list_location: A CSV file of all files to copy: source and target.
        rewritten_manifest_file_paths_count: Number of rewritten manifests.
        rewritten_delete_file_paths_count: Number of rewritten position deletes.
    """

    latest_version: str
    file_list_location: str
    rewritten_manifest_file_paths_count: int
    rewritten_delete_file_paths_count: int


def rewrite_table_path(
    table: Table,
    source_prefix: str,
    target_prefix: str,
    *,
    start_version: str | None = None,
    end_version: str | None = None,
    staging_location: str | None = None,
    create_file_list: bool = True,
    progress: Progress = SILENT,
) -> RewrittenTablePath:
    """Implement `Maintenance.rewrite_table_path`."""
    checked_flag("argument create_file_list", create_file_list)
    change = LocationChange(source_prefix, target_prefix, table.io.properties)
    end = table.metadata_location if end_version is None else _version(table, "End", end_version)
    start = None if start_version is None else _version(table, "Start", start_version)
    _check_order(table, start, end)
    if staging_location is None:
        folder, _, _ = table.metadata_location.rpartition("/")
        staging = f"{folder}/copy-table-staging-{uuid.uuid4()}"
    else:
        staging = checked_text("staging location", staging_location).rstrip("/")
        if not staging:
            raise ValidationError(
                f"Staging location('{staging_location}') cannot be empty.",
                hint="Leave it out for a new folder beside the metadata, or name an empty folder.",
            )
        found = next(table.io.list(staging), None)
        if found is not None:
            raise FileAlreadyExistsError(
                f"Staging location {staging} is not empty: there is {found.location}",
                hint="Name an empty folder, or leave it out.",
                path=found.location,
            )
    route = _Staging(table.io, change, staging)
    begin = partial(progress.task, "rewriting", unit="files")
    done = Relocation(table.io.to_copy(), route, end, start, begin=begin).run()
    location = _NO_LIST
    if create_file_list:
        location = f"{staging}/{_FILE_LIST}"
        table.io.create(location, file_list(done.files))
    return RewrittenTablePath(end.rpartition("/")[2], location, done.manifests, done.deletes)


def file_list(files: Iterable[MovedFile]) -> bytes:
    """Return the CSV of the files to copy: source and target, a line each."""
    out = text_io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows((file.source, file.target) for file in files)
    return out.getvalue().encode()


@dataclass(frozen=True)
class _Staging:
    """A `Route` of files that stay where they are, with rewritten ones in a folder beside them."""

    io: FileIO
    change: LocationChange
    staging: str

    def found(self, location: str) -> str:
        """Implement `Route.found`."""
        return location

    def kept(self, location: str, what: str) -> str:
        """Implement `Route.kept`."""
        return self.change.moved(location, what)

    def rewritten(self, location: str, what: str) -> str:
        """Implement `Route.rewritten`."""
        return self.change.moved(location, what)

    def put(self, location: str, content: bytes) -> str:
        """Implement `Route.put`."""
        staged = joined(self.staging, self.change.rest(location) or "")
        self.io.create(staged, content)
        return staged

    def missing(self, location: str, what: str, error: NoSuchFileError) -> None:
        """Implement `Route.missing`: a copy without it would be damaged."""
        raise NoSuchFileError(
            f"{what[0].upper()}{what[1:]} {location} does not exist",
            hint="If it is an older version, drop it from the metadata log "
            "(write.metadata.previous-versions-max); icecomb health finds damaged snapshots.",
            path=location,
        ) from error


def _version(table: Table, which: str, given: str) -> str:
    """Return the metadata file that a name, or a whole location, is that of."""
    wanted = checked_text(f"{which.lower()} version", given).strip()
    if not wanted:
        raise ValidationError(
            f"{which} version('{given}') cannot be empty.",
            hint="Give the name of a metadata file, or leave it out.",
        )
    for location in _versions(table):
        if wanted in {location, location.rpartition("/")[2]}:
            if not table.io.exists(location):
                raise NoSuchFileError(
                    f"Version file {location} does not exist.",
                    hint="Choose a newer version: the table's metadata log names them.",
                    path=location,
                )
            return location
    raise ValidationError(
        f"Cannot find provided version file {given} in metadata log.",
        hint="Choose a version of the table's metadata log, such as "
        f"{table.metadata_location.rpartition('/')[2]}.",
    )


def _check_order(table: Table, start: str | None, end: str) -> None:
    versions = _versions(table)
    if start is not None and versions.index(start) < versions.index(end):
        raise ValidationError(
            f"Start version {start} is newer than end version {end}",
            hint="Give the older version as the start.",
        )


def _versions(table: Table) -> list[str]:
    """Return the metadata files of the table, newest first."""
    log = [entry.metadata_file for entry in table.metadata.metadata_log]
    return [table.metadata_location, *reversed(log)]
