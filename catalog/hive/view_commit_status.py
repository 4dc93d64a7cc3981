"""The status of a view's change whose outcome was unknown; a view keeps no log of its files."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from icecomb.catalog.commit.commit_status import CommitState, CommitStatus, is_old
from icecomb.catalog.hive.parameters import PREVIOUS_METADATA_LOCATION
from icecomb.catalog.hive.view_pointer import view_pointed_at
from icecomb.format.errors import IcecombError, NoSuchFileError, ValidationError
from icecomb.format.operation.expiry.location_keys import Spelling
from icecomb.format.spec.metadata_file import metadata_version
from icecomb.format.spec.view import read_view_metadata

if TYPE_CHECKING:
    from icecomb.catalog.hive.thrift.entity import HiveTable
    from icecomb.format.storage.file_io import FileIO


def view_commit_status(
    io: FileIO, entry: HiveTable, location: str, *, checked: bool
) -> CommitStatus:
    """Return the status of the change that wrote ``location``.

    Args:
        checked: Whether the metastore checks which pointer it replaces.
    """
    current = view_pointed_at(entry)
    now = read_view_metadata(io, current)
    previous = entry.parameters.get(PREVIOUS_METADATA_LOCATION)
    # other spellings, as a listing shows them, are the same file
    file, pointer, before = Spelling(io.properties).identities([location, current, previous or ""])
    if file == pointer:
        return CommitStatus(CommitState.COMMITTED, "the view points at it", current)
    if file == before:
        return CommitStatus(CommitState.SUPERSEDED, "one later change went on from it", current)
    try:
        new = read_view_metadata(io, location)
    except NoSuchFileError:
        return CommitStatus(CommitState.UNKNOWN, "the file is gone, and views keep no log", current)
    if new.view_uuid != now.view_uuid:
        raise ValidationError(
            f"{location} is a file of another view: its uuid is {new.view_uuid}, that of "
            f"{entry.full_name} is {now.view_uuid}",
            hint="The view was dropped and re-created since, or the file's name is wrong.",
        )
    newest = max(new.versions, key=lambda version: version.version_id)
    has_newest = newest in now.versions
    # A change of properties adds no version, so only the storage knows when it was written.
    old = is_old(_stored_ms(io, location) if has_newest else newest.timestamp_ms)
    if _is_overtaken(location, current, previous) or (
        not has_newest and any(one.version_id == newest.version_id for one in now.versions)
    ):
        if checked or old:
            reason = "the view has had another change in its place"
            return CommitStatus(CommitState.NOT_COMMITTED, reason, current, (location,))
    elif metadata_version(location) <= metadata_version(current):
        return CommitStatus(
            CommitState.UNKNOWN,
            "others have gone on more than once, and views keep no log: compare "
            + ("the properties" if has_newest else "the versions"),
            current,
        )
    elif old:
        return CommitStatus(CommitState.NOT_COMMITTED, "it is an hour old", current, (location,))
    return CommitStatus(
        CommitState.PENDING,
        "not so far; a request that is still under way could commit it",
        current,
    )


def _is_overtaken(location: str, current: str, previous: str | None) -> bool:
    """Return whether another change replaced the one that wrote ``location``.

    A writer numbers its file after the file it is based on, and a pointer moves only from that
    one: the view has had exactly one file of each number.
    """
    number = metadata_version(location)
    return number >= 0 and number in {
        metadata_version(one) for one in (current, previous) if one is not None
    }


def _stored_ms(io: FileIO, location: str) -> int:
    """Return the time when a file was stored, in milliseconds; now if it is unknown."""
    folder = location.rpartition("/")[0]
    with suppress(IcecombError, OSError):
        for status in io.list(folder):
            if status.location == location:
                return status.mtime_ms
    return int(time.time() * 1000)
