"""What became of a change of a view whose outcome was unknown; a view keeps no log of its files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icecomb.catalog.fate import CommitFate, Fate, is_old
from icecomb.catalog.hive.parameters import PREVIOUS_METADATA_LOCATION
from icecomb.catalog.hive.view_pointer import view_pointed_at
from icecomb.format.errors import FileMissingError, ValidationError
from icecomb.format.view_json import read_view_metadata

if TYPE_CHECKING:
    from icecomb.catalog.hive.thrift.entity import HiveTable
    from icecomb.format.file_io import FileIO


def view_fate(io: FileIO, entry: HiveTable, location: str, *, checked: bool) -> CommitFate:
    """The fate of the change that wrote ``location``.

    Args:
        io: Where metadata files are.
        entry: The view's entry.
        location: The metadata file.
        checked: The metastore checks which pointer it replaces.

    Raises:
        NoSuchIcebergViewError: the entry is no view.
        FileMissingError, CorruptFileError: the view's current metadata cannot be read.
        ValidationError: the file is another view's.
    """
    current = view_pointed_at(entry)
    now = read_view_metadata(io, current)
    previous = entry.parameters.get(PREVIOUS_METADATA_LOCATION)
    if location == current:
        return CommitFate(Fate.COMMITTED, "the view points at it", current)
    if location == previous:
        return CommitFate(Fate.SUPERSEDED, "one later change went on from it", current)
    try:
        new = read_view_metadata(io, location)
    except FileMissingError:
        return CommitFate(Fate.UNKNOWN, "the file is gone, and views keep no log", current)
    if new.view_uuid != now.view_uuid:
        raise ValidationError(
            f"{location} is a file of another view: its uuid is {new.view_uuid}, that of "
            f"{entry.full_name} is {now.view_uuid}",
            hint="the view was dropped and made anew since, or the file's name is wrong",
        )
    newest = max(new.versions, key=lambda version: version.version_id)
    if newest in now.versions:
        return CommitFate(
            Fate.UNKNOWN,
            "the view has its newest version, and its file does not tell whether by this change: "
            "compare the properties",
            current,
        )
    overtaken = any(version.version_id == newest.version_id for version in now.versions)
    if is_old(newest.timestamp_ms) or (overtaken and checked):
        reason = "the view has another version of its number" if overtaken else "it is an hour old"
        return CommitFate(Fate.NOT_COMMITTED, reason, current, (location,))
    return CommitFate(
        Fate.PENDING, "not so far; a request that is still under way could commit it", current
    )
